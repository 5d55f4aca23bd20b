"""Second derivatives of residuals by the tangents of their signals, contracted with the slopes of what they cost.

By tangents i and j of a group, a chart sees the symmetric half of (D_i D_j + D_j D_i) r.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...jit.autodiff import jacobian
from ...jit.graph import Graph
from ...jit.kernel import Kernel
from ..residuals.cost import Cost
from ..residuals.residuals import Residual
from ..residuals.signals import TracedKnot
from .kernels import traced_kernel
from .terms import Row, TermSlices, TracedTerms, jacobian_rows

Array = np.ndarray


class ResidualHessians:
    """What the residuals of some costs bend by; tangents: those that it is about, among all of the form's."""

    def __init__(self, form: TracedTerms) -> None:
        self.form = form
        found: set[int] = set()
        for term, loads in zip(form.costs, form.loads, strict=False):
            own = term.residual.bends(form.size)
            found |= touched(form, loads) if own is None else set(own)
        self.tangents = sorted(found)

    @cached_property
    def kernel(self) -> Kernel:
        """The inputs of the form's code -> B (n, n) by these tangents."""
        n = len(self.tangents)
        key = "bends", self.form.key, tuple(self.tangents)
        return traced_kernel(lambda **given: [self.matrix(given)], self.form.inputs, key, "bent residuals", [(n, n)])

    def matrix(self, given: dict[str, Array]) -> Array:
        """B on traced inputs."""
        form = self.form
        at = TracedKnot(form.size, given["x"][0].graph, dict(given))
        for signal in form.known:
            at.signal(signal)
        number = {k: i for i, k in enumerate(self.tangents)}
        B = np.full((len(number), len(number)), 0.0, object)
        for term, place in zip(form.costs, form.places, strict=False):
            own = term.residual.bends(form.size)
            if own is None or len(own):
                self._add(at, term, place, given["data"], number, B)
        return B

    def _add(
        self, at: TracedKnot, term: Cost, place: TermSlices, data: Array, number: dict[int, int], B: Array
    ) -> None:
        reference = data[place.reference]
        rows = term.residual.rows(at, reference)
        J = jacobian_rows(at, term.residual, reference, rows)
        bent = second(at, term.residual, reference, rows, J)
        for i, r in enumerate(rows):
            c = term.charged(r, *(data[p][i] for p in place.parameters))
            slope = data[place.weights][i] * c.slope
            for (j, k), x in bent[i].items():
                half = 0.5 * (slope * x)
                j, k = number[j], number[k]
                B[j, k], B[k, j] = half + B[j, k], half + B[k, j] if j != k else half + half + B[j, k]


def second(
    at: TracedKnot, residual: Residual, reference: Array, rows: Any, J: list[Row]
) -> list[dict[tuple[int, int], Any]]:
    """D_k J_j of each row of a residual, entries that are not zero by (j, k).

    Jacobians in closed form are functions of the residual itself.
    """
    graph: Graph = at.graph
    if residual.slopes(at, reference, rows) is None:
        inputs, moves = at.directions()
    else:
        inputs = [graph.lift(r) for r in rows]
        moves = np.array([[row.get(k, 0.0) for k in range(at.end)] for row in J], object)
    out: list[dict[tuple[int, int], Any]] = []
    for row in J:
        columns = sorted(row)
        found = jacobian([graph.lift(row[j]) for j in columns], inputs, "forward", moves) if columns else ()
        entries = {(j, k): x for j, slopes in zip(columns, found, strict=True) for k, x in enumerate(slopes)}
        out.append({jk: x for jk, x in entries.items() if x.value != 0})
    return out


def touched(form: TracedTerms, loads: tuple[tuple[str, int], ...]) -> set[int]:
    """The tangents that some inputs move along."""
    size, out = form.size, set[int]()
    entries = {e.name: e for e in form.known.values()}
    for name, k in loads:
        if name == "u":
            out.add(2 * size.nv + k)
        elif name == "x" and k >= size.nq:
            out.add(size.nv + k - size.nq)
        elif name == "x":
            node = next(p for p in size.places.nodes if k < p.q.stop)
            out |= set(range(node.v.start, node.v.stop))
        else:
            e = entries[name]
            out |= set(range(e.start, e.start + e.tangent))
    return out
