"""Every way a URDF can be wrong: an error that says what and where, never a wrong number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featherjet.errors import FeatherjetError, MissingFile, ModelError, ModelWarning, PhysicsWarning, UnknownName
from featherjet.model.io.urdf import load_urdf, parse_urdf
from urdf_helpers import MIMICS, TWO, assert_same, joint, link, pin_model, quietly, robot

BOMB = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><robot name="&b;"/>'
EXTERNAL = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<robot name="r">&x;</robot>'
LIMIT = '<limit effort="5" velocity="6" lower="-1" upper="2"/>'


def with_joint(inside: str, kind: str = "revolute") -> str:
    return robot(link("a"), link("b"), joint("j", kind, "a", "b", inside))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "x:1: not well-formed XML"),
        (TWO[:300], r"x:\d: not well-formed XML"),
        (TWO.replace("</robot>", ""), r"x:5: not well-formed XML \(no element found\)"),
        (TWO + "<robot/>", "x:5: not well-formed XML"),
        ("hello", "x:1: not well-formed XML"),
        (BOMB, "x:1: a DOCTYPE"),
        (EXTERNAL, "x:1: a DOCTYPE"),
        ("<mujoco/>", "x:1: <mujoco>: not a URDF.*MJCF"),
        ("<sdf/>", "not a URDF.*SDF"),
        ("<robot/>", "x:1: <robot>: attribute 'name'"),
        ('<robot name="r"/>', "there is no <link>"),
        (robot('<xacro:property name="x" value="1"/>', link("a")), "x:2: <xacro:property name='x'>.*expand"),
        (robot('<link name="a"><xacro:inertia/></link>'), "x:2: <xacro:inertia> of .*'a'.*expand"),
        (with_joint('<axis xyz="${x} 0 0"/>'), "x:4: <axis> of <joint name='j'>.*expand the file first"),
        (robot("<link/>"), "x:2: <link>.*attribute 'name' is missing"),
        (robot(link("a"), link("a")), "x:3: <link name='a'>: the name is already used in line 2"),
        (robot(link("a"), link("b"), link("c"), joint("j", "fixed", "a", "b"), joint("j", "fixed", "a", "c")),
         "x:6: <joint name='j'>: the name is already used in line 5"),
        (robot(link("a"), joint("j", "revolute", "a", "b")), "x:3: <joint name='j'>: its child link 'b'"),
        (robot(link("b"), joint("j", "revolute", "a", "b")), "x:3: <joint name='j'>: its parent link 'a'"),
        (robot(link("a"), link("b"), link("c"), joint("j", "fixed", "a", "c"), joint("k", "fixed", "b", "c")),
         r"x:6: <joint name='k'>: link 'c' is already the child of joint 'j' \(line 5\)"),
        (robot(link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
         "a cycle"),
        (robot(link("a"), joint("j", "fixed", "a", "a")), "x:2: <link name='a'>.*a cycle"),
        (robot(link("r"), link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
         "x:3: <link name='a'>: it is part of a cycle"),
        (robot(link("a"), link("b"), link("c"), joint("j", "revolute", "a", "b")),
         "x:4: <link name='c'>: no joint connects it to 'a'"),
        (TWO.replace('<parent link="a"/>', ""), "x:4: <joint name='j'>: <parent link=...> is missing"),
        (TWO.replace('<child link="b"/>', ""), "x:4: <joint name='j'>: <child link=...> is missing"),
        (TWO.replace('<child link="b"/>', "<child/>"), "x:4: <child> of <joint name='j'>: attribute 'link'"),
        (TWO.replace(' type="revolute"', ""), "x:4: <joint name='j'>: attribute 'type' is missing"),
        (with_joint("", "ball"), "x:4: <joint name='j'>: unknown type 'ball'; there are: revolute"),
        (TWO.replace(LIMIT, ""), "x:4: <joint name='j'>: a revolute joint needs a <limit>"),
        (with_joint('<limit velocity="1"/>'), "x:4: <limit> of <joint name='j'>: attribute 'effort'"),
        (with_joint('<limit effort="-1" velocity="1"/>'), "x:4: <limit> of <joint name='j'>.*is negative"),
        (with_joint('<limit effort="1"/>', "continuous"), "attribute 'velocity' is missing"),
        (with_joint(LIMIT + LIMIT), "x:4: <limit> of <joint name='j'>: a second <limit>"),
        (with_joint('<axis xyz="0 0 0"/>'), "x:4: <joint name='j'>: the axis is zero"),
        (with_joint("<axis/>"), "x:4: <axis> of <joint name='j'>: attribute 'xyz'"),
        (with_joint('<axis xyz="0,0,1"/>'), "x:4: <axis> of .*'j'.*expected 3 numbers, got 1"),
        (with_joint('<axis xyz="0 1,5 1"/>'), "x:4: <axis> of .*'j'.*'1,5' is not a finite number"),
        (with_joint('<axis xyz="0 0 1 0"/>'), "expected 3 numbers, got 4"),
        (with_joint('<axis xyz="nan 0 1"/>'), "'nan' is not a finite number"),
        (with_joint('<axis xyz="1e999 0 1"/>'), "'1e999' is not a finite number"),
        (with_joint('<axis xyz="0x1 0 1"/>'), "'0x1' is not a finite number"),
        (with_joint('<axis xyz="1_0 0 1"/>'), "'1_0' is not a finite number"),
        (with_joint('<limit effort="inf" velocity="1"/>'), "effort='inf'.*not a finite number"),
        (with_joint('<dynamics damping="a"/>'), "x:4: <dynamics> of .*'j'.*damping='a'"),
        (TWO.replace('value="1.0"', 'value="one"', 1), "x:2: <mass> of <link name='a'>: value='one'"),
        (TWO.replace('izz="4"', "", 1), "x:2: <inertia> of <link name='a'>: attribute 'izz'"),
        (TWO.replace('<mass value="1.0"/>', "", 1), "x:2: <link name='a'>: its <inertial> needs both"),
        (TWO.replace('value="1.0"', 'value="1e308"').replace("0.1 0.2", "1e200 1e200"), "x:2: .*too large"),
        (robot(link("a"), link("b"), link("c", mass=-1), joint("j", "revolute", "a", "b"),
               joint("w", "fixed", "b", "c")), "x: .*masses cancel"),
        (robot(link("a")), "x: robot 'r' has no moving joint"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning")
def test_bad_files(text, message):
    with pytest.raises(ModelError, match=message):
        parse_urdf(text, source="x")


@pytest.mark.parametrize(
    "data, message",
    [
        (TWO.encode().replace(b'"j"', b'"\xff"'), "x:4: not well-formed XML"),
        (b'<?xml version="1.0" encoding="klingon"?>' + TWO.encode(), "x"),
        (b'<?xml version="1.0" encoding="big5"?>' + TWO.encode(), "x"),
        (TWO.encode("utf-16")[:-7], "x"),
        (TWO.encode() + b"\0", "x"),
    ],
)
def test_bad_encodings(data, message):
    with pytest.raises(ModelError, match=message):
        parse_urdf(data, source="x")


def test_bad_paths(tmp_path):
    with pytest.raises(MissingFile, match=r"nobody\.urdf: there is no such file") as error:
        load_urdf(tmp_path / "nobody.urdf")
    assert isinstance(error.value, FileNotFoundError)
    with pytest.raises(ModelError, match="is a directory"):
        load_urdf(tmp_path)
    (tmp_path / "empty.urdf").write_bytes(b" \n")
    with pytest.raises(ModelError, match=r"empty\.urdf: the file is empty"):
        load_urdf(tmp_path / "empty.urdf")
    with pytest.raises(ModelError, match="cannot be read"):
        load_urdf("nul\0l.urdf")
    (tmp_path / "bad.urdf").write_text(with_joint('<axis xyz="0 0 0"/>'))
    with pytest.raises(ModelError, match=r"bad\.urdf:4: <joint name='j'>"):
        load_urdf(tmp_path / "bad.urdf")


def test_bad_roots():
    with pytest.raises(UnknownName, match="unknown root 'floating'; choose from: fixed, free, planar"):
        parse_urdf(TWO, "floating")
    text = TWO.replace('"j"', '"root_joint"')
    assert parse_urdf(text).joint_names == ("root_joint",)
    with pytest.raises(ModelError, match="a joint is named 'root_joint'"):
        parse_urdf(text, "free")


@pytest.mark.parametrize(
    "text, warning, message",
    [
        (robot(link("a"), link("b", mass=-1), joint("j", "revolute", "a", "b")), PhysicsWarning,
         "x:3: link 'b': negative mass"),
        (robot(link("a"), link("b", inertia='ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="9"'),
               joint("j", "revolute", "a", "b")), PhysicsWarning, "x:3: link 'b':.*triangle"),
        (with_joint('<limit effort="1" velocity="1" lower="2" upper="1"/>'), ModelWarning,
         "x:4: <joint name='j'>: lower limit 2 above upper 1"),
        (with_joint('<axis xyz="1 0 0"/>', "planar"), ModelWarning, "x:4: <joint name='j'>: a planar joint"),
    ],
)  # fmt: skip
def test_dubious_files_warn_or_are_refused(text, warning, message):
    with pytest.warns(warning, match=message):
        ours = parse_urdf(text, source="x")
    if ours.mass > 0:  # Pinocchio divides a negative mass's moment by a tiny number, and shows a lever of 1e30
        assert_same(ours, pin_model(text))
    with pytest.raises(ModelError, match=message):
        parse_urdf(text, source="x", strict=True)


def mutated(document: bytes, cuts: list[tuple[int, int, bytes]]) -> bytes:
    for at, length, new in cuts:
        at %= len(document) + 1
        document = document[:at] + new + document[at + length :]
    return document


SNIPPETS = [
    b"<",
    b">",
    b'"',
    b"0",
    b"-1e308",
    b"nan",
    b"a",
    b"b",
    b"</joint>",
    b"<joint ",
    b"\0",
    b"\xff",
    b"1 2",
]
CUTS = st.tuples(st.integers(0, 10_000), st.integers(0, 40), st.sampled_from(SNIPPETS) | st.binary(max_size=4))


@settings(max_examples=400)
@given(cuts=st.lists(CUTS, max_size=4), end=st.none() | st.integers(0, 10_000), mimic=st.booleans())
def test_broken_files_never_break_the_reader(cuts, end, mimic):
    """Whatever a file holds: a model, or an error of ours."""
    document = mutated(robot(*MIMICS, joint("x", "continuous", "d", "e")).encode(), cuts)[:end]
    try:
        model = quietly(parse_urdf, document, mimic=mimic)
    except FeatherjetError:
        return
    for j in model.joints:
        assert np.isfinite(j.placement).all()
        assert np.isfinite(j.body.inertia).all()


def test_deep_nesting_is_no_trouble():
    depth = 100_000
    assert parse_urdf(TWO.replace("</robot>", "<x>" * depth + "</x>" * depth + "</robot>")).nv == 1
