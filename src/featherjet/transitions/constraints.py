"""Conditions on a motion at chosen times, with their exact Jacobians by the control points.

At states (q, v, a), a condition has values (N, R), which must be zero or nonnegative, and slopes (N, R, 3, nv) by q (in
the tangent space), v and a. `Conditions` carries both through the chart and the spline basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..math import se3
from ..robot.robot import Robot
from .chart import FlatChart
from .energy import TorqueEnergy
from .spline import Spline

Array = np.ndarray


class Condition(Protocol):
    """Values at some times (N,) that must be zero, or nonnegative."""

    times: Array

    def values(self, q: Array, v: Array, a: Array) -> Array:
        """(N, R)."""
        ...

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        """(N, R, 3, nv)."""
        ...


@dataclass
class FrameCondition:
    """A frame is at a placement (4, 4), or only its origin if `point` [m, rad]."""

    robot: Robot
    frame: str
    times: Array
    placement: Array
    point: bool = False

    def values(self, q: Array, v: Array, a: Array) -> Array:
        T = self.robot.frame_placement(q, self.frame)
        return T[:, :3, 3] - self.placement[:3, 3] if self.point else se3.box_minus(T, self.placement)

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        out = np.zeros((len(v), 3 if self.point else 6, 3, v.shape[1]))
        if self.point:
            out[:, :, 0] = self.robot.frame_jacobian(q, self.frame, viewpoint="world_aligned")[:, :3]
        else:
            J = self.robot.frame_jacobian(q, self.frame, viewpoint="local")
            out[:, :, 0] = se3.right_jacobian_inverse(self.values(q, v, a)) @ J
        return out


@dataclass
class ZeroTorqueCondition:
    """The torques of some degrees of freedom are zero, measured relative to `scale` [N, N m]."""

    robot: Robot
    times: Array
    dofs: slice
    scale: float

    def values(self, q: Array, v: Array, a: Array) -> Array:
        return self.robot.inverse_dynamics(q, v, a)[:, self.dofs] / self.scale

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        return np.stack(self.robot.inverse_dynamics_derivatives(q, v, a), 2)[:, self.dofs] / self.scale


@dataclass
class LimitCondition:
    """At each time one entry of q (`places`), or of v or tau (`dofs`), is within bounds, relative to `scale`."""

    energy: TorqueEnergy
    quantity: str
    times: Array
    dofs: Array
    places: Array
    lower: Array
    upper: Array
    scale: Array

    def __post_init__(self) -> None:
        # An infinite bound is no condition, but every row needs a value: one that always holds.
        self.low, self.high = (np.where(np.isfinite(x), x, 0.0) for x in (self.lower, self.upper))

    def values(self, q: Array, v: Array, a: Array) -> Array:
        rows = np.arange(len(q))
        if self.quantity == "position":
            x = q[rows, self.places]
        else:
            x = (v if self.quantity == "velocity" else self.energy.torques(q, v, a))[rows, self.dofs]
        above = np.where(np.isfinite(self.upper), (self.high - x) / self.scale, 1.0)
        below = np.where(np.isfinite(self.lower), (x - self.low) / self.scale, 1.0)
        return np.stack([above, below], 1)

    def slopes(self, q: Array, v: Array, a: Array) -> Array:
        rows = np.arange(len(v))
        if self.quantity == "effort":
            by_entry = self.energy.torque_slopes(q, v, a)[rows, self.dofs]
        else:
            by_entry = np.zeros((len(v), 3, v.shape[1]))
            by_entry[rows, 0 if self.quantity == "position" else 1, self.dofs] = 1.0
        both = np.stack([-by_entry, by_entry], 1) / self.scale[:, None, None, None]
        both[~np.isfinite(self.upper), 0] = 0.0
        both[~np.isfinite(self.lower), 1] = 0.0
        return both


class Conditions:
    """Conditions of one kind, equalities or inequalities, as one vector function of the control points."""

    def __init__(self, chart: FlatChart, spline: Spline, conditions: Sequence[Condition] = ()) -> None:
        self.chart, self.spline, self.conditions = chart, spline, list(conditions)
        self._basis = [spline.jets(c.times) for c in self.conditions]

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def values(self, control: Array) -> Array:
        """All values (values,) that must be zero, or nonnegative."""
        found = [np.zeros(0)]
        for c, basis in zip(self.conditions, self._basis, strict=True):
            q, v, a, _ = self._state(basis @ control)
            found.append(c.values(q, v, a).ravel())
        return np.concatenate(found)

    def jacobian(self, control: Array) -> Array:
        """Derivatives (values, free control points, nv)."""
        found = [np.zeros((0, self.spline.count, self.chart.model.nv))[:, self.spline.free]]
        for c, basis in zip(self.conditions, self._basis, strict=True):
            q, v, a, _ = self._state(basis @ control)
            slopes = c.slopes(q, v, a)
            n, rows, _, nv = slopes.shape
            *_, tape = self._state(np.repeat(basis @ control, rows, 0))
            flat = slopes.reshape(n * rows, 3, nv)
            self.chart.pull(tape, flat)
            free = np.swapaxes(np.repeat(basis[:, :, self.spline.free], rows, 0), 1, 2)
            found.append(free @ flat)
        return np.concatenate(found)

    def _state(self, jets: Array) -> tuple[Array, Array, Array, list]:
        q = np.empty((len(jets), self.chart.model.nq))
        tape = self.chart.lift(jets, q)
        return q, jets[:, 1], jets[:, 2], tape
