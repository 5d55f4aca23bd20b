"""The whole optimisation problem of one transition, made from checked input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import arrays
from ..contact import PointContact, SurfaceContact
from ..errors import InputError, UnknownName
from ..model.model import WORLD, rigid
from ..robot.robot import Robot
from .chart import Chart
from .clip import State, Target
from .constraints import Condition, Conditions, Idle, Placed
from .energy import Energy
from .limits import Bounds, Watched
from .spline import Spline
from .supports import Support, Supports

Array = np.ndarray
ROOTS = ("actuated", "penalised", "unactuated")
REACH = 1e-6  # how far [m, rad] the end states may be from what supports and targets ask of them


@dataclass
class Setting:
    """What was asked for, checked."""

    robot: Robot
    start: State
    end: State
    spline: Spline
    points: int
    weights: Array
    root: str
    supports: tuple[Support, ...]
    targets: tuple[Target, ...]
    bounds: list[Bounds]


class Problem:
    """The energy and the conditions of a motion, as functions of its control points."""

    def __init__(self, s: Setting) -> None:
        self.setting, robot, self.spline = s, s.robot, s.spline
        self.chart = Chart(robot.model, robot.interpolate(s.start.q, s.end.q, 0.5), robot.backend == "compiled")
        x = self.chart.coordinates(np.stack([s.start.q, s.end.q]))
        xd = self.chart.rates(x, np.stack([s.start.v, s.end.v]))
        self.ends = np.stack([x[0], xd[0], x[1], xd[1]])
        self.energy = energy_of(robot, self.chart, s)
        self.equal = Conditions(self.chart, s.spline, self._equalities())
        self.watched = Watched(self.energy, s.bounds)

    def drift(self, control: Array) -> float:
        """How far supports stray [m, rad] between the times at which they are held."""
        return self._between(control, self._held)

    def push(self, control: Array) -> float:
        """What pushes an unactuated root between the times at which nothing may, relative to the robot's weight."""
        return self._between(control, self._idle)

    def _between(self, control: Array, conditions: Callable[[Array], list[Condition]]) -> float:
        t = np.linspace(0.0, self.spline.duration, 8 * self.spline.intervals + 1)
        found = Conditions(self.chart, self.spline, conditions(t)).values(control)
        return float(np.abs(found).max(initial=0.0))

    def _held(self, times: Array) -> list[Condition]:
        s, robot = self.setting, self.setting.robot
        return [
            Placed(robot, x.frame, times, robot.frame_placement(s.start.q, x.frame), isinstance(x, PointContact))
            for x in s.supports
        ]

    def _idle(self, times: Array) -> list[Condition]:
        s, robot = self.setting, self.setting.robot
        if s.root != "unactuated" or s.supports:
            return []
        weight = robot.mass * np.linalg.norm(robot.model.gravity)
        return [Idle(robot, times, root_dofs(robot), max(float(weight), 1.0))]

    def _equalities(self) -> list[Condition]:
        s, robot = self.setting, self.setting.robot
        # As many times as there are free control points: more would ask too much of a limb with six joints.
        inner = s.spline.greville[s.spline.free]
        # At the ends, too, nothing may push: a kick there would give the root another momentum for the whole flight.
        found = self._held(inner) + self._idle(np.concatenate([[0.0], inner, [s.spline.duration]]))
        for target in s.targets:
            T, point = goal(target)
            found.append(Placed(robot, target.frame, moments(target, s.spline), T, point))
        return found


def energy_of(robot: Robot, chart: Chart, s: Setting) -> Energy:
    """The energy that the setting asks for."""
    idle = root_dofs(robot) if s.root == "unactuated" else slice(0, 0)
    weights = s.weights.copy()
    weights[idle] = 0.0
    supports = Supports(robot, s.supports, weights, idle) if s.supports else None
    return Energy(robot, chart, s.spline, weights, s.points, supports)


