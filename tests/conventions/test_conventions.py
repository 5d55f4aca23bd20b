"""Robots in the coordinates of kindr, MuJoCo and Drake: against MuJoCo, the sheet's matrices, and complex step."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES, SECOND_ORDER
from featherjet.conventions.charts import CONVENTIONS
from featherjet.conventions.rules import ProductRule
from featherjet.errors import InputError, UnknownName
from featherjet.lab.bench.peers import to_mujoco
from featherjet.math import rotations as so3
from featherjet.model import configuration
from featherjet.model.builder import transform
from featherjet.model.manifolds import on_arrays
from featherjet.model.parts import Mimic
from featherjet.verify import check, complex_step
from helpers import CALLS, State, agree, each_agrees, every_kind, frame_of, models, random_state, with_state

mujoco.set_mju_user_warning(lambda message: None)
OTHERS = ("kindr", "mujoco", "drake")
ALL = ("pinocchio", *OTHERS)
H = 1e-30
TIGHT, STEP = 1e-13, 1e-10
ROBOTS: dict[str, Callable[[], fj.Robot]] = {
    "quadruped": lambda: fj.load("quadruped"),
    "humanoid": lambda: fj.load("humanoid"),
    "arm": lambda: fj.load("arm"),
    "every kind": every_kind,
}


@pytest.fixture(params=ROBOTS, scope="module")
def robot(request: pytest.FixtureRequest) -> fj.Robot:
    return ROBOTS[request.param]()


@pytest.fixture(params=("kindr", "drake"), scope="module")  # MuJoCo's are kindr's; it has tests of its own
def own(request: pytest.FixtureRequest, robot: fj.Robot) -> fj.Robot:
    return robot.with_convention(request.param)


def times(M: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (M @ x[..., None])[..., 0]


# Values: the same robot, said otherwise


def test_mujoco_writes_what_kindr_recommends() -> None:
    assert CONVENTIONS["mujoco"] is CONVENTIONS["kindr"]


def test_there_and_back(robot: fj.Robot, own: fj.Robot) -> None:
    s = random_state(robot, 5)
    there = fj.convert(robot, own, s.q, s.v, s.a, tau=s.a)
    back = fj.convert(own, robot, *there)
    for name, got, expected in zip(back._fields, back, (s.q, s.v, s.a, s.a), strict=True):
        agree(got, expected, TIGHT, name)
    agree((there.tau * there.v).sum(-1), (s.a * s.v).sum(-1), TIGHT, "power")


def test_from_one_to_another() -> None:
    robot = every_kind()
    s = random_state(robot, 3)
    kindr, drake = robot.with_convention("kindr"), robot.with_convention("drake")
    direct = fj.convert(robot, drake, s.q, s.v, s.a, s.a)
    around = fj.convert(kindr, drake, *fj.convert(robot, kindr, s.q, s.v, s.a, s.a))
    for got, expected in zip(around, direct, strict=True):
        agree(got, expected, TIGHT)
    assert fj.convert(robot, drake, s.q)[1:] == (None, None, None)


def test_values_are_those_of_the_plain_robot(robot: fj.Robot, own: fj.Robot) -> None:
    s = random_state(robot, 4)
    q, u, du, _ = fj.convert(robot, own, s.q, s.v, s.a)
    tau = robot.inverse_dynamics(s.q, s.v, s.a, s.fext)
    generalised = fj.convert(robot, own, s.q, tau=tau).tau
    agree(own.inverse_dynamics(q, u, du, s.fext), generalised, 1e-12, "inverse_dynamics")
    agree(own.forward_dynamics(q, u, generalised, s.fext), du, 1e-9, "forward_dynamics")
    for name in ("forward_kinematics", "center_of_mass", "potential_energy"):
        agree(getattr(own, name)(q), getattr(robot, name)(s.q), TIGHT, name)
    for name in ("kinetic_energy", "centroidal_momentum"):
        agree(getattr(own, name)(q, u), getattr(robot, name)(s.q, s.v), TIGHT, name)
    agree(times(own.centroidal_map(q), u), robot.centroidal_momentum(s.q, s.v), 1e-12)
    for frame in robot.frame_names[-2:]:
        agree(own.frame_placement(q, frame), robot.frame_placement(s.q, frame), TIGHT)
        agree(own.frame_velocity(q, u, frame), robot.frame_velocity(s.q, s.v, frame), 1e-12)


def test_equations_of_motion_hold_together(own: fj.Robot) -> None:
    """tau = M du + C u + g, with M C g of this convention; M M^-1 = 1; energy is u^T M u / 2."""
    s = random_state(own, 4)
    M, C, g = own.mass_matrix(s.q), own.coriolis_matrix(s.q, s.v), own.gravity(s.q)
    agree(times(C, s.v) + g, own.bias(s.q, s.v), 1e-11, "bias")
    agree(times(M, s.a) + own.bias(s.q, s.v), own.inverse_dynamics(s.q, s.v, s.a), 1e-11, "inverse_dynamics")
    agree(M @ own.inverse_mass_matrix(s.q), np.broadcast_to(np.eye(own.nv), M.shape), 1e-9)
    agree((s.v * times(M, s.v)).sum(-1) / 2, own.kinetic_energy(s.q, s.v), 1e-12)
    p = own.projected_newton_euler(s.q, s.v, s.fext)
    agree(p.M, M, 1e-12)
    agree(times(M, s.a) + p.g - p.f, own.inverse_dynamics(s.q, s.v, s.a, s.fext), 1e-11)


def test_coriolis_matrix_is_the_skew_one(own: fj.Robot) -> None:
    """dM/dt = C + C^T along u, by complex step in this convention's own coordinates."""
    s = random_state(own, 3)
    C = own.coriolis_matrix(s.q, s.v)
    Mdot = times(complex_step(own, "mass_matrix", "q", q=s.q), s.v[:, None])
    agree(C + np.swapaxes(C, -1, -2), Mdot, 1e-11)


