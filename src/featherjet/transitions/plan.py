"""`transition`: the motion between two states that takes the least torque."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..blas import one_blas_thread
from ..contact import PointContact, SurfaceContact
from ..errors import InputError, UnknownName
from ..robot.robot import Robot
from .baselines import minimum_jerk
from .checks import checked_root_weights, checked_supports, checked_targets
from .clip import Clip, Target, checked_end, checked_weights
from .limits import checked_bounds
from .problem import MotionProblem, Setting
from .result import Transition
from .solve import SOLVERS, Callback, solve
from .spline import FIXED, Spline, require_scipy

Array = np.ndarray
LEAST_DEGREE = 3  # so that accelerations, and so torques, do not jump
MOST_INTERVALS, MOST_POINTS = 1000, 64  # of points, in each interval; matrices are dense
MOST_DEGREE = 12  # beyond it, basis functions are almost dependent
SHORTEST, LONGEST = 1e-6, 1e6  # seconds


def transition(
    robot: Robot,
    start: tuple[ArrayLike, ArrayLike] | Clip,
    end: tuple[ArrayLike, ArrayLike] | Clip,
    duration: float,
    *,
    weights: ArrayLike | Mapping[str, ArrayLike] | None = None,
    root_forces: str = "actuated",
    root_weight: float = 1.0,
    supports: Iterable[str | PointContact | SurfaceContact] | PointContact | SurfaceContact = (),
    targets: Iterable[Target] | Target = (),
    limits: Iterable[str] | Mapping[str, Any] = (),
    degree: int = 5,
    intervals: int = 12,
    points: int | None = None,
    solver: str = "auto",
    tolerance: float = 1e-3,
    max_iterations: int = 500,
    initial: Transition | None = None,
    callback: Callback | None = None,
) -> Transition:
    """The motion from `start` to `end` in `duration` seconds that minimises the integral of squared torques.

    start, end: states (q, v), or clips: the motion leaves the last sample of `start` and reaches the first of `end`.
                Positions and velocities are met exactly.
    weights:    of the squared torques: one number, nv numbers, or a mapping from joint names.
    root_forces: of a floating base: "actuated" treats its force and moment like any torque, "penalised" weighs them by
                `root_weight`, "unactuated" keeps them zero, so that supports must carry the robot, or it flies.
    supports:   frames that stand still and carry the robot: whole frames (a name, a SurfaceContact) or only their
                origins (a PointContact). Their forces are those that leave the least torque; they may pull.
    targets:    where frames must be on the way.
    limits:     "position", "velocity", "effort", for the model's limits; or a mapping from these to your own.
    degree, intervals, points: of the spline, of its knots, and of Gauss quadrature in each interval.
    solver:     "lbfgs" or "bfgs" without conditions, "trust-constr", "slsqp" or "ipopt" with them; "auto" chooses.
    tolerance:  the search ends when the energy falls by less than this, relatively, over eight iterations.
    initial:    a transition between the same states to start from; by default the one of minimum jerk.
    callback:   called with the iteration and the energy; a true return value ends the search. So does Ctrl-C: the
                result is then the best motion so far, and its report says so.
    """
    require_scipy()
    _refuse_bad_robot(robot)
    spline, points = _checked_spline(duration, degree, intervals, points)
    first, before = checked_end(robot, start, "start", True)
    last, after = checked_end(robot, end, "end", False)
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    tolerance = arrays.positive_number("tolerance", tolerance)
    max_iterations = arrays.whole_number("max_iterations", max_iterations, 1)
    bounds = checked_bounds(robot, limits, first, last, spline.duration)
    weighted = checked_root_weights(robot, root_forces, root_weight, checked_weights(robot, weights))
    held = checked_supports(robot, supports, first, last, root_forces, spline.duration)
    aims = checked_targets(robot, targets, spline, first, last)
    setting = Setting(robot, first, last, spline, points, weighted, root_forces, held, aims, bounds)
    with one_blas_thread:
        problem = MotionProblem(setting)
        control = minimum_jerk(spline, problem.ends) if initial is None else _fitted(initial, problem)
        control, report, history = solve(problem, control, solver, tolerance, max_iterations, callback)
    return Transition(
        robot, spline, control, problem.chart.reference, problem.energy, setting, report, history, before, after
    )


def _refuse_bad_robot(robot: Any) -> None:
    if not isinstance(robot, Robot):
        raise InputError(f"transition takes a Robot, got {type(robot).__name__}; featherjet.load makes one")
    if robot.convention != "pinocchio":
        raise InputError(
            f"robot: its convention is {robot.convention!r}; use robot.with_convention('pinocchio') and fj.convert"
        )


def _checked_spline(duration: Any, degree: Any, intervals: Any, points: Any) -> tuple[Spline, int]:
    """The spline, and the number of Gauss points in each of its intervals."""
    seconds = arrays.positive_number("duration", duration)
    if not SHORTEST <= seconds <= LONGEST:
        raise InputError(f"duration: expected seconds, from {SHORTEST:g} to {LONGEST:g}, got {duration:g}")
    degree = arrays.whole_number("degree", degree, LEAST_DEGREE, ", for torques that do not jump")
    if degree > MOST_DEGREE:
        raise InputError(f"degree: expected at most {MOST_DEGREE}, got {degree}; take more intervals")
    least = max(1, 2 * FIXED + 1 - degree)
    why = ", so that something is left to choose"
    intervals = arrays.whole_number("intervals", intervals, least, why, MOST_INTERVALS)
    points = degree + 1 if points is None else arrays.whole_number("points", points, 1, most=MOST_POINTS)
    return Spline(degree, intervals, seconds), points


def _fitted(initial: Transition, problem: MotionProblem) -> Array:
    """The control points nearest to another transition of the same robot."""
    if not isinstance(initial, Transition) or initial.robot.nv != problem.setting.robot.nv:
        raise InputError("initial: expected a transition of the same robot")
    t, _ = problem.spline.gauss(problem.setting.points)
    x = problem.chart.coordinates(initial.q(t * initial.duration / problem.spline.duration))
    return problem.spline.fitted(problem.ends, t, x)
