"""Costs and constraints of a phase: residuals traced into code that all phases with the same terms share.

The code takes states, controls, values of signals, and numbers (weights, references, bounds). It computes what
residuals cost, with gradient g and Hessian C by the tangents of all signals. Signals other than q, v and u have
Jacobians G from the robot: they add G^T g and G^T C G to the cost's derivatives, products of small matrices.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...jit.graph import Expr, Graph
from ...jit.kernel import Kernel
from ...jit.straight import Shape, is_own, loads, trace
from ..residuals.cost import Constraint, Cost
from ..residuals.signals import KINDS, SignalInput, Sizes, TracedKnot
from .kernels import traced_kernel
from .motion import PhaseMotion
from .pickled import DropsCode
from .term_sums import TermSums, jacobian_rows, vector

Array = np.ndarray
OF_Q, OTHER = "of q", "other"  # groups of signals


class TermSlices(NamedTuple):
    """Where the numbers of a term are among those of a phase, and how many rows its residual has.

    parameters: those of its activation; of a constraint, its lower and upper bounds.
    """

    rows: int
    reference: slice
    weights: slice
    parameters: tuple[slice, ...]


class ResidualTrace(NamedTuple):
    """How many rows a residual has, and the inputs that they depend on, with their entries."""

    rows: int
    inputs: tuple[tuple[str, int], ...]


_residual_traces: dict[Hashable, ResidualTrace] = {}  # of residuals that see states and controls alone


class TracedTerms(DropsCode):
    """The costs and constraints of a phase as code; it depends on residuals and activations, but on no numbers.

    signals: the signals that residuals are functions of, and the inputs of the code that they are; groups: these in two
    groups, signals of q alone that no residual combines with others, and the rest; slices, entries: for each term,
    where its numbers are, and the (input, entry) pairs that its residual depends on; bounds: of the constraints.
    """

    def __init__(self, size: Sizes, costs: Sequence[Cost], constraints: Sequence[Constraint]) -> None:
        self.size, self.costs, self.constraints = size, tuple(costs), tuple(constraints)
        graph = Graph()
        at = TracedKnot(size, graph, {k: loads(graph, k, s) for k, s in self._state_inputs().items()})
        self.slices: list[TermSlices] = []
        self.bounds: list[tuple[Array, Array]] = []
        self.entries: list[tuple[tuple[str, int], ...]] = []
        end = 0

        def take(n: int) -> slice:
            nonlocal end
            end += n
            return slice(end - n, end)

        for term in self.all:
            reference = take(term.residual.numbers(size).shape[-1])
            n, entries = self._trace_of(term, at, reference)
            self.entries.append(entries)
            if isinstance(term, Cost):
                self.slices.append(TermSlices(n, reference, take(n), tuple(take(n) for _ in term.charged.parameters)))
            else:
                self.bounds.append(term.bounds(n))
                self.slices.append(TermSlices(n, reference, take(0), (take(n), take(n))))
        self.width, self.signals, self.tangents = max(end, 1), dict(at.signals), at.end  # arrays must not be empty
        self.nd = 2 * size.nv + size.nu
        self.groups = self._groups()

    def _trace_of(self, term: Cost | Constraint, at: TracedKnot, reference: slice) -> ResidualTrace:
        """The rows of a term's residual and what they depend on, by a trace; one without signals is traced once."""
        residual, before = term.residual, len(at.signals)
        kind = type(residual), residual.key(), self.size.places.digest, self.size.nu, reference.stop - reference.start
        own = kind[1] is not None and is_own(residual)
        if own and kind in _residual_traces:
            return _residual_traces[kind]
        numbers = np.array([at.graph.load(("data", k)) for k in range(reference.start, reference.stop)])
        rows = traced_rows(term, at, numbers)
        looked_up = ResidualTrace(len(rows), inputs_of(at.graph, rows))
        if own and len(at.signals) == before and {name for name, _ in looked_up.inputs} <= {"x", "u"}:
            _residual_traces[kind] = looked_up
        return looked_up

    @property
    def all(self) -> tuple[Cost | Constraint, ...]:
        """Costs, then constraints."""
        return *self.costs, *self.constraints

    @cached_property
    def inputs_used(self) -> list[tuple[str, ...]]:
        """The names of the inputs that each term's residual depends on."""
        return [tuple(sorted({name for name, _ in entries})) for entries in self.entries]

    def _state_inputs(self) -> dict[str, Shape]:
        size = self.size
        return {"x": (size.nq + size.nv,)} | ({"u": (size.nu,)} if size.nu else {})

    @property
    def inputs(self) -> dict[str, Shape]:
        """The inputs of the code: x, u, data, signals."""
        shapes = {e.name: e.shape for e in self.signals.values()}
        return self._state_inputs() | {"data": (self.width,)} | shapes

    def inputs_at(self, motion: PhaseMotion, data: Array) -> list[Array]:
        """The inputs of the code at a motion, with these numbers."""
        state = [motion.x, motion.u] if self.size.nu else [motion.x]
        return [*state, data, *(KINDS[s.kind].value(motion, s) for s in self.signals)]

    def _groups(self) -> dict[str, list[SignalInput]]:
        of_q = [e for s, e in self.signals.items() if KINDS[s.kind].of_q_alone]
        names = {e.name for e in of_q}
        for used in map(set, self.inputs_used):
            if used & names and used - names:
                of_q = [e for e in of_q if e.name not in used]
        return {OF_Q: of_q, OTHER: [e for e in self.signals.values() if e not in of_q]}

    def knot(self, inputs: dict[str, Array]) -> TracedKnot:
        """A knot at traced inputs, whose signals are those of the code."""
        at = TracedKnot(self.size, inputs["x"][0].graph, dict(inputs))
        for signal in self.signals:
            at.signal(signal)
        return at

    def sums(self, inputs: dict[str, Array], slopes: bool) -> TermSums:
        """Costs and constraints on traced inputs, with derivatives if `slopes`."""
        at, out, data = self.knot(inputs), TermSums(), inputs["data"]
        bounds = iter(self.bounds)
        for term, place in zip(self.all, self.slices, strict=True):
            reference = data[place.reference]
            rows = term.residual.rows(at, reference)
            J = jacobian_rows(at, term.residual, reference, rows) if slopes else [{}] * len(rows)
            numbers = [data[p] for p in place.parameters]
            if isinstance(term, Cost):
                out.add_cost(term.charged, rows, J, data[place.weights], numbers)
            else:
                out.add_constraint(rows, J, numbers, *next(bounds))
        out.costs = out.costs or [0.0]
        return out

    @cached_property
    def key(self) -> Hashable:
        """What determines the code; that of a user's functions is all that they trace."""
        keys = [t.residual.key() for t in self.all]
        users = [*(t.residual for t in self.all), *(c.charged for c in self.costs)]
        if any(k is None for k in keys) or not is_own(*users):
            names = tuple(type(c.charged).__name__ * is_own(c.charged) for c in self.costs)
            return trace(lambda **inputs: self.quadratic(inputs), self.inputs).digest, tuple(self.slices), names
        names = tuple(type(t.residual).__name__ for t in self.all)
        terms = names, tuple(keys), tuple(self.slices), tuple(self.inputs_used), tuple(self.entries)
        charges = tuple(type(c.charged).__name__ for c in self.costs)
        signals = tuple((s.kind, s.viewpoint, e) for s, e in self.signals.items())
        bounds = tuple((tuple((lo == hi).tolist()), *map(finite_rows, (lo, hi))) for lo, hi in self.bounds)
        return self.size.places.digest, self.size.nu, terms, charges, signals, bounds

    # Results of the code

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The results of `quadratic`, by name.

        Lx ... Luu: the parts of q, v and u; g, C: gradient and Hessian by the signals of a group; X: the Hessian by
        q, v, u and the other signals; D: the Jacobian of constraints by q, v, u and all signals.
        """
        ndx, nu = 2 * self.size.nv, self.size.nu
        shapes: dict[str, Shape] = {"costs": (max(len(self.costs), 1),), "Lx": (ndx,), "Lxx": (ndx, ndx)}
        if nu:
            shapes |= {"Lu": (nu,), "Lxu": (ndx, nu), "Luu": (nu, nu)}
        for name, group in self.groups.items():
            if group:
                m = width(group)
                shapes |= {f"g {name}": (m,), f"C {name}": (m, m)}
        if self.groups[OTHER]:
            shapes["X"] = (self.nd, width(self.groups[OTHER]))
        if self.ne + self.ni:
            shapes |= self.constraint_shapes | {"D": (self.ne + self.ni, self.tangents)}
        return shapes

    @property
    def constraint_shapes(self) -> dict[str, Shape]:
        """The values of constraints."""
        return {k: (n,) for k, n in (("equality", self.ne), ("inequality", self.ni)) if n}

    @cached_property
    def ne(self) -> int:
        """Rows of equality constraints."""
        return sum(int((lower == upper).sum()) for lower, upper in self.bounds)

    @cached_property
    def ni(self) -> int:
        """Rows of inequality constraints."""
        return sum(int((np.isfinite(b) & (b[0] != b[1])).sum()) for b in map(np.array, self.bounds))

    def quadratic(self, inputs: dict[str, Array]) -> list[Array]:
        """The results named by `shapes`, on traced inputs."""
        s = self.sums(inputs, True)
        ndx = 2 * self.size.nv
        x, u = range(ndx), range(ndx, self.nd)
        results: dict[str, Array] = {
            "costs": vector(s.costs), "Lx": s.gradient(x), "Lu": s.gradient(u), "Lxx": s.hessian(x, x),
            "Lxu": s.hessian(x, u), "Luu": s.hessian(u, u),
        }  # fmt: skip
        for name, group in self.groups.items():
            at = [k for e in group for k in range(e.start, e.start + e.tangent)]
            results |= {f"g {name}": s.gradient(at), f"C {name}": s.hessian(at, at)}
            if name == OTHER:
                results["X"] = s.hessian(range(self.nd), at)
        rows = [*s.equality_rows, *s.inequality_rows]
        results |= {"equality": vector(s.equality), "inequality": vector(s.inequality)}
        results["D"] = np.array([[r.get(k, 0.0) for k in range(self.tangents)] for r in rows], object)
        return [results[k] for k in self.shapes]

    def values(self, inputs: dict[str, Array]) -> list[Array]:
        """Costs by term, then equalities and inequalities if there are any, on traced inputs."""
        s = self.sums(inputs, False)
        results = {"equality": vector(s.equality), "inequality": vector(s.inequality)}
        return [vector(s.costs), *(results[k] for k in self.constraint_shapes)]

    def rows(self, k: int, inputs: dict[str, Array]) -> Sequence[Any]:
        """The rows of the residual of term k, on traced inputs."""
        return self.all[k].residual.rows(self.knot(inputs), inputs["data"][self.slices[k].reference])

    @cached_property
    def values_kernel(self) -> Kernel:
        """The code of `values`."""
        shapes = [self.shapes["costs"], *self.constraint_shapes.values()]
        return traced_kernel(lambda **inputs: self.values(inputs), self.inputs, ("costs", self.key), "costs", shapes)

    @cached_property
    def quadratic_kernel(self) -> Kernel:
        """The code of `quadratic`."""
        return traced_kernel(
            lambda **inputs: self.quadratic(inputs), self.inputs, ("quadratic", self.key), "costs and slopes",
            list(self.shapes.values()),
        )  # fmt: skip

    # Numbers

    def data(self, knots: int, scale: float) -> Array:
        """Weights (times scale), references and parameters of a phase (..., knots, width)."""
        parts: list[tuple[str, slice, Array]] = []
        bounds = iter(self.bounds)
        for term, place in zip(self.all, self.slices, strict=True):
            label = term.label
            parts.append((f"reference of {label!r}", place.reference, term.residual.numbers(self.size)))
            if isinstance(term, Cost):
                parts.append((f"weight of {label!r}", place.weights, scale * np.asarray(term.weight, float)))
                parameters = [np.asarray(p, float) for p in term.charged.parameters]
            else:
                parameters = [np.where(np.isfinite(b), b, 0.0) for b in next(bounds)]
            parts += [(f"bound of {label!r}", at, p) for at, p in zip(place.parameters, parameters, strict=True)]
        wide = [(at, stretched(what, x, knots, at.stop - at.start)) for what, at, x in parts]
        batch = np.broadcast_shapes(*(x.shape[:-2] for _, x in wide)) if wide else ()
        out = np.zeros((*batch, knots, self.width))
        for at, x in wide:
            out[..., at] = x
        return out


def stretched(what: str, x: Array, knots: int, n: int) -> Array:
    """x over all knots, (..., knots, n)."""
    try:
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, (knots, n)))
    except ValueError:
        raise InputError(
            f"{what}: expected shape ({n},), or ({knots}, {n}) for the knots of its phase, got {x.shape}"
        ) from None


def finite_rows(x: Array) -> tuple[bool, ...]:
    return tuple(np.isfinite(x).tolist())


def traced_rows(term: Cost | Constraint, at: TracedKnot, reference: Array) -> list[Expr]:
    """The rows of a term's residual as expressions; raises an error that names the term."""
    try:
        rows = [at.graph.lift(r) for r in term.residual.rows(at, reference)]
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        hint = "; of functions, take sqrt, sincos and where_less of featherjet.math.scalars" * ("ufunc" in str(error))
        raise InputError(f"residual {term.label!r}: {error}{hint}") from error
    if not rows:
        raise InputError(f"residual {term.label!r}: has no rows")
    return rows


def inputs_of(graph: Graph, rows: Sequence[Expr]) -> tuple[tuple[str, int], ...]:
    """The names of the inputs that some expressions depend on, and their entries, but for numbers of the phase."""
    ops = (graph.ops[i] for i in graph.reachable(r.index for r in rows))
    loads_of = {op.data for op in ops if op.name == "load"}
    return tuple(sorted(x for x in loads_of if x[0] != "data"))  # type: ignore[index]


def width(group: Iterable[SignalInput]) -> int:
    return sum(e.tangent for e in group)
