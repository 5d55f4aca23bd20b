"""Locking joints: the same robot with some joints fixed at given coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import InputError, ModelError
from ..math.spatial import Transform
from ..math.vec3 import Mat3, Vec3
from .checks import numbers
from .model import WORLD, Array, Model
from .parts import Frame, Joint
from .tree import axis_alignment


def lock(model: Model, positions: Mapping[str, object]) -> Model:
    """The model with the named joints fixed at the given coordinates; joints that mimic a locked one are locked too.

    The body of a locked joint is welded to its parent's; its children and its frames move to its parent.
    """
    if not isinstance(positions, Mapping):
        raise InputError(f"lock: expected a mapping of joint names to coordinates, got {positions!r}")
    locked: dict[str, Array] = {}
    for name, value in positions.items():
        joint = model.joints[model.joint_index(name)]
        if joint.mimic:
            raise InputError(f"joint {name!r} mimics {joint.mimic.joint!r}: lock {joint.mimic.joint!r} instead")
        locked[name] = coordinates(joint, value)
    for joint in model.joints:
        if joint.mimic and joint.mimic.joint in locked:
            locked[joint.name] = joint.mimic.multiplier * locked[joint.mimic.joint] + joint.mimic.offset
    index: dict[int, int] = {WORLD: WORLD}  # old joint -> new joint that carries its body
    offset: dict[int, Array] = {WORLD: np.eye(4)}  # old joint -> its frame in that new joint's frame
    joints: list[Joint] = []
    for i, joint in enumerate(model.joints):
        carrier, placement = index[joint.parent], offset[joint.parent] @ joint.placement
        if joint.name in locked:
            index[i], offset[i] = carrier, placement @ displacement(joint, locked[joint.name])
            if carrier != WORLD:
                body = joints[carrier].body + joint.body.placed(offset[i])
                joints[carrier] = replace(joints[carrier], body=body)
        else:
            index[i], offset[i] = len(joints), np.eye(4)
            joints.append(replace(joint, parent=carrier, placement=placement))
    if not joints:
        raise ModelError(f"robot {model.name!r}: every joint is locked; leave at least one free")
    frames = tuple(
        Frame(
            f.name,
            index[f.joint],
            offset[f.joint] @ f.placement,
            "fixed_joint" if f.kind == "joint" and f.name in locked else f.kind,
        )
        for f in model.frames
    )
    return Model(model.name, tuple(joints), frames, model.gravity, model.source)


def coordinates(joint: Joint, value: object) -> Array:
    """The coordinates (nq,) of one joint from what a user gives; a continuous joint also accepts its angle."""
    try:
        x = np.atleast_1d(numbers(value, joint.name))
    except ModelError:
        x = np.array([])
    if joint.kind.name == "continuous" and x.shape == (1,):
        x = np.array([np.cos(x[0]), np.sin(x[0])])
    if x.shape != (joint.kind.nq,) or not np.isfinite(x).all():
        raise InputError(
            f"joint {joint.name!r} ({joint.kind}): expected {joint.kind.nq} finite coordinates, got {value!r}"
        )
    for part in joint.kind.manifold.units:
        if abs(np.linalg.norm(x[part]) - 1) > 1e-6:
            raise InputError(f"joint {joint.name!r} ({joint.kind}): coordinates {x[part]} must have norm 1")
    return np.array(joint.kind.manifold.normalised(x))


def displacement(joint: Joint, q: Array) -> Array:
    """The homogeneous transform (4, 4) of a joint at q, in its own frame."""
    A = axis_alignment(joint.axis) if joint.kind.has_axis else np.eye(3)
    start = Transform(Mat3.from_array(A), Vec3(0.0, 0.0, 0.0))
    X = joint.kind.move(start, q.tolist(), joint.pitch)
    T = np.eye(4)
    T[:3, :3] = np.array([[c.x, c.y, c.z] for c in (X.R.x, X.R.y, X.R.z)]).T @ A.T
    T[:3, 3] = X.p.x, X.p.y, X.p.z
    return T
