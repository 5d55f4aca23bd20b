"""Solvers: SciPy's for motions with and without conditions, or IPOPT; the best motion found is never lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import InputError, UnknownName
from .constraints import Conditions
from .metric import Scaling, gauss_newton
from .problem import Problem
from .spline import require_scipy

Array = np.ndarray
SOLVERS = ("auto", "lbfgs", "bfgs", "trust-constr", "slsqp", "ipopt")
PLAIN = ("lbfgs", "bfgs")
FEASIBLE = 1e-6  # largest violation of a condition [m, rad, or relative] that counts as none
NEARLY = 1e-4  # from where Newton's method gets there
SLIP = 2e-3  # of supports [m, rad] that counts as standing
PUSH = 1e-2  # of the weight, that counts as flying freely
SMALL, LARGE = 250, 2000  # variables up to which SLSQP is the quickest: with equalities only, and with limits
VIOLATED = 10.0  # how much of the first energy a violation of one is worth, when motions are compared
PATIENCE = 8  # iterations over which the energy must fall by the tolerance
LOOK, LATER = 4, 1.5  # iterations until a solver is told of limits that it exceeds; every time so many times more,
RESTARTS = ("slsqp",)  # if it does not mind to be started anew; others know most limits from the start
CALM = 1e-3  # share of the energy that one radian of motion is thought to cost, in Gauss-Newton steps

Callback = Callable[[int, float], Any]


@dataclass(frozen=True)
class Report:
    """How a solver fared.

    violation: the largest of all conditions, in m, rad, or relative to a limit.
    drift: how far supports stray [m, rad] between the times at which the solver held them; more intervals help.
    push: what pushes an unactuated root without supports between such times, relative to the robot's weight.
    """

    solver: str
    success: bool
    message: str
    iterations: int
    evaluations: int
    seconds: float
    initial_energy: float
    energy: float
    violation: float
    drift: float
    push: float
    interrupted: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Enough(Exception):
    """Raised within a solver, to leave it."""


class Search:
    """Functions of scaled variables for solvers, with the last values kept, and a watch over what they find."""

    def __init__(
        self, problem: Problem, control: Array, tolerance: float, limit: int, callback: Callback | None
    ) -> None:
        self.problem, self.tolerance, self.limit, self.callback = problem, tolerance, limit, callback
        self.evaluations = self.iterations = 0
        self.unit, _ = problem.energy(control)
        self.unit = max(self.unit, 1e-12)
        self.unequal = Conditions(problem.chart, problem.spline)
        self.history: list[float] = []
        self.best = control, np.inf, np.inf  # control points, energy, violation
        self.stopped, self.learned = "", False
        self.rescale(control)

    looks, until = False, LOOK

    def rescale(self, control: Array) -> None:
        """New variables around these control points: y = 0 is there."""
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
                raise Enough("the motion has left all bounds")
            self._value = energy / self.unit, self.scaling.back(slopes[self.problem.spline.free]) / self.unit
            self._at = key
        return self._value

    def hessian(self, y: Array) -> Array:
        """Gauss-Newton's, of E / unit."""
        return self.scaling.T.T @ self._curvature(y) @ self.scaling.T

    def hessian_product(self, y: Array) -> Any:
        """The same as a linear operator, which is all that conjugate gradients need."""
        H, T = self._curvature(y), self.scaling.T
        operator = require_scipy().sparse.linalg.LinearOperator
        return operator(T.shape, matvec=lambda p: T.T @ (H @ (T @ p.ravel())))

    def _curvature(self, y: Array) -> Array:
        return (2 / self.unit) * gauss_newton(self.problem.energy, self.scaling.control(y), CALM * self.unit)

    def values(self, which: str, y: Array) -> Array:
        """Of `equal` or `unequal` conditions."""
        return self._kept(which, y)[1]

    def jacobian(self, which: str, y: Array) -> Array:
        key, values, J = self._kept(which, y)
        if J is None:
            J = self.scaling.back(self._of(which).jacobian(self.scaling.control(y)))
            self._conditions[which] = key, values, J
        return J

    def _of(self, which: str) -> Conditions:
        return self.problem.equal if which == "equal" else self.unequal

    def _kept(self, which: str, y: Array) -> tuple[bytes, Array, Array | None]:
        key = y.tobytes()
        if which not in self._conditions or self._conditions[which][0] != key:
            self._conditions[which] = key, self._of(which).values(self.scaling.control(y)), None
        return self._conditions[which]

    def violation(self, y: Array) -> float:
        """The largest of all conditions that solvers know of."""
        off = [np.abs(self.values("equal", y)), -self.values("unequal", y)]
        return max([0.0, *(float(x.max()) for x in off if x.size)])

    def accept(self, y: Array, *_: Any) -> None:
        """A solver's new iterate: kept if it is the best, shown to the user, and judged whether to go on."""
        energy, violation = self.look(np.array(y))
        self.iterations += 1
        self.history.append(energy)
        if self.callback is not None and self.callback(self.iterations, energy):
            self.stopped = "stopped by the callback"
            raise Enough
        self._recent.append(energy)
        if self.iterations >= self.limit:
            raise Enough(f"no convergence in {self.limit} iterations")
        if self.looks and len(self._recent) >= self.until and self.problem.watched.learn(self.scaling.control(y)):
            self.learned, self.until = True, int(LATER * self.until)
            raise Enough
        if len(self._recent) > PATIENCE and violation <= NEARLY:
            before = self._recent[-1 - PATIENCE]
            if abs(before - energy) <= self.tolerance * abs(energy):
                raise Enough

    def look(self, y: Array) -> tuple[float, float]:
        """Energy and violation; the motion is kept if it has the least of both together."""
        energy, violation = self.objective(y)[0] * self.unit, self.violation(y)
        _, least, off = self.best
        if energy / self.unit + VIOLATED * violation < least / self.unit + VIOLATED * off:
            self.best = self.scaling.control(y), energy, violation
        return energy, violation

    def restore(self) -> None:
        """Newton's method towards the equalities, from y = 0, to which they then belong."""
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

    def take_up_limits(self, control: Array) -> None:
        """Go on from these control points, with all the limits that have been exceeded by now."""
        self.unequal = Conditions(self.problem.chart, self.problem.spline, self.problem.watched.conditions())
        self.best, self.learned = (control, np.inf, np.inf), False
        self.rescale(control)

    def finish(self) -> Array:
        """The best control points, brought onto the equalities; the next run starts from there."""
        self.rescale(self.best[0])
        if self.problem.equal:
            self.restore()
        self.best = self.scaling.control(self.start), np.inf, np.inf
        self.look(self.start)
        return self.best[0]


