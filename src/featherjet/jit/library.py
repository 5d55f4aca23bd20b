"""Machine code by key: already loaded, from the cache on disk, or compiled now."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from weakref import WeakValueDictionary

from ..forks import Lock
from . import cache
from .engine import CPU, Library
from .garbage import uncollected
from .notices import announced
from .objects import ModuleText, compiled

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
    if found is None:
        with _locks.setdefault(key, Lock()):
            found = _loaded.get(key)
            if found is None:
                found = _loaded[key] = Library(code_of(target, what, name, make), target)
                _recent.append(found)
        _locks.pop(key, None)
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