def root_dofs(robot: Robot) -> slice:
    """The degrees of freedom of a floating base."""
    joint = robot.model.joints[0]
    roots = [j for j in robot.model.joints if j.parent == WORLD]
    if len(roots) != 1 or joint.kind.name not in ("free", "planar"):
        raise InputError(f"root: robot {robot.name!r} has no floating base; load it with root='free' to give it one")
    return slice(0, joint.nv)


def goal(target: Target) -> tuple[Array, bool]:
    """A target's placement, and whether only its origin counts."""
    what = f"target of {target.frame!r}"
    if (target.position is None) == (target.placement is None):
        raise InputError(f"{what}: give either a position or a placement")
    if target.position is not None:
        T = np.eye(4)
        p = arrays.numbers(f"{what}: position", target.position, (3,), "x y z")
        if p.shape != (3,):
            raise InputError(f"{what}: position: expected three numbers, got shape {p.shape}")
        T[:3, 3] = p
        return T, True
    try:
        return rigid(target.placement, what), False
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None


def span(target: Target, duration: float) -> Array:
    """A target's time: one moment, or two in order."""
    what = f"target of {target.frame!r}: time"
    try:
        times = np.atleast_1d(np.asarray(target.time, float))
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected a moment or two [s], got {target.time!r}") from None
    if times.shape not in ((1,), (2,)) or not 0 <= times[0] <= times[-1] <= duration:
        raise InputError(f"{what}: expected one moment, or two in order, from 0 to {duration:g} s; got {target.time!r}")
    return times


def moments(target: Target, spline: Spline) -> Array:
    """The times at which solvers are asked for a target; the ends are what they are."""
    times, T = span(target, spline.duration), spline.duration
    inner = spline.greville[spline.free]
    between = inner[(inner > times[0]) & (inner < times[-1])]
    wanted = np.unique(np.concatenate([times, between]))
    return wanted[(wanted > 0) & (wanted < T)]


def check_supports(robot: Robot, given: Any, start: State, end: State, root: str) -> tuple[Support, ...]:
    """Frames that stand still at both ends, in the same place."""
    if isinstance(given, (str, PointContact, SurfaceContact)):
        given = (given,)
    supports = tuple(SurfaceContact(x) if isinstance(x, str) else x for x in given)
    for s in supports:
        if not isinstance(s, (PointContact, SurfaceContact)):
            raise InputError(f"supports: expected names of frames, PointContact or SurfaceContact; got {s!r}")
        if s.other is not None or s.at is not None or np.any(np.asarray(s.placement(s.offset, "offset")) != np.eye(4)):
            raise InputError(f"support {s.frame!r}: is held by the world, at its frame, where it is at the start")
        if robot.model.frame(s.frame).joint == WORLD:
            raise InputError(f"support {s.frame!r}: this frame is fixed to the world, so it supports nothing")
        point = isinstance(s, PointContact)
        T = robot.frame_placement(start.q, s.frame)
        condition = Placed(robot, s.frame, np.zeros(1), T, point)
        off = float(np.abs(condition.values(end.q[None], end.v[None], end.v[None])).max())
        if off > REACH:
            raise InputError(
                f"support {s.frame!r}: start and end have it in different places, {off:.3g} m or rad apart; "
                "a support stays where it is"
            )
        for name, x in (("start", start), ("end", end)):
            speed = robot.frame_velocity(x.q, x.v, s.frame, "world_aligned")[: 3 if point else 6]
            if np.abs(speed).max() > REACH:
                fastest = np.abs(speed).max()
                raise InputError(f"support {s.frame!r}: it moves at the {name}, at {fastest:.3g} m/s or rad/s")
    frames = [s.frame for s in supports]
    if twice := {f for f in frames if frames.count(f) > 1}:
        raise InputError(f"support {min(twice)!r} is given twice")
    if root == "unactuated" and supports:
        _refuse_falling(robot, supports, start, end)
    return supports


