"""Second derivatives of residuals by the tangents of their signals, contracted with the slopes of what they cost.

By tangents i and j of a group, a chart sees the symmetric half of (D_i D_j + D_j D_i) r.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...jit.autodiff import jacobian
from ...jit.kernel import Kernel
from ..residuals.cost import Cost
from ..residuals.residuals import Residual
from ..residuals.signals import TracedKnot
from .kernels import traced_kernel
from .term_sums import Row, jacobian_rows
from .terms import TermSlices, TracedTerms

Array = np.ndarray


class ResidualHessians:
    """Second derivatives of the residuals of costs; tangents: directions in which some residual is nonlinear.

    These are n of the tangents of all signals of the terms.
    """

    def __init__(self, terms: TracedTerms) -> None:
        self.terms = terms
        directions: set[int] = set()
        for cost, entries in zip(terms.costs, terms.entries, strict=False):
            curved = cost.residual.curved_tangents(terms.size)
            directions |= tangents_of(terms, entries) if curved is None else set(curved)
        self.tangents = sorted(directions)

    @cached_property
    def kernel(self) -> Kernel:
        """The code that takes the inputs of the terms' code and computes `matrix`."""
        n = len(self.tangents)
        key = "residual Hessians", self.terms.key, tuple(self.tangents)
        return traced_kernel(
            lambda **inputs: [self.matrix(inputs)], self.terms.inputs, key, "residual Hessians", [(n, n)]
        )

    def matrix(self, inputs: dict[str, Array]) -> Array:
        """The sum over all rows of slope times Hessian (n, n) by `tangents`, on traced inputs."""
        at, number = self.terms.knot(inputs), {k: i for i, k in enumerate(self.tangents)}
        B = np.full((len(number), len(number)), 0.0, object)
        for cost, place in zip(self.terms.costs, self.terms.slices, strict=False):
            curved = cost.residual.curved_tangents(self.terms.size)
            if curved is None or len(curved):
                self._add(at, cost, place, inputs["data"], number, B)
        return B

    def _add(
        self, at: TracedKnot, cost: Cost, place: TermSlices, data: Array, number: dict[int, int], B: Array
    ) -> None:
        reference = data[place.reference]
        rows = cost.residual.rows(at, reference)
        J = jacobian_rows(at, cost.residual, reference, rows)
        hessians = second_derivatives(at, cost.residual, reference, rows, J)
        for i, r in enumerate(rows):
            c = cost.charged(r, *(data[p][i] for p in place.parameters))
            slope = data[place.weights][i] * c.slope
            for (j, k), x in hessians[i].items():
                half = 0.5 * (slope * x)
                j, k = number[j], number[k]
                B[j, k], B[k, j] = half + B[j, k], half + B[k, j] if j != k else half + half + B[j, k]


def second_derivatives(
    at: TracedKnot, residual: Residual, reference: Array, rows: Any, J: list[Row]
) -> list[dict[tuple[int, int], Any]]:
    """D_k J_j of each row of a residual, entries that are not zero by (j, k).

    Jacobians in closed form are functions of the residual itself.
    """
    if residual.slopes(at, reference, rows) is None:
        inputs, moves = at.directions()
    else:
        inputs = [at.graph.lift(r) for r in rows]
        moves = np.array([[row.get(k, 0.0) for k in range(at.end)] for row in J], object)
    out: list[dict[tuple[int, int], Any]] = []
    for row in J:
        columns = sorted(row)
        slopes = jacobian([at.graph.lift(row[j]) for j in columns], inputs, "forward", moves) if columns else ()
        entries = {(j, k): x for j, line in zip(columns, slopes, strict=True) for k, x in enumerate(line)}
        out.append({jk: x for jk, x in entries.items() if x.value != 0})
    return out


def tangents_of(terms: TracedTerms, entries: tuple[tuple[str, int], ...]) -> set[int]:
    """The tangents along which some entries of inputs change."""
    size, out = terms.size, set[int]()
    signals = {e.name: e for e in terms.signals.values()}
    for name, k in entries:
        if name == "u":
            out.add(2 * size.nv + k)
        elif name == "x" and k >= size.nq:
            out.add(size.nv + k - size.nq)
        elif name == "x":
            node = next(p for p in size.places.nodes if k < p.q.stop)
            out |= set(range(node.v.start, node.v.stop))
        else:
            e = signals[name]
            out |= set(range(e.start, e.start + e.tangent))
    return out
