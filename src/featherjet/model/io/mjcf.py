"""Read MJCF files: MuJoCo compiles them, and the model is read from the arrays of its MjModel.

- Joints keep MuJoCo's order and sizes, so that nq, nv and every index are MuJoCo's. Hinge and slide coordinates have
  MuJoCo's values too: the reference (`ref`, qpos0) is folded into the joint's placement.
- Two conventions differ, since featherjet follows Pinocchio: quaternions are x y z w here and w x y z in MuJoCo, and
  the linear velocity of a free joint is in the body's axes here and in the world's in MuJoCo. conventions/mujoco.py
  translates batches of states.
- A body with several joints becomes a chain whose last joint carries the body; a body without joints is welded to its
  parent. A joint's frame is at its anchor, with its body's axes; the body has a frame of its own. Where names collide,
  the body's frame is named `<name>_body` and a site's `<name>_site`.
- The dynamics contain the tree of bodies, gravity and armature, that of joints' actuators too. Warnings say what else
  acts in MuJoCo, by element and line (actuators, geoms that collide, tendons, ...); see mjcf_left_out.py.
- MuJoCo compiles a file within this process and follows it into others, so that a file from outside can hang or end
  the process: MJCF is trusted input.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InputError, MissingExtra, ModelError, UnknownName
from ...forks import unforked
from ...math import rotations as so3
from ..builder import ModelBuilder, transform
from ..model import Array, Model
from .mjcf_left_out import Lines, actuator_armature, left_out, weightless
from .urdf import ROOT_JOINT, ROOTS
from .xmltree import read_bytes, root_tag

__all__ = ["from_mjmodel", "load_mjcf", "parse_mjcf"]

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
SAME_FRAME, SAME_ROTATION = 1, 3  # mjtSameFrame
KIND = {FREE: "free", BALL: "spherical", SLIDE: "prismatic", HINGE: "revolute"}


def load_mjcf(
    path: str | os.PathLike[str],
    root: str = "fixed",
    *,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
) -> Model:
    """The robot in an MJCF file. `strict` turns warnings into errors.

    root="fixed" takes the file as it is. Otherwise a joint "root_joint" is added below the world, which carries
    everything in the file, bodies welded to the world included; root="free" adds none if the only root is a free joint.
    """
    lines = Lines(read_bytes(path), os.fspath(path))
    model = _model(compile_file(path), lines, root, strict, gravity)
    return replace(model, source=os.path.abspath(path))


def compile_file(path: str | os.PathLike[str]) -> Any:
    """The `mujoco.MjModel` of an MJCF file, which is trusted."""
    source, data = os.fspath(path), read_bytes(path)
    return _compiled(source, data, lambda mujoco: mujoco.MjModel.from_xml_path(source))


def parse_mjcf(
    document: str,
    root: str = "fixed",
    *,
    assets: dict[str, bytes] | None = None,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
    source: str = "<string>",
) -> Model:
    """The robot in an MJCF document; `assets` maps the names of files it refers to to their content."""
    mj = _compiled(source, document, lambda mujoco: mujoco.MjModel.from_xml_string(document, assets))
    return _model(mj, Lines(document, source), root, strict, gravity)


def from_mjmodel(
    mj: Any, root: str = "fixed", *, strict: bool = False, gravity: Sequence[float] | None = None
) -> Model:
    """The robot in a compiled `mujoco.MjModel`."""
    return _model(mj, Lines("", "MjModel"), root, strict, gravity)


def _compiled(source: str, document: str | bytes, compile_with: Any) -> Any:
    try:
        with unforked:
            import mujoco
    except ImportError:
        raise MissingExtra("reading MJCF", "mujoco", "mujoco") from None
    tag = root_tag(document)
    if tag is not None and tag != "mujoco":
        raise ModelError(f"{source}: not an MJCF model: its root element is <{tag}>, not <mujoco>")
    try:
        return compile_with(mujoco)
    except Exception as error:  # ValueError, or mujoco.FatalError
        raise ModelError(f"{source}: MuJoCo cannot compile it: {str(error).strip()}") from None


def _model(mj: Any, lines: Lines, root: str, strict: bool, gravity: Sequence[float] | None) -> Model:
    source = lines.source
    if root not in ROOTS:
        raise UnknownName("root", root, ROOTS)
    if gravity is None:
        gravity = (0.0, 0.0, 0.0) if weightless(mj) else tuple(mj.opt.gravity)
    name = bytes(mj.names).split(b"\0", 1)[0].decode(errors="replace")
    builder = ModelBuilder(name or "mujoco", gravity=gravity, strict=strict, source=source)
    try:
        order = _build(builder, mj, _root_kind(mj, root), source)
        for kind, element, which, reason in left_out(mj):
            for number in which:
                builder.doubt(lines.place(mj, element, int(number), reason), kind)
        model = builder.build()
        if model.joint_names != tuple(order):
            raise ModelError("its bodies are not in depth-first order")
        return model
    except UnicodeDecodeError as error:
        raise ModelError(f"{source}: the name {error.object!r} is not UTF-8; save the file as UTF-8") from None
    except ModelError as error:
        raise error if str(error).startswith(source) else ModelError(f"{source}: {error}") from None


def _root_kind(mj: Any, root: str) -> str | None:
    """The kind of the root joint to add, or None."""
    if ROOTS[root] is None or FREE not in mj.jnt_type:
        return ROOTS[root]
    trees = {int(mj.body_rootid[body]) for body in mj.jnt_bodyid}
    if root == "free" and len(trees) == 1:
        return None
    raise ModelError(f"root={root!r}: the file has a free joint of its own; load it with root='fixed'")


def _build(builder: ModelBuilder, mj: Any, root_kind: str | None, source: str) -> list[str]:
    """Add all bodies, joints and sites; returns the names of the joints in MuJoCo's order."""
    names = _Names(mj, {ROOT_JOINT} if root_kind else set())
    world = builder.add_joint(ROOT_JOINT, root_kind) if root_kind else None
    carrier: list[str | None] = [world]
    placement: list[Array] = [np.eye(4)]  # of each body, in the frame of the joint that carries it
    order = [ROOT_JOINT] if root_kind else []
    armature = mj.dof_armature + actuator_armature(mj)
    for body in range(1, mj.nbody):
        parent = mj.body_parentid[body]
        joint, T = carrier[parent], placement[parent] @ _placed(mj.body_pos[body], mj.body_quat[body])
        first = mj.body_jntadr[body]
        for j in range(first, first + mj.body_jntnum[body]):
            anchor = transform(p=mj.jnt_pos[j])
            T = np.eye(4) if mj.jnt_type[j] == FREE else T @ anchor @ _minus_reference(mj, j)
            joint = builder.add_joint(names.joints[j], parent=joint, placement=T, **_settings(mj, j, armature))
            order.append(joint)
            T = np.eye(4) if mj.jnt_type[j] == FREE else transform(p=-mj.jnt_pos[j])
        carrier.append(joint)
        placement.append(T)
        com, inertia = _centre_and_inertia(mj, body)
        label = f"{source}: body {names.bodies[body]!r}"
        builder.add_body(joint, mj.body_mass[body], com, inertia, T, label=label)
        builder.add_frame(names.bodies[body], joint, T, kind="body")
    for site in range(mj.nsite):
        body = mj.site_bodyid[site]
        T = placement[body] @ _placed(mj.site_pos[site], mj.site_quat[site])
        builder.add_frame(names.sites[site], carrier[body], T)
    return order


