"""The URDF reader: every robot of example-robot-data against Pinocchio, and mimic joints."""

from pathlib import Path

import numpy as np
import pytest

from featherjet.errors import ModelError, ModelWarning
from featherjet.model.io.catalog import robots
from featherjet.model.io.urdf import load_urdf, parse_urdf
from featherjet.model.parts import Mimic
from urdf_helpers import MIMICS, PIN_ROOT, TWO, assert_same, joint, link, pin_model, quietly, robot

URDFS = {Path(path).parts[-3] + "/" + Path(path).stem: path for path in robots().values() if path != "built-in"}


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


def test_what_other_programs_let_act_is_said_by_line():
    limit = '<limit lower="-1" upper="1" effort="1" velocity="{}"/>'
    text = robot(
        '<link name="a"/><link name="b"/><link name="c"/>',
        joint("x", "revolute", "a", "b", limit.format(2)),
        joint("y", "revolute", "b", "c", limit.format(0) + '<mimic joint="x"/>'),
        '<transmission name="t"/><sensor name="s"/>',
    )

    def said(**settings):
        with pytest.warns(ModelWarning) as record:
            parse_urdf(text, source="x.urdf", **settings)
        return [str(w.message).split(":", 2)[2] for w in record]

    velocity, transmission, sensor = said(mimic=True)
    assert velocity == " <joint name='x'>: its velocity limit does not act in simulate()"
    assert transmission == " <transmission name='t'>: does not act here"
    assert sensor == " <sensor name='s'>: does not act here"
    assert " <joint name='y'>: moves alone; mimic=True couples it to 'x'" in said()
    with pytest.raises(ModelError, match="its velocity limit"):
        parse_urdf(text, source="x.urdf", strict=True)
