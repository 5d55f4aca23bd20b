"""The URDF reader: every robot of example-robot-data against Pinocchio, and mimic joints."""

import math
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from featherjet.errors import ModelError
from featherjet.model.io.catalog import robots
from featherjet.model.io.urdf import load_urdf, parse_urdf
from featherjet.model.model import WORLD, Mimic, Model

URDFS = {Path(path).parts[-3] + "/" + Path(path).stem: path for path in robots().values() if path != "built-in"}
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


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("robot", URDFS)
def test_every_robot_is_pinocchios(robot, root):
    theirs = pin_model(URDFS[robot], root)
    if theirs.nv == 0:
        with pytest.raises(ModelError, match="no moving joint"):
            load_urdf(URDFS[robot], root)
    else:
        assert_same(quietly(load_urdf, URDFS[robot], root), theirs)


@pytest.mark.parametrize("robot", [name for name in URDFS if "double_pendulum" in name or "tiago_pro" in name])
def test_planar_root_is_pinocchios(robot):
    assert_same(quietly(load_urdf, URDFS[robot], "planar"), pin_model(URDFS[robot], "planar"))


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


EVERY_TYPE = robot(
    *(link(name) for name in "abcdefghi"),
    joint("turn", "continuous", "a", "b", '<axis xyz="0 0 1"/><dynamics damping="2" friction="3"/>'),
    joint("spin", "continuous", "b", "c", '<axis xyz="1 -2 1"/><limit effort="5" velocity="6"/>'),
    joint("plane", "planar", "c", "d", '<axis xyz="0 0 1"/><dynamics damping="1"/>'),
    joint("weld", "fixed", "d", "e"),
    joint("float", "floating", "e", "f", '<limit effort="5" velocity="6"/><dynamics friction="1"/>'),
    joint("Slide", "prismatic", "a", "g", '<axis xyz="0 3 0"/>'),
    joint("hinge", "revolute", "g", "h", '<axis xyz="0 0 -1"/><limit effort="5" velocity="6"/>'),
    joint("default_axis", "revolute", "g", "i"),
)
TWO = robot(link("a"), link("b"), joint("j", "revolute", "a", "b", '<axis xyz="0 0 1"/>'))


@pytest.mark.parametrize("root", PIN_ROOT)
def test_every_joint_type_is_pinocchios(root):
    assert_same(parse_urdf(EVERY_TYPE, root), pin_model(EVERY_TYPE, root))


