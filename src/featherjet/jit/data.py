"""The block of counts and addresses that machine code reads, besides the arrays it works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .number import Number

HEADER = ("ndarray", "dtype")  # addresses of NumPy's array type and dtype, which quick calls compare with


class Data:
    """Eight bytes for each name of HEADER, then those that one kernel for one kind of number needs.

    entries: what follows the header, counts and arrays; the block has the arrays' addresses.
    """

    def __init__(self, kind: Number, entries: Sequence[int | np.ndarray] = ()) -> None:
        self.kind, self.entries = kind, tuple(entries)

    def addresses(self) -> list[int]:
        """The block after the header."""
        return [x if isinstance(x, int) else x.ctypes.data for x in self.entries]

    @cached_property
    def block(self) -> np.ndarray:
        return np.array([id(np.ndarray), id(self.kind.dtype), *self.addresses()], dtype=np.uint64)

    @property
    def address(self) -> int:
        return self.block.ctypes.data
