"""Derivatives of frames, statics and momentum, and by forces and inertial parameters, against Pinocchio and oracles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from featherjet import verify
from featherjet.algorithms.derivatives.regressor import PARAMETERS
from featherjet.errors import InputError, SingularMassMatrix, UnknownName
from featherjet.model import configuration
from featherjet.model.joints import KINDS
from featherjet.model.model import WORLD
from featherjet.model.parts import Body, Part
from helpers import (
    State,
    agree,
    each_agrees,
    every_kind,
    forces,
    frame_of,
    models,
    random_state,
    to_pinocchio,
    with_state,
)

EXACT, STEP = 1e-12, 1e-11
H = 1e-30
FRAMES = {"local": pin.LOCAL, "world": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}
drawn = with_state(models(most=8), 2)
pytestmark = [
    pytest.mark.filterwarnings("ignore::featherjet.errors.PhysicsWarning", "ignore::featherjet.errors.ModelWarning")
]
quickly = settings(max_examples=15)


def stepped(robot: fj.Robot, quantity: str, by: str, inputs: dict[str, np.ndarray], **static: Any) -> np.ndarray:
    """Complex step of anything the reference runs, (..., nv); verify.complex_step knows only its own quantities."""
    directions = 1j * H * np.eye(robot.nv)
    x = inputs[by]
    moved = configuration.integrate(robot.model, x, directions) if by == "q" else x + directions
    wide = {name: np.broadcast_to(given, (robot.nv, *given.shape)) for name, given in inputs.items()} | {by: moved}
    return np.moveaxis(np.imag(robot.evaluator.reference(quantity, wide, **static)[0]) / H, 0, -1)


# Frames


@pytest.mark.parametrize("frame", FRAMES)
@quickly
@given(drawn, st.data())
def test_frames_against_complex_step(frame: Any, case: tuple[fj.Robot, State], data: st.DataObject) -> None:
    robot, s = case
    name = data.draw(st.sampled_from(robot.frame_names))
    q, v, a = s.q[0], s.v[0], s.a[0]
    known = {"viewpoint": frame}
    by_q, by_v = robot.frame_velocity_derivatives(q, v, name, viewpoint=frame)
    rates = {"q": q, "v": v, "a": 0 * a} | frame_of(robot, name)
    J = robot.frame_jacobian(q, name, viewpoint=frame)
    agree(by_v, J, EXACT, "dv_dv", 1e-3)
    # v = J v, and the acceleration at a unit a without velocity is a column of J: both by one quantity
    along = stepped(robot, "jacobian", "q", {"q": q} | frame_of(robot, name), **known)
    true = np.stack([along[:, k] * v[k] for k in range(robot.nv)]).sum(0)
    scale = np.abs(J).max() * np.abs(v).max()
    agree(by_q, true, STEP, "dv_dq", scale)
    found = robot.frame_acceleration_derivatives(q, v, a, name, viewpoint=frame)
    rates["a"] = a
    scale *= 1 + np.abs(v).max() + np.abs(a).max()
    for by, x in zip("qva", found, strict=True):
        agree(x, stepped(robot, "frame_acceleration", by, rates, **known), STEP, f"da_d{by}", scale)


@quickly
@given(drawn)
def test_joints_against_pinocchio(case: tuple[fj.Robot, State]) -> None:
    """All joints, in their own frames; velocities in the world's frame, and derivatives by v and a in all frames."""
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    pin.computeForwardKinematicsDerivatives(m, d, s.q[0], s.v[0], s.a[0])
    for frame, reference in FRAMES.items():
        for name in robot.joint_names:
            j = m.getJointId(name)
            theirs = pin.getJointAccelerationDerivatives(m, d, j, reference)
            v_v = pin.getJointVelocityDerivatives(m, d, j, reference)[1]
            v_q, a_q, a_v, a_a, v_v = (np.reshape(x, (6, robot.nv)) for x in (*theirs, v_v))
            velocity = robot.frame_velocity_derivatives(s.q[0], s.v[0], name, viewpoint=frame)
            acceleration = robot.frame_acceleration_derivatives(s.q[0], s.v[0], s.a[0], name, viewpoint=frame)
            agree(velocity.dv_dv, v_v, EXACT, "dv_dv", 1.0)
            agree(acceleration.da_dv, a_v, STEP, "da_dv", 1.0)
            agree(acceleration.da_da, a_a, EXACT, "da_da", 1.0)
            if frame != "world_aligned":  # there Pinocchio holds the viewpoint still
                agree(velocity.dv_dq, v_q, STEP, "dv_dq", 1.0)
            if frame == "local":
                agree(acceleration.da_dq, a_q, STEP, "da_dq", 1.0)
            if frame == "world":
                same = [
                    k for part in robot.model.parts if agrees_in_world(part) for k in range(part.v.start, part.v.stop)
                ]
                agree(acceleration.da_dq[:, same], a_q[:, same], STEP, "da_dq", 1.0)


