"""URDF documents that several tests read, and how a model is held to Pinocchio's."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pinocchio as pin

from featherjet.model.model import WORLD, Model

PIN_ROOT = {"fixed": None, "free": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar}
PIN_FRAME = {
    "joint": pin.FrameType.JOINT,
    "fixed_joint": pin.FrameType.FIXED_JOINT,
    "body": pin.FrameType.BODY,
}
CLOSE = dict(rtol=1e-12, atol=1e-12)


def quietly(load, *args, **kwargs) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(*args, **kwargs)


def pin_model(path_or_xml: str, root: str = "fixed") -> pin.Model:
    build = pin.buildModelFromXML if path_or_xml.lstrip().startswith("<") else pin.buildModelFromUrdf
    return build(path_or_xml, *([PIN_ROOT[root]()] if PIN_ROOT[root] else []))


def unbounded(x: np.ndarray) -> np.ndarray:
    """Pinocchio writes the largest float where it adds a root joint."""
    return np.where(np.abs(x) > 1e300, np.copysign(np.inf, x), x)


def assert_same(ours: Model, theirs: pin.Model) -> None:
    assert (ours.name, ours.nq, ours.nv) == (theirs.name, theirs.nq, theirs.nv)
    assert list(ours.joint_names) == list(theirs.names)[1:]
    assert [j.parent for j in ours.joints] == [p - 1 for p in list(theirs.parents)[1:]]
    assert list(ours.q_starts) == [j.idx_q for j in list(theirs.joints)[1:]]
    assert list(ours.v_starts) == [j.idx_v for j in list(theirs.joints)[1:]]
    for i, joint in enumerate(ours.joints, start=1):
        np.testing.assert_allclose(joint.placement, theirs.jointPlacements[i].homogeneous, **CLOSE)
        body, inertia = joint.body, theirs.inertias[i]
        np.testing.assert_allclose(body.mass, inertia.mass, **CLOSE)
        np.testing.assert_allclose(body.mass * body.com, inertia.mass * inertia.lever, **CLOSE)
        np.testing.assert_allclose(body.inertia, inertia.inertia, **CLOSE)
    for mine, their in (
        ("lower", theirs.lowerPositionLimit),
        ("upper", theirs.upperPositionLimit),
        ("velocity_limit", theirs.velocityLimit),
        ("effort_limit", theirs.effortLimit),
        ("damping", theirs.damping),
        ("friction", theirs.friction),
    ):
        np.testing.assert_array_equal(np.concatenate([getattr(j, mine) for j in ours.joints]), unbounded(their), mine)
    assert_same_frames(ours, theirs)
    assert_same_motion(ours, theirs)


def assert_same_frames(ours: Model, theirs: pin.Model) -> None:
    joint_names = {f.name for f in theirs.frames if f.type != pin.FrameType.BODY}
    found = 0
    for frame in list(theirs.frames)[1:]:
        mine = ours.frame(frame.name)
        if frame.type == pin.FrameType.BODY and frame.name in joint_names and mine.kind != "body":
            other = theirs.frames[theirs.getFrameId(frame.name, PIN_FRAME[mine.kind])]
            if (frame.parentJoint, frame.placement) != (other.parentJoint, other.placement):
                mine = ours.frame(frame.name + "_link")
                assert mine.kind == "body"
        else:
            assert PIN_FRAME[mine.kind] == frame.type, frame.name
        assert mine.joint == frame.parentJoint - 1, frame.name
        np.testing.assert_allclose(mine.placement, frame.placement.homogeneous, err_msg=frame.name, **CLOSE)
        found += 1
    assert found == theirs.nframes - 1 >= len(ours.frames)


def assert_same_motion(ours: Model, theirs: pin.Model) -> None:
    """The kinds and axes, by what they do: placements of all joints at a random configuration."""
    q = pin.integrate(theirs, pin.neutral(theirs), np.random.default_rng(1).uniform(-1, 1, theirs.nv))
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q)
    for i, placement in enumerate(forward_kinematics(ours, q), start=1):
        np.testing.assert_allclose(placement, data.oMi[i].homogeneous, rtol=0, atol=1e-11)


def forward_kinematics(model: Model, q: np.ndarray) -> list[np.ndarray]:
    """Written apart from the library, on Pinocchio's own exponential maps."""
    placed: list[np.ndarray] = []
    for joint, at in zip(model.joints, model.q_starts, strict=True):
        own, move = q[at : at + joint.kind.nq], pin.SE3.Identity()
        match joint.kind.name:
            case "revolute":
                move.rotation = pin.exp3(joint.axis * own[0])
            case "continuous":
                move.rotation = pin.exp3(joint.axis * math.atan2(own[1], own[0]))
            case "prismatic":
                move.translation = joint.axis * own[0]
            case "free":
                move = pin.XYZQUATToSE3(own)
            case "planar":
                move.translation = np.array([own[0], own[1], 0])
                move.rotation = pin.exp3(np.array([0, 0, math.atan2(own[3], own[2])]))
        before = np.eye(4) if joint.parent == WORLD else placed[joint.parent]
        placed.append(before @ joint.placement @ move.homogeneous)
    return placed


