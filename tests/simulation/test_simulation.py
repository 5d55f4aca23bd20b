"""Simulated motion against closed forms: Coulomb, Newton, Kepler's pendulum, balances of energy and momentum."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import featherjet as fj
import gauss_seidel
from featherjet import Trajectory
from featherjet.errors import InputError, ModelWarning, SimulationError, SimulationWarning, UnknownName
from featherjet.model.builder import transform
from featherjet.simulation.playback import Playback
from featherjet.view.curves import curves
from helpers import agree

G = 9.81
CORNERS = tuple(f"corner{k}" for k in range(4))
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
RADIUS = 0.02


def box(half: tuple[float, float, float] = (0.2, 0.15, 0.1), mass: float = 2.0) -> fj.Robot:
    b = fj.ModelBuilder("box")
    b.add_joint("root", "free")
    x, y, z = np.square(2 * np.array(half))
    b.add_body("root", mass, inertia=mass / 12 * np.diag([y + z, x + z, x + y]))
    for k, (sx, sy) in enumerate(((-1, -1), (-1, 1), (1, -1), (1, 1))):
        b.add_frame(CORNERS[k], "root", transform(p=(sx * half[0], sy * half[1], -half[2])))
    return fj.Robot(b.build(), backend="compiled")


def ball(radius: float = 0.1, mass: float = 1.5) -> fj.Robot:
    b = fj.ModelBuilder("ball")
    b.add_joint("root", "free")
    b.add_body("root", mass, inertia=0.4 * mass * radius**2 * np.eye(3))
    return fj.Robot(b.build(), backend="compiled")


def state(robot: fj.Robot, height: float, velocity: tuple[float, float, float] = (0, 0, 0)) -> tuple:
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[2], v[:3] = height, velocity
    return q, v


# Friction


@pytest.mark.parametrize("dt", [4e-3, 2e-3])
def test_a_box_slides_as_far_as_coulomb_says(dt: float) -> None:
    """v^2 / (2 mu g), less v dt / 2 for steps that use the velocity at their ends; and the right forces on the way."""
    robot = box()
    ground = fj.Ground(robot, CORNERS, friction=0.4)
    v0 = 1.0
    motion = robot.simulate(*state(robot, 0.1, (v0, 0, 0)), contacts=ground, dt=dt, duration=0.4)
    true = v0**2 / (2 * 0.4 * G)
    assert abs(motion.q[-1, 0] - (true - v0 * dt / 2)) < 0.1 * v0 * dt
    assert np.abs(motion.v[-1]).max() < 1e-9
    assert np.abs(motion.q[:, 2] - 0.1).max() < 1e-9
    forces = motion.forces.reshape(-1, 4, 3).sum(1)
    sliding, standing = forces[motion.t < 0.9 * v0 / (0.4 * G)], forces[motion.t > 1.1 * v0 / (0.4 * G)]
    agree(sliding, np.tile([-0.4 * 2 * G, 0, 2 * G], (len(sliding), 1)), 1e-6)
    agree(standing, np.tile([0, 0, 2 * G], (len(standing), 1)), 1e-6)


@pytest.mark.parametrize(("angle", "slides"), [(0.28, False), (0.32, True)])
def test_a_box_on_a_slope_slides_beyond_the_friction_angle(angle: float, slides: bool) -> None:
    """mu = 0.3: the friction angle is 0.2915. On a height field, which is a slope between its two ends."""
    robot = box()
    x = np.array([-5.0, 5.0])
    terrain = fj.HeightField(x, x, np.tan(-angle) * x[:, None] + np.zeros(2))
    ground = fj.Ground(robot, CORNERS, friction=0.3, terrain=terrain)
    c, s = np.cos(angle), np.sin(angle)
    q, v = state(robot, 0.1 * c)
    q[0], q[3:7] = 0.1 * s, (0, np.sin(angle / 2), 0, np.cos(angle / 2))
    motion = robot.simulate(q, v, contacts=ground, dt=2e-3, duration=0.3)
    down = motion.v[-1, 0]  # in the box's own axes, which lie along the slope
    if slides:
        assert abs(down - 0.3 * G * (s - 0.3 * c)) < 1e-3
    else:
        assert abs(down) < 1e-8
        assert np.linalg.norm(motion.q[-1, :3] - q[:3]) < 1e-8


def test_a_sliding_ball_ends_up_rolling() -> None:
    """At 5/7 of its speed, whatever the friction; the angular momentum about a point of the ground is kept."""
    robot = ball()
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], friction=0.3)
    motion = robot.simulate(*state(robot, 0.1, (1.4, 0, 0)), contacts=ground, dt=2e-3, duration=0.4)
    R = robot.frame_placement(motion.q[-1], "root")[:3, :3]
    assert abs((R @ motion.v[-1, :3])[0] - 1.0) < 1e-4
    assert abs((R @ motion.v[-1, 3:])[1] - 10.0) < 1e-3


def test_a_ball_rolls_down_a_slope_to_first_order() -> None:
    """v = 5/7 g sin(angle) t; the error halves with the step, as docs say of contact."""
    robot, angle = ball(), 0.2
    slope = fj.Plane((np.sin(angle), 0, np.cos(angle)))
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], friction=0.9, terrain=slope)
    q, v = state(robot, 0.1 * np.cos(angle))
    q[0] = 0.1 * np.sin(angle)
    errors = []
    for dt in (4e-3, 2e-3):
        motion = robot.simulate(q, v, contacts=ground, dt=dt, duration=0.4)
        errors.append(abs(np.linalg.norm(motion.q[-1, :3] - q[:3]) - 5 / 14 * G * np.sin(angle) * 0.4**2))
    assert 1.7 < errors[0] / errors[1] < 2.3
    assert errors[0] < 2e-3


# Impacts


@pytest.mark.parametrize("restitution", [0.5, 0.9, 1.0])
def test_a_ball_bounces_with_its_restitution(restitution: float) -> None:
    """Exactly: between bounces its energy is e^2 of what it was, and the ground is touched and never entered."""
    robot = ball()
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], restitution=restitution)
    motion = robot.simulate(*state(robot, 0.6), contacts=ground, dt=2e-3, duration=0.7)
    energy = motion.v[:, 2] ** 2 / 2 + G * (motion.q[:, 2] - 0.1)
    fall = np.sqrt(2 * 0.5 / G)
    bounces = np.floor(np.maximum(0, motion.t - fall) / (2 * restitution * fall)) + (motion.t > fall)
    first, once = bounces == 0, bounces == 1
    agree(energy[first], np.full(first.sum(), 0.5 * G), 1e-10)
    agree(energy[once], np.full(once.sum(), restitution**2 * 0.5 * G), 1e-9)
    assert ground.gap(robot, motion.q).min() > -2e-9


def test_a_ball_keeps_its_energy_and_rests_at_zenos_time() -> None:
    robot, dt = ball(), 2e-3
    elastic = fj.Ground(robot, [fj.Foot("root", radius=0.1)], restitution=1.0)
    motion = robot.simulate(*state(robot, 1.1), contacts=elastic, dt=dt, duration=6.0)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    agree(energy, np.full(len(motion), energy[0]), 1e-9)
    e, height = 0.8, 0.5
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], restitution=e)
    motion = robot.simulate(*state(robot, 0.1 + height), contacts=ground, dt=dt, duration=3.2)
    moves = np.flatnonzero(np.abs(motion.v[:, 2]) > 1e-8)[-1]
    assert abs(motion.t[moves] - np.sqrt(2 * height / G) * (1 + e) / (1 - e)) < 3 * dt


@pytest.mark.parametrize(("restitution", "friction"), [(1.0, 0.8), (0.7, 0.3), ((1.0, 0.0, 0.5, 0.9), 0.5)])
def test_bounces_with_friction_create_no_energy(restitution: float, friction: float) -> None:
    """A tumbling box; in flight its energy is kept to the second order of the method."""
    robot = box()
    ground = fj.Ground(robot, CORNERS, friction=friction, restitution=restitution)
    q, v = state(robot, 0.5, (0.5, 0.2, 0))
    v[3:] = (1.5, -1.0, 0.5)
    motion = robot.simulate(q, v, contacts=ground, dt=2e-3, duration=1.0)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    assert energy.max() < energy[0] * (1 + 1e-5)
    assert np.abs(np.diff(motion.v[:, 2])).max() > 1  # it has bounced


def test_a_ball_comes_to_rest() -> None:
    robot = ball()
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], restitution=0.5)
    motion = robot.simulate(*state(robot, 0.3), contacts=ground, dt=4e-3, duration=1.2)
    assert abs(motion.q[-1, 2] - 0.1) < 1e-4
    assert np.abs(motion.v[-1]).max() < 1e-9
    agree(motion.forces[-1], [0, 0, 1.5 * G], 1e-9)


@pytest.mark.parametrize("dt", [4e-3, 2e-3])
def test_without_restitution_nothing_sinks_in(dt: float) -> None:
    """A tumbling box: only the turning of a step, which is of second order, can make its corners penetrate."""
    robot = box()
    ground = fj.Ground(robot, CORNERS, friction=0.5)
    q, v = state(robot, 0.5, (0.5, 0.2, 0))
    v[3:] = (1.5, -1.0, 0.5)
    motion = robot.simulate(q, v, contacts=ground, dt=dt, duration=0.6)
    agree(ground.gap(robot, motion.q)[7], ground.gap(robot, motion.q[7]), 1e-12)
    gaps = np.array([ground.gap(robot, x) for x in motion.q])
    assert gaps.min() > -15.0 * dt**2
    assert gaps[-1].max() < 0.2  # it has landed


def test_feet_that_begin_in_the_ground_are_told_and_pushed_out_gently() -> None:
    """Not higher above the ground than they were below it."""
    robot = box()
    ground = fj.Ground(robot, CORNERS)
    with pytest.warns(SimulationWarning, match=r"foot 'corner0' begins 0\.02 m below the ground"):
        motion = robot.simulate(*state(robot, 0.08), contacts=ground, dt=2e-3, duration=0.4)
    assert motion.q[:, 2].max() < 0.12
    assert abs(motion.q[-1, 2] - 0.1) < 1e-3


def test_stairs_are_walls() -> None:
    """A ball of half a stair's height rolls against it, stays below, and gains no energy."""
    robot = ball(0.05)
    terrain = fj.HeightField([-2, 0.3, 0.3001, 2], [-1, 1], np.array([[0, 0], [0, 0], [0.1, 0.1], [0.1, 0.1]], float))
    ground = fj.Ground(robot, [fj.Foot("root", radius=0.05)], friction=0.3, terrain=terrain)
    q, v = state(robot, 0.05, (1.0, 0, 0))
    motion = robot.simulate(q, v, contacts=ground, dt=2e-3, duration=0.5)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    assert energy.max() < energy[0] * (1 + 1e-3)
    assert abs(motion.q[:, 0].max() - 0.25) < 2e-3
    assert motion.q[:, 2].max() < 0.08


