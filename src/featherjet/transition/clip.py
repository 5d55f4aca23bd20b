"""What a transition joins and aims at: states, sampled motions, and targets on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..robot.robot import Robot

Array = np.ndarray


class State(NamedTuple):
    """A configuration (nq,) and a velocity (nv,)."""

    q: Array
    v: Array


@dataclass(frozen=True, eq=False)
class Clip:
    """A sampled motion: configurations q (n, nq), `dt` seconds apart, and velocities v (n, nv) where they are known.

    Without velocities, those at its ends are the slopes of parabolas through the last three samples (or of a line
    through two).
    """

    q: ArrayLike
    dt: float
    v: ArrayLike | None = None

    def checked(self, robot: Robot, name: str) -> Clip:
        """The same as trusted arrays."""
        q = robot.checked_q(f"{name}: q", self.q)
        if q.ndim != 2 or len(q) < 2:
            raise InputError(f"{name}: q: expected at least two samples, (n, {robot.nq}); got shape {q.shape}")
        dt = positive(f"{name}: dt", self.dt)
        if self.v is None:
            return Clip(q, dt)
        v = robot.checked_v(f"{name}: v", self.v)
        if v.shape != (len(q), robot.nv):
            raise InputError(f"{name}: v: expected shape ({len(q)}, {robot.nv}), as many as q has; got {v.shape}")
        return Clip(q, dt, v)

    def end(self, robot: Robot, last: bool) -> State:
        """The state at its last or first sample; of a checked clip."""
        q = np.asarray(self.q)[:: -1 if last else 1]
        if self.v is not None:
            return State(q[0], np.asarray(self.v)[-1 if last else 0])
        near = [robot.difference(q[0], x) for x in q[1:3]]
        slope = near[0] if len(near) == 1 else (4 * near[0] - near[1]) / 2
        return State(q[0], slope / (-self.dt if last else self.dt))


@dataclass(frozen=True)
class Target:
    """A frame's origin is at `position` (3,) [m], or the whole frame at `placement` (4, 4), in the world.

    time: a moment [s], or two between which it stays there.
    """

    frame: str
    time: float | tuple[float, float]
    position: ArrayLike | None = None
    placement: ArrayLike | None = None


def positive(name: str, x: Any) -> float:
    """A positive finite number."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)) or not 0 < float(x) < np.inf:
        raise InputError(f"{name}: expected a positive number, got {x!r}")
    return float(x)


def whole(name: str, x: Any, least: int, why: str = "") -> int:
    """A whole number that is large enough."""
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)) or x < least:
        raise InputError(f"{name}: expected a whole number, at least {least}{why}; got {x!r}")
    return int(x)


def state(robot: Robot, given: Any, name: str, last: bool) -> tuple[State, Clip | None]:
    """The state that a transition starts (at a clip's last sample) or ends with, and the clip it comes from."""
    if isinstance(given, Clip):
        clip = given.checked(robot, name)
        return clip.end(robot, last), clip
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(f"{name}: expected a pair (q, v) or a Clip, got {type(given).__name__}")
    q, v = robot.checked_q(f"{name}: q", given[0]), robot.checked_v(f"{name}: v", given[1])
    for letter, x in (("q", q), ("v", v)):
        if x.ndim != 1:
            raise InputError(f"{name}: {letter}: expected one state, got shape {x.shape}; for a motion give a Clip")
    return State(q, v), None


def weights(robot: Robot, given: Any) -> Array:
    """The weight (nv,) of every torque: one number, nv of them, or by joints' names (others have weight one)."""
    w = np.ones(robot.nv)
    if isinstance(given, Mapping):
        for name, x in given.items():
            joint = robot.model.joints[robot.model.joint_index(name)]
            at = robot.model.v_starts[robot.model.joint_index(name)]
            if joint.mimic:
                raise InputError(f"weights: joint {name!r} mimics {joint.mimic.joint!r}: weigh that one")
            each = arrays.numbers(f"weights of joint {name!r}", x, (), "one number, or one for each dof")
            if each.shape not in ((), (joint.nv,)):
                raise InputError(
                    f"weights of joint {name!r}: expected one number or {joint.nv}, got shape {each.shape}"
                )
            w[at : at + joint.nv] = each
    elif given is not None:
        x = arrays.numbers("weights", given, (), "one number, or nv of them")
        if x.shape not in ((), (robot.nv,)):
            raise InputError(f"weights: expected one number or nv = {robot.nv} of them, got shape {x.shape}")
        w[:] = x
    if (w < 0).any():
        raise InputError(f"weights: must not be negative; entry {int(np.argmin(w))} is {w.min():g}")
    if not w.any():
        raise InputError("weights: all are zero, so every motion is as good as any other")
    return w
