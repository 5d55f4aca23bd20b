"""`transition`: from two states to the motion between them that takes the least torque."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..contact import PointContact, SurfaceContact
from ..errors import InputError, UnknownName
from ..robot.robot import Robot
from . import limits as joint_limits
from .baselines import minimum_jerk
from .clip import Clip, Target, positive, state, whole
from .clip import weights as checked_weights
from .problem import Problem, Setting, check_flight, check_root, check_supports, check_targets
from .result import Transition
from .solve import SOLVERS, Callback, solve
from .spline import FIXED, Spline, require_scipy

Array = np.ndarray
LEAST_DEGREE = 3  # so that accelerations, and torques, do not jump
MOST_DEGREE = 12  # beyond, basis functions are hardly independent of each other
SHORTEST, LONGEST = 1e-6, 1e6  # seconds


def transition(
    robot: Robot,
    start: tuple[ArrayLike, ArrayLike] | Clip,
    end: tuple[ArrayLike, ArrayLike] | Clip,
    duration: float,
    *,
    weights: ArrayLike | Mapping[str, ArrayLike] | None = None,
    root: str = "actuated",
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
    """The motion from `start` to `end` in `duration` seconds whose squared torques have the least integral.

    start, end: states (q, v); or clips, which are joined from the last sample of the one to the first of the other.
                Both positions and velocities are met exactly.
    weights:    of the squared torques: one number, nv of them, or by joints' names.
    root:       of a floating base: "actuated" counts its force and moment like any torque, "penalised" with
                `root_weight`, "unactuated" wants them zero: carried by the supports, if there are any.
    supports:   frames that stay where they are and carry the robot: as a whole (a name, a SurfaceContact), or by their
                origin (a PointContact). Their forces are those that leave the least torque; they may pull.
    targets:    where frames are on the way.
    limits:     "position", "velocity", "effort": the model's; or a mapping of these to limits of your own.
    degree, intervals, points: of the spline, of its knots, and of Gauss quadrature in each interval.
    solver:     "lbfgs" or "bfgs" without conditions, "trust-constr", "slsqp" or "ipopt" with them; "auto" chooses.
    tolerance:  of the energy: the search ends when it falls by less, relatively, over eight iterations.
    initial:    a transition between the same states to start from; otherwise, the one of minimum jerk.
    callback:   told the iteration and the energy; a true answer ends the search. So does Ctrl-C: the best motion so far
                is the result, and its report says so.
    """
    require_scipy()
    if not isinstance(robot, Robot):
        raise InputError(f"transition takes a Robot, got {type(robot).__name__}; featherjet.load makes one")
    if robot.convention != "pinocchio":
        raise InputError(f"robot: speaks {robot.convention!r}; use robot.with_convention('pinocchio') and fj.convert")
    seconds = positive("duration", duration)
    if not SHORTEST <= seconds <= LONGEST:
        raise InputError(f"duration: expected seconds, from {SHORTEST:g} to {LONGEST:g}, got {duration:g}")
    ends, before = state(robot, start, "start", True)
    target, after = state(robot, end, "end", False)
    degree = whole("degree", degree, LEAST_DEGREE, ", for torques that do not jump")
    if degree > MOST_DEGREE:
        raise InputError(f"degree: expected at most {MOST_DEGREE}, got {degree}; take more intervals")
    intervals = whole("intervals", intervals, max(1, 2 * FIXED + 1 - degree), ", so that something is left to choose")
    spline = Spline(degree, intervals, seconds)
    points = degree + 1 if points is None else whole("points", points, 1)
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    positive("tolerance", tolerance)
    whole("max_iterations", max_iterations, 1)
    bounds = joint_limits.bounds(robot, limits, (ends, target))
    joint_limits.refuse_ends_outside(robot, bounds, {"start": ends, "end": target})
    joint_limits.refuse_haste(robot, bounds, ends, target, seconds)
    weighted = check_root(robot, root, root_weight, checked_weights(robot, weights))
    held = check_supports(robot, supports, ends, target, root)
    if root == "unactuated" and not held:
        check_flight(robot, ends, target, seconds)
    aims = check_targets(robot, targets, spline, ends, target)
    setting = Setting(robot, ends, target, spline, points, weighted, root, held, aims, bounds)
    problem = Problem(setting)
    control = minimum_jerk(spline, problem.ends) if initial is None else _from(initial, problem)
    control, report, history = solve(problem, control, solver, float(tolerance), int(max_iterations), callback)
    return Transition(
        robot, spline, control, problem.chart.reference, problem.energy, setting, report, history, before, after
    )


def _from(initial: Transition, problem: Problem) -> Array:
    """The control points nearest to another transition of the same robot."""
    if not isinstance(initial, Transition) or initial.robot.nv != problem.setting.robot.nv:
        raise InputError("initial: expected a transition of the same robot")
    t, _ = problem.spline.gauss(problem.setting.points)
    x = problem.chart.coordinates(initial.q(t * initial.duration / problem.spline.duration))
    return problem.spline.fitted(problem.ends, t, x)
