"""Bilateral contacts and impulses: against Pinocchio, complex step, and the laws they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from featherjet.algorithms.contacts import derivatives as contact_derivatives
from featherjet.algorithms.scan import Scan
from featherjet.errors import ContactWarning, InputError, SingularContacts, UnknownName
from featherjet.jit.fingerprint import fingerprint
from featherjet.jit.graph import Graph
from featherjet.model import configuration
from featherjet.model.builder import transform
from helpers import agree, models, to_pinocchio
from urdf_helpers import coupled_urdf

H = 1e-30
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
AXES = {"local": pin.ReferenceFrame.LOCAL, "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED}
CASES = {
    "one foot": ("quadruped", FEET[:1], ()),
    "two feet": ("quadruped", FEET[1:3], ()),
    "three feet": ("quadruped", FEET[:3], ()),
    "four feet": ("quadruped", FEET, ()),
    "flat feet": ("humanoid", (), ("left_foot", "right_foot")),
    "foot and hand": ("humanoid", ("right_hand",), ("left_foot",)),
    "arm at a point": ("arm", ("tool",), ()),
    "arm held": ("arm", (), ("tool",)),
}


class Case(NamedTuple):
    """A robot held by contacts at a state, the same for Pinocchio, and the contacts' placements in the world."""

    robot: fj.Robot
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    contacts: fj.Contacts
    model: pin.Model
    theirs: pin.StdVec_RigidConstraintModel


def case(name: str, axes: str, gains: tuple[float, float] = (0.0, 0.0), damping: float = 0.0) -> Case:
    """Points are away from where they are held; surfaces, whose errors Pinocchio measures by log6, are in place."""
    which, points, surfaces = CASES[name]
    robot = fj.load(which)
    rng = np.random.default_rng(3)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    model = to_pinocchio(robot.model)
    held: list[fj.PointContact | fj.SurfaceContact] = []
    theirs = pin.StdVec_RigidConstraintModel()
    for frame in (*points, *surfaces):
        T = robot.frame_placement(q, frame)
        if frame in points:
            T[:3, 3] += rng.normal(size=3)
            held.append(fj.PointContact(frame, at=T[:3, 3], axes=axes))
        else:
            held.append(fj.SurfaceContact(frame, at=T, axes=axes))
        theirs.append(rigid(robot, model, frame, pin.SE3(T), frame in points, AXES[axes], gains))
    return Case(robot, q, v, tau, fj.Contacts(robot, held, baumgarte=gains, damping=damping), model, theirs)


def rigid(
    robot: fj.Robot, model: pin.Model, frame: str, at: pin.SE3, point: bool, axes: pin.ReferenceFrame, gains, joint2=0
) -> pin.RigidConstraintModel:
    f = robot.model.frame(frame)
    kind = pin.ContactType.CONTACT_3D if point else pin.ContactType.CONTACT_6D
    made = pin.RigidConstraintModel(kind, model, f.joint + 1, pin.SE3(np.array(f.placement)), joint2, at, axes)
    made.m_baumgarte_parameters.Kp, made.m_baumgarte_parameters.Kd = gains
    return made


class Theirs(NamedTuple):
    """Pinocchio's answer: accelerations, forces, and derivatives in our order."""

    a: np.ndarray
    forces: np.ndarray
    derivatives: list[np.ndarray]


def constrained(c: Case, mu: float = 0.0) -> Theirs:
    data, datas = c.model.createData(), pin.StdVec_RigidConstraintData([m.createData() for m in c.theirs])
    pin.initConstraintDynamics(c.model, data, c.theirs, datas)
    settings = pin.ProximalSettings(1e-14, mu, 1)
    a = pin.constraintDynamics(c.model, data, c.q, c.v, c.tau, c.theirs, datas, settings).copy()
    forces = data.lambda_c.copy()
    found = pin.computeConstraintDynamicsDerivatives(c.model, data, c.theirs, datas, settings)
    return Theirs(a, forces, [x.copy() for x in found])


