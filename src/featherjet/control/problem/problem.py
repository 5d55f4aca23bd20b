"""Problem: an optimal control problem of a robot, written as phases with costs; a `Horizon` for solvers."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError, UnknownName
from ...evaluate.evaluator import HasEvaluator
from ...evaluate.frames import numbers
from ...jit.engine import target
from ...model.model import Model
from ..compiled.ahead import CodeList
from ..compiled.exact_hessian import add_second_derivatives
from ..compiled.motion import PhaseMotion, PhaseRobot
from ..compiled.phase import Blocks, CompiledPhase, Found, Segment
from ..compiled.replay import DIRECT, Direct, Replay
from ..compiled.rollout import NOTHING, Rollout
from ..compiled.static_controls import static_controls, static_kernels
from ..compiled.terms import TracedTerms
from ..horizon import Quadratic, Values
from ..residuals.cost import Constraint, Cost
from ..residuals.signals import KINDS, Signal
from ..solvers.riccati import recursion_code
from .checks import checked_state, compiled_evaluator, driven_dofs, effort_limits, refuse_exact
from .contact_forces import ContactForces, contact_forces
from .phases import Impact, Phase

Array = np.ndarray
HESSIANS = ("gauss-newton", "exact")


class Problem:
    """minimise costs over phases and a terminal cost, along the motion of a robot from the state x0 = [q, v].

    x0: (nx,), or (..., nx) for a batch of problems. terminal: costs and constraints of the last state, as they are.
    actuated: names of the joints that controls drive, by default all but those of a free base; u are their torques.
    limits: whether controls are limited to the joints' efforts.
    hessian: "gauss-newton", or "exact" to add the second derivatives of residuals and dynamics, contracted.
    cyclic: whether windows of a receding horizon go on with the first phase after the last.
    """

    def __init__(
        self,
        robot: HasEvaluator,
        x0: ArrayLike,
        phases: Sequence[Phase | Impact],
        terminal: Sequence[Cost | Constraint] = (),
        *,
        actuated: Sequence[str] | None = None,
        limits: bool = False,
        hessian: str = "gauss-newton",
        cyclic: bool = False,
    ) -> None:
        if hessian not in HESSIANS:
            raise UnknownName("hessian", hessian, HESSIANS)
        self.evaluator = compiled_evaluator(robot)
        model = self.evaluator.model
        self.nq, self.nv, self.nx, self.ndx = model.nq, model.nv, model.nq + model.nv, 2 * model.nv
        self.driven = driven_dofs(model, actuated)
        self.nu, self.exact, self.cyclic = len(self.driven), hessian == "exact", cyclic
        self.x0 = checked_state(self.evaluator, x0)
        if not isinstance(phases, Sequence) or not phases or not all(isinstance(p, Phase | Impact) for p in phases):
            raise InputError("phases: expected a list of Phase and Impact, at least one")
        if self.exact:
            refuse_exact(self.evaluator, self.x0, phases)
        self._compiled: set[bool] = set()  # whether for one problem and for batches
        self._set_stages([self._stage(p) for p in phases], self._terminal(terminal))
        self.u_lower = self.u_upper = None
        if limits:
            effort = effort_limits(self.evaluator)[self.driven]
            if np.isinf(effort).all():
                raise InputError(
                    "limits: no driven joint of this model has an effort limit; constrain Control() with bounds instead"
                )
            self.u_lower, self.u_upper = (np.broadcast_to(s * effort, (self.T, self.nu)) for s in (-1.0, 1.0))

    def _stage(self, phase: Phase | Impact) -> CompiledPhase:
        hits = isinstance(phase, Impact)
        if phase.contacts is not None and not self.evaluator.model.same_robot(phase.contacts.model):
            raise InputError(f"contacts {', '.join(phase.contacts.names)}: these belong to another robot")
        body = PhaseRobot(self.evaluator, self.driven, phase.contacts, hits, phase.integrator)
        form = self._form(body, phase.costs, phase.constraints)
        scale = 1.0 if hits else float(phase.dt)
        return CompiledPhase(body, form, form.data(phase.knots, scale), phase.knots, float(phase.dt))

    def _terminal(self, terms: Sequence[Cost | Constraint]) -> CompiledPhase:
        if not isinstance(terms, Sequence) or not all(isinstance(t, Cost | Constraint) for t in terms):
            raise InputError("terminal: expected a list of Cost(residual, ...) and Constraint(residual, ...)")
        costs = [t for t in terms if isinstance(t, Cost)]
        constraints = [t for t in terms if isinstance(t, Constraint)]
        body = PhaseRobot(self.evaluator, np.zeros(0, int), None, False)  # no controls act any more
        form = self._form(body, costs, constraints)
        if Signal("a") in form.known:
            raise InputError("terminal: the last state has no controls, and so no accelerations; leave them out")
        return CompiledPhase(body, form, form.data(1, 1.0), 1, 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if k not in ("_own", "_compiled")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._own, self._compiled = Workspace(self), set()

    def _form(self, body: PhaseRobot, costs: Sequence[Cost], constraints: Sequence[Constraint]) -> TracedTerms:
        form = TracedTerms(body.size, costs, constraints)
        for s in form.known:
            if KINDS[s.kind].framed:
                numbers(self.evaluator, s.of)  # raises for an unknown frame
        return form

    def _set_stages(self, stages: Sequence[CompiledPhase], terminal: CompiledPhase) -> None:
        ends = np.cumsum([s.knots for s in stages])
        self.segments = [Segment(s, int(e) - s.knots, int(e)) for s, e in zip(stages, ends, strict=True)]
        self.terminal = terminal
        self.T = int(ends[-1])
        self.every = [*self.segments, Segment(terminal, self.T, self.T + 1)]
        self.durations = np.concatenate([np.full(s.knots, s.dt[0]) for s in stages])
        forms = [s.stage.form for s in self.every]
        self.ne, self.ni = max(f.ne for f in forms), max(f.ni for f in forms)
        self._data_batch = np.broadcast_shapes(*(s.stage.data.shape[:-2] for s in self.every))
        self.batch = np.broadcast_shapes(self.x0.shape[:-1], self._data_batch)
        self._own = Workspace(self)

    def __repr__(self) -> str:
        batch = f", {prod(self.batch)} problems" if self.batch else ""
        return f"<Problem of {self.evaluator.model.name}: {self.T} knots, nx {self.nx}, nu {self.nu}{batch}>"

    @property
    def model(self) -> Model:
        """The robot's model."""
        return self.evaluator.model

    def contact_forces(self, xs: Array, us: Array) -> ContactForces:
        """Forces of the contacts along a motion (..., T + 1, nx), (..., T, nu)."""
        return contact_forces(self.evaluator, self.segments, xs, us)

    # The state space

    def difference(self, x0: Array, x1: Array) -> Array:
        """The tangent (..., ndx) at x0 that leads to x1."""
        return self._own.rollout.difference(x0, x1)

    def integrate(self, x: Array, dx: Array) -> Array:
        """The state (..., nx) that a tangent leads to."""
        return self._own.rollout.integrate(x, dx)

    def guess(self, x0: Array | None = None) -> tuple[Array, Array]:
        """x0 at every knot, and the smallest controls and contact forces that hold it still as well as they can."""
        x0 = self.x0 if x0 is None else x0
        x0 = np.broadcast_to(x0, (*np.broadcast_shapes(x0.shape[:-1], self.batch), self.nx))
        self.compile(x0.ndim > 1)
        xs = np.repeat(x0[..., None, :], self.T + 1, -2)
        us = np.zeros((*x0.shape[:-1], self.T, self.nu))
        known: dict[Any, Array] = {}  # phases with the same contacts hold alike
        for s, start, stop in self.segments:
            if s.body.hits:
                continue
            held = s.body.contacts and s.body.contacts.core
            if held not in known:
                known[held] = static_controls(s.body, x0[..., : self.nq])
            us[..., start:stop, :] = known[held][..., None, :]
        return xs, us

    # Evaluation

    def values(self, xs: Array, us: Array) -> Values:
        """The horizon at states (..., T + 1, nx) and controls (..., T, nu)."""
        batch = self.batch_of(xs)
        out = Buffers.plain(self, batch)
        for s, start, stop in self.segments:
            m = s.motion(xs[..., start:stop, :], us[..., start:stop, :])
            out.next[..., start:stop, :] = s.next(m)
            self._keep(out, s.values(m), slice(start, stop))
        m = self.terminal.motion(xs[..., -1:, :], us[..., :0, :])
        self._keep(out, self.terminal.values(m), slice(self.T, self.T + 1))
        return Values(next=out.next, cost=out.cost, equality=out.equality, inequality=out.inequality)

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        """The same with derivatives; the arrays are written again by the next call of the same thread."""
        batch = self.batch_of(xs)
        out = self._own.buffers.get(batch)
        if out is None:
            self.compile(bool(batch))
            out = self._own.buffers[batch] = Buffers(self, batch)
        out.xs[...], out.us[...] = xs, us
        known = self._own.rollout.known(xs, us)
        way = out.ways.get(bool(known))
        if way is not None and way.known is known and isinstance(way.track, Replay):
            way.track()
        else:  # recording pays if it is done again, as in a second iteration
            way = out.ways[bool(known)] = self._way(out, known, DIRECT if way is None else Replay())
        if self.exact and costates is not None:
            for (s, start, stop), m, results in zip(self.every, way.motions, way.results, strict=True):
                after = None if s is self.terminal else costates[..., start + 1 : stop + 1, :]
                add_second_derivatives(s, m, after, out.blocks(slice(start, stop), not s.body.size.nu), results)
        return out.quadratic

    def compile(self, batch: bool = False) -> None:
        """Make all code that solvers will run, for one problem or for batches; they do so by themselves."""
        if batch in self._compiled:
            return
        self._compiled.add(batch)
        wanted, out, own = CodeList(), Buffers(self, ()), self._own.rollout
        motions = self._way(out, NOTHING, wanted).motions
        for s, m in zip(self.every, motions, strict=True):
            s.stage.values(m)
        wanted.note(own.steps, for_one=not batch)
        wanted.note(own.state_space)
        wanted.note(kernel for s in self.segments if not s.stage.body.hits for kernel in static_kernels(s.stage.body))
        wanted.make(partial(recursion_code, target().name, self.ndx, self.nu, self.u_lower is not None))
        wanted.compile(f"a problem of {self.evaluator.model.name}")

    def _way(self, out: Buffers, known: Sequence[PhaseMotion], track: Direct) -> Way:
        """Compute all derivatives; known: what a rollout has found on the way, if anything."""
        motions, found = [], []
        for k, (s, start, stop) in enumerate(self.every):
            at = slice(start, stop)
            blocks = out.blocks(at, not s.body.size.nu)
            own = out.xs[..., at, :], out.us[..., at, :]
            m = known[k].followed_by(track) if known else s.motion(*own, track=track)
            results = s.results(blocks)
            self._keep(out, s.quadratic(m, blocks, results), at, track)
            if s is not self.terminal:
                s.linear_step(m, out.next[..., at, :], out.Fx[..., at, :, :], out.Fu[..., at, :, :])
            motions.append(m)
            found.append(results)
        return Way(track, known, motions, found)

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        """A step of length alpha along the policy; see `Horizon.rollout`."""
        return self._own.rollout(x0, xs, us, k, K, alpha, gaps, clip)

    def terms(self, xs: Array, us: Array) -> Mapping[str, Array]:
        """The cost by name of its terms, (..., T + 1) each; terms of the same name in several phases are one."""
        out: dict[str, Array] = {}
        batch = self.batch_of(xs)
        for s, start, stop in self.every:
            m = s.motion(xs[..., start:stop, :], us[..., start:stop, :])
            costs = s.values(m).costs
            for j, cost in enumerate(s.form.costs):
                whole = out.setdefault(cost.label, np.zeros((*batch, self.T + 1)))
                whole[..., start:stop] += costs[..., j]
        return out

    def batch_of(self, xs: Array) -> tuple[int, ...]:
        """The axes of problems at these states."""
        return np.broadcast_shapes(xs.shape[:-2], self._data_batch)

    @property
    def _stages(self) -> list[CompiledPhase]:
        return [s.stage for s in self.segments]

    @staticmethod
    def _keep(out: Buffers, found: Found, at: slice, track: Direct = DIRECT) -> None:
        """Write the values of some knots."""
        track.do(partial(found.costs.sum, -1, out=out.cost[..., at]))
        for whole, part in ((out.equality, found.equality), (out.inequality, found.inequality)):
            if whole is not None and part is not None:
                track.do(partial(np.copyto, whole[..., at, : part.shape[-1]], part))

    # Parts

    def take(self, problems: Any) -> Problem:
        """Some problems of a batch with one leading axis: an index array or a slice."""
        if len(self.batch) != 1:
            raise InputError(f"take: expected a batch with one axis of problems, this one has {len(self.batch)}")
        other = self._copy()
        other.x0 = np.broadcast_to(self.x0, (*self.batch, self.nx))[problems]
        parts = [s.resized(s.data[problems] if s.data.ndim > 2 else s.data) for s in (*self._stages, self.terminal)]
        other._set_stages(parts[:-1], parts[-1])
        for name in ("u_lower", "u_upper"):
            bound = getattr(self, name)
            if bound is not None and bound.ndim > 2:
                setattr(other, name, bound[problems])
        return other

    def window(self, start: int, T: int) -> Problem:
        """Knots start to start + T, ended by the terminal cost; see `Receding`."""
        wanted = np.arange(start, start + T)
        wanted = wanted % self.T if self.cyclic else np.minimum(wanted, self.T - 1)
        other, stages = self._copy(), []
        for s, first, last in (self._segment_of(k) for k in runs(wanted, [s.stop for s in self.segments])):
            stages.append(s.resized(s.data[..., first:last, :]))
        other._set_stages(stages, self.terminal)
        for name in ("u_lower", "u_upper"):
            bound = getattr(self, name)
            setattr(other, name, None if bound is None else bound[..., wanted, :])
        return other

    def _segment_of(self, run: tuple[int, int]) -> tuple[CompiledPhase, int, int]:
        """The stage of consecutive knots, and where they are in it."""
        first, count = run
        s = next(s for s in self.segments if first < s.stop)
        return s.stage, first - s.start, first - s.start + count

    def _copy(self) -> Problem:
        other = Problem.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