def solve(
    problem: Problem, control: Array, solver: str, tolerance: float, limit: int, callback: Callback | None
) -> tuple[Array, Report, Array]:
    """The best control points, the report, and the energy at every iteration."""
    solver = choose(problem, solver)
    started = time.perf_counter()
    search = Search(problem, control, tolerance, limit, callback)
    search.looks = solver in RESTARTS
    initial, interrupted, message, converged = search.unit, False, "", False
    try:
        search.restore()
        if problem.watched.bounds and not search.looks:
            problem.watched.know_most()
            search.take_up_limits(search.scaling.base)
        while True:
            message, converged = run(search, solver)
            control = search.finish()
            search.learned |= problem.watched.learn(control)
            if search.stopped or not search.learned or search.iterations >= limit:
                break
            search.take_up_limits(control)
    except KeyboardInterrupt:
        interrupted, message = True, "interrupted; this is the best motion until then"
        search.finish()
    control, energy, violation = search.best
    violation = max(violation, problem.watched.worst(control))
    drift, push = problem.drift(control), problem.push(control)
    kept = violation <= FEASIBLE and drift <= SLIP and push <= PUSH
    done = search.stopped or message
    if violation > FEASIBLE:
        done += f"; conditions are violated by {violation:.2g}"
    if drift > SLIP:
        done += f"; supports slip by {drift:.2g} m or rad between the times they are held at: take more intervals"
    if push > PUSH:
        done += f"; between the times nothing may push the root, {push:.2g} of the weight does: take more intervals"
    report = Report(
        solver=solver, success=bool(converged and kept and not interrupted and not search.stopped), message=done,
        iterations=search.iterations, evaluations=search.evaluations, seconds=time.perf_counter() - started,
        initial_energy=float(initial), energy=float(energy), violation=float(violation), drift=drift,
        push=push, interrupted=interrupted,
    )  # fmt: skip
    return control, report, np.array(search.history)