def test_sheet_matrices_of_a_floating_base() -> None:
    """[KINDR] eq. 14 at the base itself, and F = diag(1, Hbar^T / 2, 1); Drake has all in the world's axes."""
    robot = fj.load("quadruped")
    base = robot.joint_names[0]
    kindr, drake = robot.with_convention("kindr"), robot.with_convention("drake")
    q = robot.random_configuration(0)
    x = fj.convert(robot, kindr, q).q
    C = so3.matrix_from_quaternion(x[3:7])
    one, zero = np.eye(3), np.zeros((3, 3))
    agree(kindr.frame_jacobian(x, base, viewpoint="world_aligned")[:, :6], np.block([[one, zero], [zero, C]]), TIGHT)
    F = np.zeros((19, 18))
    F[:3, :3], F[3:7, 3:6], F[7:, 6:] = one, so3.quaternion_rate_map(x[3:7], "B").T / 2, np.eye(12)
    agree(kindr.rate_map(x), F, TIGHT)
    Fbar = np.zeros((18, 19))
    Fbar[:3, :3], Fbar[3:6, 3:7], Fbar[6:, 7:] = one, 2 * so3.quaternion_rate_map(x[3:7], "B"), np.eye(12)
    agree(kindr.rate_map_inverse(x), Fbar, TIGHT)
    y = fj.convert(robot, drake, q).q
    agree(y[:7], np.concatenate([x[3:7], x[:3]]), 0.0)
    agree(drake.frame_jacobian(y, base, viewpoint="world_aligned")[:, :6], np.block([[zero, one], [one, zero]]), TIGHT)


# Derivatives


def test_derivatives_equal_complex_step(own: fj.Robot) -> None:
    for finding in check(own, samples=3):
        assert finding.error < STEP, finding


