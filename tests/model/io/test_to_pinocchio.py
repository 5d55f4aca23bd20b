"""`to_pinocchio`, the oracle of other tests: converted models are those that Pinocchio reads from the same URDF."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import featherjet as fj
from featherjet.model.io.urdf import parse_urdf
from helpers import agree, to_pinocchio

FILES = {name: path for name, path in fj.robots().items() if path != "built-in"}
# Fixed and free bases, continuous and prismatic joints, axes off the coordinate axes, welded links, limits.
CASES = [
    ("panda", "fixed"),
    ("ur5", "free"),
    ("hyq_no_sensors", "free"),
    ("anymal_b", "free"),
    ("romeo", "free"),
    ("talos_full_v2", "fixed"),
    ("kinova", "fixed"),
    ("tiago", "fixed"),
    ("solo", "free"),
]
ROUNDING = 1e-14  # welding links adds rounding errors in another order

pytestmark = pytest.mark.filterwarnings(
    "ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning"
)


def pair(name: str, root: str) -> tuple[pin.Model, pin.Model]:
    base = [pin.JointModelFreeFlyer()] if root == "free" else []
    return to_pinocchio(fj.load(FILES[name], root=root).model), pin.buildModelFromUrdf(FILES[name], *base)


@pytest.mark.parametrize("name, root", CASES)
def test_joints(name: str, root: str) -> None:
    """Names and order, parents, coordinates, placements, and the class of each joint with its axis."""
    m, urdf = pair(name, root)
    assert list(m.names) == list(urdf.names)
    assert list(m.parents) == list(urdf.parents)
    assert (m.nq, m.nv) == (urdf.nq, urdf.nv)
    assert list(m.idx_qs) == list(urdf.idx_qs)
    assert list(m.idx_vs) == list(urdf.idx_vs)
    for k in range(1, urdf.njoints):
        agree(m.jointPlacements[k].homogeneous, urdf.jointPlacements[k].homogeneous, ROUNDING, m.names[k])
        assert m.joints[k].shortname() == urdf.joints[k].shortname(), m.names[k]


@pytest.mark.parametrize("name, root", CASES)
def test_bodies(name: str, root: str) -> None:
    """Masses, centres of mass and inertias; gravity."""
    m, urdf = pair(name, root)
    for k in range(1, urdf.njoints):
        agree(m.inertias[k].matrix(), urdf.inertias[k].matrix(), 10 * ROUNDING, m.names[k])
    np.testing.assert_array_equal(m.gravity.vector, urdf.gravity.vector)


@pytest.mark.parametrize("name, root", CASES)
def test_limits(name: str, root: str) -> None:
    """Of position, velocity and effort, for the joints of the URDF; a root that is added has none."""
    m, urdf = pair(name, root)
    q, v = (7, 6) if root == "free" else (0, 0)
    np.testing.assert_array_equal(m.lowerPositionLimit[q:], urdf.lowerPositionLimit[q:])
    np.testing.assert_array_equal(m.upperPositionLimit[q:], urdf.upperPositionLimit[q:])
    for field in ("velocityLimit", "effortLimit"):
        np.testing.assert_array_equal(getattr(m, field)[v:], getattr(urdf, field)[v:])


@pytest.mark.parametrize("name, root", CASES)
def test_frames(name: str, root: str) -> None:
    """Every frame of the URDF is there, on the same joint and at the same place."""
    m, urdf = pair(name, root)
    names = {frame.name for frame in m.frames}
    for frame in urdf.frames:
        if frame.name == "universe" or frame.name not in names:
            assert frame.name in ("universe", "root_joint"), frame.name
            continue
        found = m.frames[m.getFrameId(frame.name)]
        assert found.parentJoint == frame.parentJoint, frame.name
        agree(found.placement.homogeneous, frame.placement.homogeneous, ROUNDING, frame.name)


def test_axes_off_the_coordinate_axes_are_kept() -> None:
    urdf = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="{}"><parent link="a"/><child link="b"/><axis xyz="1 2 2"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    for kind in ("revolute", "continuous", "prismatic"):
        document = urdf.format(kind)
        m, expected = to_pinocchio(parse_urdf(document)), pin.buildModelFromXML(document)
        q = pin.randomConfiguration(expected, np.full(expected.nq, -1.0), np.full(expected.nq, 1.0))
        placements = []
        for model in (m, expected):
            data = model.createData()
            pin.forwardKinematics(model, data, q)
            placements.append(data.oMi[1].homogeneous)
        agree(*placements, ROUNDING, kind)
