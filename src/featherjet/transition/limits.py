"""Limits of joints along a whole motion: where they are checked, and which of them a solver has to know of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, UnknownName
from ..model import configuration
from ..model.manifolds import Euclidean
from ..robot.robot import Robot
from .clip import State
from .constraints import Limit
from .energy import Energy

Array = np.ndarray
QUANTITIES = ("position", "velocity", "effort")
UNITS = {"position": "rad or m", "velocity": "rad/s or m/s", "effort": "N m or N"}
GRID = 32  # times in each interval at which limits are looked at
MOST = 2  # of these, where solvers know limits from the start that do not like to be told later
SLACK = 1e-6  # of a limit's size that may be exceeded
MARGIN = 1e-3  # of a limit's size that solvers keep away from it, for what happens between the times they know of


class Bounds(NamedTuple):
    """One quantity's bounds (n,), for degrees of freedom `dofs` of v (`places` of q)."""

    quantity: str
    dofs: Array
    places: Array
    lower: Array
    upper: Array
    above: Array  # margins that solvers keep from the limits: none where an end state is at its limit
    below: Array

    @property
    def scale(self) -> Array:
        """What an excess is measured by."""
        return sizes(self.lower, self.upper)

    def pick(self, q: Array, v: Array, tau: Array) -> Array:
        """The bounded numbers (N, n)."""
        return {"position": q[:, self.places], "velocity": v[:, self.dofs], "effort": tau[:, self.dofs]}[self.quantity]


def sizes(lower: Array, upper: Array) -> Array:
    """The larger of two limits that is finite."""
    finite = [np.where(np.isfinite(x), np.abs(x), 0.0) for x in (lower, upper)]
    return np.maximum(np.maximum(*finite), 1e-3)


def bounds(robot: Robot, given: Any, ends: tuple[State, State]) -> list[Bounds]:
    """From names of quantities (the model's own limits), or a mapping of these to limits of the user's.

    {"velocity": 2.0} or nv numbers, {"effort": ...} likewise; {"position": (lower, upper)}, each one number or nv.
    """
    if isinstance(given, str):
        given = (given,)
    wanted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    own = robot.limits()
    places = np.full(robot.nv, -1)
    for _, manifold, iq, iv in configuration.parts(robot.model):
        if isinstance(manifold, Euclidean):
            places[iv] = np.arange(iq.start, iq.stop)
    found = []
    for quantity, limit in wanted.items():
        if quantity not in QUANTITIES:
            raise UnknownName("limit", quantity, QUANTITIES)
        if quantity == "position":
            low, high = (own.lower[places], own.upper[places]) if limit is None else _pair(robot, limit)
            use = places >= 0
        else:
            high = getattr(own, quantity) if limit is None else _numbers(robot, f"limits: {quantity}", limit)
            if (high < 0).any():
                raise InputError(f"limits: {quantity}: must not be negative, got {high.min():g}")
            low, use = -high, np.ones(robot.nv, bool)
        if (low > high).any():
            k = int(np.argmax(low > high))
            raise InputError(f"limits: {quantity}: lower limit {low[k]:g} above upper {high[k]:g}, of dof {k}")
        use &= np.isfinite(low) | np.isfinite(high)
        margin = MARGIN * sizes(low, high)
        above, below = margin, margin
        if quantity != "effort":  # accelerations at the ends are free, and with them the torques
            at = np.stack([x.q[places] if quantity == "position" else x.v for x in ends])
            above = np.clip((at - low).min(0) / 2, 0.0, margin)
            below = np.clip((high - at).min(0) / 2, 0.0, margin)
        found.append(Bounds(quantity, *(x[use] for x in (np.arange(robot.nv), places, low, high, above, below))))
    return [b for b in found if len(b.dofs)]