def choose(problem: Problem, solver: str) -> str:
    """A solver that can treat the problem's conditions."""
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    conditions = bool(problem.equal) or bool(problem.watched.bounds)
    if solver == "auto":
        size = problem.ends.shape[1] * (problem.spline.free.stop - problem.spline.free.start)
        small = size <= (LARGE if problem.watched.bounds else SMALL)
        return ("slsqp" if small else "trust-constr") if conditions else "lbfgs"
    if conditions and solver in PLAIN:
        raise InputError(
            f"solver: {solver!r} knows no conditions, but there are supports, targets, limits or an unactuated root; "
            "take 'trust-constr', 'slsqp', 'ipopt' or 'auto'"
        )
    return solver


def run(search: Search, solver: str) -> tuple[str, bool]:
    """One run from the search's start; its message, and whether it converged."""
    try:
        if solver == "ipopt":
            from .ipopt import ipopt

            return ipopt(search)
        found = scipy_solve(search, solver)
        search.look(found.x)
        return str(found.message), bool(found.success)
    except Enough as enough:
        return (str(enough), False) if enough.args else ("converged: the energy falls no more", True)


def scipy_solve(search: Search, solver: str) -> Any:
    """scipy.optimize.minimize, with what the solver can make use of."""
    optimize = require_scipy().optimize
    tight = search.tolerance * 1e-3
    common: dict[str, Any] = dict(x0=search.start, jac=True, callback=search.accept)
    if solver == "lbfgs":
        options = dict(maxiter=10 * search.limit, maxfun=100 * search.limit, maxcor=30, ftol=tight, gtol=1e-9)
        return optimize.minimize(search.objective, method="L-BFGS-B", options=options, **common)
    if solver == "bfgs":
        options = dict(maxiter=10 * search.limit, gtol=tight)
        return optimize.minimize(search.objective, method="BFGS", options=options, **common)
    sorts = [w for w in ("equal", "unequal") if search.values(w, search.start).size]
    if solver == "slsqp":
        kinds = {"equal": "eq", "unequal": "ineq"}
        constraints = [
            dict(type=kinds[w], fun=lambda y, w=w: search.values(w, y), jac=lambda y, w=w: search.jacobian(w, y))
            for w in sorts
        ]
        options = dict(maxiter=10 * search.limit, ftol=tight)
        return optimize.minimize(search.objective, method="SLSQP", constraints=constraints, options=options, **common)
    # Gauss-Newton leaves out how conditions curve, which matters where limits are active: then curvature is learned.
    flat = np.zeros((search.start.size, search.start.size))
    learned = "unequal" in sorts
    constraints = [
        optimize.NonlinearConstraint(
            lambda y, w=w: search.values(w, y), 0, 0 if w == "equal" else np.inf,
            jac=lambda y, w=w: search.jacobian(w, y), hess=optimize.BFGS() if learned else lambda y, v: flat,
        )
        for w in sorts
    ]  # fmt: skip
    hess = optimize.BFGS() if learned else search.hessian_product
    common |= dict(hess=hess, options=dict(maxiter=10 * search.limit, gtol=tight, xtol=1e-9))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)  # limits of velocity do not curve
        return optimize.minimize(search.objective, method="trust-constr", constraints=constraints, **common)