def agrees_in_world(part: Part) -> bool:
    """Whether Pinocchio's da/dq in WORLD are derivatives of its acceleration for this joint."""
    return part.joint.kind.name not in ("spherical", "planar", "free") or part.joint.parent == WORLD


@pytest.mark.parametrize("kind", KINDS)
def test_pinocchio_in_the_world(kind: str) -> None:
    """Which columns of its accelerations' derivatives are those of its own accelerations, by central differences."""
    b = fj.ModelBuilder("two")
    place = fj.models.chain(2).joints[1].placement
    b.add_joint("root", "prismatic", axis=(0.6, 0.0, 0.8))
    b.add_joint("joint", kind, "root", place, axis=(0.0, 0.6, 0.8), pitch=0.2)
    b.add_body("joint", 1.0, (0.1, 0.2, 0.3), np.eye(3))
    robot = fj.Robot(b.build(), backend="numpy")
    s = random_state(robot, size=1)
    q, v, a = s.q[0], s.v[0], s.a[0]
    m = to_pinocchio(robot.model)
    d = m.createData()
    pin.computeForwardKinematicsDerivatives(m, d, q, v, a)
    j = m.getJointId("joint")
    theirs = pin.getJointAccelerationDerivatives(m, d, j, pin.WORLD)[1]

    def acceleration(step: np.ndarray) -> np.ndarray:
        pin.forwardKinematics(m, d, pin.integrate(m, q, step), v, a)
        return pin.getAcceleration(m, d, j, pin.WORLD).vector

    h = 1e-6
    true = np.array([(acceleration(h * e) - acceleration(-h * e)) / (2 * h) for e in np.eye(robot.nv)]).T
    ours = robot.frame_acceleration_derivatives(q, v, a, "joint", viewpoint="world").da_dq
    assert ours == pytest.approx(true, abs=1e-7)
    assert theirs[:, 0] == pytest.approx(true[:, 0], abs=1e-7)
    close = np.abs(theirs[:, 1:] - true[:, 1:]).max() < 1e-7
    assert close == agrees_in_world(robot.model.parts[1])


@pytest.mark.parametrize("frame", FRAMES)
def test_accelerations_equal_pinocchios(frame: Any) -> None:
    robot = every_kind(4, 9)
    s = random_state(robot)
    m = to_pinocchio(robot.model)
    d = m.createData()
    for name in robot.frame_names:
        got = robot.frame_acceleration(s.q, s.v, s.a, name, viewpoint=frame)
        for k in range(3):
            pin.forwardKinematics(m, d, s.q[k], s.v[k], s.a[k])
            agree(got[k], pin.getFrameAcceleration(m, d, m.getFrameId(name), FRAMES[frame]).vector, EXACT, name, 1e-3)


def test_frames_of_the_world_and_points() -> None:
    b = fj.ModelBuilder("one")
    b.add_joint("j", "spherical")
    b.add_body("j", 1.0, (0.1, 0.2, 0.3), 0.1 * np.eye(3))
    b.add_frame("still", None)
    robot = fj.Robot(b.build())
    s = random_state(robot, 2)
    for x in (
        *robot.frame_velocity_derivatives(s.q, s.v, "still"),
        *robot.frame_acceleration_derivatives(*s[:3], "still"),
    ):
        assert x.shape == (2, 6, 3)
        assert not x.any()
    assert not robot.frame_acceleration(*s[:3], "still").any()
    point = robot.frame_velocity_derivatives(s.q, s.v, ("j", (0.1, 0.2, 0.3)), viewpoint="world_aligned")
    agree(point.dv_dv, robot.frame_jacobian(s.q, ("j", (0.1, 0.2, 0.3)), viewpoint="world_aligned"), EXACT)
    with pytest.raises(UnknownName, match="viewpoint 'globe'"):
        robot.frame_velocity_derivatives(s.q, s.v, "j", viewpoint="globe")  # type: ignore[arg-type]


# Statics