def body_frames(mj: Any, joint_names: Sequence[str]) -> list[str]:
    """For each body of an MjModel the name of its frame, in a Model with these joints."""
    return _Names(mj, {ROOT_JOINT} & set(joint_names)).bodies


class _Names:
    """A unique name for every joint, body and site: the file's wherever possible."""

    def __init__(self, mj: Any, taken: set[str]) -> None:
        own_bodies = [mj.body(i).name for i in range(mj.nbody)]
        own_joints = [mj.joint(i).name for i in range(mj.njnt)]
        own_sites = [mj.site(i).name for i in range(mj.nsite)]
        self._taken = taken | {*own_bodies, *own_joints, *own_sites}
        given = set(taken)

        def choose(own: str, fallback: str, suffix: str) -> str:
            if own and own not in given:
                name = own
            else:
                name = self._fresh(own + suffix if own else fallback)
            given.add(name)
            return name

        self.joints = [
            choose(own, self._unnamed_joint(mj, own_bodies, j), "_joint") for j, own in enumerate(own_joints)
        ]
        self.bodies = [choose(own, f"body{b}", "_body") for b, own in enumerate(own_bodies)]
        self.sites = [choose(own, f"site{s}", "_site") for s, own in enumerate(own_sites)]

    @staticmethod
    def _unnamed_joint(mj: Any, bodies: list[str], joint: int) -> str:
        body = mj.jnt_bodyid[joint]
        if not bodies[body]:
            return f"joint{joint}"
        several = mj.body_jntnum[body] > 1
        return f"{bodies[body]}_joint{joint - mj.body_jntadr[body] if several else ''}"

    def _fresh(self, name: str) -> str:
        unique, n = name, 2
        while unique in self._taken:
            unique, n = f"{name}_{n}", n + 1
        self._taken.add(unique)
        return unique