def impulses(c: Case, restitution: float) -> Theirs:
    data, datas = c.model.createData(), pin.StdVec_RigidConstraintData([m.createData() for m in c.theirs])
    pin.initConstraintDynamics(c.model, data, c.theirs, datas)
    settings = pin.ProximalSettings(1e-14, 0.0, 1)
    v = pin.impulseDynamics(c.model, data, c.q, c.v, c.theirs, datas, restitution, settings).copy()
    found = data.impulse_c.copy()
    pin.computeImpulseDynamicsDerivatives(c.model, data, c.theirs, datas, restitution, settings)
    by_v = np.eye(c.model.nv) + data.ddq_dv  # Pinocchio's is that of the jump v+ - v-
    return Theirs(v, found, [data.ddq_dq.copy(), by_v, data.dlambda_dq.copy(), data.dlambda_dv.copy()])


# Pinocchio


@pytest.mark.parametrize("gains", [(0.0, 0.0), (30.0, 0.0), (30.0, 7.0)], ids=str)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", CASES)
def test_constrained_dynamics_are_pinocchios(name: str, axes: str, gains: tuple[float, float]) -> None:
    c = case(name, axes, gains)
    theirs = constrained(c)
    ours = c.robot.constrained_dynamics(c.q, c.v, c.tau, c.contacts)
    agree(ours.a, theirs.a, 1e-10, "a")
    agree(ours.forces, theirs.forces, 1e-10, "forces")
    d = c.robot.constrained_dynamics_derivatives(c.q, c.v, c.tau, c.contacts)
    for what, x, y in zip(d._fields, d, theirs.derivatives, strict=True):
        agree(x, y, 1e-10, what)


@pytest.mark.parametrize("restitution", [0.0, 0.4])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", CASES)
def test_impulses_are_pinocchios(name: str, axes: str, restitution: float) -> None:
    c = case(name, axes)
    theirs = impulses(c, restitution)
    ours = c.robot.impulse_dynamics(c.q, c.v, c.contacts, restitution)
    agree(ours.v, theirs.a, 1e-10, "v")
    agree(ours.impulses, theirs.forces, 1e-10, "impulses")
    d = c.robot.impulse_dynamics_derivatives(c.q, c.v, c.contacts, restitution)
    for what, x, y in zip(d._fields, d, theirs.derivatives, strict=True):
        agree(x, y, 1e-10, what)


def test_damped_contacts_are_pinocchios() -> None:
    """Two points on one foot: redundant, and with damping still determined."""
    c = case("flat feet", "local", damping=1e-3)
    theirs = constrained(c, 1e-3)
    ours = c.robot.constrained_dynamics(c.q, c.v, c.tau, c.contacts)
    d = c.robot.constrained_dynamics_derivatives(c.q, c.v, c.tau, c.contacts)
    agree(ours.a, theirs.a, 1e-10)
    agree(ours.forces, theirs.forces, 1e-10)
    agree(d.dforces_dtau, theirs.derivatives[5], 1e-10)


@pytest.mark.parametrize("gains", [(0.0, 0.0), (0.0, 7.0)], ids=str)
def test_a_closed_loop_is_pinocchios(gains: tuple[float, float]) -> None:
    """One hand holds the other, away from where it should: spatial kinematics in full."""
    robot = fj.load("humanoid")
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    contacts = fj.Contacts(robot, [fj.SurfaceContact("left_hand", other="right_hand", axes="local")], baumgarte=gains)
    model, other = to_pinocchio(robot.model), robot.model.frame("right_hand")
    at = pin.SE3(np.array(other.placement))
    theirs = pin.StdVec_RigidConstraintModel()
    theirs.append(rigid(robot, model, "left_hand", at, False, AXES["local"], gains, other.joint + 1))
    want = constrained(Case(robot, q, v, tau, contacts, model, theirs))
    got = robot.constrained_dynamics(q, v, tau, contacts)
    agree(got.a, want.a, 1e-10)
    agree(got.forces, want.forces, 1e-10)
    d = robot.constrained_dynamics_derivatives(q, v, tau, contacts)
    for what, x, y in zip(d._fields, d, want.derivatives, strict=True):
        agree(x, y, 1e-10, what)


# Complex step, on whole drawn trees


