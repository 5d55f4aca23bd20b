"""The search for a motion: the functions that solvers call, when to stop them, and the best motion so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .constraints import Conditions
from .metric import Scaling, gauss_newton
from .problem import MotionProblem
from .spline import require_scipy

Array = np.ndarray
Callback = Callable[[int, float], Any]
NEARLY_FEASIBLE = 1e-4  # violation of a condition [m, rad, or relative] from which Newton's method removes it
VIOLATION_COST = 10.0  # of a violation of one, relative to the first energy, when motions are compared
PATIENCE = 8  # iterations over which the energy must fall by the tolerance
FIRST_CHECK = 4  # iterations after which limits are checked first
CHECK_GROWTH = 1.5  # each further check waits so many times longer
DAMPING = 1e-3  # share of the energy that one radian of motion costs in Gauss-Newton steps


class StopSearch(Exception):
    """Raised inside a solver to leave it; the message says why, and is empty on convergence."""


class Search:
    """The functions of scaled variables y that solvers call, with the last values cached, and the best motion so far.

    restartable: whether the solver may be stopped to be given limits that its iterates exceed.
    """

    def __init__(
        self,
        problem: MotionProblem,
        control: Array,
        tolerance: float,
        limit: int,
        callback: Callback | None,
        restartable: bool = False,
    ) -> None:
        self.problem, self.tolerance, self.limit, self.callback = problem, tolerance, limit, callback
        self.restartable, self._next_check = restartable, FIRST_CHECK
        self.evaluations = self.iterations = 0
        self.unit, _ = problem.energy(control)
        self.unit = max(self.unit, 1e-12)
        self.unequal = Conditions(problem.chart, problem.spline)
        self.history: list[float] = []
        self.best = control, np.inf, np.inf  # control points, energy, violation
        self.stopped, self.limits_added = "", False
        self.rescale(control)

    def rescale(self, control: Array) -> None:
        """Choose variables around these control points, which become y = 0."""
        self.scaling = Scaling(self.problem.energy, control, self.unit)
        self.start = np.zeros(control[self.problem.spline.free].size)
        self._at: bytes = b""
        self._conditions: dict[str, tuple[bytes, Array, Array | None]] = {}
        self._recent: list[float] = []

    def objective(self, y: Array) -> tuple[float, Array]:
        """E / unit and its gradient."""
        key = y.tobytes()
        if key != self._at:
            energy, slopes = self.problem.energy(self.scaling.control(y))
            self.evaluations += 1
            if not np.isfinite(energy):
                raise StopSearch("the energy is no longer finite")
            self._value = energy / self.unit, self.scaling.back(slopes[self.problem.spline.free]) / self.unit
            self._at = key
        return self._value

    def hessian(self, y: Array) -> Array:
        """The Gauss-Newton matrix of E / unit."""
        return self.scaling.T.T @ self._curvature(y) @ self.scaling.T

    def hessian_product(self, y: Array) -> Any:
        """The same as a linear operator, for conjugate gradients."""
        H, T = self._curvature(y), self.scaling.T
        operator = require_scipy().sparse.linalg.LinearOperator
        return operator(T.shape, matvec=lambda p: T.T @ (H @ (T @ p.ravel())))

    def _curvature(self, y: Array) -> Array:
        return (2 / self.unit) * gauss_newton(self.problem.energy, self.scaling.control(y), DAMPING * self.unit)

    def values(self, which: str, y: Array) -> Array:
        """Values (n,) of the "equal" or the "unequal" conditions."""
        return self._cached(which, y)[1]

    def jacobian(self, which: str, y: Array) -> Array:
        """Derivatives (n, variables) of `values`."""
        key, values, J = self._cached(which, y)
        if J is None:
            J = self.scaling.back(self._chosen(which).jacobian(self.scaling.control(y)))
            self._conditions[which] = key, values, J
        return J

    def _chosen(self, which: str) -> Conditions:
        return self.problem.equal if which == "equal" else self.unequal

    def _cached(self, which: str, y: Array) -> tuple[bytes, Array, Array | None]:
        key = y.tobytes()
        if which not in self._conditions or self._conditions[which][0] != key:
            self._conditions[which] = key, self._chosen(which).values(self.scaling.control(y)), None
        return self._conditions[which]

    def violation(self, y: Array) -> float:
        """The largest violation of the conditions that solvers are given."""
        off = [np.abs(self.values("equal", y)), -self.values("unequal", y)]
        return max([0.0, *(float(x.max()) for x in off if x.size)])

    def accept(self, y: Array, *_: Any) -> None:
        """Take a solver's new iterate: keep it if it is the best, call the callback, and decide whether to go on."""
        energy, violation = self.consider(np.array(y))
        self.iterations += 1
        self.history.append(energy)
        if self.callback is not None and self.callback(self.iterations, energy):
            self.stopped = "stopped by the callback"
            raise StopSearch
        self._recent.append(energy)
        if self.iterations >= self.limit:
            raise StopSearch(f"no convergence in {self.limit} iterations")
        if self.restartable and len(self._recent) >= self._next_check:
            if self.problem.limits.add_exceeded(self.scaling.control(y)):
                self.limits_added, self._next_check = True, int(CHECK_GROWTH * self._next_check)
                raise StopSearch
        if len(self._recent) > PATIENCE and violation <= NEARLY_FEASIBLE:
            before = self._recent[-1 - PATIENCE]
            if abs(before - energy) <= self.tolerance * abs(energy):
                raise StopSearch

    def consider(self, y: Array) -> tuple[float, float]:
        """Return energy and violation; keep the motion if the weighted sum of both is the least so far."""
        energy, violation = self.objective(y)[0] * self.unit, self.violation(y)
        _, least, off = self.best
        if energy / self.unit + VIOLATION_COST * violation < least / self.unit + VIOLATION_COST * off:
            self.best = self.scaling.control(y), energy, violation
        return energy, violation

    def restore(self) -> None:
        """Move y = 0 onto the equalities by Newton's method."""
        y, off = self.start, float(np.abs(self.values("equal", self.start)).max(initial=0.0))
        for _ in range(8):
            if off <= 1e-10:
                break
            step = np.linalg.lstsq(self.jacobian("equal", y), self.values("equal", y), rcond=None)[0]
            new = float(np.abs(self.values("equal", y - step)).max())
            if not new < off:
                break
            y, off = y - step, new
        if y is not self.start:
            self.rescale(self.scaling.control(y))

    def add_limits(self, control: Array) -> None:
        """Go on from these control points, with all limits exceeded so far as conditions."""
        self.unequal = Conditions(self.problem.chart, self.problem.spline, self.problem.limits.conditions())
        self.best, self.limits_added = (control, np.inf, np.inf), False
        self.rescale(control)

    def finish(self) -> Array:
        """Move the best control points onto the equalities and return them; the next run starts there."""
        self.rescale(self.best[0])
        if self.problem.equal:
            self.restore()
        self.best = self.scaling.control(self.start), np.inf, np.inf
        self.consider(self.start)
        return self.best[0]
