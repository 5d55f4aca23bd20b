"""The optimisation problem of one transition: its energy and its conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..contact import PointContact
from ..robot.robot import Robot
from .chart import FlatChart
from .checks import root_dofs, target_placement, target_times
from .clip import EndState, Target
from .constraints import Condition, Conditions, FrameCondition, ZeroTorqueCondition
from .energy import TorqueEnergy
from .limits import Bounds, LimitWatch
from .spline import Spline
from .supports import Support, Supports

Array = np.ndarray


@dataclass
class Setting:
    """What the user asked for, checked."""

    robot: Robot
    start: EndState
    end: EndState
    spline: Spline
    points: int
    weights: Array
    root_forces: str
    supports: tuple[Support, ...]
    targets: tuple[Target, ...]
    bounds: list[Bounds]


class MotionProblem:
    """The energy and the conditions of a motion as functions of its control points."""

    def __init__(self, s: Setting) -> None:
        self.setting, robot, self.spline = s, s.robot, s.spline
        self.chart = FlatChart(robot.model, robot.interpolate(s.start.q, s.end.q, 0.5), robot.backend == "compiled")
        x = self.chart.coordinates(np.stack([s.start.q, s.end.q]))
        xd = self.chart.rates(x, np.stack([s.start.v, s.end.v]))
        self.ends = np.stack([x[0], xd[0], x[1], xd[1]])
        self.energy = energy_of(robot, self.chart, s)
        self.equal = Conditions(self.chart, s.spline, self._equalities())
        self.limits = LimitWatch(self.energy, s.bounds)

    def drift(self, control: Array) -> float:
        """How far supports drift [m, rad] between the times at which they are held."""
        return self._between(control, self._supported)

    def push(self, control: Array) -> float:
        """The largest force on an unactuated root between the times at which it is zero, relative to the weight."""
        return self._between(control, self._idle)

    def missed(self, control: Array, tolerance: float) -> list[str]:
        """A sentence for each target that the frame misses by more than a tolerance [m, rad]."""
        found = []
        for target in self.setting.targets:
            condition = self._aim(target)
            apart = Conditions(self.chart, self.spline, [condition]).values(control).reshape(len(condition.times), -1)
            k = int(np.abs(apart).max(1).argmax())
            if np.abs(apart[k]).max() > tolerance:
                turned = "" if condition.point else f" and {np.linalg.norm(apart[k, 3:]):.2g} rad"
                by = f"{np.linalg.norm(apart[k, :3]):.2g} m{turned}"
                found.append(f"at {condition.times[k]:.3g} s the frame {target.frame!r} misses its target by {by}")
        return found

    def _aim(self, target: Target) -> FrameCondition:
        T, point = target_placement(target)
        times = target_times(target, self.spline)
        return FrameCondition(self.setting.robot, target.frame, times, T, point)

    def _between(self, control: Array, conditions: Callable[[Array], list[Condition]]) -> float:
        t = np.linspace(0.0, self.spline.duration, 8 * self.spline.intervals + 1)
        found = Conditions(self.chart, self.spline, conditions(t)).values(control)
        return float(np.abs(found).max(initial=0.0))

    def _supported(self, times: Array) -> list[Condition]:
        s, robot = self.setting, self.setting.robot
        return [
            FrameCondition(
                robot, x.frame, times, robot.frame_placement(s.start.q, x.frame), isinstance(x, PointContact)
            )
            for x in s.supports
        ]

    def _idle(self, times: Array) -> list[Condition]:
        s, robot = self.setting, self.setting.robot
        if s.root_forces != "unactuated" or s.supports:
            return []
        weight = robot.mass * np.linalg.norm(robot.model.gravity)
        return [ZeroTorqueCondition(robot, times, root_dofs(robot), max(float(weight), 1.0))]

    def _equalities(self) -> list[Condition]:
        s = self.setting
        # As many times as free control points: more would overdetermine a limb with six joints.
        inner = s.spline.greville[s.spline.free]
        # Also at the ends: a force there would change the root's momentum for the whole flight.
        found = self._supported(inner) + self._idle(np.concatenate([[0.0], inner, [s.spline.duration]]))
        return [*found, *map(self._aim, s.targets)]


def energy_of(robot: Robot, chart: FlatChart, s: Setting) -> TorqueEnergy:
    """The energy of the setting."""
    idle = root_dofs(robot) if s.root_forces == "unactuated" else slice(0, 0)
    weights = s.weights.copy()
    weights[idle] = 0.0
    supports = Supports(robot, s.supports, weights, idle) if s.supports else None
    return TorqueEnergy(robot, chart, s.spline, weights, s.points, supports)
