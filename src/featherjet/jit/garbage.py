"""Python's garbage collector, paused while code is traced and written.

A trace is hundreds of thousands of small objects, none of them garbage, and every one of them may start a collection
that looks at all others: up to a quarter of the time.
"""

from __future__ import annotations

import gc
import os

from ..forks import Lock


class Uncollected:
    """`with uncollected:` around work that makes many objects and no cycles, on any number of threads."""

    def __init__(self) -> None:
        self._lock, self._count, self._collects = Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._count:
                self._collects = gc.isenabled()
                gc.disable()
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                self.resume()

    def resume(self) -> None:
        if self._collects:
            gc.enable()

    def after_fork(self) -> None:
        """A child has only the thread that forked, which does not trace."""
        if self._count:
            self._count = 0
            self.resume()


uncollected = Uncollected()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncollected.after_fork)
