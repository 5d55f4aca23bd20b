"""A quantity and its derivatives as code that writes nothing but entries that are not zero everywhere.

Inputs are vectors, q entry by entry: any q whose quaternions and cosine-sine pairs are not zero stands for the robot at
q / |q|, and derivatives by q are those by its entries. With g = df along the degrees of freedom, df/dq = g T, where
T (nv, nq) takes a change of q to the motion it makes: `rate_map_inverse` at q / |q|, over |q| where q is normalised.

Derivatives of inverse and forward dynamics come from their analytic algorithms; those of other quantities, and those
under external forces, from automatic differentiation. Traces know which entries are zero for every state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..algorithms.quantities import FEXT, QUANTITIES, Quantity, sizes
from ..algorithms.record import shape
from ..algorithms.scan import Array, Scan
from ..jit.autodiff import adjoints, jacobian
from ..jit.engine import CPU
from ..jit.fingerprint import fingerprint
from ..jit.graph import Expr, Graph
from ..jit.kernel import Kernel, compile_straight
from ..jit.number import DOUBLE
from ..jit.straight import Shape, Straight, loads
from ..math.scalars import sqrt
from .evaluator import Evaluator

LONGEST = 1_000_000  # operations of a trace
ANALYTIC = ("inverse_dynamics", "forward_dynamics")


@dataclass(frozen=True)
class Pattern:
    """The entries of a matrix that are not zero everywhere, column by column."""

    shape: tuple[int, int]
    rows: Array
    columns: Array

    @classmethod
    def of(cls, held: Array) -> Pattern:
        """That of a matrix of booleans."""
        columns, rows = np.nonzero(held.T)
        return cls(held.shape, rows, columns)  # type: ignore[arg-type]

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def starts(self) -> Array:
        """Where the entries of each column begin, and where those of the last end."""
        return np.searchsorted(self.columns, np.arange(self.shape[1] + 1))


class SparseCode:
    """Traced blocks: the pattern of each, and code that writes their entries.

    Results of the code are the blocks that have entries, in order; `written` has their numbers.
    """

    def __init__(self, name: str, straight: Straight, patterns: Sequence[Pattern], key: Any, whose: str) -> None:
        self.name, self.straight, self.patterns = name, straight, list(patterns)
        self.written = [k for k, p in enumerate(patterns) if p.count]
        self._key, self._whose = key, whose

    def kernel(self, cpu: CPU | None = None) -> Kernel:
        return compile_straight(lambda: self.straight, (*self._key, self.name), self.name, cpu=cpu, whose=self._whose)


class SparseFunction:
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
        self.inputs = {name: prod(s) for name, s in self.shapes.items()}
        self.results = {r.name: prod(shape(r.axes, size)) for r in record.results}

    @property
    def weights(self) -> dict[str, int]:
        """The inputs of adjoints besides the function's own: a weight for each result."""
        return {f"w_{name}": n for name, n in self.results.items()}

    # Code

    @cached_property
    def value(self) -> SparseCode:
        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            return [x.reshape(-1, 1) for x in self._results(given)]

        return self._code("value", run, self.inputs, dense=True)

    @cached_property
    def jacobian(self) -> SparseCode:
        """Derivatives of each result by each input: of the first by all, then of the second, and so on."""
        return self._code("jacobian", self._jacobian, self.inputs)

    @cached_property
    def turned(self) -> SparseCode:
        """The transposes of the same: for each input, those of each result by it."""

        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            blocks = self._jacobian(graph, given)
            n = len(self.inputs)
            return [blocks[o * n + i].T for i in range(n) for o in range(len(self.results))]

        return self._code("jacobian transposed", run, self.inputs)

    @cached_property
    def adjoint(self) -> SparseCode:
        """The derivatives of w.results by each input."""

        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            return [x.reshape(-1, 1) for x in self._gradient(graph, given)]

        return self._code("adjoint", run, self.inputs | self.weights, dense=True)

    @cached_property
    def hessian(self) -> SparseCode:
        """The second derivatives of w.results by each input and each input."""
        return self._code("hessian", self._hessian, self.inputs | self.weights)

    def _code(
        self, name: str, run: Callable[[Graph, dict[str, Array]], list[Array]], inputs: Mapping[str, int],
        dense: bool = False,
    ) -> SparseCode:  # fmt: skip
        graph = Graph(LONGEST)
        given = {k: loads(graph, k, (n,)) for k, n in inputs.items()}
        with np.errstate(divide="ignore", invalid="ignore"):  # constants may be zero
            blocks = [lifted(graph, block) for block in run(graph, given)]
        patterns = [Pattern.of(np.full(b.shape, True) if dense else nonzero(b)) for b in blocks]
        entries = [list(b[p.rows, p.columns]) for b, p in zip(blocks, patterns, strict=True)]
        straight = Straight(graph, {k: (n,) for k, n in inputs.items()}, [((len(e),), e) for e in entries if e])
        evaluator = self.evaluator
        walked = evaluator.places.digest if self.record.of_space else evaluator.compiler.tables(DOUBLE).digest
        key = (
            "sparse",
            self.record.name,
            self.analytic,
            tuple(self.shapes),
            walked,
            fingerprint(self.options),
            fingerprint(self.fixed),
        )
        return SparseCode(name, straight, patterns, key, evaluator.model.name)

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

    def _results(self, given: Mapping[str, Array]) -> list[Array]:
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

    def _jacobian(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        inputs = [given[k] for k in self.inputs]
        if self.analytic:
            by_q, *others = self._analytic("derivatives", given)
            return [times(by_q, self._moves(given["q"])), *others]
        results = self._results(given)
        flat = jacobian([graph.lift(y) for r in results for y in r], [x for a in inputs for x in a], "auto")
        rows = np.split(flat, np.cumsum([len(r) for r in results])[:-1])
        ends = np.cumsum([len(a) for a in inputs])[:-1]
        return [block for strip in rows for block in np.split(strip, ends, axis=1)]

    def _gradient(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        if self.analytic:
            by_q, *others = self._analytic("vjp", given)
            T = self._moves(given["q"])
            return [by_q if T is None else by_q @ T, *others]
        total = graph.const(0.0)
        for w, y in zip(self.weights, self._results(given), strict=True):
            for a, b in zip(given[w], y, strict=True):
                total = total + a * b
        inputs = [given[k] for k in self.inputs]
        found = adjoints([total], [x for a in inputs for x in a])[0]
        entries = np.array([found.get(k, graph.const(0.0)) for k in range(sum(map(len, inputs)))], object)
        return np.split(entries, np.cumsum([len(a) for a in inputs])[:-1])

    def _hessian(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        inputs = [given[k] for k in self.inputs]
        if self.analytic:
            return self._analytic_hessian(given)
        gradient = self._gradient(graph, given)
        flat = jacobian([graph.lift(x) for g in gradient for x in g], [x for a in inputs for x in a], "forward")
        ends = np.cumsum([len(a) for a in inputs])[:-1]
        return [block for strip in np.split(flat, ends) for block in np.split(strip, ends, axis=1)]

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


def lifted(graph: Graph, block: Array) -> Array:
    """A matrix of expressions, numbers included."""
    found = np.empty(block.shape, object)
    for index, x in np.ndenumerate(block):
        found[index] = graph.lift(x)
    return found


def nonzero(block: Array) -> Array:
    found = np.empty(block.shape, bool)
    for index, x in np.ndenumerate(block):
        assert isinstance(x, Expr)
        found[index] = x.value != 0
    return found
