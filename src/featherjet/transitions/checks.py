"""Checks of what a transition asks of the root, of supports and of targets, against the end states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import arrays
from ..contact import PointContact, SurfaceContact
from ..errors import InputError, UnknownName
from ..model.checks import rigid
from ..model.model import WORLD
from ..robot.robot import Robot
from .clip import EndState, Target
from .constraints import FrameCondition
from .spline import Spline
from .supports import Support, Supports

Array = np.ndarray
ROOT_FORCES = ("actuated", "penalised", "unactuated")
REACH = 1e-6  # how far [m, rad] the end states may be from what supports and targets ask of them


# The root


def root_dofs(robot: Robot) -> slice:
    """The degrees of freedom of a floating base."""
    joint = robot.model.joints[0]
    roots = [j for j in robot.model.joints if j.parent == WORLD]
    if len(roots) != 1 or joint.kind.name not in ("free", "planar"):
        raise InputError(f"root_forces: robot {robot.name!r} has no floating base; load it with root='free'")
    return slice(0, joint.nv)


def checked_root_weights(robot: Robot, root_forces: Any, root_weight: Any, weights: Array) -> Array:
    """The weights (nv,) of all torques, with those of a penalised root replaced by `root_weight`."""
    if root_forces not in ROOT_FORCES:
        raise UnknownName("root_forces", root_forces, ROOT_FORCES)
    if root_forces == "actuated":
        return weights
    dofs = root_dofs(robot)
    weights = weights.copy()
    if root_forces == "penalised":
        x = np.asarray(root_weight, float)
        if x.shape != () or not 0 < x < np.inf:
            raise InputError(f"root_weight: expected a positive number, got {root_weight!r}")
        weights[dofs] = x
    elif not np.delete(weights, np.arange(dofs.start, dofs.stop)).any():
        raise InputError("weights: all joints but the unactuated root have weight zero")
    return weights


def _refuse_impossible_flight(robot: Robot, start: EndState, end: EndState, duration: float) -> None:
    """Raise an InputError unless free flight leads from the start to the end.

    Without supports the centre of mass flies a parabola, and the angular momentum about it stays constant.
    """
    joint, T = robot.model.joints[root_dofs(robot).start], duration
    axes = joint.placement[:3, :3].T  # along which the root is free; a planar root is held along the third
    lines, turns = (slice(0, 3), slice(0, 3)) if joint.kind.name == "free" else (slice(0, 2), slice(2, 3))
    gravity = robot.model.gravity
    places = [robot.center_of_mass(x.q) for x in (start, end)]
    momenta = [robot.centroidal_momentum(x.q, x.v) for x in (start, end)]
    speeds = [m[:3] / robot.mass for m in momenta]
    misses = {
        "m/s": (axes @ (speeds[1] - speeds[0] - gravity * T))[lines],
        "m": (axes @ (places[1] - places[0] - speeds[0] * T - gravity * T**2 / 2))[lines],
        "N m s of angular momentum": (axes @ (momenta[1] - momenta[0])[3:])[turns],
    }
    size = max(1.0, T, T**2) * max(1.0, float(np.linalg.norm(gravity)), robot.mass)
    for unit, x in misses.items():
        if np.abs(x).max() > REACH * size:
            raise InputError(
                f"root_forces: unactuated and without supports, the robot flies freely and after {T:g} s misses the "
                f"end by {np.abs(x).max():.3g} {unit}: name supports that carry it, or use root_forces='penalised'"
            )


# Supports


def checked_supports(
    robot: Robot, given: Any, start: EndState, end: EndState, root_forces: str, duration: float
) -> tuple[Support, ...]:
    """The user's supports, if each of them stands still at both ends, in the same place.

    An unactuated root must be carried by them or, without any, get from the start to the end in free flight.
    """
    if isinstance(given, (str, PointContact, SurfaceContact)):
        given = (given,)
    if not isinstance(given, Iterable):
        raise InputError(f"supports: expected frames, PointContact or SurfaceContact, got {type(given).__name__}")
    supports = tuple(SurfaceContact(x) if isinstance(x, str) else x for x in given)
    for support in supports:
        _refuse_bad_support(robot, support)
        _refuse_moving_support(robot, support, start, end)
    frames = [s.frame for s in supports]
    if twice := {f for f in frames if frames.count(f) > 1}:
        raise InputError(f"support {min(twice)!r} is given twice")
    if root_forces == "unactuated":
        if supports:
            _refuse_falling(robot, supports, start, end)
        else:
            _refuse_impossible_flight(robot, start, end, duration)
    return supports


def _refuse_bad_support(robot: Robot, s: Any) -> None:
    if not isinstance(s, (PointContact, SurfaceContact)):
        raise InputError(f"supports: expected names of frames, PointContact or SurfaceContact; got {s!r}")
    if s.other is not None or s.at is not None or np.any(np.asarray(s.placement(s.offset, "offset")) != np.eye(4)):
        raise InputError(f"support {s.frame!r}: give only the frame; the world holds it where it is at the start")
    if robot.model.frame(s.frame).joint == WORLD:
        raise InputError(f"support {s.frame!r}: this frame is fixed to the world, so it supports nothing")


def _refuse_moving_support(robot: Robot, s: Support, start: EndState, end: EndState) -> None:
    point = isinstance(s, PointContact)
    T = robot.frame_placement(start.q, s.frame)
    apart = _distance(robot, s.frame, T, point, end)
    if apart > REACH:
        raise InputError(
            f"support {s.frame!r}: it is in different places at the start and the end, {apart:.3g} m or rad apart; "
            "a support stays where it is"
        )
    for name, x in (("start", start), ("end", end)):
        speed = np.abs(robot.frame_velocity(x.q, x.v, s.frame, viewpoint="world_aligned")[: 3 if point else 6]).max()
        if speed > REACH:
            raise InputError(f"support {s.frame!r}: it moves at the {name}, at {speed:.3g} m/s or rad/s")


def _refuse_falling(robot: Robot, supports: tuple[Support, ...], start: EndState, end: EndState) -> None:
    idle = root_dofs(robot)
    carrying = Supports(robot, supports, np.ones(robot.nv), idle).columns(np.stack([start.q, end.q]))[:, idle]
    if (np.linalg.matrix_rank(carrying, tol=1e-6) < carrying.shape[1]).any():
        raise InputError(
            f"root_forces: {', '.join(s.frame for s in supports)} cannot carry an unactuated root against every force "
            "and moment: add a support, hold a whole frame (SurfaceContact), or use root_forces='penalised'"
        )


# Targets


def checked_targets(robot: Robot, given: Any, spline: Spline, start: EndState, end: EndState) -> tuple[Target, ...]:
    """The user's targets that constrain the motion between its ends; those at an end must agree with its state."""
    targets = (given,) if isinstance(given, Target) else tuple(given)
    for target in targets:
        if not isinstance(target, Target):
            raise InputError(f"targets: expected Target objects, got {target!r}")
        if robot.model.frame(target.frame).joint == WORLD:
            raise InputError(f"target of {target.frame!r}: this frame is fixed to the world")
        T, point = target_placement(target)
        _refuse_out_of_reach(robot, target.frame, T[:3, 3])
        times = _target_span(target, spline.duration)
        for name, t, x in (("start", 0.0, start), ("end", spline.duration, end)):
            if t in times and (away := _distance(robot, target.frame, T, point, x)) > REACH:
                raise InputError(f"target of {target.frame!r}: at the {name} the frame is {away:.3g} m or rad away")
    return tuple(target for target in targets if target_times(target, spline).size)


