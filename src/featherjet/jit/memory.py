"""Memory for large results, which is used again once nobody holds them any more.

Fresh memory costs more than most kernels: the system hands it out page by page, zeroed, and takes it back as soon as
the last result is dropped. So what was handed out is kept, and handed out again when no array refers to it; a loop
that drops its results then runs in the same memory all the time, as if it had said `out=`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from math import prod

import numpy as np

from ..errors import InputError

SMALL = 1 << 16  # bytes up to which the system's allocator is as good
LINE = 64  # bytes; results begin where a cache line does
UNUSED = 3  # references to an owner that no array views: the pool's, the loop's and the call's that counts them


class Pool:
    """Keeps up to `budget` bytes."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._owners: deque[np.ndarray] = deque()
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """As np.empty."""
        size = prod(shape) * dtype.itemsize
        if size <= SMALL or size > self.budget:
            return np.empty(shape, dtype)
        with self._lock:
            return self._view(self._owner(size), size).view(dtype).reshape(shape)

    def _owner(self, size: int) -> np.ndarray:
        for owner in self._owners:
            if len(owner) == size + LINE and sys.getrefcount(owner) == UNUSED:
                return owner
        owner = np.empty(size + LINE, np.uint8)
        self._owners.append(owner)
        while sum(map(len, self._owners)) > self.budget + LINE * len(self._owners):
            self._owners.popleft()  # whoever still views it keeps it
        return owner

    @staticmethod
    def _view(owner: np.ndarray, size: int) -> np.ndarray:
        start = -owner.ctypes.data % LINE
        return owner[start : start + size]

    def clear(self) -> None:
        """Give back what nobody uses."""
        with self._lock:
            self._owners.clear()


def budget() -> int:
    """Bytes that may be kept: FEATHERJET_KEEP_MB, or 256 MB; none where references cannot be counted."""
    counts = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
    given = os.environ.get("FEATHERJET_KEEP_MB") or "256"
    if not given.isdecimal():
        raise InputError(f"FEATHERJET_KEEP_MB: expected a whole number of megabytes, got {given!r}")
    return int(given) << 20 if counts else 0


POOL = Pool(budget())
