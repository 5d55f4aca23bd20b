"""Runs a kernel for one sample after another, each of which may read what the one before it wrote."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from .kernel import REPORT, Kernel

Array = np.ndarray
_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


def in_sequence(kernel: Kernel, count: int, operands: Sequence[Array]) -> None:
    """Run the code for one sample `count` times; flags are ignored.

    operands: inputs, then results, of doubles: (count, n), contiguous rows, one for each sample; or (n,), the same for
    all. NumPy would copy operands that overlap; this does not, so that a sample's input may be the result before it.
    """
    code, n = kernel.single, len(operands) + 1
    addresses = np.empty(n, np.uintp)
    steps = np.full(2 * n, operands[0].itemsize, np.intp)
    addresses[0], steps[0] = REPORT.address.ctypes.data, 0
    for k, x in enumerate(operands, 1):
        addresses[k] = x.__array_interface__["data"][0]
        steps[k] = x.strides[0] if x.ndim == 2 else 0
    dims = np.zeros(n, np.intp)
    dims[0] = count
    _ENTRY(code.entry)(addresses.ctypes.data, dims.ctypes.data, steps.ctypes.data, code.data)
    REPORT.flags[0] = 0