def _centre_and_inertia(mj: Any, body: int) -> tuple[Array, Array]:
    """In the body's frame. MuJoCo treats an inertial frame that nearly is the body's as equal, and so must this."""
    same = mj.body_sameframe[body]
    com = np.zeros(3) if same == SAME_FRAME else mj.body_ipos[body]
    R = np.eye(3) if same in (SAME_FRAME, SAME_ROTATION) else rotation(mj.body_iquat[body])
    return com, (R * mj.body_inertia[body]) @ R.T


def _settings(mj: Any, j: int, armature: Array) -> dict:
    """Kind, axis, limits, armature, damping and friction of a joint, as keywords of `add_joint`; armature: (nv,)."""
    kind = KIND[int(mj.jnt_type[j])]
    dofs = slice(mj.jnt_dofadr[j], mj.jnt_dofadr[j] + {"free": 6, "spherical": 3}.get(kind, 1))
    settings = dict(
        kind=kind,
        armature=armature[dofs],
        damping=mj.dof_damping[dofs],
        friction=mj.dof_frictionloss[dofs],
    )
    if mj.jnt_type[j] in (SLIDE, HINGE):
        settings["axis"] = mj.jnt_axis[j]
        settings["stiffness"], settings["spring"] = mj.jnt_stiffness[j], mj.qpos_spring[mj.jnt_qposadr[j]]
        if mj.jnt_limited[j]:
            settings["lower"], settings["upper"] = mj.jnt_range[j]
    return settings


def _minus_reference(mj: Any, j: int) -> Array:
    """The displacement by -qpos0, for the placement: a hinge or slide moves by qpos - qpos0, and q is to be qpos."""
    reference, axis = -mj.qpos0[mj.jnt_qposadr[j]], mj.jnt_axis[j]
    if mj.jnt_type[j] == SLIDE:
        return transform(p=reference * axis)
    if mj.jnt_type[j] == HINGE:
        return transform(rotation(np.array([np.cos(reference / 2), *(np.sin(reference / 2) * axis)])))
    return np.eye(4)


def _placed(position: Array, quaternion: Array) -> Array:
    return transform(rotation(quaternion), position)


def rotation(wxyz: Array) -> Array:
    """Rotation matrices (..., 3, 3) of quaternions w x y z (..., 4), which need not be of unit length."""
    return so3.matrix_from_quaternion(unit(wxyz))


def unit(quaternion: Array) -> Array:
    """Quaternions of unit length; those that are so to rounding stay as they are."""
    norm = np.linalg.norm(quaternion, axis=-1, keepdims=True)
    if not (np.isfinite(norm).all() and (norm > 1e-15).all()):
        raise InputError("a quaternion is zero or not finite")
    return np.where(np.abs(norm - 1) < 1e-15, quaternion, quaternion / norm)