def draw_contacts(robot: fj.Robot, seed: int, damping: float = 3.0) -> fj.Contacts:
    """A point and a surface, each to the world or to another body, with everything that can be given."""
    rng = np.random.default_rng(seed)
    frames = [f.name for f in robot.model.frames if f.joint >= 0]

    def placement() -> np.ndarray:
        return transform(pin.exp3(rng.normal(size=3)), rng.normal(size=3))

    held: list[fj.PointContact | fj.SurfaceContact] = []
    for k in range(2):
        frame = str(rng.choice(frames))
        others = [f for f in frames if robot.model.frame(f).joint != robot.model.frame(frame).joint]
        other = str(rng.choice(others)) if others and rng.random() < 0.6 else None
        axes = str(rng.choice(list(AXES)))
        at, offset = placement(), placement()
        held.append(
            fj.SurfaceContact(frame, other=other, at=at, offset=offset, axes=axes)
            if k
            else fj.PointContact(frame, other=other, at=at[:3, 3], offset=offset[:3, 3], axes=axes)
        )
    return fj.Contacts(robot, held, baumgarte=(5.0, 2.0), damping=damping)


def complex_step(robot: fj.Robot, contacts: fj.Contacts, quantity: str, by: str, inputs: dict) -> list:
    """Derivatives (..., n) of the first two results of a quantity of the contacts' reference, in any convention."""
    moved = dict(inputs)
    step = 1j * H * np.eye(robot.nv)
    moved[by] = configuration.integrate(robot.evaluator.space, inputs["q"], step) if by == "q" else inputs[by] + step
    found = robot.evaluator.reference(quantity, moved, contacts=contacts.core)
    return [np.moveaxis(x.imag / H, 0, -1) for x in found[:2]]


def check_constrained(robot: fj.Robot, contacts: fj.Contacts, q, v, tau, fext=None) -> None:
    d = robot.constrained_dynamics_derivatives(q, v, tau, contacts, fext)
    a, forces = robot.constrained_dynamics(q, v, tau, contacts, fext)
    inputs = {"q": q, "v": v, "tau": tau} | ({} if fext is None else {"fext": fext})
    for by in ("q", "v", "tau"):
        da, df = complex_step(robot, contacts, "constrained_dynamics", by, inputs)
        agree(getattr(d, f"da_d{by}"), da, 1e-10, f"da_d{by}", 1e-3 * np.abs(a).max())
        agree(getattr(d, f"dforces_d{by}"), df, 1e-10, f"dforces_d{by}", 1e-3 * np.abs(forces).max())


def check_impulses(robot: fj.Robot, contacts: fj.Contacts, q, v) -> None:
    d = robot.impulse_dynamics_derivatives(q, v, contacts, 0.3)
    found = robot.impulse_dynamics(q, v, contacts, 0.3)
    for by, own in (("q", 0.0), ("v", np.eye(robot.nv))):
        inputs = {"q": q, "v": v, "restitution": np.array([0.3])}
        dv, df = complex_step(robot, contacts, "impulse_dynamics", by, inputs)
        agree(getattr(d, f"dv_d{by}"), own + dv, 1e-10, f"dv_d{by}", 1e-3 * np.abs(v).max())
        agree(getattr(d, f"dimpulses_d{by}"), df, 1e-10, f"dimpulses_d{by}", 1e-3 * np.abs(found.impulses).max())


@pytest.mark.parametrize("convention", ["pinocchio", "kindr", "drake"])
@settings(max_examples=10)
@given(models(most=8), st.integers(0, 1000))
def test_derivatives_are_exact(convention: str, model: fj.Model, seed: int) -> None:
    robot = fj.Robot(model, backend="numpy").with_convention(convention)
    contacts = draw_contacts(robot, seed)
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    check_constrained(robot, contacts, q, v, tau, rng.normal(size=(robot.njoints, 6)))
    check_impulses(robot, contacts, q, v)


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_derivatives_with_mimicking_joints(root: str, tmp_path: Path) -> None:
    path = tmp_path / "coupled.urdf"
    path.write_text(coupled_urdf())
    robot = fj.load(path, root=root, mimic=True)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    held = [fj.PointContact("l3", at=(0.1, 0.2, 0.3)), fj.PointContact("l6", other="l2", axes="local")]
    contacts = fj.Contacts(robot, held, baumgarte=(5.0, 2.0), damping=1e-2)
    check_constrained(robot, contacts, q, v, tau)
    check_impulses(robot, contacts, q, v)
    a, forces = robot.constrained_dynamics(q, v, tau, contacts)
    agree(robot.contact_inverse_dynamics(q, v, a, contacts, forces).tau, tau, 1e-10)


