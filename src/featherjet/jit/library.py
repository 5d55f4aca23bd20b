"""Machine code by key: already loaded, from the cache on disk, or compiled now."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from weakref import WeakValueDictionary

from ..forks import Lock
from . import cache
from .engine import CPU, Library
from .notices import announced
from .objects import ModuleText, compiled

RECENT = 16  # libraries to keep although nothing uses them: the next robot may
_loaded: WeakValueDictionary[str, Library] = WeakValueDictionary()  # whoever runs code holds its library
_recent: deque[Library] = deque(maxlen=RECENT)
_locks: dict[str, Lock] = {}
_log = logging.getLogger("featherjet")


def labelled(name: str, whose: str) -> str:
    """What messages call some code."""
    return f"{name} for {whose}" if whose else name


def library(target: CPU, what: Hashable, name: str, make: Callable[[], Iterable[ModuleText]]) -> Library:
    """The loaded code of `what`, a key that prints the same in every process; `name` is for messages.

    `make` writes the LLVM modules that make up the code. Code is freed after the last object that refers to it.
    """
    key = cache.name_of(what, target.text)
    found = _loaded.get(key)
    if found is None:
        with _locks.setdefault(key, Lock()):
            found = _loaded.get(key)
            if found is None:
                code = cache.read(key, target.text)
                if code is None:
                    _log.info("compiling %s", name)
                    with announced(f"compiling {name}", "once; kept on disk" if cache.folder() else "once"):
                        code = compiled(target, make())
                    cache.write(key, target.text, code)
                found = _loaded[key] = Library(code, target)
                _recent.append(found)
        _locks.pop(key, None)
    return found