def test_distances_to_a_height_field_are_those_to_its_nearest_point() -> None:
    """Against a search over many points of the surface; below it they are negative."""
    rng = np.random.default_rng(0)
    x, y = np.linspace(0, 1, 6), np.linspace(0, 1, 5)
    z = 0.2 * rng.uniform(size=(6, 5))
    terrain = fj.HeightField(x, y, z)
    points = np.column_stack([rng.uniform(0.3, 0.7, (20, 2)), rng.uniform(-0.1, 0.4, 20)])
    distance, normal = terrain.nearest(points)
    agree(np.linalg.norm(normal, axis=-1), np.ones(20), 1e-12)
    s = np.linspace(0, 1, 60)
    surface = []
    for i in range(5):
        for j in range(4):
            a, b, c, d = (np.array([x[i + m], y[j + n], z[i + m, j + n]]) for m, n in ((0, 0), (1, 0), (0, 1), (1, 1)))
            u, w = (g.ravel() for g in np.meshgrid(s, s))
            low, high = u >= w, u < w
            surface.append(a + u[low, None] * (b - a) + w[low, None] * (d - b))
            surface.append(a + w[high, None] * (c - a) + u[high, None] * (d - c))
    cloud = np.concatenate(surface)
    true = np.linalg.norm(points[:, None] - cloud, axis=-1).min(-1)
    assert np.abs(np.abs(distance) - true).max() < 5e-3
    agree(terrain.nearest(points - distance[:, None] * normal).distance, np.zeros(20), 1e-9, floor=1.0)


