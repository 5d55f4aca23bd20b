"""Runs a kernel for one sample after another, each of which may read what the one before it wrote."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from .kernel import Kernel

Array = np.ndarray
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class InSequence:
    """A kernel's code for one sample, to be run `count` times, on operands that stay where they are; flags are ignored.

    operands: inputs, then results, of doubles: (count, n), contiguous rows, one for each sample; or (n,), the same for
    all. NumPy would copy operands that overlap; this does not, so that a sample's input may be the result before it.
    """

    def __init__(self, kernel: Kernel, count: int, operands: Sequence[Array]) -> None:
        code, n = kernel.single, len(operands) + 1
        flags = np.zeros(1, np.int64)
        report = np.array(flags.ctypes.data, np.int64)
        self._addresses = np.array([x.ctypes.data for x in (report, *operands)], np.uintp)
        steps = np.full(2 * n, report.itemsize, np.intp)
        steps[:n] = [0, *(x.strides[0] if x.ndim == 2 else 0 for x in operands)]
        dims = np.zeros(n, np.intp)
        dims[0] = count
        self._run = _ENTRY(code.entry)
        self._given = *(x.ctypes.data for x in (self._addresses, dims, steps)), code.data
        self._keep = code, flags, report, steps, dims, operands

    def move(self, operand: int, address: int) -> None:
        """Let an operand begin at another address; its rows are as far apart as before."""
        self._addresses[operand + 1] = address

    def __call__(self) -> None:
        self._run(*self._given)