@settings(max_examples=12)
@given(with_state(models(most=6), size=2))
def test_derivatives_of_random_trees(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    for name in ("kindr", "drake"):
        own = robot.with_convention(name)
        q, u, du, _ = fj.convert(robot, own, s.q, s.v, s.a)
        tau = own.inverse_dynamics(q, u, du, s.fext)
        scale = np.abs(robot.mass_matrix(s.q)).max((-2, -1))
        true = [complex_step(own, "inverse_dynamics", by, q=q, v=u, a=du, fext=s.fext) for by in "qva"]
        for got, expected in zip(own.inverse_dynamics_derivatives(q, u, du, s.fext), true, strict=True):
            each_agrees(got, expected, STEP, name, floor=scale)
        true = [complex_step(own, "forward_dynamics", by, q=q, v=u, tau=tau, fext=s.fext) for by in ("q", "v", "tau")]
        for got, expected in zip(own.forward_dynamics_derivatives(q, u, tau, s.fext), true, strict=True):
            each_agrees(got, expected, 1e-9, name, floor=1 / scale)


@pytest.mark.parametrize("method", ["fdsva-dmm", "fdsva-aza", "direct"])
def test_methods_of_forward_derivatives(method: str) -> None:
    own = every_kind().with_convention("drake")
    s = random_state(own, 2)
    got = own.forward_dynamics_derivatives(s.q, s.v, s.a, s.fext, method=method)
    for x, expected in zip(got, own.forward_dynamics_derivatives(s.q, s.v, s.a, s.fext), strict=True):
        agree(x, expected, 1e-9)


def stepped(own: fj.Robot, quantity: str, by: str, inputs: dict[str, np.ndarray], **static) -> np.ndarray:
    """The derivative of one state's quantity by complex step, in the convention's own coordinates."""
    steps = 1j * H * np.eye(own.nv)
    moved = configuration.integrate(own.evaluator.space, inputs["q"], steps) if by == "q" else inputs[by] + steps
    return np.moveaxis(own.evaluator.reference(quantity, inputs | {by: moved}, **static)[0].imag / H, 0, -1)


@pytest.mark.parametrize("viewpoint", ["local", "world", "world_aligned"])
def test_derivatives_of_frames(own: fj.Robot, viewpoint) -> None:
    s = random_state(own, 1)
    q, v, a = s.q[0], s.v[0], s.a[0]
    name = own.frame_names[-1]
    view, place = {"viewpoint": viewpoint}, frame_of(own, name)
    by_q, by_v = own.frame_velocity_derivatives(q, v, name, viewpoint=viewpoint)
    along = stepped(own, "jacobian", "q", {"q": q} | place, **view)
    agree(by_q, along.swapaxes(-1, -2) @ v, STEP, "velocity", floor=1e-3)
    agree(by_v, own.frame_jacobian(q, name, viewpoint=viewpoint), 1e-12)
    got = own.frame_acceleration_derivatives(q, v, a, name, viewpoint=viewpoint)
    for by, x in zip("qva", got, strict=True):
        true = stepped(own, "frame_acceleration", by, {"q": q, "v": v, "a": a} | place, **view)
        agree(x, true, STEP, f"acceleration by {by}", floor=1e-3)


def test_derivatives_of_statics(own: fj.Robot) -> None:
    s = random_state(own, 1)
    q, fext = s.q[0], s.fext[0]
    agree(own.gravity_derivatives(q), stepped(own, "gravity", "q", {"q": q}), STEP)
    true = stepped(own, "static_torque", "q", {"q": q, "fext": fext})
    agree(own.static_torque_derivatives(q, fext), true, STEP)
    agree(own.static_torque(q, fext), own.inverse_dynamics(q, 0 * s.v[0], 0 * s.v[0], fext), 1e-12)


def test_derivatives_of_momentum(own: fj.Robot) -> None:
    """The momentum's rate is itself a complex step here, so that its derivatives are central differences."""
    s = random_state(own, 1)
    q, v, a = s.q[0], s.v[0], s.a[0]
    space, eps, eye = own.evaluator.space, 1e-5, np.eye(own.nv)

    def rate(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        moved = {"q": configuration.integrate(space, q, 1j * H * v), "v": v + 1j * H * a}
        return own.evaluator.reference("centroidal_momentum", moved)[0].imag / H

    got = own.centroidal_derivatives(q, v, a)
    agree(got.dh_dq, stepped(own, "centroidal_momentum", "q", {"q": q, "v": v}), STEP)
    ends = [rate(configuration.integrate(space, q, h * eye), v, a) for h in (eps, -eps)]
    agree(got.dhdot_dq, (ends[0] - ends[1]).T / (2 * eps), 1e-7)
    ends = [rate(q, v + h * eye, a) for h in (eps, -eps)]
    agree(got.dhdot_dv, (ends[0] - ends[1]).T / (2 * eps), 1e-7)
    agree(got.dhdot_da, own.centroidal_map(q), 1e-12)


def test_derivatives_by_forces_and_parameters(own: fj.Robot) -> None:
    s = random_state(own, 1)
    q, v, a, fext = s.q[0], s.v[0], s.a[0], s.fext[0]
    still = own.inverse_dynamics(q, v, a)
    by_force = own.inverse_dynamics_force_derivatives(q)
    agree(np.einsum("ijk,jk->i", by_force, fext), own.inverse_dynamics(q, v, a, fext) - still, 1e-10)
    Minv = own.inverse_mass_matrix(q)
    agree(own.forward_dynamics_force_derivatives(q), -np.einsum("ij,jkl->ikl", Minv, by_force), 1e-9)
    Y = own.torque_regressor(q, v, a)
    agree(Y @ own.inertial_parameters(), without_armature(own).inverse_dynamics(q, v, a), 1e-11)
    agree(own.forward_dynamics_parameter_derivatives(q, v, still), -Minv @ Y, 1e-8)


def without_armature(own: fj.Robot) -> fj.Robot:
    joints = tuple(replace(j, armature=0 * j.armature) for j in own.model.joints)
    return fj.Robot(replace(own.model, joints=joints)).with_convention(own.convention)


def test_a_base_in_the_worlds_axes_does_not_feel_where_it_is() -> None:
    """In kindr's coordinates nothing depends on the base's position, to the last bit."""
    own = fj.load("humanoid").with_convention("kindr")
    s = random_state(own, 2)
    assert not own.inverse_dynamics_derivatives(s.q, s.v, s.a).dtau_dq[..., :3].any()
    assert not own.forward_dynamics_derivatives(s.q, s.v, s.a).da_dq[..., :3].any()


@pytest.mark.parametrize("convention", ALL)
def test_derivatives_by_raw_coordinates(robot: fj.Robot, convention: str) -> None:
    """D Fbar is the derivative by every entry of q, quaternions being normalised on use."""
    own = robot.with_convention(convention)
    s = random_state(own, 2)
    got = own.inverse_dynamics_derivatives(s.q, s.v, s.a).dtau_dq @ own.rate_map_inverse(s.q)
    moved = s.q[:, None] + 1j * H * np.eye(own.nq)
    for _, manifold, iq, _ in configuration.parts(own.evaluator.space):
        moved[..., iq] = on_arrays(manifold.normalised, moved[..., iq])
    inputs = {"q": moved, "v": s.v[:, None], "a": s.a[:, None]}
    expected = np.swapaxes(own.evaluator.reference("inverse_dynamics", inputs)[0].imag / H, -1, -2)
    each_agrees(got, expected, STEP)


@pytest.mark.parametrize("convention", ALL)
def test_rate_maps(robot: fj.Robot, convention: str) -> None:
    """F is the derivative of integrate, Fbar its left inverse, blind to the norm; and B is what leads from F to F."""
    own = robot.with_convention(convention)
    q = own.random_configuration(0, 3)
    F, Fbar = own.rate_map(q), own.rate_map_inverse(q)
    steps = 1j * H * np.eye(own.nv)
    moved = configuration.integrate(own.evaluator.space, q[:, None], steps).imag / H
    agree(F, np.swapaxes(moved, -1, -2), TIGHT)
    agree(Fbar @ F, np.broadcast_to(np.eye(own.nv), (3, own.nv, own.nv)), TIGHT)
    radial = np.zeros_like(q)
    for _, manifold, iq, _ in configuration.parts(own.evaluator.space):
        for part in manifold.units:
            at = slice(iq.start + part.start, iq.start + part.stop)
            radial[..., at] = q[..., at]
    assert np.abs(times(Fbar, radial)).max() < TIGHT
    if own.evaluator.coordinates is not None:
        v = np.random.default_rng(1).normal(size=(3, own.nv))
        ours = own.evaluator.coordinates.q_to_standard(q + 1j * H * times(F, v)).imag / H
        plain = fj.convert(own, robot, q, v)
        agree(ours, times(robot.rate_map(plain.q), plain.v), TIGHT, "the same motion in our coordinates")


# Configurations


def test_jacobians_of_integrate_and_difference(own: fj.Robot) -> None:
    rng = np.random.default_rng(0)
    q, v = own.random_configuration(rng), 0.7 * rng.normal(size=own.nv)
    end = own.integrate(q, v)
    space, steps = own.evaluator.space, 1j * H * np.eye(own.nv)
    by_q, by_v = own.integrate_jacobians(q, v)
    along = configuration.integrate(space, end, steps).imag / H
    moved_q = configuration.integrate(space, configuration.integrate(space, q, steps), v).imag / H
    moved_v = configuration.integrate(space, q, v + steps).imag / H
    agree(moved_q.T, along.T @ by_q, 1e-12, "by q")
    agree(moved_v.T, along.T @ by_v, 1e-12, "by v")
    by_start, by_end = own.difference_jacobians(q, end)
    agree(by_end @ by_v, np.eye(own.nv), 1e-11)
    agree(by_start, -by_end @ by_q, 1e-11)
    agree(own.difference(q, end), v, 1e-12)
    agree(own.interpolate(q, end, 0.25), own.integrate(q, 0.25 * v), 1e-12)


def test_neutral_random_and_limits(robot: fj.Robot, own: fj.Robot) -> None:
    agree(own.forward_kinematics(own.neutral()), robot.forward_kinematics(robot.neutral()), TIGHT)
    q = own.random_configuration(3, (2, 2))
    assert q.shape == (2, 2, own.nq)
    agree(own.forward_kinematics(q), robot.forward_kinematics(robot.random_configuration(3, (2, 2))), TIGHT)
    limits, plain = own.limits(), robot.limits()
    assert limits.lower.shape == limits.upper.shape == (own.nq,)
    assert limits.velocity.shape == limits.effort.shape == (own.nv,)
    assert (limits.lower <= q).all()
    assert (q <= limits.upper).all()
    assert (plain.lower <= robot.random_configuration(3, 9)).all()
    np.testing.assert_array_equal(limits.effort, plain.effort)


def test_limits_follow_their_coordinates() -> None:
    b = fj.ModelBuilder("x")
    at = np.arange(7.0)
    b.add_joint("base", "free", lower=at - 9, upper=at + 9)
    b.add_joint("wheel", "continuous", "base")
    b.add_joint("knee", "revolute", "wheel", lower=-1, upper=2, velocity_limit=3, effort_limit=4)
    for name in ("base", "wheel", "knee"):
        b.add_body(name, 1.0, inertia=np.eye(3))
    robot = fj.Robot(b.build())
    kindr, drake = robot.with_convention("kindr").limits(), robot.with_convention("drake").limits()
    np.testing.assert_array_equal(kindr.upper, [9, 10, 11, 15, 12, 13, 14, np.inf, 2])
    np.testing.assert_array_equal(drake.lower, [-3, -6, -5, -4, -9, -8, -7, -np.inf, -1])
    assert kindr.velocity[-1] == 3
    assert drake.effort[-1] == 4


def test_limits_in_turning_axes_are_refused() -> None:
    b = fj.ModelBuilder("x")
    b.add_joint("base", "planar", velocity_limit=1.0)
    b.add_body("base", 1.0, inertia=np.eye(3))
    robot = fj.Robot(b.build())
    assert robot.limits().velocity.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(InputError, match=r"'base' \(planar\).*body's axes"):
        robot.with_convention("mujoco").limits()


# MuJoCo, number by number


def in_mujoco(robot: fj.Robot) -> tuple[fj.Robot, mujoco.MjModel, mujoco.MjData]:
    m = to_mujoco(robot.model)
    return robot.with_convention("mujoco"), m, mujoco.MjData(m)


def mixed_pair() -> tuple[fj.Robot, mujoco.MjModel, mujoco.MjData]:
    """Planar, continuous and translation joints, which MuJoCo makes of slides and hinges."""
    inertial = '<inertial pos="0.03 -0.02 0.05" mass="1.3" diaginertia="0.02 0.03 0.04"/>'
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><body pos="0.1 0.2 0.3">
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>{inertial}
        <body pos="0.3 0 0"><joint axis="0 1 0"/>{inertial}
        <body pos="0 0 0.2"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
        <joint type="slide" axis="0 0 1"/>{inertial}
        <body pos="0 0.1 0"><joint type="ball"/>{inertial}</body></body></body></body></worldbody></mujoco>""")
    b = fj.ModelBuilder("mixed")
    joints = {
        "planar": (0.1, 0.2, 0.3),
        "continuous": (0.3, 0, 0),
        "translation": (0, 0, 0.2),
        "spherical": (0, 0.1, 0),
    }
    above = None
    for kind, p in joints.items():
        b.add_joint(kind, kind, above, transform(np.eye(3), np.array(p)), axis=(0, 1, 0))
        b.add_body(kind, 1.3, np.array([0.03, -0.02, 0.05]), np.diag([0.02, 0.03, 0.04]))
        above = kind
    robot = fj.Robot(b.build())
    return robot.with_convention("mujoco"), m, mujoco.MjData(m)


def drawn_for_mujoco() -> tuple[fj.Robot, mujoco.MjModel, mujoco.MjData]:
    b = fj.ModelBuilder("balls")
    b.add_joint("base", "free")
    b.add_joint("hip", "spherical", "base", transform(so3.exp_matrix([0.3, 0.1, -0.5]), np.array([0.1, 0.2, 0.3])))
    b.add_joint("knee", "revolute", "hip", transform(np.eye(3), np.array([0.0, 0.3, -0.4])), axis=(1, 2, 3))
    b.add_joint("slider", "prismatic", "hip", axis=(0, 1, 1), armature=0.1)
    for name in ("base", "hip", "knee", "slider"):
        b.add_body(name, 1.5, np.array([0.1, -0.05, 0.02]), np.diag([0.02, 0.03, 0.04]))
    return in_mujoco(fj.Robot(b.build()))


PAIRS: dict[str, Callable[[], tuple[fj.Robot, mujoco.MjModel, mujoco.MjData]]] = {
    "quadruped": lambda: in_mujoco(fj.load("quadruped")),
    "humanoid": lambda: in_mujoco(fj.load("humanoid")),
    "solo12 from URDF": lambda: in_mujoco(fj.load(fj.robots()["solo12"], root="free")),
    "ball joints": drawn_for_mujoco,
    "planar": mixed_pair,
}


@pytest.fixture(params=PAIRS, scope="module")
def pair(request: pytest.FixtureRequest) -> tuple[fj.Robot, mujoco.MjModel, mujoco.MjData]:
    return PAIRS[request.param]()


def at_state(m: mujoco.MjModel, d: mujoco.MjData, s: State, k: int = 0) -> None:
    d.qpos, d.qvel, d.qacc = s.q[k], s.v[k], s.a[k]
    mujoco.mj_inverse(m, d)


def test_mujoco_dynamics(pair) -> None:
    own, m, d = pair
    assert (own.nq, own.nv) == (m.nq, m.nv)
    s = random_state(own, 3)
    tau = own.inverse_dynamics(s.q, s.v, s.a)
    for k in range(3):
        at_state(m, d, s, k)
        agree(tau[k], d.qfrc_inverse, 1e-11, "mj_inverse")
        agree(own.bias(s.q[k], s.v[k]), d.qfrc_bias, 1e-11, "qfrc_bias")
        full = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, full)
        agree(own.mass_matrix(s.q[k]), full, 1e-11, "qM")
        d.qfrc_applied = tau[k]
        mujoco.mj_forward(m, d)
        agree(own.forward_dynamics(s.q[k], s.v[k], tau[k]), d.qacc, 1e-9, "mj_forward")


def test_mujoco_kinematics(pair) -> None:
    """Positions, Jacobians of points (mj_jac) and their time derivatives (mj_jacDot)."""
    own, m, d = pair
    s = random_state(own, 1)
    at_state(m, d, s)
    mujoco.mj_forward(m, d)
    joints = own.joint_names
    bodies = range(m.nbody - len(joints), m.nbody)
    for name, body in zip(joints[-3:], bodies[-3:], strict=True):
        point = np.array([0.1, 0.2, -0.3])
        T = own.frame_placement(s.q[0], (name, point))
        agree(T[:3, 3], d.xpos[body] + d.xmat[body].reshape(3, 3) @ point, 1e-12, "position")
        jacp, jacr = np.zeros((2, 3, m.nv))
        mujoco.mj_jac(m, d, jacp, jacr, T[:3, 3], body)
        J = own.frame_jacobian(s.q[0], (name, point), viewpoint="world_aligned")
        agree(J, np.vstack([jacp, jacr]), 1e-12, "mj_jac")
        mujoco.mj_jacDot(m, d, jacp, jacr, T[:3, 3], body)
        rate = np.vstack([jacp, jacr])
        agree(
            own.jacobian_derivative(s.q[0], s.v[0], (name, point), viewpoint="world_aligned"), rate, 1e-11, "mj_jacDot"
        )
        drift = own.jacobian_drift(s.q[0], s.v[0], (name, point), viewpoint="world_aligned")
        agree(drift, rate @ s.v[0], 1e-10, "mj_jacDot qvel")


def test_mujoco_tangent_space(pair) -> None:
    """integrate and difference are mj_integratePos and mj_differentiatePos, for steps of any length."""
    own, m, _ = pair
    s = random_state(own, 3)
    for q, v in zip(s.q, s.v, strict=True):
        moved = q.copy()
        mujoco.mj_integratePos(m, moved, v, 1.0)
        ours = own.integrate(q, v)
        agree(ours, moved, 1e-12)
        found = np.zeros(m.nv)
        mujoco.mj_differentiatePos(m, found, 1.0, q, moved)
        agree(own.difference(q, ours), found, 1e-12)


def test_mujoco_derivatives(pair) -> None:
    """Columns by qpos, qvel and qacc as MuJoCo's own finite differences have them; they are good to six digits."""
    own, m, d = pair
    s = random_state(own, 1)
    at_state(m, d, s)
    theirs = [np.zeros((m.nv, m.nv)) for _ in range(3)]
    mujoco.mjd_inverseFD(m, d, 1e-6, False, *theirs, None, None, None, None)
    for name, got, x in zip("qva", own.inverse_dynamics_derivatives(s.q[0], s.v[0], s.a[0]), theirs, strict=True):
        agree(got, x.T, 2e-5, f"dtau_d{name}")


# How robots are held


def small(backend: str) -> fj.Robot:
    """A floating base with one leg: quickly compiled."""
    b = fj.ModelBuilder("hopper")
    b.add_joint("base", "free")
    b.add_joint("knee", "revolute", "base", transform(np.eye(3), np.array([0.1, 0.3, -0.4])), axis=(1, 2, 3))
    for name in ("base", "knee"):
        b.add_body(name, 1.5, np.array([0.1, -0.05, 0.02]), np.diag([0.02, 0.03, 0.04]))
    return fj.Robot(b.build(), backend=backend)


def test_backends_agree() -> None:
    """Few kernels: each takes a while when it is first compiled, and they are all translated alike."""
    for name in ("kindr", "drake"):
        plain, fast = small("numpy").with_convention(name), small("compiled").with_convention(name)
        assert (plain.backend, fast.backend) == ("numpy", "compiled")
        s = random_state(plain, 3)
        given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.a}
        for call in (
            "inverse_dynamics_derivatives",
            "forward_dynamics_derivatives",
            "mass_matrix",
            "forward_kinematics",
        ):
            inputs = {x: given[x] for x in CALLS[call] if x != "fext"}
            got, expected = (getattr(r, call)(**inputs) for r in (fast, plain))
            for x, y in zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]:
                agree(x, y, 1e-9, f"{name} {call}")


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_out_and_batches(backend: str) -> None:
    own = small(backend).with_convention("drake")
    n = own.nv
    s = random_state(own, 6)
    d = own.inverse_dynamics_derivatives(s.q, s.v, s.a)
    out = tuple(np.empty((6, n, n)) for _ in range(3))
    got = own.inverse_dynamics_derivatives(s.q, s.v, s.a, out=out)
    for x, o, expected in zip(got, out, d, strict=True):
        assert x is o
        np.testing.assert_array_equal(o, expected)
    one = own.inverse_dynamics_derivatives(s.q[2], s.v[2], s.a[2])
    for x, expected in zip(one, d, strict=True):
        agree(x, expected[2], 1e-12)
    grid = own.forward_dynamics(s.q[0], s.v.reshape(2, 3, n), s.a[3])
    assert grid.shape == (2, 3, n)
    agree(grid[1, 2], own.forward_dynamics(s.q[0], s.v[5], s.a[3]), 1e-12)
    wide = own.bias(s.q[:, None], s.v)
    assert wide.shape == (6, 6, n)
    agree(wide[1, 2], own.bias(s.q[1], s.v[2]), 1e-12)
    assert own.inverse_dynamics(s.q[:0], s.v[:0], s.a[:0]).shape == (0, n)
    with pytest.raises(InputError, match="out"):
        own.mass_matrix(s.q, out=np.empty((n, n)))


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_bound_calls(backend: str) -> None:
    own = small(backend).with_convention("kindr")
    s = random_state(own, 1)
    step = own.bind("forward_dynamics_derivatives")
    np.testing.assert_array_equal(step.q, own.neutral())
    step.q, step.v, step.tau = s.q[0], s.v[0], s.a[0]
    step()
    agree(step.da_dq, own.forward_dynamics_derivatives(s.q[0], s.v[0], s.a[0]).da_dq, 1e-12)


