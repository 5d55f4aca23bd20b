"""Machine code by key: already loaded, from the cache on disk, or compiled now."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial, wraps
from typing import Any
from weakref import WeakValueDictionary

from ..forks import Lock
from . import cache
from .engine import CPU, Library
from .garbage import uncollected
from .notices import announced
from .objects import ModuleText, compiled, object_of, packed
from .workers import Background, processors

WAITING = 2  # threads that compile ahead, besides one for each processor: they wait for Python as often as for LLVM
WRITERS = 8  # threads that write to disk
RECENT = 16  # libraries to keep although nothing uses them: the next robot may
_loaded: WeakValueDictionary[str, Library] = WeakValueDictionary()  # whoever runs code holds its library
_recent: deque[Library] = deque(maxlen=RECENT)
_locks: dict[str, Lock] = {}
_log = logging.getLogger("featherjet")


class Unloaded(Library):
    """The modules of code that runs elsewhere."""

    def __init__(self, parts: Iterable[ModuleText]) -> None:
        self.parts = tuple(parts)


def labelled(name: str, whose: str, for_one: bool = True) -> str:
    """What messages call some code; that for batches says so, beside that for one state."""
    return " ".join([name, *([f"for {whose}"] if whose else []), *([] if for_one else ["in batches"])])


def library(target: CPU, what: Hashable, name: str, make: Callable[[], Iterable[ModuleText]]) -> Library:
    """The loaded code of `what`, a key that prints the same in every process; `name` is for messages.

    `make` writes the LLVM modules that make up the code. Code is freed after the last object that refers to it.
    Code that runs alone is not loaded: what comes back are its modules.
    """
    if target.platform.alone:
        return Unloaded(make())
    key = cache.name_of(what, target.text)
    found = _loaded.get(key)
    if found is None and _ahead.of_this_thread is not None:
        return _ahead.of_this_thread.take(target, key, name, make)
    if found is None:
        with _locks.setdefault(key, Lock()):
            found = _loaded.get(key)
            if found is None:
                found = _loaded[key] = Library(code_of(target, what, name, make), target)
                _recent.append(found)
        _locks.pop(key, None)
    return found


class Ahead:
    """`with Ahead(name):` around calls of `library`, whose code is then compiled together, on all processors, while
    this thread writes its text. What these calls return may not be code yet; afterwards they find it.

    name: of everything, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ready: dict[str, Library] = {}
        self._parts: dict[str, slice] = {}  # of code that is being compiled, among all parts
        self._targets: dict[str, CPU] = {}
        self._count = 0

    def take(self, target: CPU, key: str, name: str, make: Callable[[], Iterable[ModuleText]]) -> Any:
        """The code if it is on disk; else it will be compiled."""
        if key in self._ready or key in self._parts:
            return self._ready.get(key)
        code = cache.read(key, target.text)
        if code is not None:
            self._ready[key] = Library(code, target)
            return self._ready[key]
        _log.info("compiling %s", name)
        first = self._count
        for part in make():
            self._background.add(partial(object_of, target, part))
            self._count += 1
        self._parts[key], self._targets[key] = slice(first, self._count), target
        return None

    def __enter__(self) -> Ahead:
        self._background: Background[bytes] = Background(processors() - 1 + WAITING)
        self._told = announced(f"compiling {self._name}", cache.remark())
        self._told.__enter__()
        uncollected.__enter__()
        _ahead.of_this_thread = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        _ahead.of_this_thread = None
        try:
            with self._background:
                if kind is None:
                    self._finish()
        finally:
            uncollected.__exit__()
            self._told.__exit__(None, None, None)

    def _finish(self) -> None:
        objects = self._background.results()
        with Background[None](WRITERS) as writing:  # which waits for the disk
            for key, parts in self._parts.items():
                target, code = self._targets[key], packed(objects[parts])
                writing.add(partial(cache.write, key, target.text, code))
                self._ready[key] = Library(code, target)
            writing.results()
        _loaded.update(self._ready)


class _Ahead(threading.local):
    of_this_thread: Ahead | None = None


_ahead = _Ahead()


def remembered(load: Callable[..., Library]) -> Callable[..., Library]:
    """Like functools.cache, for functions that load code; what is being compiled ahead is no code yet."""
    known: dict[Any, Library] = {}

    @wraps(load)
    def found(*args: Any) -> Library:
        code = known.get(args) or load(*args)
        return known.setdefault(args, code) if code else code

    return found


def code_of(target: CPU, what: Hashable, name: str, make: Callable[[], Iterable[ModuleText]]) -> bytes:
    """The same as object code, from the cache on disk or compiled now; whoever loads it has a copy of its own."""
    key = cache.name_of(what, target.text)
    code = cache.read(key, target.text)
    if code is None:
        _log.info("compiling %s", name)
        with announced(f"compiling {name}", cache.remark()), uncollected:
            code = compiled(target, make())
        cache.write(key, target.text, code)
    return code
