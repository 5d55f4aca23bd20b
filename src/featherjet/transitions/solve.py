"""Solvers: SciPy's for motions with and without conditions, or IPOPT. The best motion found is always kept."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, UnknownName
from .ipopt import run_ipopt
from .problem import MotionProblem
from .search import Callback, Search, StopSearch
from .spline import require_scipy

Array = np.ndarray
SOLVERS = ("auto", "lbfgs", "bfgs", "trust-constr", "slsqp", "ipopt")
UNCONSTRAINED = ("lbfgs", "bfgs")
RESTARTABLE = ("slsqp",)  # given limits as they are exceeded; other solvers are given most limits from the start
FEASIBLE = 1e-6  # largest violation of a condition [m, rad, or relative] that counts as none
SLIP = 2e-3  # drift of supports [m, rad] that still counts as standing
PUSH = 1e-2  # force on an unactuated root, relative to the weight, that still counts as flying freely
SMALL, LARGE = 250, 2000  # variables up to which SLSQP is the fastest: with equalities only, and with limits


@dataclass(frozen=True)
class Report:
    """The outcome of a search.

    violation: the largest violation of any condition, in m, rad, or relative to a limit.
    drift:     how far supports drift [m, rad] between the times at which the solver holds them; more intervals help.
    push:      the force on an unactuated root without supports between such times, relative to the robot's weight.
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


def solve(
    problem: MotionProblem, control: Array, solver: str, tolerance: float, limit: int, callback: Callback | None
) -> tuple[Array, Report, Array]:
    """The best control points, the report, and the energy at every iteration."""
    solver = choose(problem, solver)
    started = time.perf_counter()
    search = Search(problem, control, tolerance, limit, callback, restartable=solver in RESTARTABLE)
    interrupted, message, converged = False, "", False
    initial = search.unit
    try:
        message, converged = _run_until_limits_hold(search, solver)
    except KeyboardInterrupt:
        interrupted, message = True, "interrupted; this is the best motion so far"
        search.finish()
    control, energy, violation = search.best
    violation = max(violation, problem.limits.worst(control))
    drift, push = problem.drift(control), problem.push(control)
    kept = violation <= FEASIBLE and drift <= SLIP and push <= PUSH
    report = Report(
        solver=solver,
        success=bool(converged and kept and not interrupted and not search.stopped),
        message=(search.stopped or message) + _shortcomings(violation, problem.missed(control, FEASIBLE), drift, push),
        iterations=search.iterations,
        evaluations=search.evaluations,
        seconds=time.perf_counter() - started,
        initial_energy=float(initial),
        energy=float(energy),
        violation=float(violation),
        drift=drift,
        push=push,
        interrupted=interrupted,
    )
    return control, report, np.array(search.history)


def _run_until_limits_hold(search: Search, solver: str) -> tuple[str, bool]:
    """Run the solver again while its motion exceeds limits it was not given; the last message and convergence."""
    limits = search.problem.limits
    search.restore()
    if limits.bounds and not search.restartable:
        limits.add_grid()
        search.add_limits(search.scaling.base)
    while True:
        message, converged = run(search, solver)
        control = search.finish()
        search.limits_added |= limits.add_exceeded(control)
        if search.stopped or not search.limits_added or search.iterations >= search.limit:
            return message, converged
        search.add_limits(control)


def _shortcomings(violation: float, missed: list[str], drift: float, push: float) -> str:
    """What is wrong with a motion, to be appended to the solver's message."""
    found = ""
    if violation > FEASIBLE:
        found += f"; conditions are violated by {violation:.2g}"
    if missed:
        found += f"; {'; '.join(missed)}: it may be out of reach, or other conditions keep it away"
    if drift > SLIP:
        found += f"; supports slip by {drift:.2g} m or rad between the times they are held at: take more intervals"
    if push > PUSH:
        found += (
            f"; between the times at which the root is free, {push:.2g} of the weight pushes it: take more intervals"
        )
    return found


def choose(problem: MotionProblem, solver: str) -> str:
    """The solver to use: the user's choice, or for "auto" the fastest one that takes the problem's conditions."""
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    conditions = bool(problem.equal) or bool(problem.limits.bounds)
    if solver == "auto":
        size = problem.ends.shape[1] * (problem.spline.free.stop - problem.spline.free.start)
        small = size <= (LARGE if problem.limits.bounds else SMALL)
        return ("slsqp" if small else "trust-constr") if conditions else "lbfgs"
    if conditions and solver in UNCONSTRAINED:
        raise InputError(
            f"solver: {solver!r} takes no conditions, but there are supports, targets, limits or an unactuated root; "
            "use 'trust-constr', 'slsqp', 'ipopt' or 'auto'"
        )
    return solver


def run(search: Search, solver: str) -> tuple[str, bool]:
    """Run a solver once from the search's start; return its message and whether it converged."""
    try:
        if solver == "ipopt":
            return run_ipopt(search)
        found = scipy_solve(search, solver)
        search.consider(found.x)
        return str(found.message), bool(found.success)
    except StopSearch as stop:
        return (str(stop), False) if stop.args else ("converged: the energy no longer falls", True)


def scipy_solve(search: Search, solver: str) -> Any:
    """scipy.optimize.minimize with the derivatives that the solver uses."""
    optimize = require_scipy().optimize
    tight = search.tolerance * 1e-3
    common: dict[str, Any] = dict(x0=search.start, jac=True, callback=search.accept)
    if solver == "lbfgs":
        options = dict(maxiter=10 * search.limit, maxfun=100 * search.limit, maxcor=30, ftol=tight, gtol=1e-9)
        return optimize.minimize(search.objective, method="L-BFGS-B", options=options, **common)
    if solver == "bfgs":
        options = dict(maxiter=10 * search.limit, gtol=tight)
        return optimize.minimize(search.objective, method="BFGS", options=options, **common)
    kinds = [w for w in ("equal", "unequal") if search.values(w, search.start).size]
    if solver == "slsqp":
        scipy_names = {"equal": "eq", "unequal": "ineq"}
        constraints = [
            dict(type=scipy_names[w], fun=lambda y, w=w: search.values(w, y), jac=lambda y, w=w: search.jacobian(w, y))
            for w in kinds
        ]
        options = dict(maxiter=10 * search.limit, ftol=tight)
        return optimize.minimize(search.objective, method="SLSQP", constraints=constraints, options=options, **common)
    # Gauss-Newton ignores the curvature of conditions, which matters where limits are active: then BFGS estimates it.
    flat = np.zeros((search.start.size, search.start.size))
    estimated = "unequal" in kinds
    constraints = [
        optimize.NonlinearConstraint(
            lambda y, w=w: search.values(w, y), 0, 0 if w == "equal" else np.inf,
            jac=lambda y, w=w: search.jacobian(w, y), hess=optimize.BFGS() if estimated else lambda y, v: flat,
        )
        for w in kinds
    ]  # fmt: skip
    hess = optimize.BFGS() if estimated else search.hessian_product
    common |= dict(hess=hess, options=dict(maxiter=10 * search.limit, gtol=tight, xtol=1e-9))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)  # velocity limits are linear
        return optimize.minimize(search.objective, method="trust-constr", constraints=constraints, **common)
