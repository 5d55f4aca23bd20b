"""Sums of costs and constraints over the residuals of a knot, as traced scalars, with derivatives by all tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...jit.autodiff import jacobian
from ...jit.graph import Expr
from ..residuals.activations import Activation
from ..residuals.residuals import Residual
from ..residuals.signals import TracedKnot

Array = np.ndarray
Row = dict[int, Any]  # entries that are not zero, by the number of their column


@dataclass
class TermSums:
    """Costs by term, with gradient g and upper triangle C of Gauss-Newton's Hessian; constraints with Jacobians."""

    costs: list[Any] = field(default_factory=list)
    g: Row = field(default_factory=dict)
    C: dict[tuple[int, int], Any] = field(default_factory=dict)
    equality: list[Any] = field(default_factory=list)
    inequality: list[Any] = field(default_factory=list)
    equality_rows: list[Row] = field(default_factory=list)
    inequality_rows: list[Row] = field(default_factory=list)

    def add_cost(
        self, activation: Activation, rows: Sequence[Any], J: Sequence[Row], weights: Array, parameters: Sequence[Array]
    ) -> None:
        """Add the cost of a residual with its derivatives; parameters: those of the activation, one for each row."""
        total: Any = 0.0
        for i, (r, slopes) in enumerate(zip(rows, J, strict=True)):
            c = activation(r, *(p[i] for p in parameters))
            total = weights[i] * c.value + total
            slope, curvature = weights[i] * c.slope, weights[i] * c.curvature
            columns = sorted(slopes)
            for n, j in enumerate(columns):
                self.g[j] = slopes[j] * slope + self.g.get(j, 0.0)
                of_column = slopes[j] * curvature
                for k in columns[n:]:
                    self.C[j, k] = of_column * slopes[k] + self.C.get((j, k), 0.0)
        self.costs.append(total)

    def add_constraint(
        self, rows: Sequence[Any], J: Sequence[Row], bounds: Sequence[Array], lower: Array, upper: Array
    ) -> None:
        """Add r - bound = 0, or r - upper <= 0 and lower - r <= 0 if finite; bounds: lower and upper as traced."""
        for k, (r, slopes) in enumerate(zip(rows, J, strict=True)):
            if lower[k] == upper[k]:
                self.equality.append(r - bounds[0][k])
                self.equality_rows.append(slopes)
                continue
            if np.isfinite(upper[k]):
                self.inequality.append(r - bounds[1][k])
                self.inequality_rows.append(slopes)
            if np.isfinite(lower[k]):
                self.inequality.append(bounds[0][k] - r)
                self.inequality_rows.append({j: -1.0 * x for j, x in slopes.items()})

    def gradient(self, at: Sequence[int]) -> Array:
        """Entries of g."""
        return vector([self.g.get(k, 0.0) for k in at])

    def hessian(self, rows: Sequence[int], columns: Sequence[int]) -> Array:
        """A block of the whole symmetric matrix C."""
        out = np.empty((len(rows), len(columns)), object)
        for i, r in enumerate(rows):
            for j, c in enumerate(columns):
                out[i, j] = self.C.get((min(r, c), max(r, c)), 0.0)
        return out


def vector(entries: Sequence[Any]) -> Array:
    """Scalars as an array (n,)."""
    out = np.empty(len(entries), object)
    out[:] = list(entries)
    return out


def jacobian_rows(at: TracedKnot, residual: Residual, reference: Array, rows: Sequence[Any]) -> list[Row]:
    """The Jacobian of a residual by all tangents of a knot, in closed form if the residual has one."""
    closed_form = residual.slopes(at, reference, rows)
    if closed_form is None:
        inputs, moves = at.directions()
        J = jacobian([at.graph.lift(r) for r in rows], inputs, "auto", moves)
        return [{k: x for k, x in enumerate(row) if not is_zero(x)} for row in J]
    size, out = at.size, [dict[int, Any]() for _ in rows]
    starts = {"q": 0, "v": size.nv, "u": 2 * size.nv}
    for signal, block in closed_form.items():
        start = starts.get(signal.kind, -1)
        start = at.signals[signal].start if start < 0 else start
        for row, entries in zip(out, block, strict=True):
            row |= {start + k: x for k, x in enumerate(entries) if not is_zero(x)}
    return out


def is_zero(x: Any) -> bool:
    """Whether a traced scalar is the constant zero."""
    value = x.value if isinstance(x, Expr) else x
    return value is not None and value == 0
