"""What only feet are held above: the other bodies of a robot, which may go below the ground."""

from __future__ import annotations

import numpy as np

from ..contact.ground import Ground
from ..evaluate.evaluator import Evaluator
from ..model.model import WORLD, Array

DEEP = 1e-3  # m: less is rounding, or the way that a foot sinks in
EVERY, LOOKS = 50, 50  # steps between two looks at a motion, each of which takes as long as a step, and looks at most


def buried(evaluator: Evaluator, ground: Ground, t: Array, q: Array) -> str:
    """A warning if bodies go below the ground in a motion, q (n, ..., nq) at times t (n,), else nothing.

    Looks at every fiftieth state, or fewer, at centres of mass and at joints, which are inside bodies.
    """
    at = np.arange(EVERY, len(t), max(EVERY, len(t) // LOOKS))
    if not len(at):
        return ""
    joints = evaluator.model.joints
    T = evaluator("forward_kinematics", q[at])
    heavy = [k for k, j in enumerate(joints) if j.body.mass > 0]
    held = [k for k, j in enumerate(joints) if j.parent != WORLD]
    points = np.zeros((len(heavy) + len(held), 3))
    points[: len(heavy)] = [joints[k].body.com for k in heavy]
    placed = T[..., heavy + held, :, :]
    where = (placed[..., :3, :3] @ points[:, :, None])[..., 0] + placed[..., :3, 3]
    height = ground.nearest(where.reshape(-1, 3)).distance.reshape(where.shape[:-1])
    height = height - np.minimum(ground.gaps(evaluator, q[at]).min(-1), 0.0)[..., None]  # feet may start there, too
    if not height.size or height.min() > -DEEP:
        return ""
    first = np.argmax((height < -DEEP).reshape(len(at), -1).any(-1))
    at_first = height[first].reshape(-1, height.shape[-1]).min(0)
    name = joints[(heavy + held)[int(np.argmin(at_first))]].name
    return (
        f"the body of joint {name!r} goes below the ground at t = {t[at[first]]:.3g} s, up to {-height.min():.2g} m "
        "deep: only feet collide. Name more feet, such as knees and corners, or hold the robot up"
    )