def _numbers(robot: Robot, name: str, x: Any) -> Array:
    a = np.asarray(x, float)  # infinite ones are allowed: no limit
    if a.shape not in ((), (robot.nv,)) or np.isnan(a).any():
        raise InputError(f"{name}: expected one number or nv = {robot.nv} of them, got {x!r}")
    return np.broadcast_to(a, (robot.nv,)).copy()


def _pair(robot: Robot, x: Any) -> tuple[Array, Array]:
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise InputError("limits: position: expected a pair (lower, upper)")
    low, high = (_numbers(robot, "limits: position", each) for each in x)
    return low, high


def refuse_ends_outside(robot: Robot, bounds: list[Bounds], ends: dict[str, State]) -> None:
    """Raise where limits exclude the start or the end."""
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
                    f"{b.upper[k]:.6g} [{UNITS[b.quantity]}]: no motion can keep them"
                )


def refuse_haste(robot: Robot, bounds: list[Bounds], start: State, end: State, duration: float) -> None:
    """Raise where a joint cannot get from the start to the end in time, at the speed it is allowed."""
    way = robot.difference(start.q, end.q)
    for b in (b for b in bounds if b.quantity == "velocity"):
        straight = np.where(b.places >= 0, np.abs(way[b.dofs]), 0.0)  # turns in space have several ways
        least = straight / np.maximum(b.upper, 1e-300)
        k = int(np.argmax(least))
        if least[k] > duration * (1 + SLACK):
            raise InputError(
                f"limits: joint {joint_of(robot, int(b.dofs[k]))!r} has {straight[k]:.4g} rad or m to go, which takes "
                f"at least {least[k]:.4g} s at its limit of velocity, {b.upper[k]:.4g}; the duration is {duration:g} s"
            )


def joint_of(robot: Robot, dof: int) -> str:
    """The name of the joint that a degree of freedom belongs to."""
    return next(j.name for j, _, _, iv in configuration.parts(robot.model) if iv.start <= dof < iv.stop)


class Watched:
    """Limits over the whole motion. Where one is exceeded most, for a while, solvers are told of it: `conditions`."""

    def __init__(self, energy: Energy, bounds: list[Bounds]) -> None:
        self.energy, self.chart, self.bounds = energy, energy.chart, bounds
        spline = energy.spline
        self.times = np.linspace(0.0, spline.duration, GRID * spline.intervals + 1)
        self._basis = spline.jets(self.times)
        self._known = [np.zeros((len(self.times), len(b.dofs)), bool) for b in bounds]

    def excess(self, control: Array) -> list[Array]:
        """How far each bounded number is outside (times, n), relative to its limit's size; negative inside."""
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
                found[-1][[0, -1]] = -np.inf  # given by the end states
        return found

    def worst(self, control: Array) -> float:
        """The largest excess, zero if there is none."""
        return max([0.0, *(float(e.max()) for e in self.excess(control))])

    def know_most(self) -> None:
        """Take up every limit at some times of every interval."""
        for b, known in zip(self.bounds, self._known, strict=True):
            known[GRID // MOST : -1 : GRID // MOST] = True
            if b.quantity == "effort":
                known[[0, -1]] = True

    def learn(self, control: Array) -> bool:
        """Take up the peaks of what this motion exceeds; whether there was anything new."""
        new = False
        for known, off in zip(self._known, self.excess(control), strict=True):
            around = np.pad(off, ((1, 1), (0, 0)), constant_values=-np.inf)
            peaks = (off > SLACK) & (off >= around[:-2]) & (off >= around[2:])
            new |= bool((peaks & ~known).any())
            known |= peaks
        return new

    def conditions(self) -> list[Limit]:
        """What has been taken up."""
        found = []
        for b, known in zip(self.bounds, self._known, strict=True):
            at, k = np.nonzero(known)
            if len(at):
                lower, upper = (b.lower + b.above)[k], (b.upper - b.below)[k]
                found.append(
                    Limit(self.energy, b.quantity, self.times[at], b.dofs[k], b.places[k], lower, upper, b.scale[k])
                )
        return found
