"""Kernels whose code wants samples with contiguous rows: other arrays are copied."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .kernel import Kernel


class RowKernel(Kernel):
    """A kernel whose arrays have contiguous rows: only the first axis of a matrix may be apart.

    whole_results, whole_inputs: whether these must have them; whole_vectors: whether a vector is a row.
    """

    whole_results = True
    whole_inputs = whole_vectors = False

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results and the flags."""
        if self.whole_inputs:
            pairs = zip(inputs, self.cores, strict=True)
            inputs = [x if self.is_whole(x, core) else np.ascontiguousarray(x) for x, core in pairs]
        results = out if out and self.whole_results else ()
        if all(self.is_whole(x, len(shape)) for x, shape in zip(results, self.shapes, strict=bool(results))):
            return super().__call__(inputs, out, threads)
        found, flags = super().__call__(inputs, None, threads)
        for x, y in zip(results, found, strict=True):
            np.copyto(x, y)
        return tuple(results), flags

    def is_whole(self, x: np.ndarray, axes: int) -> bool:
        """Whether the rows of samples with so many axes are contiguous."""
        first = x.ndim - axes + (axes > 1 or not self.whole_vectors)
        return all(x.strides[k] == x.itemsize * prod(x.shape[k + 1 :]) for k in range(first, x.ndim))
