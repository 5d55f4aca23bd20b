"""Functions of scalars over many samples: on arrays as they are written, or traced and compiled.

A motion has a few hundred samples, for which a NumPy call costs more than its arithmetic: a chart of some two hundred
operations takes 150 us as NumPy calls and a few as machine code.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
Function = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class Straight:
    """f(constants, x) -> results on scalars, called with constants (c,) and x (N, rows), gives (N, results)."""

    def __init__(self, function: Function, constants: int, rows: int, compiled: bool) -> None:
        self.function = function
        self._code = _compiled(function, constants, rows) if compiled else None

    def __call__(self, constants: Array, x: Array) -> Array:
        if self._code is None or x.dtype != np.float64:
            return np.stack(self.function(constants.tolist(), list(x.T)), -1)
        from ..evaluate.compiled import REPORT

        report = REPORT
        out = self._code.call(report.address, constants, x)
        report.flags[0] = 0  # what is not finite shows in the energy
        return out


@cache
def _compiled(function: Function, constants: int, rows: int) -> Any:
    """A gufunc of the function; kept on disk like other kernels."""
    from ..jit import library
    from ..jit.gufunc import Gufunc
    from ..jit.straight import trace

    inputs = {"constants": (constants,), "x": (rows,)}

    def run(constants: Any, x: Any) -> list[Any]:
        return [np.array(function(constants, x), object)]

    straight = trace(run, inputs)
    source = Path(str(sys.modules[function.__module__].__file__)).read_bytes()
    what = ("chart", function.__name__, hashlib.sha256(source).hexdigest())
    code = library.unrolled(what, lambda: straight, 64, False)
    results = len(straight.outputs[0][1])
    gufunc: Any = Gufunc(code.address("entry"), 0, f"(),({constants}),({rows})->({results})", function.__name__)
    gufunc.code = code  # lives as long as what calls it
    return gufunc
