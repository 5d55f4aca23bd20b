"""The block of counts and addresses that machine code reads, besides the arrays it works on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .number import Number

HEADER = ("ndarray", "dtype")  # addresses of NumPy's array type and dtype, which quick calls compare with


class Data:
    """Eight bytes for each name of HEADER, then those that one kernel for one kind of number needs."""

    def __init__(self, kind: Number, more: Sequence[int] = ()) -> None:
        self.kind = kind
        self.block = np.array([id(np.ndarray), id(kind.dtype), *more], dtype=np.uint64)

    @property
    def address(self) -> int:
        return self.block.ctypes.data