# Conventions


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("convention", ["kindr", "mujoco", "drake"])
def test_every_convention_has_the_same_contacts(convention: str, backend: str) -> None:
    """Motions and torques are told otherwise, forces are the same; batched, and into arrays that are given."""
    robot = fj.load("quadruped", backend=backend)
    own = robot.with_convention(convention)
    held = [fj.PointContact("LF_foot", at=(0.1, 0.2, 0.3)), fj.PointContact("RH_foot", other="LH_foot", axes="local")]
    contacts = fj.Contacts(own, held, baumgarte=(5.0, 2.0), damping=1e-3)
    rng = np.random.default_rng(0)
    q, (v, tau) = robot.random_configuration(rng, (2, 1)), rng.normal(size=(2, 3, robot.nv))
    here = fj.convert(robot, own, q, v, tau=tau)
    a, forces = robot.constrained_dynamics(q, v, tau, contacts)
    out = np.empty_like(a), np.empty_like(forces)
    found = own.constrained_dynamics(here.q, here.v, here.tau, contacts, out=out)
    agree(out[0], fj.convert(robot, own, q, v, a).a, 1e-11)
    agree(out[1], forces, 1e-11)
    agree(own.contact_inverse_dynamics(here.q, here.v, found.a, contacts, forces).tau, here.tau, 1e-9)
    after, impulses = robot.impulse_dynamics(q, v, contacts, 0.4)
    mine = own.impulse_dynamics(here.q, here.v, contacts, 0.4)
    agree(mine.v, fj.convert(robot, own, q, after).v, 1e-11)
    agree(mine.impulses, impulses, 1e-11)
    J = own.contact_jacobian(here.q, contacts)
    agree(J @ here.v[..., None], robot.contact_jacobian(q, contacts) @ v[..., None], 1e-11)
    one = here.q[0, 0], here.v[0, 1], here.tau[0, 1]
    check_constrained(own, contacts, *one)
    check_impulses(own, contacts, *one[:2])
    d = own.constrained_dynamics_derivatives(here.q, here.v, here.tau, contacts)
    assert (d.da_dq.shape, d.dforces_dq.shape) == ((2, 3, 18, 18), (2, 3, 6, 18))
    agree(d.dforces_dq[0, 1], own.constrained_dynamics_derivatives(*one, contacts).dforces_dq, 1e-11)


def test_a_mass_on_a_string_in_the_worlds_axes() -> None:
    """A ball turning about a held point of its own: kindr's acceleration is the world's, towards that point."""
    b = fj.ModelBuilder("ball", gravity=(0.0, 0.0, 0.0))
    b.add_joint("root", "free")
    b.add_body("root", 2.0, inertia=0.1 * np.eye(3))
    own = fj.Robot(b.build()).with_convention("kindr")
    contacts = fj.Contacts(own, [fj.PointContact("root", offset=(0.5, 0.0, 0.0))])
    q, v, rest = own.neutral(), np.array([0.0, -1.5, 0.0, 0.0, 0.0, 3.0]), np.zeros(6)  # w x r = (0, 1.5, 0)
    a, forces = own.constrained_dynamics(q, v, rest, contacts)
    agree(a, [4.5, 0, 0, 0, 0, 0], 1e-12, "w^2 r")
    agree(forces, [9.0, 0, 0], 1e-12, "m w^2 r")


# The laws themselves


