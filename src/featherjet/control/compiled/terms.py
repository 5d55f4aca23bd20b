"""Costs and constraints of a phase: residuals traced into code that all phases of the same form share.

The code sees states, controls, values of signals, and numbers (weights, references, bounds). It gives what residuals
cost, with gradient g and Hessian C by the tangents of all signals. Signals other than q, v and u have Jacobians G from
the robot: what they add to the cost's derivatives is G^T g and G^T C G, a product of small matrices at every knot.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...jit.autodiff import jacobian
from ...jit.graph import Expr, Graph
from ...jit.kernel import Kernel
from ...jit.straight import Shape, is_own, loads, trace
from ..residuals.activations import Activation
from ..residuals.cost import Constraint, Cost
from ..residuals.residuals import Residual
from ..residuals.signals import KINDS, SignalInput, Sizes, TracedKnot
from .kernels import traced_kernel
from .motion import PhaseMotion
from .pickled import DropsCode

Array = np.ndarray
Row = dict[int, Any]  # entries that are not zero, by the number of their column


class TermSlices(NamedTuple):
    """Where the numbers of a term are among those of a phase.

    parameters: those of its activation; of a constraint, its lower and upper bounds.
    """

    rows: int
    reference: slice
    weights: slice
    parameters: tuple[slice, ...]


@dataclass
class TermSums:
    """Sums over the residuals of a knot: values, and gradient and upper triangle of the Hessian by all tangents."""

    costs: list[Any] = field(default_factory=list)
    g: Row = field(default_factory=dict)
    C: dict[tuple[int, int], Any] = field(default_factory=dict)
    equality: list[Any] = field(default_factory=list)
    inequality: list[Any] = field(default_factory=list)
    equality_rows: list[Row] = field(default_factory=list)
    inequality_rows: list[Row] = field(default_factory=list)


class ResidualTrace(NamedTuple):
    """How many rows a residual has, and the inputs that they depend on, with their entries."""

    rows: int
    inputs: tuple[tuple[str, int], ...]


_residual_traces: dict[Hashable, ResidualTrace] = {}  # of residuals that see states and controls alone


class TracedTerms(DropsCode):
    """What the code of some terms depends on: their residuals and activations, but no numbers, frames or contacts."""

    def __init__(self, size: Sizes, costs: Sequence[Cost], constraints: Sequence[Constraint]) -> None:
        self.size, self.costs, self.constraints = size, tuple(costs), tuple(constraints)
        graph = Graph()
        at = TracedKnot(size, graph, {k: loads(graph, k, s) for k, s in self._own_inputs().items()})
        self.places: list[TermSlices] = []
        self.bounds: list[tuple[Array, Array]] = []  # of the constraints
        self.used: list[tuple[str, ...]] = []  # inputs that the residual of each term depends on
        self.loads: list[tuple[tuple[str, int], ...]] = []  # and their entries
        end = 0

        def take(n: int) -> slice:
            nonlocal end
            end += n
            return slice(end - n, end)

        for term in self.terms:
            reference = take(term.residual.numbers(size).shape[-1])
            n, found = self._looked_at(term, at, reference)
            self.used.append(tuple(sorted({name for name, _ in found})))
            self.loads.append(found)
            if isinstance(term, Cost):
                self.places.append(TermSlices(n, reference, take(n), tuple(take(n) for _ in term.charged.parameters)))
            else:
                self.bounds.append(term.bounds(n))
                self.places.append(TermSlices(n, reference, take(0), (take(n), take(n))))
        self.width, self.known, self.tangents = max(end, 1), dict(at.known), at.end  # arrays must not be empty
        self.nd = 2 * size.nv + size.nu
        self.still, self.moving = self._groups()

    def _looked_at(self, term: Cost | Constraint, at: TracedKnot, reference: slice) -> ResidualTrace:
        """The rows of a term's residual and what they depend on, by a trace; one without signals is traced once."""
        residual, before = term.residual, len(at.known)
        kind = type(residual), residual.key(), self.size.places.digest, self.size.nu, reference.stop - reference.start
        own = kind[1] is not None and is_own(residual)
        if own and kind in _residual_traces:
            return _residual_traces[kind]
        numbers = np.array([at.graph.load(("data", k)) for k in range(reference.start, reference.stop)])
        rows = traced_rows(term, at, numbers)
        found = ResidualTrace(len(rows), inputs_of(at.graph, rows))
        if own and len(at.known) == before and {name for name, _ in found.inputs} <= {"x", "u"}:
            _residual_traces[kind] = found
        return found

    @property
    def terms(self) -> tuple[Cost | Constraint, ...]:
        return *self.costs, *self.constraints

    def _own_inputs(self) -> dict[str, Shape]:
        size = self.size
        return {"x": (size.nq + size.nv,)} | ({"u": (size.nu,)} if size.nu else {})

    @property
    def inputs(self) -> dict[str, Shape]:
        shapes = {e.name: e.shape for e in self.known.values()}
        return self._own_inputs() | {"data": (self.width,)} | shapes

    def _groups(self) -> tuple[list[SignalInput], list[SignalInput]]:
        """Signals that depend on q alone and meet nothing else in a residual, and all others."""
        still = [e for s, e in self.known.items() if KINDS[s.kind].still]
        names = {e.name for e in still}
        for used in self.used:
            own = set(used)
            if own & names and own - names:
                still = [e for e in still if e.name not in own]
        return still, [e for e in self.known.values() if e not in still]

    def sums(self, given: dict[str, Array], slopes: bool) -> TermSums:
        """Costs and constraints on traced inputs, with derivatives if `slopes`."""
        graph = given["x"][0].graph
        at = TracedKnot(self.size, graph, dict(given))
        for signal in self.known:
            at.signal(signal)
        out, data = TermSums(), given["data"]
        bounds = iter(self.bounds)
        for term, place in zip(self.terms, self.places, strict=True):
            reference = data[place.reference]
            rows = term.residual.rows(at, reference)
            J = jacobian_rows(at, term.residual, reference, rows) if slopes else [{}] * len(rows)
            numbers = [data[p] for p in place.parameters]
            if isinstance(term, Cost):
                charge(out, term.charged, rows, J, data[place.weights], numbers)
            else:
                constrain(out, rows, J, numbers, *next(bounds))
        out.costs = out.costs or [0.0]
        return out

    @cached_property
    def key(self) -> Hashable:
        """What determines the code; that of a user's functions is all that they trace."""
        keys = [t.residual.key() for t in self.terms]
        users = [*(t.residual for t in self.terms), *(c.charged for c in self.costs)]
        if any(k is None for k in keys) or not is_own(*users):
            known = tuple(type(c.charged).__name__ * is_own(c.charged) for c in self.costs)
            return trace(lambda **given: self.quadratic(given), self.inputs).digest, tuple(self.places), known
        names = tuple(type(t.residual).__name__ for t in self.terms)
        terms = names, tuple(keys), tuple(self.places), tuple(self.used), tuple(self.loads)
        charges = tuple(type(c.charged).__name__ for c in self.costs)
        signals = tuple((s.kind, s.viewpoint, e) for s, e in self.known.items())
        bounds = tuple((tuple((lo == hi).tolist()), *map(finite_rows, (lo, hi))) for lo, hi in self.bounds)
        return self.size.places.digest, self.size.nu, terms, charges, signals, bounds

    # Results of the code

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The results of `quadratic`, by name."""
        ndx, nu = 2 * self.size.nv, self.size.nu
        found: dict[str, Shape] = {"costs": (max(len(self.costs), 1),), "Lx": (ndx,), "Lxx": (ndx, ndx)}
        if nu:
            found |= {"Lu": (nu,), "Lxu": (ndx, nu), "Luu": (nu, nu)}
        for name, group in (("still", self.still), ("moving", self.moving)):
            if group:
                m = width(group)
                found |= {f"g {name}": (m,), f"C {name}": (m, m)}
        if self.moving:
            found["X"] = (self.nd, width(self.moving))
        if self.ne + self.ni:
            found |= self.limited | {"D": (self.ne + self.ni, self.tangents)}
        return found

    @property
    def limited(self) -> dict[str, Shape]:
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

    def quadratic(self, given: dict[str, Array]) -> list[Array]:
        """The results named by `shapes`."""
        s = self.sums(given, True)
        ndx = 2 * self.size.nv
        x, u = range(ndx), range(ndx, self.nd)
        found: dict[str, Array] = {
            "costs": vector(s.costs), "Lx": picked(s.g, x), "Lu": picked(s.g, u), "Lxx": square(s.C, x, x),
            "Lxu": square(s.C, x, u), "Luu": square(s.C, u, u),
        }  # fmt: skip
        for name, group in (("still", self.still), ("moving", self.moving)):
            at = [k for e in group for k in range(e.start, e.start + e.tangent)]
            found |= {f"g {name}": picked(s.g, at), f"C {name}": square(s.C, at, at)}
            if name == "moving":
                found["X"] = square(s.C, range(self.nd), at)
        rows = [*s.equality_rows, *s.inequality_rows]
        found |= {"equality": vector(s.equality), "inequality": vector(s.inequality)}
        found["D"] = np.array([[r.get(k, 0.0) for k in range(self.tangents)] for r in rows], object)
        return [found[k] for k in self.shapes]

    def plain(self, given: dict[str, Array]) -> list[Array]:
        """Costs, then equalities and inequalities if there are any."""
        s = self.sums(given, False)
        found = {"equality": vector(s.equality), "inequality": vector(s.inequality)}
        return [vector(s.costs), *(found[k] for k in self.limited)]

    def rows(self, k: int, given: dict[str, Array]) -> Sequence[Any]:
        """The rows of the residual of term k, on traced inputs."""
        at = TracedKnot(self.size, given["x"][0].graph, dict(given))
        for signal in self.known:
            at.signal(signal)
        return self.terms[k].residual.rows(at, given["data"][self.places[k].reference])

    @cached_property
    def kernels(self) -> tuple[Kernel, Kernel]:
        """The code of values, and that with derivatives."""
        key, inputs = self.key, self.inputs
        shapes = list(self.shapes.values())
        plain = [shapes[0], *self.limited.values()]
        return (
            traced_kernel(lambda **given: self.plain(given), inputs, ("costs", key), "costs", plain),
            traced_kernel(
                lambda **given: self.quadratic(given), inputs, ("quadratic", key), "costs and slopes", shapes
            ),
        )

    # Numbers

    def data(self, knots: int, scale: float) -> Array:
        """Weights (times scale), references and parameters of a phase (..., knots, width)."""
        parts: list[tuple[str, slice, Array]] = []
        bounds = iter(self.bounds)
        for term, place in zip(self.terms, self.places, strict=True):
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
        found = [at.graph.lift(r) for r in term.residual.rows(at, reference)]
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        hint = "; of functions, take sqrt, sincos and where_less of featherjet.math.scalars" * ("ufunc" in str(error))
        raise InputError(f"residual {term.label!r}: {error}{hint}") from error
    if not found:
        raise InputError(f"residual {term.label!r}: has no rows")
    return found


def inputs_of(graph: Graph, rows: Sequence[Expr]) -> tuple[tuple[str, int], ...]:
    """The names of the inputs that some expressions depend on, and their entries, but for numbers of the phase."""
    ops = (graph.ops[i] for i in graph.reachable(r.index for r in rows))
    found = {op.data for op in ops if op.name == "load"}
    return tuple(sorted(x for x in found if x[0] != "data"))  # type: ignore[index]


def width(group: Iterable[SignalInput]) -> int:
    return sum(e.tangent for e in group)


def vector(entries: Sequence[Any]) -> Array:
    out = np.empty(len(entries), object)
    out[:] = list(entries)
    return out


def picked(g: Mapping[int, Any], at: Sequence[int]) -> Array:
    return vector([g.get(k, 0.0) for k in at])


def square(C: Mapping[tuple[int, int], Any], rows: Sequence[int], columns: Sequence[int]) -> Array:
    """Part of a symmetric matrix that is known above its diagonal."""
    out = np.empty((len(rows), len(columns)), object)
    for i, r in enumerate(rows):
        for j, c in enumerate(columns):
            out[i, j] = C.get((min(r, c), max(r, c)), 0.0)
    return out


def jacobian_rows(at: TracedKnot, residual: Residual, reference: Array, rows: Sequence[Any]) -> list[Row]:
    """The Jacobian of a residual by all tangents."""
    known = residual.slopes(at, reference, rows)
    if known is None:
        inputs, moves = at.directions()
        J = jacobian([at.graph.lift(r) for r in rows], inputs, "auto", moves)
        return [{k: x for k, x in enumerate(row) if not is_zero(x)} for row in J]
    size, out = at.size, [dict[int, Any]() for _ in rows]
    own = {"q": 0, "v": size.nv, "u": 2 * size.nv}
    for signal, block in known.items():
        start = own.get(signal.kind, -1)
        start = at.known[signal].start if start < 0 else start
        for row, entries in zip(out, block, strict=True):
            row |= {start + k: x for k, x in enumerate(entries) if not is_zero(x)}
    return out


def is_zero(x: Any) -> bool:
    value = x.value if isinstance(x, Expr) else x
    return value is not None and value == 0


def charge(
    out: TermSums,
    activation: Activation,
    rows: Sequence[Any],
    J: Sequence[Row],
    weights: Array,
    numbers: Sequence[Array],
) -> None:
    """Add the cost of a residual with its derivatives; Gauss-Newton's Hessian."""
    total: Any = 0.0
    for i, (r, slopes) in enumerate(zip(rows, J, strict=True)):
        c = activation(r, *(p[i] for p in numbers))
        total = weights[i] * c.value + total
        slope, curvature = weights[i] * c.slope, weights[i] * c.curvature
        columns = sorted(slopes)
        for n, j in enumerate(columns):
            out.g[j] = slopes[j] * slope + out.g.get(j, 0.0)
            bent = slopes[j] * curvature
            for k in columns[n:]:
                out.C[j, k] = bent * slopes[k] + out.C.get((j, k), 0.0)
    out.costs.append(total)


def constrain(
    out: TermSums, rows: Sequence[Any], J: Sequence[Row], bounds: Sequence[Array], lower: Array, upper: Array
) -> None:
    """Add the rows of a constraint: r - bound = 0, r - upper <= 0, lower - r <= 0, for bounds that are finite."""
    for k, (r, slopes) in enumerate(zip(rows, J, strict=True)):
        if lower[k] == upper[k]:
            out.equality.append(r - bounds[0][k])
            out.equality_rows.append(slopes)
            continue
        if np.isfinite(upper[k]):
            out.inequality.append(r - bounds[1][k])
            out.inequality_rows.append(slopes)
        if np.isfinite(lower[k]):
            out.inequality.append(bounds[0][k] - r)
            out.inequality_rows.append({j: -1.0 * x for j, x in slopes.items()})


def inputs_at(form: TracedTerms, motion: PhaseMotion, data: Array) -> list[Array]:
    """The inputs of the code of some terms, at a motion."""
    own = [motion.x, motion.u] if form.size.nu else [motion.x]
    return [*own, data, *(KINDS[s.kind].value(motion, s) for s in form.known)]
