"""Kernels as loaded machine code: from memory, from the disk, or compiled now."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from . import cache
from .engine import Library, compile_module, host_lanes, host_name
from .program import Variant

_loaded: dict[str, Library] = {}
_lock = threading.Lock()


def library(name: str, variants: Sequence[Variant], fext: bool) -> Library:
    """The code of a kernel for robots with these joint variants."""
    key = cache.name_of(name, tuple(variants), fext, host_lanes(), host_name())
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                code = cache.read(key)
                if code is None:
                    from .kernels import module

                    code = compile_module(module(name, variants, fext, host_lanes()))
                    cache.write(key, code)
                found = _loaded[key] = Library(code)
    return found