@settings(max_examples=10)
@given(models(most=8), st.integers(0, 1000))
def test_forces_balance_and_contacts_give_way_by_damping_alone(model: fj.Model, seed: int) -> None:
    robot = fj.Robot(model, backend="numpy")
    contacts = draw_contacts(robot, seed)
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    a, forces = robot.constrained_dynamics(q, v, tau, contacts)
    J = robot.contact_jacobian(q, contacts)
    pull = robot.inverse_dynamics(q, v, a) - J.T @ forces
    agree(pull, tau, 1e-9, floor=np.abs(J.T @ forces).max())
    agree(robot.contact_inverse_dynamics(q, v, a, contacts, forces).tau, tau, 1e-9, floor=np.abs(J.T @ forces).max())
    after, impulses = robot.impulse_dynamics(q, v, contacts, 0.5)
    scale = np.abs(J.T @ impulses).max() + np.abs(v).max()
    agree(robot.mass_matrix(q) @ (after - v), J.T @ impulses, 1e-9, floor=scale)
    agree(J @ after + contacts.damping * impulses, -0.5 * J @ v, 1e-9, floor=scale)


def test_a_held_point_accelerates_as_baumgarte_says() -> None:
    """The point's acceleration is the rate of its velocity along the motion."""
    c = case("three feet", "world_aligned", (30.0, 7.0))
    a, _ = c.robot.constrained_dynamics(c.q, c.v, c.tau, c.contacts)
    q = configuration.integrate(c.robot.model, c.q, 1j * H * c.v)
    v = c.v + 1j * H * a
    for held in c.contacts.held:
        point = c.robot.frame_placement(c.q, held.frame)[:3, 3]
        velocity = c.robot.frame_velocity(c.q, c.v, held.frame, viewpoint="world_aligned")[:3]
        f = c.robot.model.frame(held.frame)
        body = c.robot.evaluator.reference("forward_kinematics", {"q": q})[0][f.joint] @ f.placement
        S = c.robot.evaluator.reference("joint_columns", {"q": q})[0]
        moves = np.zeros(c.robot.nv)
        for node in c.robot.evaluator.tree.path(f.joint):
            moves[node.v] = 1.0
        twist = (moves * v) @ S
        moving = (twist[:3] + np.cross(twist[3:], body[:3, 3])).imag / H
        agree(moving, -30.0 * (point - np.asarray(held.at)) - 7.0 * velocity, 1e-10)


@pytest.mark.parametrize("angle", [0.3, 2.0, 3.0])
def test_a_held_surface_accelerates_as_baumgarte_says(angle: float) -> None:
    """A lone body, turned and shifted: the angle obeys a pendulum's equation, the position a spring's."""
    b = fj.ModelBuilder("brick")
    b.add_joint("root", "free")
    b.add_body("root", 2.0, (0.1, 0.2, 0.3), 0.5 * np.eye(3))
    robot = fj.Robot(b.build())
    axis = np.array([2.0, -1.0, 2.0]) / 3
    R, at, v = pin.exp3(angle * axis), np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.2, -0.3, 0.4, 0.5, -0.6])
    q = np.concatenate([at, pin.Quaternion(R).coeffs()])
    contacts = fj.Contacts(robot, [fj.SurfaceContact("root", at=np.eye(4))], baumgarte=(100.0, 20.0))
    a = robot.constrained_dynamics(q, v, np.zeros(6), contacts).a
    agree(a[:3], -100 * R.T @ at - 20 * v[:3], 1e-12)
    agree(a[3:], -100 * np.sin(angle) * axis - 20 * v[3:], 1e-12)
    end = robot.simulate(q, v, contacts=contacts, dt=0.02, duration=2.4).q[-1]
    assert np.abs(robot.difference(robot.neutral(), end)).max() < 1e-4


def test_elastic_impulses_keep_energy_and_loops_keep_momentum() -> None:
    robot = fj.load("humanoid")
    rng = np.random.default_rng(5)
    q = robot.random_configuration(rng)
    v = rng.normal(size=robot.nv)
    ground = fj.Contacts(robot, [fj.SurfaceContact("left_foot"), fj.PointContact("right_hand")])
    before = robot.kinetic_energy(q, v)
    elastic, plastic = (robot.impulse_dynamics(q, v, ground, r).v for r in (1.0, 0.0))
    agree(robot.kinetic_energy(q, elastic), before, 1e-12)
    assert robot.kinetic_energy(q, plastic) < 0.9 * before
    loop = fj.Contacts(
        robot, [fj.PointContact("left_hand", other="right_foot")]
    )  # far apart, and still no moment is made
    after = robot.impulse_dynamics(q, v, loop)
    assert np.abs(after.impulses).max() > 0.1
    agree(robot.centroidal_momentum(q, after.v), robot.centroidal_momentum(q, v), 1e-12)


