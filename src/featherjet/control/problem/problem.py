"""Problem: an optimal control problem of a robot, written as phases with costs; a `Horizon` for solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError, UnknownName
from ...evaluate.evaluator import HasEvaluator
from ...evaluate.frames import numbers
from ...jit.engine import target
from ...jit.kernel import Kernel
from ...model.model import Model
from ..compiled.ahead import CodeList
from ..compiled.integrators import difference_kernel, move_state_kernel
from ..compiled.phase import CompiledPhase
from ..compiled.pickled import DropsCode
from ..compiled.robot import PhaseRobot
from ..compiled.rollout_steps import rollout_step
from ..compiled.static_controls import static_controls, static_kernels
from ..compiled.terms import TracedTerms
from ..horizon import Quadratic, Values
from ..residuals.cost import Constraint, Cost
from ..residuals.signals import KINDS, Signal
from ..solvers.riccati import recursion_kernel
from .checks import checked_state, compiled_evaluator, control_limits, driven_dofs, refuse_exact
from .contact_forces import ContactForces, contact_forces
from .phases import Impact, Phase
from .workspace import Linearization, Workspace, new_values

Array = np.ndarray
HESSIANS = ("gauss-newton", "exact")


class Problem(DropsCode):
    """minimise costs over phases and a terminal cost, along the motion of a robot from the state x0 = [q, v].

    x0: (nx,), or (..., nx) for a batch of problems. terminal: costs and constraints of the last state, as they are.
    actuated: names of the joints that controls drive, by default all but those of a free base; u are their torques.
    limits: True limits controls to the joints' efforts; or a pair (lower, upper), each a number or one per control.
    hessian: "gauss-newton", or "exact" to add the second derivatives of residuals and dynamics, contracted.
    cyclic: whether windows of a receding horizon go on with the first phase after the last.
    """

    phases: list[CompiledPhase]
    terminal: CompiledPhase
    every: list[CompiledPhase]  # phases, and the terminal one
    T: int
    ne: int
    ni: int
    durations: Array
    batch: tuple[int, ...]
    data_batch: tuple[int, ...]  # of weights, references and bounds alone
    workspace: Workspace

    def __init__(
        self,
        robot: HasEvaluator,
        x0: ArrayLike,
        phases: Sequence[Phase | Impact],
        terminal: Sequence[Cost | Constraint] = (),
        *,
        actuated: Sequence[str] | None = None,
        limits: bool | tuple[ArrayLike, ArrayLike] = False,
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
        lay_out(self, [self._phase(p) for p in phases], self._end(terminal))
        self.u_lower = self.u_upper = None
        if limits is not False:
            bounds = control_limits(self.evaluator, self.driven, limits)
            self.u_lower, self.u_upper = (np.broadcast_to(bound, (self.T, self.nu)) for bound in bounds)

    def _phase(self, phase: Phase | Impact) -> CompiledPhase:
        """A phase with its code, and its numbers."""
        hits = isinstance(phase, Impact)
        if phase.contacts is not None and not self.evaluator.model.same_robot(phase.contacts.model):
            raise InputError(f"contacts {', '.join(phase.contacts.names)}: these belong to another robot")
        robot = PhaseRobot(self.evaluator, self.driven, phase.contacts, hits, phase.integrator)
        terms = self._traced(robot, phase.costs, phase.constraints)
        return CompiledPhase(robot, terms, terms.data(phase.knots, 1.0 if hits else float(phase.dt)), float(phase.dt))

    def _end(self, terminal: Sequence[Cost | Constraint]) -> CompiledPhase:
        """The last state as a phase of one knot, in which no controls act any more."""
        if not isinstance(terminal, Sequence) or not all(isinstance(t, Cost | Constraint) for t in terminal):
            raise InputError("terminal: expected a list of Cost(residual, ...) and Constraint(residual, ...)")
        costs = [t for t in terminal if isinstance(t, Cost)]
        constraints = [t for t in terminal if isinstance(t, Constraint)]
        robot = PhaseRobot(self.evaluator, np.zeros(0, int), None, False)
        terms = self._traced(robot, costs, constraints)
        if Signal("a") in terms.signals:
            raise InputError("terminal: the last state has no controls, and so no accelerations; leave them out")
        return CompiledPhase(robot, terms, terms.data(1, 1.0), 0.0)

    def _traced(self, robot: PhaseRobot, costs: Sequence[Cost], constraints: Sequence[Constraint]) -> TracedTerms:
        terms = TracedTerms(robot.size, costs, constraints)
        for s in terms.signals:
            if KINDS[s.kind].framed:
                numbers(self.evaluator, s.of)  # raises for an unknown frame
        return terms

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in super().__getstate__().items() if k != "workspace"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.workspace = Workspace(self)

    def __repr__(self) -> str:
        batch = f", {prod(self.batch)} problems" if self.batch else ""
        return f"<Problem of {self.evaluator.model.name}: {self.T} knots, nx {self.nx}, nu {self.nu}{batch}>"

    @property
    def model(self) -> Model:
        """The robot's model."""
        return self.evaluator.model

    def contact_forces(self, xs: Array, us: Array) -> ContactForces:
        """Forces of the contacts along a motion (..., T + 1, nx), (..., T, nu)."""
        return contact_forces(self.evaluator, self.phases, xs, us)

    # The state space

    @cached_property
    def _difference(self) -> Kernel:
        return difference_kernel(self.evaluator.places)

    @cached_property
    def _move(self) -> Kernel:
        return move_state_kernel(self.evaluator.places)

    def difference(self, x0: Array, x1: Array) -> Array:
        """The tangent (..., ndx) at x0 that leads to x1."""
        return self._difference.values(x0, x1)[0]

    def integrate(self, x: Array, dx: Array) -> Array:
        """The state (..., nx) that a tangent leads to."""
        return self._move.values(x, dx)[0]

    def guess(self, x0: Array | None = None) -> tuple[Array, Array]:
        """x0 at every knot, and the smallest controls and contact forces that hold it still as well as they can."""
        x0 = self.x0 if x0 is None else x0
        x0 = np.broadcast_to(x0, (*np.broadcast_shapes(x0.shape[:-1], self.batch), self.nx))
        self.compile(x0.ndim > 1)
        xs = np.repeat(x0[..., None, :], self.T + 1, -2)
        us = np.zeros((*x0.shape[:-1], self.T, self.nu))
        by_contacts: dict[Any, Array] = {}
        for phase in self.phases:
            if phase.robot.hits:
                continue
            contacts = phase.robot.contacts and phase.robot.contacts.core
            if contacts not in by_contacts:
                by_contacts[contacts] = static_controls(phase.robot, x0[..., : self.nq])
            us[..., phase.at, :] = by_contacts[contacts][..., None, :]
        return xs, us

    # Evaluation

    def values(self, xs: Array, us: Array) -> Values:
        """The horizon at states (..., T + 1, nx) and controls (..., T, nu)."""
        out = new_values(self, self.batch_of(xs))
        for phase in self.every:
            phase.write_values(phase.motion(xs, us), out)
        return out

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        """The same with derivatives; the arrays are written again by the next call of the same thread."""
        batch, workspace = self.batch_of(xs), self.workspace
        linearization = workspace.linearizations.get(batch)
        if linearization is None:
            self.compile(bool(batch))
            linearization = workspace.linearizations[batch] = Linearization(self, batch)
        return linearization(xs, us, workspace.rolled_out(xs, us), costates)

    def compile(self, batch: bool = False) -> None:
        """Make all code that solvers will run, for one problem or for batches; they do so by themselves."""
        if batch in self._compiled:
            return
        self._compiled.add(batch)
        code = CodeList()
        motions = Linearization(self, ()).take(code).motions
        for phase, m in zip(self.every, motions, strict=True):
            phase.term_values(m)
        code.note((rollout_step(p.robot) for p in self.phases), for_one=not batch)
        code.note([self._difference, self._move])
        code.note(kernel for p in self.phases if not p.robot.hits for kernel in static_kernels(p.robot))
        code.note([recursion_kernel(target().name, self.T, self.ndx, self.nu, self.u_lower is not None)])
        code.compile(f"a problem of {self.evaluator.model.name}")

    @cached_property
    def _compiled(self) -> set[bool]:
        """Whether code has been made for one problem (False) and for batches (True)."""
        return set()

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        """A step of length alpha along the policy; see `Horizon.rollout`."""
        return self.workspace.roll_out(self.batch_of(xs))(x0, xs, us, k, K, alpha, gaps, clip)

    def terms(self, xs: Array, us: Array) -> Mapping[str, Array]:
        """The cost by name of its terms, (..., T + 1) each; terms of the same name in several phases are one."""
        out: dict[str, Array] = {}
        batch = self.batch_of(xs)
        for phase in self.every:
            costs = phase.term_values(phase.motion(xs, us))["costs"]
            for j, cost in enumerate(phase.terms.costs):
                whole = out.setdefault(cost.label, np.zeros((*batch, self.T + 1)))
                whole[..., phase.at] += costs[..., j]
        return out

    def batch_of(self, xs: Array) -> tuple[int, ...]:
        """The axes of problems at these states."""
        return np.broadcast_shapes(xs.shape[:-2], self.data_batch)

    # Parts

    def take(self, problems: Any) -> Problem:
        """Some problems of a batch with one leading axis: an index array or a slice."""
        if len(self.batch) != 1:
            raise InputError(f"take: expected a batch with one axis of problems, this one has {len(self.batch)}")
        other = self._copy()
        other.x0 = np.broadcast_to(self.x0, (*self.batch, self.nx))[problems]
        *phases, end = (p.replaced(p.data[problems] if p.data.ndim > 2 else p.data, p.start) for p in self.every)
        lay_out(other, phases, end)
        for name in ("u_lower", "u_upper"):
            bound = getattr(self, name)
            if bound is not None and bound.ndim > 2:
                setattr(other, name, bound[problems])
        return other

    def window(self, start: int, T: int) -> Problem:
        """Knots start to start + T, ended by the terminal cost; see `Receding`."""
        wanted = np.arange(start, start + T)
        wanted = wanted % self.T if self.cyclic else np.minimum(wanted, self.T - 1)
        other, phases = self._copy(), []
        for first, count in runs(wanted, [p.stop for p in self.phases]):
            p = next(p for p in self.phases if first < p.stop)
            phases.append(p.replaced(p.data[..., first - p.start : first - p.start + count, :], 0))
        lay_out(other, phases, self.terminal)
        for name in ("u_lower", "u_upper"):
            bound = getattr(self, name)
            setattr(other, name, None if bound is None else bound[..., wanted, :])
        return other

    def _copy(self) -> Problem:
        other = Problem.__new__(type(self))
        other.__dict__.update(self.__dict__, _compiled=self._compiled)
        return other


