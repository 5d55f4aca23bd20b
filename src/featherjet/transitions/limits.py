"""Joint limits along a whole motion: where they are checked, and which of them a solver must be given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import arrays
from ..errors import InputError, UnknownName
from ..model import configuration
from ..model.manifolds import Euclidean
from ..robot.robot import Robot
from .clip import EndState
from .constraints import LimitCondition
from .energy import TorqueEnergy

Array = np.ndarray
LIMITED = ("position", "velocity", "effort")
UNITS = {"position": "rad or m", "velocity": "rad/s or m/s", "effort": "N m or N"}
GRID = 32  # times per interval at which limits are checked
GIVEN = 2  # of these, at which a solver that cannot be restarted is given all limits from the start
SLACK = 1e-6  # how far a limit may be exceeded, relative to its size
MARGIN = 1e-3  # distance that solvers keep from a limit, relative to its size, for the times between those given


class Bounds(NamedTuple):
    """Bounds (n,) of one quantity, for the degrees of freedom `dofs` of v (entries `places` of q)."""

    quantity: str
    dofs: Array
    places: Array
    lower: Array
    upper: Array
    lower_margin: Array  # distances that solvers keep from the limits; zero where an end state is at its limit
    upper_margin: Array

    @property
    def scale(self) -> Array:
        """The size (n,) that an excess is measured relative to."""
        return finite_size(self.lower, self.upper)

    def pick(self, q: Array, v: Array, tau: Array) -> Array:
        """The bounded entries (N, n) of the quantity."""
        return {"position": q[:, self.places], "velocity": v[:, self.dofs], "effort": tau[:, self.dofs]}[self.quantity]


def finite_size(lower: Array, upper: Array) -> Array:
    """The larger absolute value of the finite limits, at least 1e-3."""
    finite = [np.where(np.isfinite(x), np.abs(x), 0.0) for x in (lower, upper)]
    return np.maximum(np.maximum(*finite), 1e-3)


def checked_bounds(robot: Robot, given: Any, start: EndState, end: EndState, duration: float) -> list[Bounds]:
    """The bounds that a user asks for, if a motion from `start` to `end` in `duration` seconds can keep them."""
    found = bounds(robot, given, (start, end))
    _refuse_ends_outside(robot, found, {"start": start, "end": end})
    _refuse_haste(robot, found, start, end, duration)
    return found


def bounds(robot: Robot, given: Any, ends: tuple[EndState, EndState]) -> list[Bounds]:
    """The bounds that a user asks for: names of quantities, for the model's limits, or a mapping to limits.

    {"velocity": 2.0} or nv numbers, {"effort": ...} likewise; {"position": (lower, upper)}, each one number or nv.
    `ends` are the start and the end of the motion.
    """
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Iterable):
        raise InputError(f"limits: expected names of {', '.join(LIMITED)}, or a mapping of them, got {given!r}")
    wanted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    places = np.full(robot.nv, -1)
    for _, manifold, iq, iv in configuration.parts(robot.model):
        if isinstance(manifold, Euclidean):
            places[iv] = np.arange(iq.start, iq.stop)
    found = [_bounds_of(robot, quantity, limit, places, ends) for quantity, limit in wanted.items()]
    return [b for b in found if len(b.dofs)]


def _bounds_of(robot: Robot, quantity: str, limit: Any, places: Array, ends: tuple[EndState, EndState]) -> Bounds:
    """The bounds of one quantity; `places` (nv,) are the entries of q that belong to each dof, -1 for none."""
    if quantity not in LIMITED:
        raise UnknownName("limit", quantity, LIMITED)
    own = robot.limits()
    if quantity == "position":
        low, high = (own.lower[places], own.upper[places]) if limit is None else _position_limits(robot, limit)
        use = places >= 0
    else:
        high = getattr(own, quantity) if limit is None else _limit_array(robot, f"limits: {quantity}", limit)
        if (high < 0).any():
            raise InputError(f"limits: {quantity}: must not be negative, got {high.min():g}")
        low, use = -high, np.ones(robot.nv, bool)
    if (low > high).any():
        k = int(np.argmax(low > high))
        raise InputError(f"limits: {quantity}: lower limit {low[k]:g} above upper {high[k]:g}, of dof {k}")
    use &= np.isfinite(low) | np.isfinite(high)
    margin = MARGIN * finite_size(low, high)
    lower_margin, upper_margin = margin, margin
    if quantity != "effort":  # accelerations at the ends are free, and with them the torques
        at = np.stack([x.q[places] if quantity == "position" else x.v for x in ends])
        lower_margin = np.clip((at - low).min(0) / 2, 0.0, margin)
        upper_margin = np.clip((high - at).min(0) / 2, 0.0, margin)
    columns = (np.arange(robot.nv), places, low, high, lower_margin, upper_margin)
    return Bounds(quantity, *(x[use] for x in columns))


def _limit_array(robot: Robot, name: str, x: Any) -> Array:
    """A user's limit as an array (nv,); infinite entries mean no limit."""
    try:
        a = np.asarray(x, float)
    except (TypeError, ValueError, OverflowError):
        a = np.array(np.nan)
    if a.shape not in ((), (robot.nv,)) or np.isnan(a).any():
        raise InputError(f"{name}: expected one number or nv = {robot.nv} of them, got {arrays.shortened(x)}")
    return np.broadcast_to(a, (robot.nv,)).copy()


