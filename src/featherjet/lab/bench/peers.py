"""featherjet's models as Pinocchio's and MuJoCo's, joint by joint, so that all of them compute the same robot."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import FeatherjetError
from ...model.model import WORLD, Array, Model
from ...model.parts import Joint

PEERS = ("pinocchio", "mujoco")
MUJOCO_JOINTS = {
    "revolute": "mjJNT_HINGE",
    "prismatic": "mjJNT_SLIDE",
    "spherical": "mjJNT_BALL",
    "free": "mjJNT_FREE",
}


class NotAvailable(FeatherjetError):
    """A peer that is not installed or cannot represent this robot; the message says which."""


def peer(name: str) -> Any:
    """Import a peer's module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotAvailable("not installed") from None


def versions() -> dict[str, str | None]:
    """The version of each peer; None if it is not installed."""
    found: dict[str, str | None] = {}
    for name in PEERS:
        try:
            found[name] = str(peer(name).__version__)
        except NotAvailable:
            found[name] = None
    return found


# Pinocchio


def to_pinocchio(model: Model) -> Any:
    """The same robot as a `pinocchio.Model`: joints, bodies, frames, armature and limits.

    Joint i is Pinocchio's joint i + 1, after its universe; q and v have the same layout.
    """
    pin = peer("pinocchio")
    if model.has_mimic:
        raise NotAvailable("not available for this robot: it has mimic joints")
    m = pin.Model()
    m.name = model.name
    m.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    for joint in model.joints:
        index = m.addJoint(
            joint.parent + 1,
            _pinocchio_joint(pin, joint),
            pin.SE3(np.array(joint.placement)),
            joint.name,
            np.array(joint.effort_limit),
            np.array(joint.velocity_limit),
            np.array(joint.lower),
            np.array(joint.upper),
        )
        m.addJointFrame(index)
        body = pin.Inertia(joint.body.mass, np.array(joint.body.com), np.array(joint.body.inertia))
        m.appendBodyToJoint(index, body, pin.SE3.Identity())
    for frame in model.frames:
        if frame.kind != "joint":
            above = 0 if frame.joint == WORLD else m.getFrameId(model.joints[frame.joint].name)
            placement = pin.SE3(np.array(frame.placement))
            m.addFrame(pin.Frame(frame.name, frame.joint + 1, above, placement, pin.FrameType.OP_FRAME))
    m.armature = np.concatenate([joint.armature for joint in model.joints])
    return m


def _pinocchio_joint(pin: Any, joint: Joint) -> Any:
    """Pinocchio's joint of that kind; for a coordinate axis the class of that axis, which is faster."""
    kind, axis = joint.kind.name, np.array(joint.axis)
    without_axis = {
        "spherical": "JointModelSpherical",
        "translation": "JointModelTranslation",
        "planar": "JointModelPlanar",
        "free": "JointModelFreeFlyer",
    }
    if kind in without_axis:
        return getattr(pin, without_axis[kind])()
    short = {"revolute": "R", "continuous": "RUB", "prismatic": "P", "helical": "H"}[kind]
    pitch = (joint.pitch,) if kind == "helical" else ()
    letter = next((x for x, e in zip("XYZ", np.eye(3), strict=True) if np.array_equal(axis, e)), None)
    if letter:
        return getattr(pin, f"JointModel{short}{letter}")(*pitch)
    if kind == "continuous":
        return _oblique_continuous(pin, axis)
    name = {"R": "Revolute", "P": "Prismatic", "H": "Helical"}[short]
    return getattr(pin, f"JointModel{name}Unaligned")(axis, *pitch)


def _oblique_continuous(pin: Any, axis: Array) -> Any:
    """Pinocchio's Python class does not take an axis, but its URDF reader can set one."""
    xyz = " ".join(repr(float(x)) for x in axis)
    urdf = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">
        <parent link="a"/><child link="b"/><axis xyz="{xyz}"/></joint></robot>"""
    return pin.buildModelFromXML(urdf).joints[1]


# MuJoCo


def to_mujoco(model: Model) -> Any:
    """The same robot as a `mujoco.MjModel`: bodies and joints, without contacts, limits and damping."""
    mujoco = peer("mujoco")
    for joint in model.joints:
        reason = _unsupported_by_mujoco(joint)
        if reason:
            raise NotAvailable(f"not available for this robot: {reason}")
    try:
        m = mujoco_spec(mujoco, model)[0].compile()
    except ValueError as error:
        first = str(error).splitlines()[0]
        raise NotAvailable(f"not available for this robot: MuJoCo says {first!r}") from None
    off = mujoco.mjtDisableBit
    names = ("CONSTRAINT", "CONTACT", "LIMIT", "EQUALITY", "FRICTIONLOSS", "DAMPER", "SPRING", "ACTUATION")
    for name in names:
        m.opt.disableflags |= getattr(off, f"mjDSBL_{name}")
    return m


def _unsupported_by_mujoco(joint: Joint) -> str:
    """Why MuJoCo cannot represent a joint; empty if it can."""
    kind = joint.kind.name
    if joint.mimic:
        return "it has mimic joints"
    if kind not in MUJOCO_JOINTS:
        return f"MuJoCo has no {kind} joint"
    if kind == "free" and (joint.parent != WORLD or not np.array_equal(joint.placement, np.eye(4))):
        return "it has a free joint that is not at the world's origin"
    if kind == "free" and np.any(joint.armature):
        return "it has a free joint with armature"
    if np.any(joint.armature != joint.armature[0]):
        return "it has a joint whose armature differs between its degrees of freedom"
    return ""


def mujoco_spec(mujoco: Any, model: Model) -> tuple[Any, list[Any]]:
    """The specification for MuJoCo's compiler, and the joints' bodies in it.

    Principal axes are computed here, more precisely than MuJoCo does.
    """
    spec = mujoco.MjSpec()
    spec.option.gravity, spec.option.timestep = np.array(model.gravity), 1e-3
    bodies: list[Any] = []
    for joint in model.joints:
        above = spec.worldbody if joint.parent == WORLD else bodies[joint.parent]
        moments, axes = np.linalg.eigh(joint.body.inertia)
        body = above.add_body(
            pos=joint.placement[:3, 3],
            quat=_quaternion(joint.placement[:3, :3]),
            explicitinertial=True,
            mass=joint.body.mass,
            ipos=joint.body.com,
            iquat=_quaternion(axes * np.sign(np.linalg.det(axes))),
            inertia=moments,
        )
        bodies.append(body)
        mujoco_joint = body.add_joint(name=joint.name, type=getattr(mujoco.mjtJoint, MUJOCO_JOINTS[joint.kind.name]))
        if joint.kind.has_axis:
            mujoco_joint.axis = np.array(joint.axis)
        mujoco_joint.armature = float(joint.armature[0])
    return spec, bodies


def _quaternion(R: Array) -> Array:
    """The quaternion w x y z of a rotation matrix: an eigenvector of Bar-Itzhack's matrix, accurate for every angle."""
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [0.0, R[0, 0] - R[1, 1] - R[2, 2], R[1, 0] + R[0, 1], R[0, 2] + R[2, 0]],
            [0.0, 0.0, R[1, 1] - R[0, 0] - R[2, 2], R[2, 1] + R[1, 2]],
            [0.0, 0.0, 0.0, R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    return np.linalg.eigh(K, UPLO="U")[1][:, -1]