# Balances


def test_momentum_changes_by_what_gravity_and_contacts_give() -> None:
    robot = fj.load("quadruped", backend="compiled")
    ground = fj.Ground(robot, [fj.Foot(f, radius=RADIUS) for f in FEET])
    q, v = crouched(robot)
    v[:3] = (0.5, 0.2, -1.0)
    dt = 1e-3
    motion = robot.simulate(q, v, springs(q), ground, dt=dt, duration=0.1)
    momentum = robot.centroidal_momentum(motion.q, motion.v)[:, :3]
    forces = motion.forces.reshape(-1, 4, 3).sum(1)[:-1] + robot.mass * np.array([0, 0, -G])
    assert np.abs(forces).max() > 200  # it lands
    agree(momentum[-1] - momentum[0], dt * forces.sum(0), 1e-3, "but for the turning of axes within a step")


def test_friction_takes_energy_and_gives_none() -> None:
    robot = box()
    ground = fj.Ground(robot, CORNERS, friction=0.3)
    q, v = state(robot, 0.1, (1.0, 0.5, 0))
    v[5] = 3.0
    motion = robot.simulate(q, v, contacts=ground, dt=2e-3, duration=0.2)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    assert (np.diff(energy) < 1e-9 * energy[0]).all()
    assert energy[-1] < 0.9 * energy[0]