def test_unknown_elements_comments_and_bom_are_no_trouble():
    noise = '<gazebo><plugin name="p"><x/></plugin></gazebo><transmission name="t"/><!-- xacro:macro ${x} -->'
    text = TWO.replace('<robot name="r">', f'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">{noise}')
    for document in (text, "\ufeff" + text, b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16")):
        assert_same(parse_urdf(document), pin_model(TWO))
    latin = '<?xml version="1.0" encoding="latin-1"?>' + TWO.replace('"j"', '"Gelenk_ä"')
    assert parse_urdf(latin.encode("latin-1")).joint_names == ("Gelenk_ä",)
    assert parse_urdf(latin).joint_names == ("Gelenk_ä",)  # already decoded, whatever it declares


def test_a_link_named_as_another_joint_keeps_a_frame():
    model = parse_urdf(robot(link("a"), link("grip"), link("jaw"), joint("arm", "revolute", "a", "grip"),
                             joint("grip", "fixed", "grip", "jaw")))  # fmt: skip
    assert model.frame("grip").kind == "fixed_joint"
    assert model.frame("grip_link").kind == "body"
    np.testing.assert_array_equal(model.frame("grip_link").placement, np.eye(4))


def test_gravity():
    np.testing.assert_array_equal(parse_urdf(TWO).gravity, [0, 0, -9.81])
    np.testing.assert_array_equal(parse_urdf(TWO, gravity=(1, 2, 3)).gravity, [1, 2, 3])


def test_a_chain_of_2000_links():
    n = 2000
    kinds = ["revolute", "fixed"]
    text = robot(
        *(link(f"l{i}") for i in range(n + 1)),
        *(joint(f"j{i}", kinds[i % 2], f"l{i}", f"l{i + 1}") for i in range(n)),
    )
    assert parse_urdf(text).nv == n // 2


MIMICS = (
    *(link(name) for name in "abcde"),
    joint("lead", "revolute", "a", "b"),
    joint("one", "revolute", "b", "c", '<mimic joint="lead" multiplier="2" offset="0.5"/>'),
    joint("two", "prismatic", "c", "d", '<mimic joint="one" multiplier="-3" offset="1"/>'),
)


def test_mimic_joints_are_independent_unless_asked_for():
    text = robot(*MIMICS, joint("x", "fixed", "d", "e"))
    assert_same(parse_urdf(text), pin_model(text))
    model = parse_urdf(text, mimic=True)
    assert [j.mimic for j in model.joints] == [None, Mimic("lead", 2.0, 0.5), Mimic("lead", -6.0, -0.5)]
    assert (model.nq, model.nv) == (1, 1)


def test_continuous_mimics_have_one_coordinate():
    text = robot(link("a"), link("b"), link("c"), link("d"), joint("lead", "continuous", "a", "b"),
                 joint("follow", "continuous", "b", "c", '<mimic joint="lead"/>'),
                 joint("other", "continuous", "c", "d"))  # fmt: skip
    lead, follow, other = parse_urdf(text, mimic=True).joints
    assert (lead.kind.name, follow.kind.name, other.kind.name) == ("revolute", "revolute", "continuous")
    assert (lead.lower[0], lead.upper[0]) == (-np.inf, np.inf)
    assert follow.mimic == Mimic("lead", 1.0, 0.0)


@pytest.mark.parametrize("robot_", [name for name in URDFS if "mimic" in Path(URDFS[name]).read_text()])
def test_mimics_of_every_robot(robot_):
    """Independent and coupled models are the same tree, less one coordinate for each follower."""
    if "psyonic" in robot_:  # as shipped, its fingers mimic joints it does not have
        with pytest.raises(ModelError, match=r"<joint name='Left_index_q2'>: mimics joint 'index_q1', which does not"):
            load_urdf(URDFS[robot_], mimic=True)
        return
    free, coupled = (quietly(load_urdf, URDFS[robot_], mimic=mimic) for mimic in (False, True))
    followers = [j for j in coupled.joints if j.mimic]
    assert coupled.joint_names == free.joint_names
    assert coupled.nv == free.nv - len(followers)


@pytest.mark.parametrize(
    "mimics, message",
    [
        ('<mimic joint="nobody"/>', r":7: <joint name='x'>: mimics joint 'nobody', which does not exist"),
        ('<mimic joint="x"/>', r":7: <joint name='x'>: mimics itself: x -> x"),
        ('<mimic joint="weld"/>', "'weld' is fixed"),
        ("<mimic/>", r":7: <mimic> of <joint name='x'>: attribute 'joint'"),
        ('<mimic joint="y" offset="1;2"/>', r":7: <mimic> of <joint name='x'>: offset='1;2'"),
        ('<mimic joint="y"/>', "mimics itself: x -> y -> x"),
        ('<mimic joint="float"/>', "'float' is floating"),
    ],
)
def test_bad_mimics(mimics, message):
    text = robot(*(link(name) for name in "abcde"), joint("x", "revolute", "a", "b", mimics),
                 joint("y", "revolute", "b", "c", '<mimic joint="x"/>'), joint("weld", "fixed", "c", "d"),
                 joint("float", "floating", "d", "e"))  # fmt: skip
    assert "offset" in mimics or parse_urdf(text)
    with pytest.raises(ModelError, match=message):
        parse_urdf(text, mimic=True)
