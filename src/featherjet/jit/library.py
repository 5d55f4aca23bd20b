"""Loaded machine code, found by what it was made from: in memory, on disk, or compiled now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

from . import cache
from .engine import Library, compile_module, host_name

_loaded: dict[str, Library] = {}
_lock = threading.Lock()
_log = logging.getLogger("featherjet")


def library(what: Hashable, name: str, make: Callable[[], tuple[Any, str]]) -> Library:
    """The code of `what`, which prints the same in every process; `make` gives an LLVM module and further text."""
    key = cache.name_of(what, host_name())
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                code = cache.read(key)
                if code is None:
                    _log.info("compiling %s", name)
                    code = compile_module(*make())
                    cache.write(key, code)
                found = _loaded[key] = Library(code)
    return found