def crouched(robot: fj.Robot) -> tuple[np.ndarray, np.ndarray]:
    """A quadruped with bent knees, its feet on the ground."""
    q = robot.neutral()
    q[8::3], q[9::3] = 0.6, -1.2
    q[2] = RADIUS - min(robot.frame_placement(q, f)[2, 3] for f in FEET)
    return q, np.zeros(robot.nv)


def springs(goal: np.ndarray, hold: np.ndarray | None = None):
    """Joint springs and dampers, and torques to hold the robot up."""

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(len(v)) if hold is None else hold.copy()
        tau[6:] += 400 * (goal[7:] - q[7:]) - 10 * v[6:]
        return tau

    return controller


def test_a_standing_quadruped_stands_and_its_feet_do_not_creep() -> None:
    """Feet that are points stay where they came down, while the body above them still sways."""
    robot = fj.load("quadruped", backend="compiled")
    q, v = crouched(robot)
    q = robot.integrate(q, 0.02 * np.eye(robot.nv)[3])  # leaning a little, so that forces are not symmetric
    q[2] -= min(robot.frame_placement(q, f)[2, 3] for f in FEET)
    ground = fj.Ground(robot, FEET, friction=0.9)
    motion = robot.simulate(q, v, springs(q), ground, dt=2e-3, duration=0.8)
    places = np.array([[robot.frame_placement(x, f)[:3, 3] for f in FEET] for x in motion.q[[200, 300, 400]]])
    assert np.abs(motion.q[200] - motion.q[400]).max() > 1e-5
    assert np.abs(places - places[0]).max() < 1e-7
    assert motion.residual.max() < 1e-10
    forces = motion.forces[-1].reshape(4, 3)
    agree(forces.sum(0)[2], robot.mass * G, 1e-2)
    assert (forces[:, 2] > 0).all()


def test_on_the_ground_as_held_by_contacts() -> None:
    """While feet stick, one small step is the one that bilateral contacts at the feet's lowest points make."""
    robot = fj.load("quadruped", backend="compiled")
    q, v = crouched(robot)
    ground = fj.Ground(robot, [fj.Foot(f, radius=RADIUS) for f in FEET], friction=2.0)
    tau = robot.contact_inverse_dynamics(q, v, v, fj.Contacts(robot, [fj.PointContact(f) for f in FEET])).tau
    tau[6:] += np.random.default_rng(0).normal(size=12)
    dt = 1e-4
    stepped = robot.simulate(q, v, tau, ground, dt=dt, duration=3 * dt, passive=False)
    low = [robot.frame_placement(q, f)[:3, :3].T @ [0, 0, -RADIUS] for f in FEET]
    held = fj.Contacts(robot, [fj.PointContact(f, offset=p) for f, p in zip(FEET, low, strict=True)])
    a, forces = robot.constrained_dynamics(q, v, tau, held)
    agree(stepped.v[1] / dt, a, 1e-6)
    agree(stepped.forces[0], forces, 1e-6)