def test_the_smallest_forces_hold_the_base() -> None:
    robot = fj.load("quadruped")
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng, 4)
    v, a = rng.normal(size=(2, 4, robot.nv))
    contacts = fj.Contacts(robot, [fj.PointContact(f) for f in FEET])
    tau, forces = robot.contact_inverse_dynamics(q, v, a, contacts)
    assert np.abs(tau[:, :6]).max() < 1e-8 * np.abs(tau).max()
    J = robot.contact_jacobian(q, contacts)
    A = np.swapaxes(J[..., :6], -1, -2)
    null = np.eye(12) - np.linalg.pinv(A) @ A
    assert np.abs(null @ forces[..., None]).max() < 1e-8 * np.abs(forces).max()
    agree(robot.inverse_dynamics(q, v, a) - (np.swapaxes(J, -1, -2) @ forces[..., None])[..., 0], tau, 1e-10)
    with pytest.raises(InputError, match="LF_foot cannot give the base this acceleration"):
        robot.contact_inverse_dynamics(q, v, a, fj.Contacts(robot, [fj.PointContact("LF_foot")]))


# One source for every scalar


def test_the_algorithms_can_be_traced() -> None:
    """On expressions, which have no values to branch on; the interpreter then gives what NumPy gives."""
    robot = fj.load("quadruped")
    held = [fj.PointContact("LF_foot", at=(0.1, 0.2, 0.3)), fj.PointContact("RH_foot", other="LH_foot", axes="local")]
    contacts = fj.Contacts(robot, held, baumgarte=(5.0, 2.0))
    rng = np.random.default_rng(0)
    given = {"q": robot.random_configuration(rng)} | dict(zip(("v", "tau"), rng.normal(size=(2, 18)), strict=True))
    graph = Graph()
    traced = [np.array([graph.load((name, k)) for k in range(len(x))], object) for name, x in given.items()]
    scan = Scan(robot.evaluator.tree, (), object)
    found = contact_derivatives.constrained_dynamics_derivatives(scan, *traced, contacts=contacts.core)
    want = robot.constrained_dynamics_derivatives(**given, contacts=contacts)
    for what, x, y in zip(want._fields, found, want, strict=False):
        roots = [graph.lift(entry).index for entry in x.flat]
        values = graph.interpret(roots, lambda at: given[at[0]][at[1]])
        agree(np.array(values).reshape(y.shape), y, 1e-12, what)


def test_batches_broadcast() -> None:
    robot = fj.load("quadruped")
    contacts = fj.Contacts(robot, [fj.PointContact(f) for f in FEET[:2]])
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng, (3, 1)), rng.normal(size=(2, robot.nv))
    tau = rng.normal(size=robot.nv)
    a, forces = robot.constrained_dynamics(q, v, tau, contacts)
    d = robot.constrained_dynamics_derivatives(q, v, tau, contacts)
    assert (a.shape, forces.shape) == ((3, 2, 18), (3, 2, 6))
    assert (d.da_dq.shape, d.dforces_dtau.shape) == ((3, 2, 18, 18), (3, 2, 6, 18))
    one = robot.constrained_dynamics(q[2, 0], v[1], tau, contacts)
    agree(a[2, 1], one.a, 1e-13)
    agree(forces[2, 1], one.forces, 1e-13)
    assert {k: x.shape for k, x in contacts.split(forces).items()} == {"LF_foot": (3, 2, 3), "LH_foot": (3, 2, 3)}
    assert robot.impulse_dynamics(q, v, contacts).v.shape == (3, 2, 18)
    assert robot.constrained_dynamics(q[:0], v[:1], tau, contacts).a.shape == (0, 1, 18)


