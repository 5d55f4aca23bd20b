"""The block of counts and addresses that machine code reads, besides the arrays it works on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

HEADER = ("ndarray", "float64")  # addresses of NumPy's array type and dtype, which quick calls compare with


class Data:
    """Eight bytes for each name of HEADER, then those that one kernel needs."""

    def __init__(self, more: Sequence[int] = ()) -> None:
        self.block = np.array([id(np.ndarray), id(np.dtype(np.float64)), *more], dtype=np.uint64)

    @property
    def address(self) -> int:
        return self.block.ctypes.data