def _refuse_falling(robot: Robot, supports: tuple[Support, ...], start: State, end: State) -> None:
    idle = root_dofs(robot)
    carrying = Supports(robot, supports, np.ones(robot.nv), idle).columns(np.stack([start.q, end.q]))[:, idle]
    if (np.linalg.matrix_rank(carrying, tol=1e-6) < carrying.shape[1]).any():
        raise InputError(
            f"root: {', '.join(s.frame for s in supports)} cannot carry an unactuated root against every force and "
            "moment: add a support, hold one as a whole (SurfaceContact), or take root='penalised'"
        )


def check_flight(robot: Robot, start: State, end: State, duration: float) -> None:
    """Nothing touches the robot: its centre of mass flies a parabola, its angular momentum about that stays."""
    joint, T = robot.model.joints[root_dofs(robot).start], duration
    axes = joint.placement[:3, :3].T  # along which nothing holds the root; a planar one is held along the third
    lines, turns = (slice(0, 3), slice(0, 3)) if joint.kind.name == "free" else (slice(0, 2), slice(2, 3))
    fall = robot.model.gravity
    places = [robot.center_of_mass(x.q) for x in (start, end)]
    momenta = [robot.centroidal_momentum(x.q, x.v) for x in (start, end)]
    speeds = [m[:3] / robot.mass for m in momenta]
    off = {
        "m/s": (axes @ (speeds[1] - speeds[0] - fall * T))[lines],
        "m": (axes @ (places[1] - places[0] - speeds[0] * T - fall * T**2 / 2))[lines],
        "N m s of angular momentum": (axes @ (momenta[1] - momenta[0])[3:])[turns],
    }
    size = max(1.0, T, T**2) * max(1.0, float(np.linalg.norm(fall)), robot.mass)
    for unit, x in off.items():
        if np.abs(x).max() > REACH * size:
            raise InputError(
                f"root: unactuated and without supports, the robot flies freely and after {T:g} s misses the end by "
                f"{np.abs(x).max():.3g} {unit}: name supports that carry it, or take root='penalised'"
            )


def check_targets(robot: Robot, given: Any, spline: Spline, start: State, end: State) -> tuple[Target, ...]:
    """Targets of frames that exist, at times that exist, in agreement with the end states."""
    targets = (given,) if isinstance(given, Target) else tuple(given)
    for target in targets:
        if not isinstance(target, Target):
            raise InputError(f"targets: expected Target objects, got {target!r}")
        if robot.model.frame(target.frame).joint == WORLD:
            raise InputError(f"target of {target.frame!r}: this frame is fixed to the world")
        T, point = goal(target)
        times = span(target, spline.duration)
        for name, t, x in (("start", 0.0, start), ("end", spline.duration, end)):
            if t not in times:
                continue
            values = Placed(robot, target.frame, np.zeros(1), T, point).values(x.q[None], x.v[None], x.v[None])
            if np.abs(values).max() > REACH:
                raise InputError(
                    f"target of {target.frame!r}: the {name} state has it {np.abs(values).max():.3g} m or rad away"
                )
    return tuple(target for target in targets if moments(target, spline).size)


def check_root(robot: Robot, root: Any, root_weight: Any, weights: Array) -> Array:
    """The weights with the root's replaced, where it is penalised."""
    if root not in ROOTS:
        raise UnknownName("root", root, ROOTS)
    if root == "actuated":
        return weights
    dofs = root_dofs(robot)
    weights = weights.copy()
    if root == "penalised":
        x = np.asarray(root_weight, float)
        if x.shape != () or not 0 < x < np.inf:
            raise InputError(f"root_weight: expected a positive number, got {root_weight!r}")
        weights[dofs] = x
    elif not np.delete(weights, np.arange(dofs.start, dofs.stop)).any():
        raise InputError("weights: all joints but the unactuated root have weight zero")
    return weights