def test_code_with_mimicking_joints_does_not_depend_on_footholds_and_gains(tmp_path: Path) -> None:
    """They are inputs of the code, which is compiled for the held frames: robots that walk need not compile."""
    path = tmp_path / "coupled.urdf"
    path.write_text(coupled_urdf())
    robot, plain = (fj.load(path, mimic=True, backend=backend) for backend in ("compiled", "numpy"))
    q, v = robot.random_configuration(0), np.ones(robot.nv)
    for at, gains, damping, restitution in (((0.1, 0.2, 0.3), (5, 2), 1e-3, 0.2), ((-0.3, 0, 1), (9, 7), 1e-2, 0.7)):
        held = [fj.PointContact("l3", at=at)]
        found, expected = (
            (*r.constrained_dynamics(q, v, v, c), *r.impulse_dynamics(q, v, c, restitution))
            for r, c in ((r, fj.Contacts(r, held, baumgarte=gains, damping=damping)) for r in (robot, plain))
        )
        for x, y in zip(found, expected, strict=True):
            agree(x, y, 1e-11)
    assert len(robot.evaluator.ready.kernels) == 2
    free = [fj.Contacts(robot, [fj.PointContact("l3", at=at)], baumgarte=(0, 2)) for at in (None, (1, 2, 3))]
    assert fingerprint(free[0].outline) == fingerprint(free[1].outline), "a place that nothing pulls to"