class Workspace(threading.local):
    """Arrays that a thread writes into as it evaluates a problem: each has its own, so that all may use the problem."""

    def __init__(self, problem: Problem) -> None:
        self.buffers: dict[tuple[int, ...], Buffers] = {}
        self.rollout = Rollout(problem)


class Way(NamedTuple):
    """All steps from states and controls to derivatives, what was known before, and motions and results of stages."""

    track: Direct
    known: Sequence[PhaseMotion]
    motions: list[PhaseMotion]
    results: list[dict[str, Array]]


class Buffers:
    """The arrays of a horizon; knots without controls have ones in Luu, and no other derivatives by controls."""

    def __init__(self, problem: Problem, batch: tuple[int, ...]) -> None:
        T, ndx, nu = problem.T, problem.ndx, problem.nu
        zeros = np.zeros
        self._values(problem, batch)
        self.nu, self.T = nu, T
        self.Fx, self.Fu = zeros((*batch, T, ndx, ndx)), zeros((*batch, T, ndx, nu))
        self.Lx, self.Lxx = zeros((*batch, T + 1, ndx)), zeros((*batch, T + 1, ndx, ndx))
        self.Lu, self.Lxu, self.Luu = zeros((*batch, T, nu)), zeros((*batch, T, ndx, nu)), zeros((*batch, T, nu, nu))
        self.Luu[...] = np.eye(nu)
        self.E, self.I = (zeros((*batch, T + 1, n, ndx + nu)) if n else None for n in (problem.ne, problem.ni))
        self.ndx = ndx
        self.xs, self.us = np.empty((*batch, T + 1, problem.nx)), np.empty((*batch, T, nu))
        self.ways: dict[bool, Way] = {}  # that with what a rollout has found, and that without

    def _values(self, problem: Problem, batch: tuple[int, ...]) -> None:
        T = problem.T
        self.next, self.cost = np.empty((*batch, T, problem.nx)), np.empty((*batch, T + 1))
        self.equality = np.zeros((*batch, T + 1, problem.ne)) if problem.ne else None
        self.inequality = np.full((*batch, T + 1, problem.ni), -1.0) if problem.ni else None

    @classmethod
    def plain(cls, problem: Problem, batch: tuple[int, ...]) -> Buffers:
        """Those of values alone."""
        found = cls.__new__(cls)
        found._values(problem, batch)
        return found

    def blocks(self, at: slice, uncontrolled: bool) -> Blocks:
        """The derivatives of some knots."""
        E, I = (None if x is None else x[..., at, :, :] for x in (self.E, self.I))
        own = self.Lx[..., at, :], self.Lxx[..., at, :, :]
        if uncontrolled:
            return Blocks(*own, E=E, I=I)
        return Blocks(
            *own, self.Lu[..., at, :], self.Lxu[..., at, :, :], self.Luu[..., at, :, :], E=E, I=I
        )  # fmt: skip

    @cached_property
    def quadratic(self) -> Quadratic:
        """All of them."""
        parts: dict[str, Array | None] = {}
        for name, J in (("E", self.E), ("I", self.I)):
            parts[f"{name}x"] = None if J is None else J[..., : self.ndx]
            parts[f"{name}u"] = None if J is None else J[..., : self.T, :, self.ndx :]
        return Quadratic(
            next=self.next, cost=self.cost, equality=self.equality, inequality=self.inequality, Fx=self.Fx, Fu=self.Fu,
            Lx=self.Lx, Lu=self.Lu, Lxx=self.Lxx, Lxu=self.Lxu, Luu=self.Luu, **parts,
        )  # fmt: skip


def runs(knots: Array, ends: Sequence[int]) -> list[tuple[int, int]]:
    """Knots as (first, count) of consecutive ones within one phase."""
    out: list[tuple[int, int]] = []
    for k in knots.tolist():
        if out and k == sum(out[-1]) and k not in ends:
            out[-1] = out[-1][0], out[-1][1] + 1
        else:
            out.append((k, 1))
    return out