def link(name: str, mass: float = 1.0, inertia: str = 'ixx="2" ixy=".1" ixz="0" iyy="3" iyz="0.2" izz="4"') -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/>'
        f'<mass value="{mass}"/><inertia {inertia}/></inertial></link>\n'
    )


def joint(name: str, kind: str, parent: str, child: str, inside: str = "") -> str:
    if kind in ("revolute", "prismatic") and "<limit" not in inside:
        inside += '<limit effort="5" velocity="6" lower="-1" upper="2"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="1 2 3" rpy="0.1 -0.2 0.3"/>{inside}</joint>\n'
    )


def robot(*parts: str) -> str:
    return '<robot name="r">\n' + "".join(parts) + "</robot>"


TWO = robot(link("a"), link("b"), joint("j", "revolute", "a", "b", '<axis xyz="0 0 1"/>'))
MIMICS = (
    *(link(name) for name in "abcde"),
    joint("lead", "revolute", "a", "b"),
    joint("one", "revolute", "b", "c", '<mimic joint="lead" multiplier="2" offset="0.5"/>'),
    joint("two", "prismatic", "c", "d", '<mimic joint="one" multiplier="-3" offset="1"/>'),
)

# A robot with mimicking joints

LINK = """<link name="{0}"><inertial><origin xyz="0.03 0.02 {1}" rpy="0.1 0.2 0.3"/><mass value="{2}"/>
  <inertia ixx="0.01" iyy="0.012" izz="0.015" ixy="0.001" ixz="0.0005" iyz="-0.001"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
  <origin xyz="0.1 -0.05 0.2" rpy="0.3 0.1 -0.2"/>
  <axis xyz="{4}"/><limit lower="-1" upper="1" effort="10" velocity="10"/>{5}</joint>"""


def coupled_urdf() -> str:
    """Followers before and after their leaders, on another branch, of another kind, and of a follower."""
    joints = [
        (
            "a_follower",
            "revolute",
            "base",
            "l1",
            "0 0 1",
            '<mimic joint="leader" multiplier="-0.5" offset="0.2"/>',
        ),
        ("b_own", "continuous", "l1", "l2", "1 1 0", ""),
        ("c_slide", "prismatic", "l2", "l3", "0 1 0", '<mimic joint="leader" multiplier="0.3"/>'),
        ("leader", "revolute", "base", "l4", "1 0 0", ""),
        ("m_free", "revolute", "l4", "l5", "0 1 1", ""),
        (
            "n_chained",
            "revolute",
            "l5",
            "l6",
            "0 0 1",
            '<mimic joint="a_follower" multiplier="2" offset="-0.1"/>',
        ),
    ]
    links = [("base", 0.0, 2.0)] + [(f"l{k}", 0.05 * k, 0.5 + 0.1 * k) for k in range(1, 7)]
    body = [LINK.format(*link) for link in links] + [JOINT.format(*joint) for joint in joints]
    return f'<robot name="coupled">{"".join(body)}</robot>'