# The solver


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(0, 10_000))
def test_percussions_obey_the_contact_law(n: int, seed: int) -> None:
    """Random problems with strong coupling: open or pressed, sticking or sliding against the velocity."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3 * n, 6 + 3 * n))
    G_, b, mu = A @ A.T / 10, rng.normal(size=3 * n), rng.uniform(0, 0.5, n)
    b[2::3] -= 0.5
    found = gauss_seidel.solve(G_, b, mu)
    assert found.converged
    assert found.residual == gauss_seidel.residual(G_, b, mu, found.P)
    P, gamma = found.P.reshape(n, 3), (G_ @ found.P + b).reshape(n, 3)
    size = 1e-7 * max(1.0, np.abs(found.P).max())
    assert (P[:, 2] >= 0).all()
    assert (gamma[:, 2] > -size).all()
    assert np.abs(P[:, 2] * gamma[:, 2]).max() < size
    drag, speed = np.linalg.norm(P[:, :2], axis=1), np.linalg.norm(gamma[:, :2], axis=1)
    assert (drag <= mu * P[:, 2] + size).all()
    for k in range(n):
        if speed[k] > 1e-4 and P[k, 2] > 1e-4:
            assert np.abs(P[k, :2] + mu[k] * P[k, 2] * gamma[k, :2] / speed[k]).max() < 1e-5


def test_a_wrong_answer_has_a_residual() -> None:
    G_, b, mu = np.eye(3), np.array([0.1, 0.0, -1.0]), np.array([0.5])
    right = gauss_seidel.solve(G_, b, mu)
    agree(right.P, [-0.1, 0, 1], 1e-9)
    assert gauss_seidel.residual(G_, b, mu, right.P) < 1e-10
    for wrong in ([0, 0, 1], [-0.1, 0, 0.9], [-0.6, 0, 1], [-0.1, 0, 1.1]):
        assert gauss_seidel.residual(G_, b, mu, np.array(wrong, float)) > 1e-2


# Smooth motion


def spinning() -> tuple[fj.Robot, np.ndarray, np.ndarray]:
    robot = fj.Robot(fj.models.random_tree(5, seed=2), backend="compiled")
    rng = np.random.default_rng(0)
    return robot, robot.random_configuration(rng), rng.normal(size=robot.nv)


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi-implicit", 1), ("time-stepping", 2)])
def test_integrators_have_their_order(method: str, order: int) -> None:
    """On a manifold: free, spherical and planar joints; errors shrink by 2^order when the step is halved."""
    robot, q, v = spinning()
    true = robot.simulate(q, v, dt=0.0025, duration=0.16, method="rk4", passive=False).q[-1]
    ends = [robot.simulate(q, v, dt=dt, duration=0.16, method=method, passive=False).q[-1] for dt in (0.02, 0.01)]
    errors = [np.abs(robot.difference(end, true)).max() for end in ends]
    assert 0.7 * 2**order < errors[0] / errors[1] < 1.45 * 2**order


def test_free_motion_keeps_energy_and_momentum() -> None:
    robot = fj.load("quadruped", backend="compiled").with_gravity((0, 0, 0))
    rng = np.random.default_rng(0)
    motion = robot.simulate(
        robot.random_configuration(rng), rng.normal(size=robot.nv), dt=4e-3, duration=0.2, passive=False
    )
    energy, momentum = (f(motion.q, motion.v) for f in (robot.kinetic_energy, robot.centroidal_momentum))
    agree(energy, np.full(len(motion), energy[0]), 1e-6)
    agree(momentum, np.tile(momentum[0], (len(motion), 1)), 1e-6)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "time-stepping"])
@pytest.mark.parametrize("backend", ["compiled", "numpy"])
def test_what_flies_keeps_its_momentum_exactly(method: str, backend: str) -> None:
    """But for the weight's; joints push and pull each other, and semi-implicit steps alone would turn it."""
    robot = fj.Robot(fj.models.quadruped(), backend=backend)
    rng = np.random.default_rng(0)
    q, v, tau = robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    tau[:6] = 0
    motion = robot.simulate(q, v, tau, dt=4e-3, duration=0.08, method=method, passive=False)
    momentum = robot.centroidal_momentum(motion.q, motion.v)
    momentum[:, 2] += robot.mass * G * motion.t
    agree(momentum, np.tile(momentum[0], (len(motion), 1)), 1e-11)


def test_contacts_hold_while_time_passes() -> None:
    """Baumgarte pulls a point that begins 1 mm away back to where it is held."""
    robot = fj.load("arm", backend="compiled")
    q = np.array([0.3, 0.5, -0.2, 1.2, 0.4, 0.6, 0.1])
    at = robot.frame_placement(q, "tool")[:3, 3] + np.array([1e-3, 0, 0])
    contacts = fj.Contacts(robot, [fj.PointContact("tool", at=at)], baumgarte=(400.0, 40.0))
    motion = robot.simulate(q, np.zeros(7), contacts=contacts, dt=5e-3, duration=0.5)
    away = np.array([np.linalg.norm(robot.frame_placement(x, "tool")[:3, 3] - at) for x in motion.q])
    assert away[0] > 0.99e-3
    assert away[-1] < 1e-6
    t = motion.t
    agree(away, 1e-3 * (1 + 20 * t) * np.exp(-20 * t), 1e-4, "critically damped")


# Controllers, interruption, files


def test_controllers_are_asked_once_a_step_and_recorded() -> None:
    robot = fj.load("arm", backend="compiled")
    asked = []

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
        asked.append(t)
        q[:], v[:] = 0, 0  # spoils only its own copies
        return [t] * 7

    q, zero = 0.1 * np.ones(7), np.zeros(7)
    motion = robot.simulate(q, zero, controller, dt=0.01, duration=0.05)
    assert np.allclose(asked, 0.01 * np.arange(5))
    assert np.allclose(motion.tau[:5], 0.01 * np.arange(5)[:, None])
    assert motion.t.shape == (6,)
    constant = robot.simulate(q, zero, robot.gravity(q), dt=0.01, duration=0.05)
    assert np.abs(constant.v).max() < 1e-9


def test_what_was_computed_is_kept_when_interrupted() -> None:
    robot = fj.load("arm", backend="compiled")

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t > 0.055:
            raise KeyboardInterrupt
        return np.zeros(7)

    with pytest.warns(SimulationWarning, match=r"interrupted at t = 0\.06 s"):
        motion = robot.simulate(np.zeros(7), np.ones(7), controller, dt=0.01, duration=1.0)
    whole = robot.simulate(np.zeros(7), np.ones(7), dt=0.01, duration=0.06)
    assert not motion.complete
    assert whole.complete
    assert "interrupted" in repr(motion)
    assert np.array_equal(motion.q, whole.q)