def test_pickle_gravity_lock_and_way_back(robot: fj.Robot, own: fj.Robot) -> None:
    s = random_state(own, 2)
    copy = pickle.loads(pickle.dumps(own))
    assert (copy.convention, copy.backend, repr(copy)) == (own.convention, own.backend, repr(own))
    np.testing.assert_array_equal(copy.bias(s.q, s.v), own.bias(s.q, s.v))
    light = own.with_gravity([0, 0, 0])
    assert light.convention == own.convention
    assert not light.gravity(s.q).any()
    assert own.with_convention(own.convention) is own
    assert own.with_convention("pinocchio").convention == robot.convention == "pinocchio"
    assert robot.with_convention("pinocchio") is robot
    agree(own.with_convention("pinocchio").neutral(), robot.neutral(), 0.0)


def test_locked_at_the_conventions_coordinates() -> None:
    robot = every_kind()
    for name in OTHERS:
        own = robot.with_convention(name)
        q = own.random_configuration(1)
        at = {part.joint.name: q[part.q] for part in own.evaluator.coordinates.joints[1:]}  # type: ignore[attr-defined]
        locked = own.lock(at)
        assert locked.convention == name
        first = own.evaluator.coordinates.joints[0].q  # type: ignore[attr-defined]
        agree(locked.center_of_mass(q[first]), own.center_of_mass(q), 1e-12)


