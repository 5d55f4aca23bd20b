"""The block of counts and addresses that machine code reads, besides the arrays it works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .number import Number


class Data:
    """Eight bytes for each entry that one kernel for one kind of number needs.

    entries: counts and arrays; the block has the arrays' addresses.
    """

    def __init__(self, kind: Number, entries: Sequence[int | np.ndarray] = ()) -> None:
        self.kind, self.entries = kind, tuple(entries)

    def addresses(self) -> list[int]:
        """The entries of the block."""
        return [x if isinstance(x, int) else x.ctypes.data for x in self.entries]

    @cached_property
    def block(self) -> np.ndarray:
        return np.array(self.addresses(), dtype=np.uint64)

    @property
    def address(self) -> int:
        return self.block.ctypes.data
