"""What users see of a robot before they compute: names, joints, one line or one table for everything."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import FixedAttribute, InputError, UnknownName
from featherjet.model import Mimic
from helpers import agree


@pytest.fixture(scope="module")
def robot() -> fj.Robot:
    return fj.load("quadruped")


def test_dir_has_public_names_only() -> None:
    shown = {name for name in dir(fj) if not name.startswith("__")}
    assert {*fj.__all__} <= shown
    assert {"jax", "torch", "casadi", "crocoddyl", "geometry"} <= shown
    assert not shown & {"Any", "import_module", "algorithms", "jit", "evaluate"}
    for name in fj.__all__:
        assert getattr(fj, name) is not None


def test_rotations_and_rigid_motions_have_one_name() -> None:
    T = fj.geometry.se3.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    agree(fj.geometry.se3.log(T), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1e-14)
    agree(fj.geometry.rotations.exp_matrix([0.4, 0.5, 0.6]), T[:3, :3], 1e-14)


def test_a_joint_knows_its_place(robot: fj.Robot) -> None:
    knee = robot.joint("LF_KFE")
    assert (knee.kind, knee.parent, knee.children) == ("revolute", "LF_HFE", ())
    assert robot.joint_names[knee.index] == "LF_KFE"
    assert robot.joint("LF_HFE").children == ("LF_KFE",)
    assert robot.joint("root").parent is None
    limits = robot.limits()
    for name in robot.joint_names:
        joint = robot.joint(name)
        assert np.array_equal(joint.lower, limits.lower[joint.q])
        assert np.array_equal(joint.upper, limits.upper[joint.q])
        assert np.array_equal(joint.velocity_limit, limits.velocity[joint.v])
        assert np.array_equal(joint.effort_limit, limits.effort[joint.v])
    q = robot.neutral()
    q[knee.q] = 0.3  # moves the shank, and nothing else
    moved = np.abs(robot.forward_kinematics(q) - robot.forward_kinematics(robot.neutral())).max((-1, -2))
    assert list(np.flatnonzero(moved)) == [knee.index]
    with pytest.raises(UnknownName, match="did you mean: LF_KFE"):
        robot.joint("LF_KNE")


def test_a_joint_in_another_convention(robot: fj.Robot) -> None:
    other = robot.with_convention("kindr")
    slices = [other.joint(name).q for name in other.joint_names]
    assert slices[0].start == 0
    assert slices[-1].stop == other.nq
    assert all(a.stop == b.start for a, b in pairwise(slices))


def test_a_joint_that_follows_has_no_coordinates() -> None:
    b = fj.ModelBuilder("gripper")
    b.add_joint("left", "prismatic")
    b.add_joint("right", "prismatic", mimic=Mimic("left", -1.0))
    for name in ("left", "right"):
        b.add_body(name, 1.0)
    robot = fj.Robot(b.build())
    assert robot.neutral()[robot.joint("right").q].size == 0
    assert "mimics left" in repr(robot.joint("right"))
    assert "right" in robot._repr_html_()


def test_parameters_of_bodies_change_the_torques_as_the_regressor_says(robot: fj.Robot, rng) -> None:
    q, v, a = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
    k = robot.joint("LF_KFE").index
    heavy = robot.with_inertial_parameters({"LF_KFE": 1.3 * robot.inertial_parameters()[10 * k : 10 * k + 10]})
    old, new = robot.inertial_parameters(), heavy.inertial_parameters()
    assert list(np.flatnonzero(np.abs(new - old).reshape(-1, 10).max(1) > 0)) == [k]
    tau = robot.inverse_dynamics(q, v, a) + robot.torque_regressor(q, v, a) @ (new - old)
    agree(heavy.inverse_dynamics(q, v, a), tau, 1e-12)


def test_everything_shows_itself_in_one_line(robot: fj.Robot) -> None:
    q, v = robot.neutral(), np.zeros(robot.nv)
    d = robot.inverse_dynamics_derivatives(q, v, v)
    expected = "InverseDynamicsDerivatives(dtau_dq=array (18, 18), dtau_dv=array (18, 18), dtau_da=array (18, 18))"
    assert repr(d) == expected
    assert repr(robot.model) == "<Model quadruped: 13 joints, nq 19, nv 18, 30 kg, 18 frames>"
    assert repr(robot.model.joints[0]) == "<Joint root: free, 16 kg>"
    bound = "<bound bias: q (19,), v (18,) -> b (18,)>".replace("b (", robot.bind("bias").results[0] + " (")
    assert repr(robot.bind("bias")) == bound
    assert repr(fj.ModelBuilder("x")) == "<ModelBuilder x: 0 joints, 0 frames>"
    assert repr(robot.joint("LF_KFE")) == "<joint LF_KFE: revolute, q 9:10, v 8:9, on LF_HFE>"
    assert repr(fj.Clip(np.zeros((5, 7)), 0.1)) == "<Clip of 5 samples, 0.1 s apart>"
    field = fj.HeightField([0, 1, 2], [0, 3], [[0, 0], [0, 0.2], [0, 0]])
    assert repr(field) == "<HeightField 3 x 2: 0 <= x <= 2, 0 <= y <= 3, 0 <= z <= 0.2 m>"
    assert repr(fj.Servo(robot, kd=2.0)) == "<Servo of quadruped: kp up to 0, kd up to 2>"
    everything = (robot, robot.limits(), robot.model.frames[0], robot.model.joints[0].body, d)
    assert all("\n" not in repr(x) for x in everything)
    batch = robot.constrained_dynamics(q, v, v, fj.Contacts(robot, [fj.PointContact("LF_foot")]))
    assert repr(batch).startswith("ConstrainedDynamics(a=array (18,), forces=[")


def test_tables_in_notebooks_escape_names() -> None:
    b = fj.ModelBuilder("<b>")
    b.add_joint("<i>", "revolute")
    b.add_body("<i>", 1.0, inertia=np.eye(3))
    robot = fj.Robot(b.build())
    html = robot._repr_html_()
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    assert "<b>" not in html
    d = robot.inverse_dynamics_derivatives(np.zeros((5, 1)), np.zeros(1), np.zeros(1))
    assert "dtau_dq" in d._repr_html_()  # type: ignore[attr-defined]
    assert "(5, 1, 1)" in d._repr_html_()  # type: ignore[attr-defined]


MAKERS = {
    "Robot": lambda r: r,
    "Model": lambda r: r.model,
    "ModelBuilder": lambda r: fj.ModelBuilder("x"),
    "Contacts": lambda r: fj.Contacts(r, [fj.PointContact("LF_foot")]),
    "Ground": lambda r: fj.Ground(r, ["LF_foot"]),
    "Servo": lambda r: fj.Servo(r, kd=1.0),
    "World": lambda r: fj.World(r, r.neutral(), np.zeros(r.nv)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_mistyped_attribute_is_an_error(robot: fj.Robot, make) -> None:
    with pytest.raises(AttributeError):
        make(robot).thread = 3


def test_a_mistyped_attribute_of_a_robot_names_the_one_that_was_meant(robot: fj.Robot) -> None:
    with pytest.raises(FixedAttribute, match="Robot: it has no attribute 'thread'; did you mean: threads"):
        robot.thread = 3  # type: ignore[attr-defined]
    with pytest.raises(FixedAttribute, match=r"Robot: its backend is fixed; make another Robot\. You can set threads"):
        robot.backend = "numpy"  # type: ignore[misc]
    with pytest.raises(AttributeError) as caught:
        fj.Servos  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Servos", fj)  # so that Python says: did you mean: 'Servo'?


@pytest.mark.parametrize(
    "slip,said",
    [
        (lambda r, q: r.frame_placement("LF_foot", q), "frame: expected the name of a frame, got an array; q comes"),
        (lambda r, q: fj.Servo(r, kp=1.0, target=q[:3]), r"target: expected shape \(\.\.\., 19\).*got \(3,\)"),
        (lambda r, q: fj.Servo(r, kd=1.0, velocity=q), r"velocity: expected shape \(\.\.\., 18\).*got \(19,\)"),
        (lambda r, q: fj.Servo(r, feedforward=q), r"feedforward: expected shape \(\.\.\., 18\).*got \(19,\)"),
        (lambda r, q: fj.verify.check("quadruped"), "check: expected a robot first"),
    ],
)
def test_slips_are_told_at_once(robot: fj.Robot, slip, said) -> None:
    with pytest.raises(fj.errors.InputError, match=said):
        slip(robot, robot.neutral())


def test_the_beginning_of_a_name_finds_those_that_begin_so(robot: fj.Robot) -> None:
    with pytest.raises(UnknownName, match="unknown joint 'rh'; did you mean: RH_HAA, RH_HFE, RH_KFE"):
        robot.joint("rh")


def test_attributes_that_nobody_reads_again_are_fixed(robot: fj.Robot) -> None:
    ground = fj.Ground(robot, ["LF_foot"])
    with pytest.raises(FixedAttribute, match="Ground: its friction is fixed; make another Ground"):
        ground.friction = 0.3
    with pytest.raises(FixedAttribute, match="Ground: it has no attribute 'frictin'; did you mean: friction"):
        ground.frictin = 0.3
    contacts = fj.Contacts(robot, [fj.PointContact("LF_foot")])
    for again in (copy.copy(contacts), pickle.loads(pickle.dumps(contacts))):
        assert again.names == contacts.names
        with pytest.raises(FixedAttribute, match="its damping is fixed"):
            again.damping = 0.1


@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_world_is_written_in_place_however_one_writes_it(batch: tuple[int, ...], rng) -> None:
    robot = fj.load("quadruped", backend="compiled")  # machine code keeps the addresses of one world's arrays
    q, v = robot.neutral() * np.ones((*batch, 1)), np.zeros((*batch, robot.nv))
    ground = fj.Ground(robot, ["LF_foot", "RH_foot"])
    worlds = [fj.World(robot, q, v, contacts=ground) for _ in range(2)]
    moved, tau = robot.random_configuration(rng), rng.normal(size=robot.nv)
    a, b = worlds
    a.q, a.v, a.tau, a.t = moved, 0.1, tau, 2.0
    b.q[...], b.v[...], b.tau[...] = moved, 0.1, tau
    for world in worlds:
        world.step(3)
    assert np.array_equal(a.q, b.q)
    assert np.array_equal(a.v, b.v)
    assert not np.allclose(a.q, moved, atol=1e-6)
    assert a.t == pytest.approx(2.003)
    with pytest.raises(InputError, match=r"world.tau: expected shape .*18.*, got \(3,\)"):
        a.tau = np.zeros(3)
    with pytest.raises(FixedAttribute, match=r"its dt is fixed; make another World\. You can set q, v, tau, t"):
        a.dt = 0.1


def test_results_do_not_fit_into_integers(robot: fj.Robot) -> None:
    v = np.zeros(robot.nv)
    with pytest.raises(InputError, match="out: expected arrays of float64 or float32, got int64"):
        robot.inverse_dynamics(robot.neutral(), v, v, out=np.zeros(robot.nv, np.int64))


@pytest.mark.parametrize("package, says", [("torch", "torch.wrap"), ("casadi", "casadi.function"), ("jax", "jax.wrap")])
def test_arrays_without_numbers_are_told_where_they_belong(robot: fj.Robot, package: str, says: str) -> None:
    def refuse(self, *_, **__):
        raise TypeError("no numbers here")

    symbols = type("Symbols", (), {"__array__": refuse, "__module__": f"{package}.core"})()
    with pytest.raises(InputError, match=rf"q: .*featherjet\.{says}"):
        robot.gravity(symbols)  # type: ignore[arg-type]