def _refuse_out_of_reach(robot: Robot, name: str, place: Array) -> None:
    """Raise an InputError if a frame is never as far from its first joint as a place (3,) is [m].

    Joints that only turn keep the distances between their origins, whose sum is the farthest that the frame gets.
    """
    frame, joints = robot.model.frame(name), robot.model.joints
    reach, i = float(np.linalg.norm(frame.placement[:3, 3])), frame.joint
    while not joints[i].kind.slides and joints[i].parent != WORLD:
        reach, i = reach + float(np.linalg.norm(joints[i].placement[:3, 3])), joints[i].parent
    away = float(np.linalg.norm(place - joints[i].placement[:3, 3]))
    if not joints[i].kind.slides and away > reach + REACH:
        raise InputError(
            f"target of {name!r}: out of reach: it is {away:.3g} m from joint {joints[i].name!r}, and even stretched "
            f"out the frame gets only {reach:.3g} m from there, {away - reach:.3g} m short"
        )


def target_placement(target: Target) -> tuple[Array, bool]:
    """A target's placement (4, 4), and whether only its origin counts."""
    what = f"target of {target.frame!r}"
    if (target.position is None) == (target.placement is None):
        raise InputError(f"{what}: give either a position or a placement")
    if target.position is not None:
        T = np.eye(4)
        p = arrays.finite(f"{what}: position", target.position, (3,), "x y z")
        if p.shape != (3,):
            raise InputError(f"{what}: position: expected three numbers, got shape {p.shape}")
        T[:3, 3] = p
        return T, True
    try:
        return rigid(target.placement, what), False
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None


def target_times(target: Target, spline: Spline) -> Array:
    """The times (n,) at which solvers must meet a target; not the ends, which are given."""
    times, T = _target_span(target, spline.duration), spline.duration
    inner = spline.greville[spline.free]
    between = inner[(inner > times[0]) & (inner < times[-1])]
    wanted = np.unique(np.concatenate([times, between]))
    return wanted[(wanted > 0) & (wanted < T)]


def _target_span(target: Target, duration: float) -> Array:
    """A target's time: one moment (1,), or two in order (2,) [s]."""
    what = f"target of {target.frame!r}: time"
    try:
        times = np.atleast_1d(np.asarray(target.time, float))
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected a moment or two [s], got {target.time!r}") from None
    if times.shape not in ((1,), (2,)) or not 0 <= times[0] <= times[-1] <= duration:
        raise InputError(f"{what}: expected one moment, or two in order, from 0 to {duration:g} s; got {target.time!r}")
    return times


def _distance(robot: Robot, frame: str, T: Array, point: bool, state: EndState) -> float:
    """The largest difference [m, rad] between a frame and a placement (4, 4) at one end state."""
    condition = FrameCondition(robot, frame, np.zeros(1), T, point)
    return float(np.abs(condition.values(state.q[None], state.v[None], state.v[None])).max())