def lay_out(problem: Problem, phases: Sequence[CompiledPhase], end: CompiledPhase) -> None:
    """Give a problem phases one after the other, and a last state."""
    T, placed = 0, list[CompiledPhase]()
    for phase in (*phases, end):
        placed.append(phase.replaced(phase.data, T))
        T += phase.knots
    problem.every, problem.phases, problem.terminal, problem.T = placed, placed[:-1], placed[-1], T - 1
    problem.durations = np.concatenate([np.full(p.knots, p.dt[0]) for p in problem.phases])
    problem.ne, problem.ni = (max(getattr(p.terms, k) for p in placed) for k in ("ne", "ni"))
    problem.data_batch = np.broadcast_shapes(*(p.data.shape[:-2] for p in placed))
    problem.batch = np.broadcast_shapes(problem.x0.shape[:-1], problem.data_batch)
    problem.workspace = Workspace(problem)


def runs(knots: Array, ends: Sequence[int]) -> list[tuple[int, int]]:
    """Knots as (first, count) of consecutive ones within one phase."""
    out: list[tuple[int, int]] = []
    for k in knots.tolist():
        if out and k == sum(out[-1]) and k not in ends:
            out[-1] = out[-1][0], out[-1][1] + 1
        else:
            out.append((k, 1))
    return out
