"""Locks in a forked process: those that another thread held when the process forked would stay locked for ever.

A child has one thread. So it makes every lock anew, except LLVM's: a fork waits until LLVM is in no call, so that its
memory is whole in the child; calls that do without LLVM's lock are `unforked`, and so are imports within functions,
whose locks are Python's own. The locks of featherjet are of this kind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from _thread import interrupt_main
from functools import cached_property, partial
from itertools import chain
from typing import Any

RAISING = [getattr(signal, name) for name in ("SIGINT", "SIGALRM", "SIGTERM") if hasattr(signal, name)]
_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A lock, reentrant or not, that is free in a forked child."""

    def __init__(self, reentrant: bool = False) -> None:
        self._make = threading.RLock if reentrant else threading.Lock
        self._lock: Any = self._make()
        _locks.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        return self._lock.acquire(blocking)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def remake(self) -> None:
        """Free the lock, whoever holds it."""
        self._lock = self._make()


class Unforked:
    """`with unforked:` around work during which the process must not fork; a fork waits until nobody is at it."""

    def __init__(self) -> None:
        self.remake()

    def remake(self) -> None:
        self._nobody = threading.Condition()
        self._busy = 0

    def __enter__(self) -> None:
        with self._nobody:
            self._busy += 1

    def __exit__(self, *_: object) -> None:
        with self._nobody:
            self._busy -= 1
            self._nobody.notify_all()

    def close(self) -> None:
        """Wait until nobody is at work, and let nobody begin."""
        self._nobody.acquire()
        while self._busy:
            self._nobody.wait()

    def open(self) -> None:
        self._nobody.release()


unforked = Unforked()


def _llvm() -> Any:
    """The lock that llvmlite takes for each call of LLVM; None before LLVM is loaded."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(ffi, "lib", None), "_lock", None)


class _Signals:
    """Signals that come while a fork is prepared: what their handlers raise, such as KeyboardInterrupt, would be lost.

    Python prints what a hook of a fork raises, and goes on. So handlers wait until the parent has forked. They are
    restored, and called, by a hook without a line of Python, which no signal can interrupt.
    """

    def __init__(self) -> None:
        self._came: list[Any] = []
        self.deliver: Any = partial(list)  # the hook

    def defer(self) -> None:
        self._came.clear()
        here: dict[Any, Any] = {}
        if threading.current_thread() is threading.main_thread():  # no other runs handlers
            handlers = {n: signal.getsignal(n) for n in RAISING}
            here = {n: handler for n, handler in handlers.items() if callable(handler)}
        for n in here:
            signal.signal(n, lambda number, _: self._came.append(number))
        restore = map(signal.signal, here.keys(), here.values())
        self.deliver.__setstate__((list, (chain(restore, map(interrupt_main, self._came)),), {}, None))

    def drop(self) -> None:
        """What came was meant for the parent."""
        self._came.clear()


_signals = _Signals()


def _before() -> None:
    _signals.defer()
    unforked.close()  # first: unforked work may need LLVM's lock to end
    lock = _llvm()
    if lock is not None:
        lock.__enter__()
    _held.append(lock)


def _after() -> None:
    lock = _held.pop()
    if lock is not None:
        lock.__exit__()
    unforked.open()


def _in_child() -> None:
    _signals.drop()
    _after()
    unforked.remake()
    for lock in _locks:
        lock.remake()
    for module in [m for name, m in sys.modules.items() if name.startswith("featherjet.")]:
        for kind in [x for x in vars(module).values() if isinstance(x, type)]:
            for entry in vars(kind).values():
                if isinstance(entry, cached_property) and hasattr(entry, "lock"):  # Pythons before 3.12
                    entry.lock = threading.RLock()  # type: ignore[attr-defined]


_held: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
    os.register_at_fork(after_in_parent=_signals.deliver, after_in_child=_signals.deliver)