def test_a_motion_that_blows_up_is_an_error_that_keeps_what_there_was() -> None:
    robot = fj.load("arm", backend="compiled")
    with pytest.raises(SimulationError, match="smaller dt") as caught:
        robot.simulate(np.zeros(7), np.ones(7), lambda t, q, v: -1e5 * v, dt=0.01, duration=1.0, passive=False)
    kept = caught.value.trajectory
    assert isinstance(kept, Trajectory)
    assert 0 < len(kept) < 100
    assert np.isfinite(kept.q).all()


def test_contacts_that_become_singular_end_a_simulation_with_what_there_was() -> None:
    """The arm is stretched out and turns: it cannot keep its tool from accelerating inward."""
    robot = fj.load("arm", backend="compiled")
    with pytest.raises(SimulationError, match=r"at t = 0 s: contacts tool: singular") as caught:
        robot.simulate(
            robot.neutral(), np.ones(7), contacts=fj.Contacts(robot, [fj.PointContact("tool")]), duration=0.1
        )
    assert len(caught.value.trajectory) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("convention", ["kindr", "drake"])
def test_the_same_motion_in_every_convention(convention: str, tmp_path: Path) -> None:
    """States, torques and what the controller is asked are the convention's; the motion is the same."""
    robot = fj.load("quadruped", backend="compiled")
    own = robot.with_convention(convention)
    q, v = crouched(robot)
    q = robot.integrate(q, 0.3 * np.eye(robot.nv)[5])
    v[:3], push = (0.5, 0.2, -1.0), np.linspace(-5, 5, robot.nv)

    def pushed(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return push - 0.5 * v

    def here(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        plain = fj.convert(own, robot, q, v)
        tau = np.asarray(fj.convert(robot, own, plain.q, tau=pushed(t, plain.q, np.asarray(plain.v))).tau)
        q[:], v[:] = 0, 0  # spoils only its own copies
        return tau

    for contacts in (fj.Ground(own, FEET), fj.Contacts(own, [fj.PointContact("LF_foot")]), None):
        motion = robot.simulate(q, v, pushed, contacts, dt=4e-3, duration=0.04)
        start = fj.convert(robot, own, q, v)
        mine = own.simulate(start.q, np.asarray(start.v), here, contacts, dt=4e-3, duration=0.04)
        want = fj.convert(robot, own, motion.q, motion.v, tau=motion.tau)
        for name in ("q", "v", "tau"):
            agree(getattr(mine, name)[:-1], getattr(want, name)[:-1], 1e-9, name)
        agree(mine.q[-1], want.q[-1], 1e-9)
        agree(mine.forces, motion.forces, 1e-9)
        assert (mine.convention, motion.convention) == (convention, "pinocchio")
        back = Trajectory.load(mine.save(tmp_path / "own.npz"))
        agree(back.standard().q, motion.q, 1e-9)
        agree(back.standard().tau, motion.tau, 1e-9)
        agree(Playback(back).q(motion.t), motion.q, 1e-9)
    constant = own.simulate(start.q, np.asarray(start.v), np.eye(18)[0], dt=4e-3, duration=0.04)
    agree(constant.tau, np.tile(np.eye(18)[0], (11, 1)), 1e-12, "constant in the convention's axes")


def test_where_forces_act_and_what_the_ground_looks_like() -> None:
    """To be drawn: arrows begin on the ground, or where contacts hold, with forces in world axes."""
    robot = ball()
    x = np.linspace(-1, 1, 5)
    for terrain in (fj.Plane((0.1, 0.2, 3.0), -0.3), fj.HeightField(x, x, -0.3 + 0.05 * x[:, None] * x)):
        ground = fj.Ground(robot, [fj.Foot("root", radius=0.1)], terrain=terrain)
        motion = robot.simulate(*state(robot, 0.0), contacts=ground, dt=5e-3, duration=0.3)
        points, forces = np.moveaxis(motion.arrows[:, 0], 1, 0)
        agree(forces, motion.forces, 0.0)
        assert np.abs(forces[-1]).max() > 1.0
        assert np.abs(terrain.nearest(points).distance - ground.gap(robot, motion.q)[:, 0]).max() < 1e-4
        assert np.abs(terrain.nearest(motion.surface.reshape(-1, 3)).distance).max() < 1e-12
        low, high = motion.surface.min((0, 1)), motion.surface.max((0, 1))
        assert ((low < points) & (points < high))[:, :2].all()
    b = fj.ModelBuilder("pendulum")
    b.add_joint("hinge", "revolute", axis=(0, 1, 0))
    b.add_body("hinge", 1.0, (0.5, 0, 0), 0.1 * np.eye(3))
    b.add_joint("slide", "prismatic", axis=(0, 0, 1))
    b.add_body("slide", 1.0)
    two = fj.Robot(b.build())
    told = []
    for axes in ("local", "world_aligned"):
        held = [fj.PointContact("hinge", other="slide", offset=(1.0, 0, 0), axes=axes)]
        contacts = fj.Contacts(two, held, damping=1e-6)
        told.append(two.simulate([0.7, 0.0], [0.3, 0.1], contacts=contacts, dt=0.01, duration=0.05).arrows)
    agree(told[0][:-1], told[1][:-1], 1e-9, "whatever the axes of the forces")
    agree(told[0][0, 0, 0], [np.cos(0.7), 0, -np.sin(0.7)], 1e-12)


def test_forces_are_told_by_contact(tmp_path: Path) -> None:
    """A point and a surface, and two feet of one frame."""
    robot = fj.load("arm", backend="compiled")
    q, zero = np.array([0.3, 0.5, -0.2, 1.2, 0.4, 0.6, 0.1]), np.zeros(7)
    held = [fj.PointContact(robot.joint_names[3], offset=(0, 0.1, 0)), fj.SurfaceContact("tool")]
    contacts = fj.Contacts(robot, held, damping=1e-3)
    motion = robot.simulate(q, zero, contacts=contacts, dt=0.01, duration=0.05)
    motion.plot(tmp_path / "held.png")
    for x, y in zip(motion.split().values(), contacts.split(motion.forces).values(), strict=True):
        assert np.array_equal(x, y)
    assert [x.shape for x in motion.split().values()] == [(6, 3), (6, 6)]
    ground = fj.Ground(robot, ["tool", fj.Foot("tool", offset=(0.1, 0, 0))], terrain=fj.Plane(height=-5))
    assert list(robot.simulate(q, zero, contacts=ground, dt=0.01, duration=0.05).split()) == ["tool 1", "tool 2"]
    assert robot.simulate(q, zero, dt=0.01, duration=0.05).split() == {}


def test_files(tmp_path: Path) -> None:
    robot = box()
    motion = robot.simulate(*state(robot, 0.12), contacts=fj.Ground(robot, CORNERS), dt=5e-3, duration=0.1)
    back = Trajectory.load(motion.save(tmp_path / "motion.npz"))
    for name in ("t", "q", "v", "tau", "forces", "residual"):
        assert np.array_equal(getattr(back, name), getattr(motion, name)), name
    assert (back.contacts, back.robot, back.complete) == (CORNERS, "box", True)
    assert back.model is not None
    again = fj.Robot(back.model, backend="numpy")
    agree(again.gravity(back.q[-1]), robot.gravity(back.q[-1]), 1e-14)
    motion.plot(tmp_path / "motion.png")
    assert (tmp_path / "motion.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["motion.npz", "motion.png"]
    for write, name in ((motion.save, "such.npz"), (motion.plot, "such.png")):
        with pytest.raises(InputError, match="cannot be written"):
            write(tmp_path / "no" / name)
    np.savez(tmp_path / "odd.npz", format="featherjet trajectory 1", t=np.zeros(3))
    with pytest.raises(InputError, match="not a featherjet trajectory file: array 'q' is missing"):
        Trajectory.load(tmp_path / "odd.npz")


# What cannot be


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"dt": 0.0}, InputError, "positive time"),
        ({"dt": -0.1}, InputError, "positive time"),
        ({"dt": np.nan}, InputError, "finite"),
        ({"dt": 2.0, "duration": 1.0}, InputError, "does not fit"),
        ({"dt": 1e-12, "duration": 1.0}, InputError, "steps"),
        ({"duration": -1.0}, InputError, "positive time"),
        ({"method": "euler"}, UnknownName, "rk4"),
        ({"controller": np.zeros(3)}, InputError, "nv = 7"),
        ({"controller": lambda t, q, v: np.zeros(3)}, InputError, "controller's tau at t = 0"),
        ({"controller": lambda t, q, v: np.full(7, np.nan)}, InputError, "finite"),
        ({"contacts": "tool"}, InputError, r"expected fj\.Ground"),
        ({"controller": np.zeros((2, 7))}, InputError, r"torques \(7,\)"),
    ],
)
def test_bad_simulations(settings: dict, error: type[Exception], message: str) -> None:
    robot = fj.load("arm", backend="compiled")
    with pytest.raises(error, match=message):
        robot.simulate(**{"q": np.zeros(7), "v": np.zeros(7), **settings})


