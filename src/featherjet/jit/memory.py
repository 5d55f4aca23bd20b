"""Memory for large results, reused once nothing refers to them.

Fresh memory costs more than most kernels: the system zeroes it page by page, and takes it back when the last result is
dropped. So a block returns to a pool when the last array that views it dies, and serves the next result of the same
size. A loop that drops its results keeps using the same memory, as if it had passed `out=`.

The base of every array made here is a `Lease`, which Python destroys after the last view. No code counts references.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..forks import Lock
from ..settings import whole_number

SMALL = 1 << 16  # bytes; below this the system's allocator is as fast
LINE = 64  # bytes; results begin at cache lines


class Lease:
    """Owns a block of memory while arrays view it, then returns it to the pool."""

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


KEPT_MB = 256  # megabytes that are kept, unless FEATHERJET_KEEP_MB says otherwise


class Pool:
    """Keeps up to `budget()` bytes of unused memory; it is asked when memory is first wanted."""

    def __init__(self, budget: Callable[[], int]) -> None:
        self._asked = budget
        self._free: deque[np.ndarray] = deque()  # longest unused first
        self._unused = 0
        self._lock = Lock()

    @cached_property
    def budget(self) -> int:
        """The most bytes that are kept."""
        return self._asked()

    @property
    def unused(self) -> int:
        """Bytes ready for reuse."""
        return self._unused

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Like np.empty."""
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
                    self._unused -= length
                    return block
        try:
            return np.empty(length, np.uint8)
        except MemoryError:
            self.clear()
            return np.empty(length, np.uint8)

    def take_back(self, block: np.ndarray) -> None:
        """Keep a block that no array views, or free it.

        Python may call this at any moment, even while this pool holds its lock, so it never waits for the lock.
        """
        if self._lock.acquire(blocking=False):
            try:
                while self._free and self._unused + len(block) > self.budget + LINE:
                    self._unused -= len(self._free.popleft())
                if self._unused + len(block) <= self.budget + LINE:
                    self._free.append(block)
                    self._unused += len(block)
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Free all unused memory."""
        with self._lock:
            self._free.clear()
            self._unused = 0


def budget() -> int:
    """The pool's budget in bytes: FEATHERJET_KEEP_MB, or 256 MB."""
    given = whole_number("FEATHERJET_KEEP_MB", "megabytes")
    return (KEPT_MB if given is None else given) << 20


POOL = Pool(budget)
