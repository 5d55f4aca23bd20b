"""BLAS on one thread, where its matrices are small.

NumPy and SciPy hand products and factorisations to a BLAS, which wakes its threads from some hundred rows on. They wait
for more work by spinning, so a search over small matrices took thirty times the processor time of one thread, and was
slower. OpenBLAS, which the wheels of both bring along, has one number of threads for the whole process, so other
threads have one thread for their products, too, while a `with one_blas_thread:` lasts.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .forks import Lock

# Extension modules that are linked to a BLAS, and through which the system's linker finds its functions.
USERS = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
NAMES = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("", "64_", "_64", "64")
]
ALONE = 8192  # numbers: OpenBLAS shares longer sums between threads


def sum_of_squares(x: np.ndarray) -> float:
    """The sum of the squares of all numbers of an array, without waking threads."""
    flat = x.ravel()
    return float(flat.dot(flat) if flat.size < ALONE else np.einsum("i,i->", flat, flat))


class BlasLibrary(NamedTuple):
    """A BLAS: functions that say and set its number of threads."""

    threads: Callable[[], int]
    use: Callable[[int], None]


class OneThread(ContextDecorator):
    """`with one_blas_thread:` around searches over small matrices; may be nested, and entered by several threads.

    The last one that leaves gives all threads back. A child that is forked meanwhile keeps one.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._seen: set[str] = set()
        self.libraries: list[BlasLibrary] = []
        self._limited: list[tuple[BlasLibrary, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            self._look()
            for library in self.libraries:
                before = library.threads()
                if before > 1:  # to set one again would start threads in a forked process
                    library.use(1)
                    self._limited.append((library, before))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for library, before in self._limited:
                    library.use(before)
                self._limited.clear()

    def _look(self) -> None:
        """Find the libraries of modules that were loaded since the last time."""
        for name in USERS:
            if name not in self._seen and (module := sys.modules.get(name)) is not None:
                self._seen.add(name)
                self.libraries.extend(_libraries(name, Path(str(module.__file__))))


def _libraries(name: str, path: Path) -> list[BlasLibrary]:
    """The OpenBLAS that an extension module is linked to; none if it has another BLAS, which keeps its threads."""
    package = name.split(".")[0]
    beside = path.parents[name.count(".")] / f"{package}.libs"  # where Windows does not look for functions
    for file in (path, *sorted(beside.glob("*openblas*"))):
        try:
            linked = ctypes.CDLL(str(file))
        except OSError:
            continue
        for threads, use in NAMES:
            if hasattr(linked, threads) and hasattr(linked, use):
                integer = ctypes.c_int
                get = ctypes.CFUNCTYPE(integer)((threads, linked))
                return [BlasLibrary(get, ctypes.CFUNCTYPE(None, integer)((use, linked)))]
    return []


one_blas_thread = OneThread()
