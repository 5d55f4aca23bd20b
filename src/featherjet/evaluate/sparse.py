"""A quantity and its derivatives as sparse code, see `entries.py`.

Inputs are vectors, q entry by entry: any q whose quaternions and cosine-sine pairs are not zero stands for the robot at
q / |q|, and derivatives by q are those by its entries. With g = df along the degrees of freedom, df/dq = g T, where
T (nv, nq) takes a change of q to the motion it makes: `rate_map_inverse` at q / |q|, over |q| where q is normalised.

Derivatives of inverse and forward dynamics come from their analytic algorithms; those of other quantities, and those
under external forces, from automatic differentiation. Traces know which entries are zero for every state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..algorithms.quantities import FEXT, QUANTITIES, Quantity, sizes
from ..algorithms.record import shape
from ..algorithms.scan import Array, Scan
from ..jit.autodiff import jacobian
from ..jit.fingerprint import fingerprint
from ..jit.graph import Graph
from ..jit.number import DOUBLE
from ..jit.straight import Shape
from ..math.scalars import sqrt
from .entries import SparseTrace
from .evaluator import Evaluator

ANALYTIC = ("inverse_dynamics", "forward_dynamics")


class SparseFunction(SparseTrace):
    """A quantity of one robot with its first and second derivatives.

    names: of its inputs, by default all that it needs; options: of the quantity; fixed: inputs that are constants.
    inputs, results: the lengths of all others, row by row where they are matrices, by name.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        record: Quantity,
        names: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        fixed: Mapping[str, Array] | None = None,
    ) -> None:
        self.evaluator, self.record = evaluator, record
        self.options, self.fixed = dict(options or {}), dict(fixed or {})
        names = [i.name for i in record.inputs] if names is None else names
        size = sizes(evaluator.tree, self.options.get("contacts")) | {"q": evaluator.space.nq}
        self.shapes: dict[str, Shape] = {
            name: shape(record.input(name).axes, size) for name in names if name not in self.fixed
        }
        self.analytic = record.name in ANALYTIC and FEXT.name not in names
        inputs = {name: prod(s) for name, s in self.shapes.items()}
        super().__init__(inputs, {r.name: prod(shape(r.axes, size)) for r in record.results}, evaluator.model.name)

    @property
    def key(self) -> tuple[Any, ...]:
        evaluator = self.evaluator
        walked = evaluator.places.digest if self.record.of_space else evaluator.compiler.tables(DOUBLE).digest
        return (
            "sparse",
            self.record.name,
            self.analytic,
            tuple(self.shapes),
            walked,
            fingerprint(self.options),
            fingerprint(self.fixed),
        )

    # Traces

    def _configurations(self) -> list[str]:
        return [i.name for i in self.record.inputs if i.axes == ("q",)]

    def _state(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Inputs as algorithms take them: configurations normalised, matrices as matrices."""
        state: dict[str, Array] = {k: given[k].reshape(s) for k, s in self.shapes.items()}
        for name in self._configurations():
            q = state[name]
            parts = [p.manifold.normalised(list(q[p.q])) for p in self.evaluator.places.nodes]
            state[name] = np.array([x for part in parts for x in part], object)
        return state | self.fixed

    def values(self, given: Mapping[str, Array]) -> list[Array]:
        found = self._compute(self.record, self._state(given))
        return [np.asarray(x, object).ravel() for x in found[: len(self.results)]]

    def _compute(self, record: Quantity, state: Mapping[str, Array]) -> list[Array]:
        walked = self.evaluator.places if record.of_space else self.evaluator.tree
        return record.compute(Scan(walked, (), object), state, **self.options)  # type: ignore[arg-type]

    def _analytic(self, kind: str, given: Mapping[str, Array]) -> list[Array]:
        """The results of a quantity of derivatives; its own inputs, and w for the weights."""
        record = QUANTITIES[f"{self.record.name}_{kind}"]
        state = self._state(given)
        for name in self.weights:  # there is one result
            if name in given:
                state["w"] = given[name]
        found = self._compute(record, state)
        return [np.asarray(x, object) for x in found[: len(record.results)]]

    def blocks(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        if not self.analytic:
            return super().blocks(graph, given)
        by_q, *others = self._analytic("derivatives", given)
        return [times(by_q, self._moves(given["q"])), *others]

    def gradient(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        if not self.analytic:
            return super().gradient(graph, given)
        by_q, *others = self._analytic("vjp", given)
        T = self._moves(given["q"])
        return [by_q if T is None else by_q @ T, *others]

    def second(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        return self._analytic_hessian(given) if self.analytic else super().second(graph, given)

    def _analytic_hessian(self, given: dict[str, Array]) -> list[Array]:
        """From second derivatives along degrees of freedom; those by the third input alone, or it and v, are zero."""
        qq, qv, vv, qt = self._analytic("hessian", given)
        T = self._moves(given["q"])
        if T is not None:
            along = self._analytic("vjp", given)[0]
            qq = T.T @ times(qq, T) + self._turning(given["q"], along)
            qv, qt = T.T @ qv, T.T @ qt
        zeros = np.zeros((len(vv), qt.shape[1]))
        return [qq, qv, qt, qv.T, vv, zeros, qt.T, zeros.T, np.zeros((qt.shape[1], qt.shape[1]))]

    def _moves(self, q: Array) -> Array | None:
        """T (nv, nq), or None if it is the identity."""
        places = self.evaluator.places
        if not places.units:
            return None
        T = np.zeros((places.nv, places.nq), object)
        for p in places.nodes:
            T[p.v, p.q] = moves(p.manifold, list(q[p.q]))
        return T

    def _turning(self, q: Array, g: Array) -> Array:
        """The derivative of g T by q (nq, nq), with g fixed."""
        places = self.evaluator.places
        found = np.zeros((places.nq, places.nq), object)
        for p in places.nodes:
            if p.manifold.units:
                entries = list(q[p.q])
                graph = entries[0].graph
                rows = np.array(moves(p.manifold, entries), object)
                by_q = jacobian([graph.lift(x) for x in rows.flat], entries, "forward").reshape(
                    *rows.shape, len(entries)
                )
                found[p.q, p.q] = sum(g[p.v][k] * by_q[k] for k in range(len(rows)))
        return found


def moves(manifold: Any, q: list[Any]) -> list[list[Any]]:
    """T of one joint: `rate_map_inverse` at its normalised coordinates, by their own entries."""
    rows = manifold.rate_map_inverse(manifold.normalised(q))
    scales: list[Any] = [1.0] * len(q)
    for part in manifold.units:
        norm = sqrt(sum(x * x for x in q[part]))
        scales[part] = [1.0 / norm] * (part.stop - part.start)
    return [[x * scale for x, scale in zip(row, scales, strict=True)] for row in rows]


def times(A: Array, T: Array | None) -> Array:
    return A if T is None else A @ T
