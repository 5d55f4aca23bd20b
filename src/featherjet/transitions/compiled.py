"""Functions of scalars over many samples: on arrays as they are written, or traced and compiled.

A motion has a few hundred samples, for which a NumPy call costs more than its arithmetic: a chart of some two hundred
operations takes 150 us as NumPy calls and a few as machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..jit.kernel import Kernel

Array = np.ndarray
Formula = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class SampledFormula:
    """f(constants, x) -> results on scalars, called with constants (c,) and x (N, rows), gives (N, results)."""

    def __init__(self, formula: Formula, constants: int, rows: int, compiled: bool) -> None:
        self.formula = formula
        self._kernel = compiled_formula(formula, constants, rows) if compiled else None

    def __call__(self, constants: Array, x: Array) -> Array:
        if self._kernel is None or x.dtype != np.float64:
            return np.stack(self.formula(constants.tolist(), list(x.T)), -1)
        return self._kernel.values(constants, x)[0]  # what is not finite shows in the energy


@cache
def compiled_formula(formula: Formula, constants: int, rows: int) -> Kernel:
    """The kernel of a formula."""
    from ..jit.kernel import compile

    def run(constants: Any, x: Any) -> list[Any]:
        return [np.array(formula(constants, x), object)]

    key = "formula", formula.__module__, formula.__qualname__
    return compile(run, {"constants": (constants,), "x": (rows,)}, key, formula.__name__)
