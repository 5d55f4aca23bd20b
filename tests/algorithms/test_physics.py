"""Physics that needs no other library: energy, power, momentum, structure of the equations of motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import featherjet as fj
from featherjet.model import configuration
from featherjet.verify import complex_step
from helpers import State, agree, each_agrees, models, with_state

H = 1e-30
drawn = with_state(models())


def along(robot: fj.Robot, quantity: str, q: np.ndarray, rate: np.ndarray, **inputs: np.ndarray) -> np.ndarray:
    """Time derivative of a quantity when q moves with the given velocity, everything else held."""
    moved = configuration.integrate(robot.model, q, 1j * H * rate)
    return robot.evaluator.reference(quantity, {"q": moved, **inputs})[0].imag / H


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[..., None])[..., 0]


@given(drawn)
def test_equation_of_motion(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    M, C, g = robot.mass_matrix(s.q), robot.coriolis_matrix(s.q, s.v), robot.gravity(s.q)
    each_agrees(times(M, s.a) + times(C, s.v) + g, robot.inverse_dynamics(s.q, s.v, s.a), 1e-12)
    floor = np.abs(M).max((-2, -1))
    each_agrees(times(C, s.v) + g, robot.bias(s.q, s.v), 1e-12, floor=floor)


@given(drawn)
def test_mass_matrix_is_positive(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    M = robot.mass_matrix(s.q)
    assert (np.linalg.eigvalsh(M) > 0).all()
    each_agrees(times(M, s.v)[..., None, :] @ s.v[..., None], 2 * robot.kinetic_energy(s.q, s.v)[:, None, None], 1e-13)
    each_agrees(M @ robot.inverse_mass_matrix(s.q), np.tile(np.eye(robot.nv), (3, 1, 1)), 1e-9)


@given(drawn)
def test_mdot_minus_2c_is_skew(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    C = robot.coriolis_matrix(s.q, s.v)
    Mdot = along(robot, "mass_matrix", s.q, s.v)
    floor = 0.01 * np.abs(robot.mass_matrix(s.q)).max((-2, -1))
    each_agrees(C + np.swapaxes(C, -1, -2), Mdot, 1e-12, "Mdot = C + C^T", floor)


@given(drawn)
def test_gravity_is_the_slope_of_the_potential(case: tuple[fj.Robot, State]) -> None:
    robot, s = case
    slope = complex_step(robot, "potential_energy", "q", q=s.q)
    each_agrees(robot.gravity(s.q), slope, 1e-12, floor=robot.mass)


@given(drawn)
def test_power_balance(case: tuple[fj.Robot, State]) -> None:
    """d/dt (T + V) = v.tau + the power of the external forces, along any motion."""
    robot, s = case
    dT_dq = along(robot, "kinetic_energy", s.q, s.v, v=s.v)
    dT_dv = (complex_step(robot, "kinetic_energy", "v", q=s.q, v=s.v) * s.a).sum(-1)
    dV = along(robot, "potential_energy", s.q, s.v)
    tau = robot.inverse_dynamics(*s)
    outside = np.zeros(3)
    for i, name in enumerate(robot.joint_names):
        outside += (robot.frame_velocity(s.q, s.v, name) * s.fext[:, i]).sum(-1)
    scale = (np.abs(s.v) * np.abs(tau)).sum(-1) + np.abs(dV)
    each_agrees(dT_dq + dT_dv + dV, (s.v * tau).sum(-1) + outside, 1e-12, floor=scale)


@given(drawn)
def test_centroidal_map_and_momentum(case: tuple[fj.Robot, State]) -> None:
    """The map A gives the momentum A v; its linear part is mass times the velocity of the centre."""
    robot, s = case
    A = robot.centroidal_map(s.q)
    h = robot.centroidal_momentum(s.q, s.v)
    each_agrees(times(A, s.v), h, 1e-12, floor=1.0)
    each_agrees(h[:, :3], robot.mass * along(robot, "center_of_mass", s.q, s.v), 1e-12, floor=1.0)


def floating_tree(seed: int) -> fj.Robot:
    """Every joint kind, on one free base, without armature (rotors carry momentum that no body has)."""
    source = fj.models.random_tree(9, seed=seed)
    b = fj.ModelBuilder("floating")
    b.add_joint("base", "free")
    b.add_body("base", 3.0, (0.1, 0.0, 0.0), np.diag([0.1, 0.2, 0.2]))
    for j in source.joints:
        parent = "base" if j.parent < 0 else source.joints[j.parent].name
        b.add_joint(j.name, j.kind.name, parent, j.placement, axis=j.axis, pitch=j.pitch)
        b.add_body(j.name, j.body.mass, j.body.com, j.body.inertia)
    return fj.Robot(b.build())


def runge_kutta(robot: fj.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float, steps: int):
    """RK4 on the manifold in the coordinates of the step's start (Munthe-Kaas)."""

    def slope(x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates of x, where the configuration is integrate(q, x), and of the velocity u."""
        at = robot.integrate(q, x)
        _, J = robot.integrate_jacobians(q, x)
        return np.linalg.solve(J, u), robot.forward_dynamics(at, u, tau)

    for _ in range(steps):
        zero = np.zeros_like(v)
        k1 = slope(zero, v)
        k2 = slope(dt / 2 * k1[0], v + dt / 2 * k1[1])
        k3 = slope(dt / 2 * k2[0], v + dt / 2 * k2[1])
        k4 = slope(dt * k3[0], v + dt * k3[1])
        x, dv = (dt / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        q, v = robot.integrate(q, x), v + dv
    return q, v


SWINGERS = {
    "arm": lambda: fj.load("arm"),
    "quadruped": lambda: fj.load("quadruped"),
    "random tree": lambda: fj.Robot(fj.models.random_tree(9, seed=4)),
    "floating tree": lambda: floating_tree(1),
}


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81)], ids=["weightless", "falling"])
@pytest.mark.parametrize("name", SWINGERS)
def test_a_free_swing_keeps_its_energy(name: str, gravity: tuple[float, float, float]) -> None:
    """The drift is the integrator's, so it must fall as the fourth power of the step."""
    robot = SWINGERS[name]().with_gravity(gravity)
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng), 0.5 * rng.normal(size=robot.nv)
    T, V = (
        (lambda q, v: robot.kinetic_energy(q[None], v[None])[0]),
        lambda q: robot.potential_energy(q[None])[0],
    )
    start = T(q, v) + V(q)
    drifts, moved = [], 0.0
    for steps in (10, 20):
        q1, v1 = runge_kutta(robot, q, v, np.zeros(robot.nv), 0.04 / steps, steps)
        moved = abs(T(q1, v1) - T(q, v))
        drifts.append(abs(T(q1, v1) + V(q1) - start))
    scale = T(q, v) + abs(V(q))
    assert drifts[1] < 1e-8 * scale
    assert drifts[1] < drifts[0] / 8 + 1e-13 * scale
    if any(gravity):
        assert moved > 1e-4 * scale


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_floating_tree_keeps_its_momentum(seed: int) -> None:
    """No gravity, torques in the joints but none on the base: both momenta stay, whatever the limbs do."""
    robot = floating_tree(seed).with_gravity((0.0, 0.0, 0.0))
    rng = np.random.default_rng(seed)
    q, v = robot.random_configuration(rng), 0.5 * rng.normal(size=robot.nv)
    tau = rng.normal(size=robot.nv)
    tau[:6] = 0
    h0, c0 = robot.centroidal_momentum(q, v), robot.center_of_mass(q)
    q1, v1 = runge_kutta(robot, q, v, tau, 0.001, 40)
    assert np.abs(v1 - v).max() > 0.05
    agree(robot.centroidal_momentum(q1, v1), h0, 1e-8)
    agree(robot.center_of_mass(q1), c0 + 0.04 * h0[:3] / robot.mass, 1e-9)


