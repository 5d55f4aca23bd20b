"""Straight-line functions of scalars over many samples: on arrays as they are written, or traced and compiled.

A motion has a few hundred samples, for which a NumPy call costs more than its arithmetic: a chart of some two hundred
operations takes 150 us as NumPy calls and 3 us as machine code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray
Function = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
PAD = 8  # samples are a multiple of this, so that vectors of any width come out even


class Straight:
    """f(constants, x) -> results, on scalars; called with constants (c,) and x (rows, N), gives (results, N)."""

    def __init__(self, function: Function, constants: int, rows: int, compiled: bool) -> None:
        self.function, self.shape = function, (constants, rows)
        self._run = _compiled(function, constants, rows) if compiled else None

    def __call__(self, constants: Array, x: Array) -> Array:
        if self._run is None or x.dtype != np.float64:
            return np.stack(self.function(constants.tolist(), list(x)))
        run, results = self._run
        n = x.shape[1]
        padded = -n % PAD
        if padded:
            x = np.concatenate([x, np.repeat(x[:, -1:], padded, 1)], 1)
        x = np.ascontiguousarray(x)
        out = np.empty((results, n + padded))
        run(constants.ctypes.data, x.ctypes.data, out.ctypes.data, n + padded)
        return out[:, :n]


@cache
def _compiled(function: Function, constants: int, rows: int) -> tuple[Callable[..., None], int]:
    """Machine code of (constants, x, out, N), and the number of results."""
    import llvmlite.ir as ir

    from ..compiler.engine import Library, compile_module, host_lanes
    from ..compiler.graph import Graph
    from ..compiler.lanes import I64, PTR, VOID, Lanes
    from ..compiler.program import Ref

    graph = Graph()
    loads = [[graph.load(Ref(space, "", k)) for k in range(n)] for space, n in (("constant", constants), ("x", rows))]
    results = [graph.lift(r) for r in function(*loads)]
    module = ir.Module("straight")
    lanes = Lanes(module, graph, host_lanes(), 8)
    f = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, PTR, I64]), "straight")
    for pointer in f.args[:3]:
        pointer.add_attribute("noalias")
    given, x, out, n = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    with lanes.loop(b, I64(0), n, lanes.L) as i:

        def place(base: Any, k: int) -> Any:
            return lanes.number(b, base, b.add(b.mul(I64(k), n), i))

        def where(ref: Ref) -> tuple[Any, bool]:
            return (lanes.number(b, given, I64(ref.k)), True) if ref.space == "constant" else (place(x, ref.k), False)

        sinks = [(r, lambda value, k=k: lanes.store(b, value, place(out, k))) for k, r in enumerate(results)]
        lanes.straight(b, sinks, where)
    b.ret_void()
    library = Library(compile_module(module))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(library.address("straight"))
    call.library = library  # type: ignore[attr-defined]  # the code lives as long as what calls it
    return call, len(results)