def test_compiled_code_gives_what_the_reference_gives() -> None:
    """Surfaces and loops, errors of position, derivatives, forces from outside."""
    rng = np.random.default_rng(0)
    at = transform(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
    held = [
        fj.SurfaceContact("tool", at=at),
        fj.PointContact("joint4", other="joint2", at=(0.1, 0.2, 0.3), axes="local"),
    ]
    state, fext = rng.normal(size=(3, 5, 7)), rng.normal(size=(7, 6))
    results = []
    for backend in ("compiled", "numpy"):
        robot = fj.load("arm", backend=backend)
        contacts = fj.Contacts(robot, held, baumgarte=(5.0, 2.0), damping=1e-2)
        results.append(
            (
                *robot.constrained_dynamics(*state, contacts, fext),
                *robot.constrained_dynamics_derivatives(*state, contacts, fext),
                *robot.impulse_dynamics_derivatives(*state[:2], contacts, 0.3),
                *robot.contact_inverse_dynamics(*state, contacts, np.ones(9), fext),
            )
        )
    for x, y in zip(*results, strict=True):
        agree(x, y, 1e-10)


def test_far_from_the_origin_nothing_is_lost() -> None:
    robot = fj.load("quadruped")
    rng = np.random.default_rng(0)
    near = robot.random_configuration(rng)
    far = near.copy()
    far[:3] += 1e7
    v, tau = rng.normal(size=(2, robot.nv))
    contacts = fj.Contacts(robot, [fj.PointContact(f) for f in FEET], baumgarte=(0.0, 3.0))
    for x, y in zip(
        robot.constrained_dynamics_derivatives(far, v, tau, contacts),
        robot.constrained_dynamics_derivatives(near, v, tau, contacts),
        strict=True,
    ):
        agree(x, y, 1e-12)


# What cannot be


def test_redundant_contacts_with_damping() -> None:
    robot = fj.load("quadruped")
    two = [fj.PointContact("LF_foot"), fj.PointContact("LF_foot", offset=(0.0, 0.02, 0.0))]
    damped = fj.Contacts(robot, two, damping=1e-6)
    assert damped.names == ("LF_foot 1", "LF_foot 2")
    q, zero = robot.neutral(), np.zeros(robot.nv)
    a, forces = robot.constrained_dynamics(q, zero, zero, damped)
    J = robot.contact_jacobian(q, damped)
    agree(J @ a, -1e-6 * forces, 1e-8)
    assert np.abs(forces).max() > 10
    agree(robot.inverse_dynamics(q, zero, a) - J.T @ forces, zero, 1e-10, floor=100.0)


def test_contacts_that_become_singular_are_named() -> None:
    """An arm stretched out cannot move its tool along itself; a batch says which sample."""
    robot = fj.load("arm")
    contacts = fj.Contacts(robot, [fj.PointContact("tool")])
    q = np.stack([robot.random_configuration(0), robot.neutral()])
    zero = np.zeros(robot.nv)
    with pytest.warns(
        ContactWarning, match=r"contacts tool: singular at sample \(1,\): there are no derivatives.*damping"
    ):
        found = robot.constrained_dynamics_derivatives(q, zero, zero, contacts).da_dq
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    with pytest.raises(SingularContacts):
        robot.impulse_dynamics_derivatives(q[1], zero, contacts)
    held = fj.Contacts(robot, [fj.SurfaceContact("tool")], damping=1e-4)
    assert np.isfinite(robot.constrained_dynamics(q, zero, zero, held).forces).all()


@pytest.mark.parametrize(
    ("held", "settings", "error", "message"),
    [
        ([fj.PointContact("LF_fot")], {}, UnknownName, "did you mean: LF_foot"),
        ([fj.PointContact("LF_foot", other="nowhere")], {}, UnknownName, "unknown frame 'nowhere'"),
        ([fj.PointContact("LF_foot", axes="world")], {}, UnknownName, "world_aligned"),
        ([fj.PointContact("LF_foot")] * 2, {}, InputError, "given twice"),
        ([fj.PointContact("LF_foot")] * 2, {"damping": 1e-3}, InputError, "given twice"),
        ([fj.PointContact("LF_foot", other="LF_KFE")], {}, InputError, "is on the same body"),
        ([fj.PointContact("LF_foot")], {"baumgarte": (1.0, 1.0)}, InputError, "give `at`"),
        ([fj.PointContact("LF_foot")], {"baumgarte": (0.0, -1.0)}, InputError, "not be negative"),
        ([fj.PointContact("LF_foot")], {"baumgarte": 3.0}, InputError, "baumgarte"),
        ([fj.PointContact("LF_foot")], {"damping": -1.0}, InputError, "damping"),
        ([fj.PointContact("LF_foot")], {"damping": np.nan}, InputError, "finite"),
        ([fj.PointContact("LF_foot", offset=(1, 2))], {}, InputError, "offset"),
        ([fj.PointContact("LF_foot", at=np.zeros((2, 3)))], {}, InputError, "at: expected x y z, shape"),
        ([fj.SurfaceContact("LF_foot", at=np.ones((4, 4)))], {}, InputError, "not a rigid transform"),
        ([], {}, InputError, "at least one"),
        (["LF_foot"], {}, InputError, "PointContact"),
        (fj.PointContact("LF_foot"), {}, InputError, "a list"),
    ],
)
def test_bad_contacts(held: Sequence, settings: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fj.Contacts(fj.load("quadruped"), held, **settings)


def test_bad_calls() -> None:
    robot, other = fj.load("quadruped"), fj.load("humanoid")
    with pytest.raises(InputError, match="expected a robot first"):
        fj.Contacts(None, [fj.PointContact("LF_foot")])  # type: ignore[arg-type]
    q, zero = robot.neutral(), np.zeros(robot.nv)
    contacts = fj.Contacts(robot, [fj.PointContact("LF_foot")])
    with pytest.raises(InputError, match="belong to another robot"):
        robot.constrained_dynamics(q, zero, zero, fj.Contacts(other, [fj.PointContact("left_foot")]))
    with pytest.raises(InputError, match=r"expected fj\.Contacts"):
        robot.constrained_dynamics(q, zero, zero, ["LF_foot"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="tau"):
        robot.constrained_dynamics(q, zero, zero[1:], contacts)
    with pytest.raises(InputError, match="batch shapes do not broadcast"):
        robot.constrained_dynamics(np.tile(q, (3, 1)), np.zeros((2, 18)), zero, contacts)
    with pytest.raises(InputError, match="forces"):
        robot.contact_inverse_dynamics(q, zero, zero, contacts, np.zeros(4))
    for r in (-0.1, 1.1, np.nan, [0.1, 0.2]):
        with pytest.raises(InputError, match="restitution"):
            robot.impulse_dynamics(q, zero, contacts, r)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"quaternion w x y z, entries 0 to 3"):
        robot.with_convention("drake").constrained_dynamics(robot.random_configuration(0), zero, zero, contacts)
    lighter = robot.with_gravity((0, 0, -1.62))
    fall = robot.constrained_dynamics(q, zero, zero, contacts).a
    agree(lighter.constrained_dynamics(q, zero, zero, contacts).a, 1.62 / 9.81 * fall, 1e-10, "another gravity")