@given(with_state(models(armature=False), 1), st.integers(0, 100))
def test_where_the_world_is_does_not_matter(case: tuple[fj.Robot, State], seed: int) -> None:
    """Turn and shift the whole robot with its gravity: torques stay the same."""
    import pinocchio as pin

    robot, s = case
    rng = np.random.default_rng(seed)
    X = pin.SE3(pin.exp3(rng.normal(size=3)), 10 * rng.normal(size=3)).homogeneous
    model = robot.model
    b = fj.ModelBuilder("moved", gravity=X[:3, :3] @ model.gravity)
    for j in model.joints:
        parent = None if j.parent < 0 else model.joints[j.parent].name
        placement = X @ j.placement if parent is None else j.placement
        b.add_joint(j.name, j.kind.name, parent, placement, axis=j.axis, pitch=j.pitch)
        b.add_body(j.name, j.body.mass, j.body.com, j.body.inertia)
    moved = fj.Robot(b.build())
    agree(moved.inverse_dynamics(*s), robot.inverse_dynamics(*s), 1e-12)


def test_a_pendulum_by_hand() -> None:
    """tau = (m l^2 + armature) a + m g l sin q."""
    m, l, arm, g = 1.3, 0.7, 0.2, 9.81
    b = fj.ModelBuilder("pendulum")
    b.add_joint("hinge", "revolute", axis=(0, 1, 0), armature=arm)
    b.add_body("hinge", m, (0.0, 0.0, -l))
    robot = fj.Robot(b.build())
    q, v, a = np.random.default_rng(0).normal(size=(3, 10, 1))
    agree(robot.inverse_dynamics(q, v, a), (m * l**2 + arm) * a + m * g * l * np.sin(q), 1e-14)
    d = robot.inverse_dynamics_derivatives(q, v, a)
    agree(d.dtau_dq[..., 0], m * g * l * np.cos(q), 1e-14)
    agree(d.dtau_da[..., 0], np.full_like(q, m * l**2 + arm), 1e-14)
    agree(d.dtau_dv[..., 0], 0 * q, 1e-14, floor=1.0)
    agree(robot.kinetic_energy(q, v), 0.5 * (m * l**2 + arm) * v[:, 0] ** 2, 1e-14)
    agree(robot.potential_energy(q), -m * g * l * np.cos(q[:, 0]), 1e-14)