def test_mimic_joints_keep_their_places() -> None:
    b = fj.ModelBuilder("hand")
    b.add_joint("base", "free")
    b.add_joint("a", "revolute", "base", axis=(0, 1, 0))
    b.add_joint(
        "b", "revolute", "a", transform(np.eye(3), np.array([0.1, 0, 0])), axis=(0, 1, 0), mimic=Mimic("a", 0.5, 0.1)
    )
    b.add_joint("c", "spherical", "b", transform(np.eye(3), np.array([0.1, 0.1, 0])))
    for name in ("base", "a", "b", "c"):
        b.add_body(name, 1.0, np.array([0.05, 0.1, 0.0]), 0.02 * np.eye(3))
    robot = fj.Robot(b.build())
    own = robot.with_convention("drake")
    assert (own.nq, own.nv) == (12, 10)
    assert max(f.error for f in check(own)) < STEP
    s = random_state(robot, 2)
    q, u = fj.convert(robot, own, s.q, s.v)[:2]
    assert u is not None
    agree(
        own.frame_velocity(q, u, "c", viewpoint="world"), robot.frame_velocity(s.q, s.v, "c", viewpoint="world"), 1e-12
    )


# What is refused


@pytest.mark.parametrize("name", ["kinder", "Kindr", "", None, 3])
def test_unknown_conventions_are_named(name) -> None:
    with pytest.raises(UnknownName, match="unknown convention") as e:
        fj.load("arm").with_convention(name)
    assert e.value.choices == ALL
    assert "kindr" in str(e.value)


