"""Machine code by key: already loaded, from the cache on disk, or compiled now."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
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
_lock = Lock()
_log = logging.getLogger("featherjet")


def labelled(name: str, whose: str, for_one: bool = True) -> str:
    """What messages call some code; that for batches says so, beside that for one state."""
    return " ".join([name, *([f"for {whose}"] if whose else []), *([] if for_one else ["in batches"])])


def library(target: CPU, what: Hashable, name: str, make: Callable[[], Iterable[ModuleText]]) -> Library:
    """The code of `what`, a key that prints the same in every process; `name` is for messages.

    `make` writes the LLVM modules that make up the code. The code is loaded, unless it is compiled ahead, which `Ahead`
    finishes; of code that runs elsewhere there are only its modules. Code is freed after the last object that refers
    to it.
    """
    if target.platform.alone:
        return Library(b"", target, make())
    key = cache.name_of(what, target.text)
    with _lock:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = Library(partial(code_of, target, what, name, make), target)
    if not found.loaded:
        if _ahead.of_this_thread is None:
            found.load()
            _recent.append(found)
        else:
            _ahead.of_this_thread.take(found, key, name, make)
    return found


class Ahead:
    """`with Ahead(name):` around calls of `library`, whose code is then compiled together, on all processors, while
    this thread writes its text. What these calls return is loaded afterwards.

    name: of everything, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._keys: dict[Library, str] = {}
        self._parts: dict[Library, slice] = {}  # of code that is being compiled, among all parts
        self._count = 0

    def take(self, library: Library, key: str, name: str, make: Callable[[], Iterable[ModuleText]]) -> None:
        """Load code that is on disk, and begin to compile other code."""
        if library in self._keys:
            return
        code = cache.read(key, library.target.text)
        self._keys[library] = key
        if code is not None:
            library.load(code)
            return
        _log.info("compiling %s", name)
        first = self._count
        for part in make():
            self._background.add(partial(object_of, library.target, part))
            self._count += 1
        self._parts[library] = slice(first, self._count)

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
            for library, parts in self._parts.items():
                code = packed(objects[parts])
                writing.add(partial(cache.write, self._keys[library], library.target.text, code))
                library.load(code)
            writing.results()


def compiled_together(name: str) -> AbstractContextManager[object]:
    """`Ahead(name)`, unless this is within another one already, which then compiles everything."""
    return Ahead(name) if _ahead.of_this_thread is None else nullcontext()


class _Ahead(threading.local):
    of_this_thread: Ahead | None = None


_ahead = _Ahead()


def code_of(target: CPU, what: Hashable, name: str, make: Callable[[], Iterable[ModuleText]]) -> bytes:
    """Object code of `what`, from the cache on disk or compiled now; whoever loads it has a copy of its own."""
    key = cache.name_of(what, target.text)
    code = cache.read(key, target.text)
    if code is None:
        _log.info("compiling %s", name)
        with announced(f"compiling {name}", cache.remark()), uncollected:
            code = compiled(target, make())
        cache.write(key, target.text, code)
    return code
