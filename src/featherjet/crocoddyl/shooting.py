"""Shooting problems: Crocoddyl's solvers ask knot by knot, featherjet differentiates the whole horizon at once."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any, NamedTuple

import crocoddyl
import numpy as np

from ..control.compiled.phase import CompiledPhase
from ..control.compiled.replay import Replay
from ..control.compiled.static_controls import static_controls
from ..control.horizon import Quadratic
from ..control.problem.problem import Problem
from ..errors import InputError
from .state import state_of

Array = np.ndarray


def problem(problem: Problem) -> crocoddyl.ShootingProblem:
    """The same problem for Crocoddyl's solvers: a `ShootingProblem` whose action models featherjet evaluates.

    Every knot has nu controls, those of impacts do nothing. Limits of controls are those of the action models, for
    Crocoddyl's box solvers. Hessians are Gauss-Newton's. Constraints are h = 0 and g <= 0 of the action models;
    SolverIntro keeps equalities, other solvers of Crocoddyl 3.2 look at none.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected a featherjet.control Problem, got {type(problem).__name__}")
    if problem.batch:
        raise InputError("problem: expected one problem, this is a batch; use problem.take")
    around, state = Around(problem), state_of(problem)
    phases = [p.replaced(p.data[k : k + 1], p.start + k) for p in problem.every for k in range(p.knots)]
    *knots, last = (Knot(state, around, t, phase) for t, phase in enumerate(phases))
    shooting = crocoddyl.ShootingProblem(problem.x0, knots, last)
    shooting.nthreads = 1  # models in Python take turns
    return shooting


class Answer(NamedTuple):
    """Where a knot's costs by term, its next state and its constraints are written, if it has any."""

    costs: Array
    next: Array | None
    equality: Array | None
    inequality: Array | None


class Around:
    """The motion xs (T + 1, nx), us (T, nu) at which knots were last evaluated, and its derivatives.

    Solvers differentiate the motion that they evaluated last, so the first knot they ask for has the derivatives of all
    computed. An answer always belongs to the x and u of its question: `quadratic` is dropped if a knot differs.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem.window(0, problem.T)  # with arrays of its own, which no other solver writes
        self.xs, self.us = problem.guess()
        self.quadratic: Quadratic | None = None

    def move(self, t: int, x: Array, u: Array | None) -> None:
        """Knot t is at x and u."""
        if self.xs[t].tobytes() != x.tobytes():  # faster than comparing short arrays
            self.xs[t], self.quadratic = x, None
        if u is not None and self.us[t].tobytes() != u.tobytes():
            self.us[t], self.quadratic = u, None

    def derivatives(self) -> Quadratic:
        if self.quadratic is None:
            self.quadratic = self.problem.linearize(self.xs, self.us)
        return self.quadratic


class Knot(crocoddyl.ActionModelAbstract):
    """Knot t of a horizon, or the terminal one, which has no controls to choose."""

    def __init__(self, state: Any, around: Around, t: int, phase: CompiledPhase) -> None:
        p = around.problem
        ng, nh = phase.terms.ni, phase.terms.ne
        ends = (0, 0) if t < p.T else (ng, nh)  # constraints that hold without controls
        crocoddyl.ActionModelAbstract.__init__(self, state, p.nu if t < p.T else 0, 0, ng, nh, *ends)
        self.around, self.t, self.phase = around, t, phase
        self._replay = Replay()
        self._answer: Answer | None = None  # once recorded
        if ng:
            self.g_lb, self.g_ub = np.full(ng, -np.inf), np.zeros(ng)
        if t < p.T and p.u_lower is not None and p.u_upper is not None:
            self.u_lb, self.u_ub = np.array(p.u_lower[t]), np.array(p.u_upper[t])

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The cost, the next state and the constraints."""
        around, t = self.around, self.t
        around.move(t, x, u if t < around.problem.T else None)
        with np.errstate(all="ignore"):  # solvers try steps that diverge
            if self._answer is None:
                self._answer = self._record()
            else:
                self._replay()
            costs, next, equality, inequality = self._answer
            data.cost = float(costs.sum())
            data.xnext = x if next is None else next[0]
            if equality is not None:
                data.h = equality[0]
            if inequality is not None:
                data.g = inequality[0]

    def _record(self) -> Answer:
        """Take the steps to a knot's values, and record them; returns where they are written."""
        around, t, phase = self.around, self.t, self.phase
        m = phase.motion(around.xs, around.us, steps=self._replay)
        values = phase.term_values(m)
        next = None
        if t < around.problem.T:
            next = np.empty((1, around.problem.nx))
            self._replay.do(lambda: np.copyto(next, phase.next(m)))
        return Answer(values["costs"], next, values.get("equality"), values.get("inequality"))

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Their derivatives; `calc` comes first, as for all of Crocoddyl's models."""
        t, T = self.t, self.around.problem.T
        self.around.move(t, x, u if t < T else None)
        d = self.around.derivatives()
        data.Lx, data.Lxx = d.Lx[t], d.Lxx[t]
        if t < T:
            data.Fx, data.Fu, data.Lu, data.Lxu, data.Luu = d.Fx[t], d.Fu[t], d.Lu[t], d.Lxu[t], d.Luu[t]
        ne, ni = self.phase.terms.ne, self.phase.terms.ni
        if ne and d.Ex is not None and d.Eu is not None:
            data.Hx = d.Ex[t, :ne]
            if t < T:
                data.Hu = d.Eu[t, :ne]
        if ni and d.Ix is not None and d.Iu is not None:
            data.Gx = d.Ix[t, :ni]
            if t < T:
                data.Gu = d.Iu[t, :ni]

    def quasiStatic(self, data: Any, x: Array, maxiter: int = 100, tol: float = 1e-9) -> Array:
        """Controls that hold the robot still at x, as well as they can."""
        p = self.around.problem
        held = not self.phase.robot.hits and self.t < p.T
        return static_controls(self.phase.robot, x[: p.nq]) if held else np.zeros(self.nu)