def _position_limits(robot: Robot, x: Any) -> tuple[Array, Array]:
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise InputError("limits: position: expected a pair (lower, upper)")
    low, high = (_limit_array(robot, "limits: position", each) for each in x)
    return low, high


def _refuse_ends_outside(robot: Robot, bounds: list[Bounds], ends: dict[str, EndState]) -> None:
    """Raise an InputError if the start or the end is outside the limits."""
    for b in bounds:
        if b.quantity == "effort":
            continue
        for name, state in ends.items():
            x = b.pick(state.q[None], state.v[None], state.v[None])[0]
            off = np.maximum(x - b.upper, b.lower - x) / b.scale
            if off.max() > SLACK:
                k = int(np.argmax(off))
                joint = joint_of(robot, int(b.dofs[k]))
                raise InputError(
                    f"{name}: joint {joint!r}: {b.quantity} {x[k]:.6g} is outside its limits {b.lower[k]:.6g} to "
                    f"{b.upper[k]:.6g} [{UNITS[b.quantity]}]"
                )


def _refuse_haste(robot: Robot, bounds: list[Bounds], start: EndState, end: EndState, duration: float) -> None:
    """Raise an InputError if a joint cannot get from the start to the end in time at its velocity limit."""
    way = robot.difference(start.q, end.q)
    for b in (b for b in bounds if b.quantity == "velocity"):
        straight = np.where(b.places >= 0, np.abs(way[b.dofs]), 0.0)  # rotations in space have several paths
        least = straight / np.maximum(b.upper, 1e-300)
        k = int(np.argmax(least))
        if least[k] > duration * (1 + SLACK):
            raise InputError(
                f"limits: joint {joint_of(robot, int(b.dofs[k]))!r} has {straight[k]:.4g} rad or m to go, which takes "
                f"at least {least[k]:.4g} s at its velocity limit of {b.upper[k]:.4g}; the duration is {duration:g} s"
            )


def joint_of(robot: Robot, dof: int) -> str:
    """The name of the joint that a degree of freedom belongs to."""
    return next(j.name for j, _, _, iv in configuration.parts(robot.model) if iv.start <= dof < iv.stop)


class LimitWatch:
    """Limits checked over the whole motion, and a growing list of times at which solvers must keep them."""

    def __init__(self, energy: TorqueEnergy, bounds: list[Bounds]) -> None:
        self.energy, self.chart, self.bounds = energy, energy.chart, bounds
        spline = energy.spline
        self.times = np.linspace(0.0, spline.duration, GRID * spline.intervals + 1)
        self._basis = spline.jets(self.times)
        self._known = [np.zeros((len(self.times), len(b.dofs)), bool) for b in bounds]

    def excess(self, control: Array) -> list[Array]:
        """How far each bounded entry exceeds its limit, (times, n), relative to the limit's size; negative inside."""
        jets = self._basis @ control
        q = np.empty((len(jets), self.chart.model.nq))
        self.chart.lift(jets, q)
        v, a = jets[:, 1], jets[:, 2]
        tau = self.energy.torques(q, v, a) if any(b.quantity == "effort" for b in self.bounds) else v
        found = []
        for b in self.bounds:
            x = b.pick(q, v, tau)
            found.append(np.maximum(x - b.upper, b.lower - x) / b.scale)
            if b.quantity != "effort":
                found[-1][[0, -1]] = -np.inf  # the end states determine these
        return found

    def worst(self, control: Array) -> float:
        """The largest excess, or zero."""
        return max([0.0, *(float(e.max()) for e in self.excess(control))])

    def add_grid(self) -> None:
        """Have solvers keep every limit at GIVEN times of every interval."""
        for b, known in zip(self.bounds, self._known, strict=True):
            known[GRID // GIVEN : -1 : GRID // GIVEN] = True
            if b.quantity == "effort":
                known[[0, -1]] = True

    def add_exceeded(self, control: Array) -> bool:
        """Have solvers keep limits at the peaks of this motion's excesses; return whether any of them is new."""
        new = False
        for known, off in zip(self._known, self.excess(control), strict=True):
            around = np.pad(off, ((1, 1), (0, 0)), constant_values=-np.inf)
            peaks = (off > SLACK) & (off >= around[:-2]) & (off >= around[2:])
            new |= bool((peaks & ~known).any())
            known |= peaks
        return new

    def conditions(self) -> list[LimitCondition]:
        """The conditions that solvers must keep."""
        found = []
        for b, known in zip(self.bounds, self._known, strict=True):
            at, k = np.nonzero(known)
            if len(at):
                lower, upper = (b.lower + b.lower_margin)[k], (b.upper - b.upper_margin)[k]
                found.append(
                    LimitCondition(
                        self.energy, b.quantity, self.times[at], b.dofs[k], b.places[k], lower, upper, b.scale[k]
                    )
                )
        return found
