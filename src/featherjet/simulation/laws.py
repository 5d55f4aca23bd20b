"""What acts at a robot's joints besides a controller's torques: damping, springs, dry friction, limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import WORLD, Array, Model
from ..model.passive import PassiveJoints

FAR = 1e9  # the way to a limit that is not there


class Pull(NamedTuple):
    """Springs and dampers at the dofs, (..., nv) each: torque = force - damping v - stiffness (v h) within a step.

    force: everything at the step's start. Implicit in the velocity, so that stiff ones stay stable.
    """

    force: Array
    damping: Array
    stiffness: Array


class JointLaws:
    """The joints' own laws; with `passive` False, there are none.

    stops: the dofs that have limits or dry friction. floating: the dofs of free roots; balanced: whether nothing takes
    momentum from them but gravity and torques.
    """

    def __init__(self, model: Model, passive: bool) -> None:
        nv, joints = model.nv, PassiveJoints(model)
        self.at, self.scalar, self.rest = joints.at, joints.scalar, joints.rest
        acting = (joints.damping, joints.stiffness, joints.friction)
        self.damping, self.stiffness, friction = acting if passive else np.zeros((3, nv))
        self.effort, low, high = np.full(nv, np.inf), np.full(nv, -np.inf), np.full(nv, np.inf)
        for joint, _, _, v in model.parts:
            if not passive:
                break
            self.effort[v] = joint.effort_limit
            if self.scalar[v].all():
                low[v], high[v] = joint.lower, joint.upper
        limited = np.isfinite(low) | np.isfinite(high)
        self.stops = tuple(np.flatnonzero(limited | (friction > 0)).tolist())
        k = list(self.stops)
        self.low, self.high, self.friction = np.maximum(low[k], -FAR), np.minimum(high[k], FAR), friction[k]
        self.coordinates, self.bounded = self.at[k], bool(np.isfinite(self.effort).any())
        self.free = not (self.damping.any() or self.stiffness.any())
        self.rubs, self.springs = bool((friction > 0).any()), bool(self.stiffness.any())
        roots = [p for p in model.parts if p.joint.parent == WORLD and p.joint.kind.name == "free"]
        self.floating = [k for p in roots for k in range(p.v.start, p.v.stop)]
        outside = (self.damping + friction)[self.floating].any() or any(p.joint.armature.any() for p in roots)
        self.balanced = bool(roots) and not outside

    def pull(self, q: Array, v: Array) -> Pull:
        """Springs and dampers at a state."""
        force = -self.damping * v
        if self.springs:
            force = force - self.stiffness * np.where(self.scalar, q[..., self.at] - self.rest, 0.0)
        return Pull(force, self.damping, self.stiffness)

    def softness(self, h: Array) -> Array:
        """What implicit springs and dampers add to the joints' inertias in a step of length h."""
        return h * self.damping + h * h * self.stiffness

    def implicit(self, q: Array, v: Array, tau: Array, pull: Pull | None, h: Array) -> tuple[Array, Array]:
        """Torques with those of springs, dampers and a servo, and the inertia that these add, in a step of length h."""
        soft = np.zeros(len(self.damping))
        if not self.free:
            tau, soft = tau + self.pull(q, v).force - h * self.stiffness * v, self.softness(h)
        if pull is not None:
            tau = tau + pull.force - h * pull.stiffness * v
            soft = soft + h * pull.damping + h * h * pull.stiffness
        return tau, soft

    def ways(self, q: Array) -> Array:
        """For each stop (..., stops, 3): the way to its lower and upper limits, and its dry friction."""
        x = q.take(self.coordinates, -1)
        found = np.empty((*x.shape, 3))
        np.subtract(x, self.low, found[..., 0])
        np.subtract(self.high, x, found[..., 1])
        found[..., 2] = self.friction
        return found

    def reached(self, q: Array) -> Array:
        """Which configurations (...) lie beyond a limit."""
        x = q.take(self.coordinates, -1)
        if x.ndim == 1:  # quicker
            return np.asarray((x < self.low).any() or (x > self.high).any())
        return np.asarray(((x < self.low) | (x > self.high)).any(-1))

    def limited(self, tau: Array) -> Array:
        """Torques within the efforts that the joints allow."""
        return np.minimum(np.maximum(tau, -self.effort), self.effort) if self.bounded else tau
