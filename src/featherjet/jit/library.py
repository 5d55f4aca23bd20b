"""Machine code by key: already loaded, from the cache on disk, or compiled now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any

from ..forks import Lock
from . import cache
from .engine import CPU, Library, compile_module

_loaded: dict[str, Library] = {}
_lock = Lock()
_log = logging.getLogger("featherjet")


def library(target: CPU, what: Hashable, name: str, make: Callable[[], tuple[Any, str]]) -> Library:
    """The loaded code of `what`, a key that prints the same in every process.

    `make` emits the arguments of `compile_module`: an LLVM module and further text.
    """
    key = cache.name_of(what, target.text)
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                code = cache.read(key, target.text)
                if code is None:
                    _log.info("compiling %s", name)
                    code = compile_module(target, *make())
                    cache.write(key, target.text, code)
                found = _loaded[key] = Library(code, target)
    return found
