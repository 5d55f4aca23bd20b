"""Memory for large results, used again once nobody holds them any more.

Fresh memory costs more than most kernels: the system hands it out page by page, zeroed, and takes it back as soon as
the last result is dropped. So a block of memory that held a result goes back to a pool when the last array that views
it dies, and serves the next result of the same size; a loop that drops its results then runs in the same memory all
the time, as if it had used `out=`.

Every array made here has a `Lease` as its base, which Python destroys after the last view of it, whoever made that
view: no reference is ever counted.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from math import prod
from typing import Any

import numpy as np

from ..errors import InputError

SMALL = 1 << 16  # bytes up to which the system's allocator is as good
LINE = 64  # bytes; results begin where a cache line does


class Lease:
    """A block of memory while arrays view it; afterwards the block goes back to the pool."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: Pool, block: np.ndarray, size: int) -> None:
        start = block.ctypes.data
        start += -start % LINE
        self._pool, self._block = pool, block
        self.__array_interface__: dict[str, Any] = {
            "shape": (size,), "typestr": "|u1", "data": (start, False), "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        self._pool.take_back(self._block)


class Pool:
    """Keeps up to `budget` bytes that no array views."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._free: deque[np.ndarray] = deque()  # the longest unused first
        self._kept = 0
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """Bytes that wait to be used again."""
        return self._kept

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """As np.empty."""
        size = prod(shape) * dtype.itemsize
        if size <= SMALL or size > self.budget:
            return np.empty(shape, dtype)
        lease = Lease(self, self._block(size + LINE), size)
        return np.asarray(lease).view(dtype).reshape(shape)

    def _block(self, length: int) -> np.ndarray:
        with self._lock:
            for k, block in enumerate(self._free):
                if len(block) == length:
                    del self._free[k]
                    self._kept -= length
                    return block
        return np.empty(length, np.uint8)

    def take_back(self, block: np.ndarray) -> None:
        """Keep a block that nobody views any more, or let it go.

        This may run at any moment, in the middle of this pool's own work too: it never waits for the lock.
        """
        if self._lock.acquire(blocking=False):
            try:
                while self._free and self._kept + len(block) > self.budget + LINE:
                    self._kept -= len(self._free.popleft())
                if self._kept + len(block) <= self.budget + LINE:
                    self._free.append(block)
                    self._kept += len(block)
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Let go of what nobody uses."""
        with self._lock:
            self._free.clear()
            self._kept = 0


def budget() -> int:
    """Bytes that may be kept: FEATHERJET_KEEP_MB, or 256 MB."""
    given = os.environ.get("FEATHERJET_KEEP_MB") or "256"
    if not given.isdecimal():
        raise InputError(f"FEATHERJET_KEEP_MB: expected a whole number of megabytes, got {given!r}")
    return int(given) << 20


POOL = Pool(budget())