@pytest.mark.parametrize(
    ("feet", "settings", "error", "message"),
    [
        (["tol"], {}, UnknownName, "did you mean: tool"),
        (["tool", "tool"], {}, InputError, "given twice"),
        ([], {}, InputError, "at least one"),
        ("tool", {}, InputError, "a list"),
        (["tool"], {"friction": -0.1}, InputError, "must not be negative"),
        (["tool"], {"friction": [0.1, 0.2]}, InputError, "one for each of 1 feet"),
        (["tool"], {"restitution": -0.1}, InputError, "from 0 to 1"),
        (["tool"], {"restitution": 1.5}, InputError, "from 0 to 1"),
        ([fj.Foot("tool", radius=-0.1)], {}, InputError, "radius"),
        ([fj.Foot("tool", radius="a")], {}, InputError, "radius"),  # type: ignore[arg-type]
        ([fj.Foot("tool", offset=(1, 2))], {}, InputError, "offset"),
        (["tool"], {"terrain": 3}, InputError, "terrain"),
        (["tool"], {"terrain": fj.Plane}, InputError, r"expected fj\.Plane"),
    ],
)
def test_bad_ground(feet: object, settings: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fj.Ground(fj.load("arm", backend="compiled"), feet, **settings)  # type: ignore[arg-type]


def test_bad_terrain_and_other_robots() -> None:
    with pytest.raises(InputError, match="normal"):
        fj.Plane((0, 0, 0))
    with pytest.raises(InputError, match="height"):
        fj.Plane(height=[1, 2])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a robot first"):
        fj.Ground(None, ["tool"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="increasing"):
        fj.HeightField([0, 0], [0, 1], np.zeros((2, 2)))
    with pytest.raises(InputError, match="heights"):
        fj.HeightField([0, 1], [0, 1], np.zeros((2, 3)))
    robot = fj.load("arm", backend="compiled")
    with pytest.raises(InputError, match="another robot"):
        robot.simulate(np.zeros(7), np.zeros(7), contacts=fj.Ground(box(), CORNERS))


@given(arrays(float, (6, 2), elements=st.floats(-0.4, 0.4)))
def test_height_fields_meet_their_points_and_go_on_level(points: np.ndarray) -> None:
    """z = 2 + x/2 - y/4 on an uneven grid is a plane, normals too; beyond the edges the ground goes on level."""
    x, y = np.array([-2.0, -0.5, 2.0]), np.array([-2.0, 1.0, 2.0])
    field = fj.HeightField(x, y, 2 + x[:, None] / 2 - y / 4)
    up = np.array([-0.5, 0.25, 1.0]) / np.linalg.norm([-0.5, 0.25, 1.0])
    height = 2 + points @ [0.5, -0.25]
    for away in (0.3, -0.3):  # above and below
        distance, normal = field.nearest(np.column_stack([points, height + away]))
        agree(normal, np.tile(up, (6, 1)), 1e-9)
        agree(distance, np.full(6, away * up[2]), 1e-9)
    beyond = np.column_stack([points + np.array([8.0, 9.0]), np.full(6, 3.0)])
    distance, normal = field.nearest(beyond)
    agree(normal, np.tile([0.0, 0.0, 1.0], (6, 1)), 1e-9)
    agree(distance, np.full(6, 3.0 - (2 + 1 - 0.5)), 1e-9)


def test_a_simulated_motion_can_be_played(tmp_path):
    robot = fj.load("arm")
    q = robot.random_configuration(1)
    path = robot.simulate(q, np.zeros(robot.nv), dt=0.01, duration=0.1, progress=False).save(tmp_path / "fall.npz")
    motion = Playback(Trajectory.load(path))
    t = motion.trajectory.t
    np.testing.assert_allclose(motion.q(t), motion.trajectory.q, atol=1e-12)
    between = motion.q((t[3] + t[4]) / 2)
    np.testing.assert_allclose(
        between, robot.interpolate(motion.trajectory.q[3], motion.trajectory.q[4], 0.5), atol=1e-12
    )
    assert motion.tau(motion.times(7)).shape == (7, robot.nv)
    assert motion.energy_rate(0.05) == 0
    assert curves(motion).energy[-1] == 0
    with pytest.raises(InputError, match="cannot be played"):
        Playback(replace(motion.trajectory, model=None))


def test_forces_that_settled_are_not_warned_of() -> None:
    """Friction in joints of a falling robot: percussions are small, and the last change relative to them is not."""
    with pytest.warns(ModelWarning, match="friction"):
        robot = fj.load("talos_full", "free", backend="compiled")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = robot.simulate(robot.neutral(), np.zeros(robot.nv), dt=0.001, duration=0.03, progress=False)
    assert 0 < motion.residual.max() < 1e-11
