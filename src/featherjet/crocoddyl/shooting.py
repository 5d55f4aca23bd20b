"""Shooting problems: Crocoddyl's solvers ask knot by knot, featherjet differentiates the whole horizon at once."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any

import crocoddyl
import numpy as np

from ..control.horizon import Quadratic
from ..control.problem import Problem, holding
from ..control.stage import Stage
from ..control.track import Track
from ..errors import InputError
from .state import state_of

Array = np.ndarray


def problem(problem: Problem) -> crocoddyl.ShootingProblem:
    """The same problem for Crocoddyl's solvers: a `ShootingProblem` whose action models featherjet evaluates.

    Every knot has nu controls, those of impacts do nothing. Limits of controls are those of the action models, for
    Crocoddyl's box solvers. Hessians are Gauss-Newton's.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected a featherjet.control Problem, got {type(problem).__name__}")
    if problem.batch:
        raise InputError("problem: expected one problem, this is a batch; use problem.take")
    if problem.ne or problem.ni:
        raise InputError(
            "problem: constraints do not go to Crocoddyl; make them costs, or use featherjet.control.solve"
        )
    around, state = Around(problem), state_of(problem)
    stages = [s.resized(s.data[k : k + 1]) for s, start, stop in problem.segments for k in range(stop - start)]
    *knots, last = (Knot(state, around, t, stage) for t, stage in enumerate((*stages, problem.terminal)))
    shooting = crocoddyl.ShootingProblem(problem.x0, knots, last)
    shooting.nthreads = 1  # models in Python take turns
    return shooting


class Around:
    """The motion xs (T + 1, nx), us (T, nu) at which knots were last evaluated, and its derivatives.

    Solvers differentiate the motion that they evaluated last, so the first knot they ask for has the derivatives of all
    computed. An answer always belongs to the x and u of its question: `known` is taken back if a knot differs.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem.window(0, problem.T)  # with arrays of its own, which no other solver writes
        self.xs, self.us = problem.guess()
        self.known: Quadratic | None = None

    def move(self, t: int, x: Array, u: Array | None) -> None:
        """Knot t is at x and u."""
        if self.xs[t].tobytes() != x.tobytes():  # faster than comparing short arrays
            self.xs[t], self.known = x, None
        if u is not None and self.us[t].tobytes() != u.tobytes():
            self.us[t], self.known = u, None

    def derivatives(self) -> Quadratic:
        if self.known is None:
            self.known = self.problem.linearize(self.xs, self.us)
        return self.known


class Knot(crocoddyl.ActionModelAbstract):
    """Knot t of a horizon, or the terminal one, which has no controls to choose."""

    def __init__(self, state: Any, around: Around, t: int, stage: Stage) -> None:
        p = around.problem
        crocoddyl.ActionModelAbstract.__init__(self, state, p.nu if t < p.T else 0, 0)
        self.around, self.t, self.stage = around, t, stage
        self._track, self._found = Track(), tuple[Array, Array | None]()  # once recorded: costs, and the next state
        if t < p.T and p.u_lower is not None and p.u_upper is not None:
            self.u_lb, self.u_ub = np.array(p.u_lower[t]), np.array(p.u_upper[t])

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The cost and the next state."""
        around, t = self.around, self.t
        around.move(t, x, u if t < around.problem.T else None)
        with np.errstate(all="ignore"):  # solvers try steps that diverge
            if self._found:
                self._track()
            else:
                self._found = self._record()
            costs, next = self._found
            data.cost = float(costs.sum())
            data.xnext = x if next is None else next[0]

    def _record(self) -> tuple[Array, Array | None]:
        """Take the steps to costs and next state, and record them; returns where both are written."""
        around, t, stage = self.around, self.t, self.stage
        m = stage.motion(around.xs[t : t + 1], around.us[t : t + 1], track=self._track)
        costs = stage.values(m).costs
        if t == around.problem.T:
            return costs, None
        next = np.empty((1, around.problem.nx))
        self._track.do(lambda: np.copyto(next, stage.next(m)))
        return costs, next

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Their derivatives; `calc` comes first, as for all of Crocoddyl's models."""
        t, T = self.t, self.around.problem.T
        self.around.move(t, x, u if t < T else None)
        d = self.around.derivatives()
        data.Lx, data.Lxx = d.Lx[t], d.Lxx[t]
        if t < T:
            data.Fx, data.Fu, data.Lu, data.Lxu, data.Luu = d.Fx[t], d.Fu[t], d.Lu[t], d.Lxu[t], d.Luu[t]

    def quasiStatic(self, data: Any, x: Array, maxiter: int = 100, tol: float = 1e-9) -> Array:
        """Controls that hold the robot still at x, as well as they can."""
        p = self.around.problem
        held = not self.stage.body.hits and self.t < p.T
        return holding(self.stage.body, x[: p.nq]) if held else np.zeros(self.nu)