def test_a_spinning_top_by_hand() -> None:
    """Euler's equations of a free rotation: tau = I a + w x I w."""
    I = np.diag([1.0, 2.0, 2.5])
    b = fj.ModelBuilder("top", gravity=(0.0, 0.0, 0.0))
    b.add_joint("ball", "spherical")
    b.add_body("ball", 1.0, inertia=I)
    robot = fj.Robot(b.build())
    rng = np.random.default_rng(0)
    q, w, a = robot.random_configuration(rng, 10), *rng.normal(size=(2, 10, 3))
    agree(robot.inverse_dynamics(q, w, a), a @ I + np.cross(w, w @ I), 1e-14)


def test_a_thrown_stone_falls() -> None:
    """In its own frame: a = R^T g - w x v, whatever the stone."""
    b = fj.ModelBuilder("stone")
    b.add_joint("air", "free")
    b.add_body("air", 2.0, inertia=np.diag([0.3, 0.3, 0.3]))
    robot = fj.Robot(b.build())
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng, 10), rng.normal(size=(10, 6))
    a = robot.forward_dynamics(q, v, np.zeros(6))
    R = robot.forward_kinematics(q)[:, 0, :3, :3]
    expected = np.swapaxes(R, -1, -2) @ [0, 0, -9.81] - np.cross(v[:, 3:], v[:, :3])
    agree(a[:, :3], expected, 1e-14)
    agree(a[:, 3:], 0 * a[:, 3:], 1e-14, floor=1.0)
