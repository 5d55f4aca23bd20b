"""One joint of a robot, as `robot.joint(name)` returns it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import display
from ..evaluate.evaluator import Evaluator
from ..model.model import WORLD, Array
from ..model.parts import Body, Mimic


@dataclass(frozen=True, eq=False, repr=False)
class RobotJoint:
    """A joint's place in the robot, and its numbers, in the robot's convention.

    `q[..., joint.q]` and `v[..., joint.v]` are its coordinates and its rates; both are empty if it mimics another.
    """

    name: str
    kind: str  # "revolute", "free", ...
    index: int  # of `joint_names`, and of the axis njoints of forces and placements
    parent: str | None  # the joint that carries it; None for the world
    children: tuple[str, ...]
    q: slice
    v: slice
    lower: Array  # (nq,) [rad or m]
    upper: Array
    velocity_limit: Array  # (nv,) [rad/s or m/s]
    effort_limit: Array  # (nv,) [N m or N]
    placement: Array  # (4, 4): its frame at zero displacement, in its parent's frame
    axis: Array | None  # (3,) in its frame; None if it has none
    body: Body  # what it carries
    armature: Array  # (nv,) [kg m^2 or kg]
    damping: Array  # (nv,)
    friction: Array  # (nv,)
    mimic: Mimic | None

    def __repr__(self) -> str:
        entries = f"q {self.q.start}:{self.q.stop}, v {self.v.start}:{self.v.stop}"
        where = entries if self.mimic is None else f"mimics {self.mimic.joint}"
        return f"<joint {self.name}: {self.kind}, {where}, on {self.parent or 'the world'}>"

    @property
    def limits(self) -> str:
        """Its limits in a few characters; empty for joints with several coordinates."""
        if self.lower.size != 1:
            return ""
        low, high = (f"{x[0]:.4g}" if np.isfinite(x[0]) else "none" for x in (self.lower, self.upper))
        return f"{low} to {high}" if low != high else low


def joint(evaluator: Evaluator, name: str) -> RobotJoint:
    """The joint of that name."""
    model, space = evaluator.model, evaluator.space
    i = model.joint_index(name)
    own = model.joints[i]
    q = v = slice(0, 0)
    limits = own.lower, own.upper, own.velocity_limit, own.effort_limit
    for part, found in zip(space.parts, space.joint_limits(), strict=True):
        if part.joint.name == name:
            q, v, limits = part.q, part.v, found
    return RobotJoint(
        name, own.kind.name, i, None if own.parent == WORLD else model.joint_names[own.parent],
        tuple(j.name for j in model.joints if j.parent == i), q, v, *limits, own.placement,
        own.axis if own.kind.has_axis else None, own.body, own.armature, own.damping, own.friction, own.mimic,
    )  # fmt: skip


def html(evaluator: Evaluator, caption: str) -> str:
    """A table of all joints."""
    rows = []
    for name in evaluator.model.joint_names:
        j = joint(evaluator, name)
        entries = [f"{x.start}" if x.stop == x.start + 1 else f"{x.start}:{x.stop}" for x in (j.q, j.v)]
        entries = ["", ""] if j.mimic else entries
        rows.append((name, j.kind, j.parent or "", *entries, j.limits, f"{j.body.mass:.4g}"))
    return display.table(("joint", "kind", "on", "q", "v", "limits", "mass [kg]"), rows, caption)
