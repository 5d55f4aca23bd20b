"""The user's description of a transition: end states, sampled motions, targets on the way, weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..robot.robot import Robot

Array = np.ndarray


class EndState(NamedTuple):
    """The configuration (nq,) and velocity (nv,) at one end of a transition."""

    q: Array
    v: Array


@dataclass(frozen=True, eq=False, repr=False)
class Clip:
    """A sampled motion: configurations q (n, nq), `dt` seconds apart, and optionally velocities v (n, nv).

    Without v, the velocity at an end is the slope of a parabola through its three samples there (of a line through
    two, if there are only two).
    """

    q: ArrayLike
    dt: float
    v: ArrayLike | None = None

    def __repr__(self) -> str:
        return f"<Clip of {len(np.asarray(self.q))} samples, {self.dt:g} s apart>"

    def checked(self, robot: Robot, name: str) -> Clip:
        """The same clip with its arrays checked against the robot; `name` appears in errors."""
        q = robot.evaluator.checked_q(f"{name}: q", self.q)
        if q.ndim != 2 or len(q) < 2:
            raise InputError(f"{name}: q: expected at least two samples, (n, {robot.nq}); got shape {q.shape}")
        dt = arrays.positive_number(f"{name}: dt", self.dt)
        if self.v is None:
            return Clip(q, dt)
        v = robot.evaluator.checked_v(f"{name}: v", self.v)
        if v.shape != (len(q), robot.nv):
            raise InputError(f"{name}: v: expected shape ({len(q)}, {robot.nv}), one row for each of q; got {v.shape}")
        return Clip(q, dt, v)

    def end_state(self, robot: Robot, last: bool) -> EndState:
        """The state at the last or the first sample of a checked clip."""
        q = np.asarray(self.q)[:: -1 if last else 1]
        if self.v is not None:
            return EndState(q[0], np.asarray(self.v)[-1 if last else 0])
        near = [robot.difference(q[0], x) for x in q[1:3]]
        slope = near[0] if len(near) == 1 else (4 * near[0] - near[1]) / 2
        return EndState(q[0], slope / (-self.dt if last else self.dt))

    def velocities(self, robot: Robot) -> Array:
        """Velocities (n, nv) of a checked clip: its own, or differences of its configurations."""
        if self.v is not None:
            return np.asarray(self.v)
        q = np.asarray(self.q)
        inner = (robot.difference(q[1:-1], q[2:]) - robot.difference(q[1:-1], q[:-2])) / (2 * self.dt)
        return np.concatenate([self.end_state(robot, False).v[None], inner, self.end_state(robot, True).v[None]])


@dataclass(frozen=True)
class Target:
    """A place for a frame on the way: its origin at `position` (3,) [m], or all of it at `placement` (4, 4).

    time: the moment [s], or two moments between which the frame stays there.
    """

    frame: str
    time: float | tuple[float, float]
    _: KW_ONLY
    position: ArrayLike | None = None
    placement: ArrayLike | None = None


def checked_end(robot: Robot, given: Any, name: str, last: bool) -> tuple[EndState, Clip | None]:
    """The end state that the user gave, and the clip it belongs to: its last sample if `last`, or its first."""
    if isinstance(given, Clip):
        clip = given.checked(robot, name)
        return clip.end_state(robot, last), clip
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"{name}: expected a pair (q, v) or a Clip, got {type(given).__name__}")
    q, v = robot.evaluator.checked_q(f"{name}: q", given[0]), robot.evaluator.checked_v(f"{name}: v", given[1])
    for letter, x in (("q", q), ("v", v)):
        if x.ndim != 1:
            raise InputError(
                f"{name}: {letter}: expected one state, got shape {x.shape}; for a sampled motion, give a Clip"
            )
    return EndState(q, v), None


def checked_weights(robot: Robot, given: Any) -> Array:
    """The weight (nv,) of every torque, given as one number, nv numbers, or by joint names (others weigh one)."""
    w = np.ones(robot.nv)
    if isinstance(given, Mapping):
        for name, x in given.items():
            _set_joint_weight(robot, name, x, w)
    elif given is not None:
        x = arrays.finite("weights", given, (), "one number, or nv of them")
        if x.shape not in ((), (robot.nv,)):
            raise InputError(f"weights: expected one number or nv = {robot.nv} of them, got shape {x.shape}")
        w[:] = x
    if (w < 0).any():
        raise InputError(f"weights: must not be negative; entry {int(np.argmin(w))} is {w.min():g}")
    if not w.any():
        raise InputError("weights: all are zero, so no motion is better than another")
    return w


def _set_joint_weight(robot: Robot, name: str, given: Any, weights: Array) -> None:
    """Write the weight of one joint, a number or one for each of its degrees of freedom, to weights (nv,)."""
    i = robot.model.joint_index(name)
    joint, start = robot.model.joints[i], robot.model.v_starts[i]
    if joint.mimic:
        raise InputError(f"weights: joint {name!r} mimics {joint.mimic.joint!r}; give that one a weight")
    x = arrays.finite(f"weights of joint {name!r}", given, (), "one number, or one for each dof")
    if x.shape not in ((), (joint.nv,)):
        raise InputError(f"weights of joint {name!r}: expected one number or {joint.nv}, got shape {x.shape}")
    weights[start : start + joint.nv] = x