@quickly
@given(drawn)
def test_statics_equal_pinocchios(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    weight = robot.static_torque(s.q, s.fext)
    by_q, held = robot.gravity_derivatives(s.q), robot.static_torque_derivatives(s.q, s.fext)
    for k, (q, _, _, f) in enumerate(zip(*s, strict=True)):
        agree(weight[k], pin.computeStaticTorque(m, d, q, forces(f)), EXACT, "static torque", 1.0)
        agree(by_q[k], pin.computeGeneralizedGravityDerivatives(m, d, q), EXACT, "dg_dq", 1.0)
        agree(held[k], pin.computeStaticTorqueDerivatives(m, d, q, forces(f)), EXACT, "static", 1.0)
    each_agrees(by_q, verify.complex_step(robot, "gravity", "q", q=s.q), STEP, "dg_dq", 1.0)


# Momentum


@quickly
@given(drawn)
def test_momentum_equals_pinocchios(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    found = robot.centroidal_derivatives(s.q, s.v, s.a)
    for k, (q, v, a, _) in enumerate(zip(*s, strict=True)):
        theirs = pin.computeCentroidalDynamicsDerivatives(m, d, q, v, a)
        for name, x, y in zip(found._fields, found, theirs, strict=True):
            agree(x[k], np.reshape(y, (6, robot.nv)), EXACT, name, 1.0)
    true = verify.complex_step(robot, "centroidal_momentum", "q", q=s.q, v=s.v)
    each_agrees(found.dh_dq, true, STEP, "dh_dq", 1.0)
    each_agrees(found.dhdot_da, robot.centroidal_map(s.q), EXACT, "dhdot_da", 1.0)


def test_robots_without_mass_have_no_centre() -> None:
    b = fj.ModelBuilder("ghost")
    b.add_joint("j", "revolute", armature=0.1)
    robot = fj.Robot(b.build())
    with pytest.raises(InputError, match="no centre of mass"):
        robot.centroidal_derivatives([0.0], [0.0], [0.0])


# Forces and parameters


@quickly
@given(drawn)
def test_derivatives_by_external_forces(case: tuple[fj.Robot, State]) -> None:
    """Dynamics are linear in fext, so that a difference is exact: every force of every joint at once."""
    robot, s = case
    more = s.fext[::-1] - s.fext
    for values, by in (
        (robot.inverse_dynamics, robot.inverse_dynamics_force_derivatives(s.q)),
        (robot.forward_dynamics, robot.forward_dynamics_force_derivatives(s.q)),
    ):
        assert by.shape == (2, robot.nv, robot.njoints, 6)
        change = values(*s) - values(s.q, s.v, s.a, s.fext - more)
        scale = np.abs(values(*s)).max() + np.abs(by).max()
        each_agrees(np.einsum("sikc,skc->si", by, more), change, 1e-9, values.__name__, scale)
    for k, name in enumerate(robot.joint_names):
        J = robot.frame_jacobian(s.q, name)
        each_agrees(robot.inverse_dynamics_force_derivatives(s.q)[:, :, k], -np.swapaxes(J, 1, 2), EXACT, name)


@quickly
@given(drawn)
def test_the_regressor_equals_pinocchios(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    m = to_pinocchio(robot.model)
    d = m.createData()
    Y = robot.torque_regressor(s.q, s.v, s.a)
    for k, (q, v, a, _) in enumerate(zip(*s, strict=True)):
        agree(Y[k], np.reshape(pin.computeJointTorqueRegressor(m, d, q, v, a), Y[k].shape), EXACT, "Y")
    theirs = np.concatenate([x.toDynamicParameters() for x in list(m.inertias)[1:]])
    agree(robot.inertial_parameters(), theirs, EXACT, "parameters")
    rotors = np.concatenate([j.armature for j in robot.model.joints]) * s.a
    tau = robot.inverse_dynamics(s.q, s.v, s.a)
    each_agrees(Y @ robot.inertial_parameters() + rotors, tau, EXACT, "tau", 1.0)


def with_parameters(robot: fj.Robot, parameters: np.ndarray) -> fj.Robot:
    """The robot whose bodies have these parameters."""
    joints = []
    for joint, p in zip(robot.model.joints, parameters.reshape(-1, 10), strict=True):
        m, c = p[0], p[1:4] / p[0]
        xx, xy, yy, xz, yz, zz = p[4:]
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        joints.append(replace(joint, body=Body(m, c, about - m * (c @ c * np.eye(3) - np.outer(c, c)))))
    return fj.Robot(replace(robot.model, joints=tuple(joints)), backend="numpy")


def test_forward_dynamics_by_parameters() -> None:
    """Robots with other bodies, by central differences."""
    robot = every_kind(2, 6)
    s = random_state(robot, 2)
    tau = robot.inverse_dynamics(*s)
    p, h = robot.inertial_parameters(), 1e-5
    assert len(p) == robot.njoints * len(PARAMETERS)
    got = robot.forward_dynamics_parameter_derivatives(s.q, s.v, tau, s.fext)
    agree(with_parameters(robot, p).inverse_dynamics(*s), tau, EXACT, "the same robot")
    for k in range(len(p)):
        ends = []
        for sign in (1, -1):
            moved = p.copy()
            moved[k] += sign * h
            ends.append(with_parameters(robot, moved).forward_dynamics(s.q, s.v, tau, s.fext))
        agree(got[..., k], (ends[0] - ends[1]) / (2 * h), 1e-5, PARAMETERS[k % 10], 1e-2 * np.abs(got).max())


def test_singular_robots_do_not_answer() -> None:
    b = fj.ModelBuilder("ghost")
    b.add_joint("ghost", "revolute")
    robot = fj.Robot(b.build())
    zero = np.zeros(1)
    assert robot.inverse_dynamics_force_derivatives(zero).shape == (1, 1, 6)
    for call in (
        lambda: robot.forward_dynamics_force_derivatives(zero),
        lambda: robot.forward_dynamics_parameter_derivatives(zero, zero, zero),
    ):
        with pytest.raises(SingularMassMatrix, match="'ghost'"):
            call()


# Everywhere


CALLS: dict[str, tuple[str, ...]] = {
    "gravity_derivatives": ("q",),
    "static_torque": ("q", "fext"),
    "static_torque_derivatives": ("q", "fext"),
    "inverse_dynamics_force_derivatives": ("q",),
    "forward_dynamics_force_derivatives": ("q",),
    "torque_regressor": ("q", "v", "a"),
    "forward_dynamics_parameter_derivatives": ("q", "v", "a", "fext"),
    "centroidal_derivatives": ("q", "v", "a"),
}


def call(robot: fj.Robot, name: str, args: list[np.ndarray]) -> list[np.ndarray]:
    out = getattr(robot, name)(*args)
    return list(out) if isinstance(out, tuple) else [out]


@pytest.mark.parametrize("name", CALLS)
def test_batches_shapes_and_backends(name: str) -> None:
    model = every_kind(3, 6).model
    robot = fj.Robot(model, backend="numpy")
    s = random_state(robot, 4)
    args = [getattr(s, x) for x in CALLS[name]]
    batch = call(robot, name, args)
    for x, y in zip(call(robot, name, [a[1] for a in args]), batch, strict=True):
        assert x.shape == y.shape[1:]
        np.testing.assert_allclose(x, y[1], rtol=0, atol=1e-12 * np.abs(y[1]).max())
    for x, y in zip(call(robot, name, [a.reshape(2, 2, *a.shape[1:]) for a in args]), batch, strict=True):
        np.testing.assert_array_equal(x, y.reshape(2, 2, *y.shape[1:]))
    for x, y in zip(call(robot, name, [a[:0] for a in args]), batch, strict=True):
        assert x.shape == (0, *y.shape[1:])
    for x, y in zip(call(fj.Robot(model, backend="compiled"), name, args), batch, strict=True):
        each_agrees(x, y, STEP, name)
    with pytest.raises(InputError, match="q: expected shape"):
        call(robot, name, [s.v[..., :1], *args[1:]])


def test_mimicking_joints() -> None:
    """Results are those of the independent robot, reduced by v_tree = G v."""
    robot, tree = fj.load("panda", mimic=True, backend="numpy"), fj.load("panda", backend="numpy")
    G = robot.evaluator.tree.coupling.G  # type: ignore[union-attr]
    s = random_state(robot)
    q = s.q @ G.T
    v, a = s.v @ G.T, s.a @ G.T
    M = robot.mass_matrix(s.q)
    agree(robot.static_torque_derivatives(s.q, s.fext), G.T @ tree.static_torque_derivatives(q, s.fext) @ G, EXACT)
    Y = np.einsum("ia,sip->sap", G, tree.torque_regressor(q, v, a))
    agree(robot.torque_regressor(*s[:3]), Y, EXACT)
    tau = robot.inverse_dynamics(*s)
    agree(
        robot.forward_dynamics_parameter_derivatives(s.q, s.v, tau, s.fext), -np.linalg.solve(M, Y), 1e-9, "parameters"
    )
    J = robot.inverse_dynamics_force_derivatives(s.q)
    agree(J, np.einsum("ia,sikc->sakc", G, tree.inverse_dynamics_force_derivatives(q)), EXACT)
    flat = J.reshape(*J.shape[:2], -1)
    agree(robot.forward_dynamics_force_derivatives(s.q).reshape(flat.shape), -np.linalg.solve(M, flat), 1e-9, "forces")
    for x, y in zip(robot.centroidal_derivatives(*s[:3]), tree.centroidal_derivatives(q, v, a), strict=True):
        agree(x, y @ G, EXACT)
    name = "panda_leftfinger"
    pairs = zip(
        (*robot.frame_velocity_derivatives(s.q, s.v, name), *robot.frame_acceleration_derivatives(*s[:3], name)),
        (*tree.frame_velocity_derivatives(q, v, name), *tree.frame_acceleration_derivatives(q, v, a, name)),
        strict=True,
    )
    for x, y in pairs:
        agree(x, y @ G, EXACT)
