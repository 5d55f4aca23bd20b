"""Calls that go straight to a kernel's machine code: of one sample, or of a short batch, in contiguous arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .memory import POOL
from .straight import Shape

Array = np.ndarray
Call: TypeAlias = Callable[..., "tuple[Array, ...] | None"]
SHORT = 1e5  # nanoseconds, roughly, that a batch may take blind to signals and other threads


def declined(*given: Any, out: Any = None) -> None:
    """What a direct call gives that takes nothing."""


class DirectCalls:
    """The direct calls of one kernel in one precision.

    run(*inputs, out=None) gives the results; None where it does not take these inputs, or where a flag is set. It takes
    one sample from `take_one` on, and batches along one axis, which the first input has and others may have, from
    `take_batches` on. shapes: of one sample of each result. axes: of the first input of a batch. cost: nanoseconds per
    sample, roughly.
    """

    def __init__(self, shapes: Sequence[Shape], dtype: np.dtype, axes: int, cost: float) -> None:
        self._shapes, self._dtype, self._axes, self._longest = shapes, dtype, axes, int(SHORT / cost)
        self._one: Callable[..., int] | None = None
        self._batches: Callable[..., int] | None = None
        self.run: Call = declined

    def takes(self, axes: int) -> bool:
        """Whether it takes calls with no axis, or one axis, of samples."""
        return (self._batches if axes else self._one) is not None

    def take_one(self, code: Callable[..., int]) -> None:
        """Take one sample. code: (inputs..., results...) -> flags."""
        if self._one is None:
            self._one = code
            self.run = self._made()

    def take_batches(self, code: Callable[..., int]) -> None:
        """Take batches of up to `longest` samples."""
        if self._batches is None:
            self._batches = code
            self.run = self._made()

    def _made(self) -> Call:
        # Every line of these functions costs each call.
        one, of_batch = self._one, self._of_batch()
        shapes, empty, types = self._shapes, np.empty, [self._dtype] * len(self._shapes)
        shape, dtype = shapes[0], self._dtype

        def run_batch(*given: Array, out: Any = None) -> tuple[Array, ...] | None:
            return of_batch(given, out)

        if one is None:
            return run_batch

        def run_single(*given: Array, out: Any = None) -> tuple[Array, ...] | None:
            outs = (empty(shape, dtype),) if out is None else out if isinstance(out, tuple) else (out,)
            return of_batch(given, out) if one(*given, *outs) else outs

        def run(*given: Array, out: Any = None) -> tuple[Array, ...] | None:
            outs = tuple(map(empty, shapes, types)) if out is None else out if isinstance(out, tuple) else (out,)
            return of_batch(given, out) if one(*given, *outs) else outs

        return run_single if len(shapes) == 1 else run

    def _of_batch(self) -> Callable[[tuple[Array, ...], Any], tuple[Array, ...] | None]:
        """(inputs, out) -> the results of a short batch, or None."""
        code, shapes, empty, dtype, axes = self._batches, self._shapes, POOL.empty, self._dtype, self._axes
        longest = self._longest
        if code is None:
            return lambda given, out: None

        def run(given: tuple[Array, ...], out: Any) -> tuple[Array, ...] | None:
            first = given[0]
            if type(first) is not np.ndarray or first.ndim != axes or not 0 < len(first) <= longest:
                return None
            if out is None:
                n = len(first)
                outs = tuple([empty((n, *shape), dtype) for shape in shapes])
            else:
                outs = out if isinstance(out, tuple) else (out,)
            return None if code(*given, *outs) else outs

        return run
