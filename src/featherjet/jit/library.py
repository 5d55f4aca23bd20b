"""Kernels as loaded machine code: from memory, from the disk, or compiled now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..model.tree import Tree
from ..treejit.kernels import KERNELS, operands
from ..treejit.tables import variants
from . import cache
from .engine import Library, compile_module, host_lanes, host_name, target_machine

if TYPE_CHECKING:
    from .straight import Straight

_loaded: dict[str, Library] = {}
_lock = threading.Lock()
_log = logging.getLogger("featherjet")


def rolled(name: str, tree: Tree, fext: bool, precision: int) -> Library:
    """The code of a kernel for all robots with the same joint variants; `precision` of the user's numbers, 32 or 64."""

    def make() -> Any:
        from ..treejit.emit.rolled import emit_rolled
        from ..treejit.rolled import trace_kernel

        program = trace_kernel(KERNELS[name], variants(tree), fext)
        single = precision == 32
        return emit_rolled(program, operands(name, fext), host_lanes(), target_machine().triple, single), ""

    return _library(("rolled", name, variants(tree), fext, host_lanes(), precision), make)


def unrolled(what: tuple, straight: Callable[[], Straight], precision: int, one: bool) -> Library:
    """Straight-line code, found by `what` it is; for one state at a time, or for batches."""
    lanes = 1 if one else host_lanes()

    def make() -> Any:
        from .emit.straight import emit_unrolled

        return emit_unrolled(straight(), lanes, target_machine().triple, precision == 32)

    return _library(("unrolled", what, lanes, precision), make)


def _library(what: tuple, make: Callable[[], Any]) -> Library:
    key = cache.name_of(*what, host_name())
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                code = cache.read(key)
                if code is None:
                    _log.info("compiling %s; from now on it is on disk", " ".join(islice(_words(what), 3)))
                    code = compile_module(*make())
                    cache.write(key, code)
                found = _loaded[key] = Library(code)
    return found


def _words(what: Any) -> Iterator[str]:
    """The names in what a library is found by."""
    if isinstance(what, tuple):
        for x in what:
            yield from _words(x)
    elif isinstance(what, str) and what.isidentifier() and len(what) < 60:
        yield what
