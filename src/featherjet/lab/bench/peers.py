"""Our models as Pinocchio's and MuJoCo's, joint by joint, so that all compute the same robot."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import FeatherjetError
from ...model.model import WORLD, Array, Joint, Model

PEERS = ("pinocchio", "mujoco")
IN_MUJOCO = {
    "revolute": "mjJNT_HINGE",
    "prismatic": "mjJNT_SLIDE",
    "spherical": "mjJNT_BALL",
    "free": "mjJNT_FREE",
}


class NotAvailable(FeatherjetError):
    """A peer that is not installed, or that cannot treat this robot; the message says which."""


def peer(name: str) -> Any:
    """The module of a peer."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotAvailable("not installed") from None


def versions() -> dict[str, str | None]:
    """The version of each peer, None for those that are not installed."""
    found: dict[str, str | None] = {}
    for name in PEERS:
        try:
            found[name] = str(peer(name).__version__)
        except NotAvailable:
            found[name] = None
    return found


# Pinocchio


def to_pinocchio(model: Model) -> Any:
    """The same robot for Pinocchio; our joint i is its joint i + 1, after the universe."""
    pin = peer("pinocchio")
    if model.has_mimic:
        raise NotAvailable("not available for this robot: it has mimic joints")
    m = pin.Model()
    m.name = model.name
    m.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    for joint in model.joints:
        made = _pinocchio_joint(pin, joint)
        at = m.addJoint(joint.parent + 1, made, pin.SE3(np.array(joint.placement)), joint.name)
        body = pin.Inertia(joint.body.mass, np.array(joint.body.com), np.array(joint.body.inertia))
        m.appendBodyToJoint(at, body, pin.SE3.Identity())
    m.armature = np.concatenate([joint.armature for joint in model.joints])
    return m


def _pinocchio_joint(pin: Any, joint: Joint) -> Any:
    """Pinocchio's joint of that kind: for coordinate axes the one made for that axis, which is faster."""
    kind, axis = joint.kind.name, np.array(joint.axis)
    whole = {
        "spherical": "JointModelSpherical",
        "translation": "JointModelTranslation",
        "planar": "JointModelPlanar",
        "free": "JointModelFreeFlyer",
    }
    if kind in whole:
        return getattr(pin, whole[kind])()
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
    """Python cannot give this class its axis, but Pinocchio's URDF reader can."""
    xyz = " ".join(repr(float(x)) for x in axis)
    urdf = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">
        <parent link="a"/><child link="b"/><axis xyz="{xyz}"/></joint></robot>"""
    return pin.buildModelFromXML(urdf).joints[1]


# MuJoCo


def to_mujoco(model: Model) -> Any:
    """The same robot for MuJoCo: bodies and joints alone, no contacts, limits or damping."""
    mujoco = peer("mujoco")
    for joint in model.joints:
        reason = _foreign_to_mujoco(joint)
        if reason:
            raise NotAvailable(f"not available for this robot: {reason}")
    try:
        m = _mujoco_spec(mujoco, model).compile()
    except ValueError as error:
        first = str(error).splitlines()[0]
        raise NotAvailable(f"not available for this robot: MuJoCo says {first!r}") from None
    off = mujoco.mjtDisableBit
    names = ("CONSTRAINT", "CONTACT", "LIMIT", "EQUALITY", "FRICTIONLOSS", "DAMPER", "SPRING", "ACTUATION")
    for name in names:
        m.opt.disableflags |= getattr(off, f"mjDSBL_{name}")
    return m


def _foreign_to_mujoco(joint: Joint) -> str:
    """Why MuJoCo cannot have a joint, or nothing."""
    kind = joint.kind.name
    if joint.mimic:
        return "it has mimic joints"
    if kind not in IN_MUJOCO:
        return f"MuJoCo has no {kind} joint"
    if kind == "free" and (joint.parent != WORLD or not np.array_equal(joint.placement, np.eye(4))):
        return "a free joint does not begin at the world's origin"
    if kind == "free" and np.any(joint.armature):
        return "a free joint has armature"
    if np.any(joint.armature != joint.armature[0]):
        return "the armature of a joint differs between its degrees of freedom"
    return ""


def _mujoco_spec(mujoco: Any, model: Model) -> Any:
    """What MuJoCo compiles; principal axes of inertia are found here, more precisely than it does."""
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
        made = body.add_joint(name=joint.name, type=getattr(mujoco.mjtJoint, IN_MUJOCO[joint.kind.name]))
        if joint.kind.has_axis:
            made.axis = np.array(joint.axis)
        made.armature = float(joint.armature[0])
    return spec


def _quaternion(R: Array) -> Array:
    """w x y z of a rotation matrix: the eigenvector of Bar-Itzhack's matrix, which is good everywhere."""
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [0.0, R[0, 0] - R[1, 1] - R[2, 2], R[1, 0] + R[0, 1], R[0, 2] + R[2, 0]],
            [0.0, 0.0, R[1, 1] - R[0, 0] - R[2, 2], R[2, 1] + R[1, 2]],
            [0.0, 0.0, 0.0, R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    return np.linalg.eigh(K, UPLO="U")[1][:, -1]