def test_bad_inputs_are_named() -> None:
    robot = fj.load("quadruped")
    own = robot.with_convention("drake")
    s = random_state(own, 2)
    with pytest.raises(InputError, match=r"q: expected shape \(\.\.\., 19\)"):
        own.mass_matrix(s.q[..., 1:])
    with pytest.raises(InputError, match="v: expected shape"):
        own.bias(s.q, s.q)
    with pytest.raises(InputError, match="do not broadcast"):
        own.bias(s.q, np.zeros((3, own.nv)))
    with pytest.raises(InputError, match=r"quaternion w x y z, entries 0 to 3, has norm"):
        own.gravity(robot.random_configuration(0))
    with pytest.raises(InputError, match="finite"):
        own.gravity(s.q * np.nan)
    with pytest.raises(UnknownName, match="unknown frame"):
        own.frame_jacobian(s.q, "no such")
    with pytest.raises(InputError, match="expected 7 coordinates"):
        own.lock({robot.joint_names[0]: 0.0})
    for wrong in ([[0.0], [0.0, 1.0]], "x", None):
        with pytest.raises(InputError, match="expected 7 coordinates"):
            own.lock({robot.joint_names[0]: wrong})  # type: ignore[dict-item]
    with pytest.raises(UnknownName, match="joint"):
        own.lock({"no such": 0.0})
    with pytest.raises(InputError, match="mapping"):
        own.lock(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs v"):
        fj.convert(robot, own, robot.neutral(), a=s.a[0])
    with pytest.raises(InputError, match="not the same robot"):
        fj.convert(robot, fj.load("arm"), robot.neutral())


def test_what_is_not_translated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own = fj.load("quadruped").with_convention("kindr")
    monkeypatch.setitem(QUANTITIES, "mass_matrix", replace(QUANTITIES["mass_matrix"], rule=None))
    with pytest.raises(InputError, match="mass_matrix is not available in the convention 'kindr'"):
        own.mass_matrix(own.neutral())
    refused = {x.name for x in QUANTITIES.values() if x.rule is None and not x.of_space}
    second = {x.name for x in SECOND_ORDER if not isinstance(x.rule, ProductRule)}
    assert {"inverse_dynamics_hessian", "forward_dynamics_second_order"} <= second
    assert refused == {"mass_matrix", *second}, "every other call of users speaks all conventions"
    zero = np.zeros(own.nv)
    with pytest.raises(InputError, match="inverse_dynamics_hessian is not available in the convention 'kindr'"):
        own.inverse_dynamics_hessian(own.neutral(), zero, zero, zero)


@pytest.mark.parametrize("convention", ["kindr", "mujoco", "drake"])
def test_products_are_those_of_the_matrices(convention: str) -> None:
    """Of the same convention, whose matrices are compared with differences above."""
    own: Any = every_kind(1, 8).with_convention(convention)
    s, rng = random_state(own, 2), np.random.default_rng(1)
    held = [fj.PointContact(own.joint_names[-1]), fj.SurfaceContact(own.joint_names[2])]
    contacts = fj.Contacts(own, held, damping=0.3)
    w, *along = rng.normal(size=(4, 2, own.nv))
    forces = rng.normal(size=(2, contacts.rows))
    for name, matrices, x, more, options in (
        ("inverse_dynamics", own.inverse_dynamics_derivatives(s.q, s.v, s.a, s.fext), s[:3], (), {"fext": s.fext}),
        ("forward_dynamics", own.forward_dynamics_derivatives(s.q, s.v, s.a, s.fext), s[:3], (), {"fext": s.fext}),
        (
            "constrained_dynamics", own.constrained_dynamics_derivatives(s.q, s.v, s.a, contacts), s[:3], (forces,),
            {"contacts": contacts},
        ),
        (
            "impulse_dynamics", own.impulse_dynamics_derivatives(s.q, s.v, contacts, 0.2), s[:2], (forces,),
            {"contacts": contacts, "restitution": 0.2},
        ),
    ):  # fmt: skip
        n = len(x)
        groups = [matrices[:n], matrices[n:]][: 1 + len(more)]
        found = own.vjp(name, *x, w, *more, **options)
        for k, got in enumerate(found[:n]):
            parts = [np.einsum("ni,nij->nj", y, D[k]) for y, D in zip((w, *more), groups, strict=True)]
            agree(got, sum(parts), 1e-11, f"{name} {k}")
        rates = own.jvp(name, *x, *along[:n], **options)
        for got, D in zip(rates if more else (rates,), groups, strict=True):
            agree(got, sum(np.einsum("nij,nj->ni", M, d) for M, d in zip(D, along, strict=False)), 1e-11, name)
