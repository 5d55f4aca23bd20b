"""Axes of free and planar joints turn within a step: what rolls, spins and flies, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.model.builder import transform
from helpers import agree

G, RADIUS = 9.81, 0.1
BACKENDS = ("compiled", "numpy")


def ball(backend: str = "compiled", gravity: tuple[float, float, float] = (0, 0, -G)) -> fj.Robot:
    b = fj.ModelBuilder("ball")
    b.add_joint("root", "free")
    b.add_body("root", 1.0, inertia=0.4 * RADIUS**2 * np.eye(3))
    return fj.Robot(b.build(), backend=backend).with_gravity(gravity)


def disc(backend: str = "compiled") -> fj.Robot:
    """In the plane of x and z, which are its joint's x and y."""
    b = fj.ModelBuilder("disc")
    b.add_joint("root", "planar", placement=transform(R=np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])))
    b.add_body("root", 1.0, inertia=0.5 * RADIUS**2 * np.eye(3))
    return fj.Robot(b.build(), backend=backend)


def rolling(robot: fj.Robot, omega: float, dt: float, duration: float) -> fj.Trajectory:
    """At omega [rad/s] along x, without slipping."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    v[0] = omega * RADIUS
    if robot.nv == 3:
        q[1], v[2] = RADIUS, -omega
    else:
        q[2], v[4] = RADIUS, omega
    ground = fj.Ground(robot, [fj.Foot("root", radius=RADIUS)], friction=0.8)
    return robot.simulate(q, v, contacts=ground, dt=dt, duration=duration)


@pytest.mark.parametrize("omega", [50.0, 140.0])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("body", [ball, disc])
def test_what_rolls_freely_keeps_its_energy(body, backend: str, omega: float) -> None:
    """And its place: x = omega r t, at the height of its radius."""
    robot, duration = body(backend), 4.0 if backend == "compiled" else 0.3
    motion = rolling(robot, omega, 1e-2, duration)
    energy = robot.kinetic_energy(motion.q, motion.v)
    agree(energy, np.full(len(motion), energy[0]), 1e-10)
    agree(motion.q[:, 0], omega * RADIUS * motion.t, 1e-10)
    assert np.ptp(motion.q[:, 1 if body is disc else 2]) < 1e-12


@pytest.mark.parametrize("dt", [1e-2, 4e-3])
def test_a_pulled_ball_gains_five_sevenths_of_the_pull(dt: float) -> None:
    pull = 5.0
    robot = ball(gravity=(pull, 0, -G))
    q = robot.neutral()
    q[2] = RADIUS
    ground = fj.Ground(robot, [fj.Foot("root", radius=RADIUS)], friction=0.8)
    motion = robot.simulate(q, np.zeros(6), contacts=ground, dt=dt, duration=4.0)
    R = robot.frame_placement(motion.q, "root")[:, :3, :3]
    agree((R @ motion.v[:, :3, None])[:, 0, 0], pull * 5 / 7 * motion.t, 1e-12)


def test_a_spinning_ball_bounces_as_high_as_it_fell() -> None:
    """Without friction; it had gained 3 % in a second."""
    robot = ball()
    ground = fj.Ground(robot, [fj.Foot("root", radius=RADIUS)], friction=0.0, restitution=1.0)
    q = robot.neutral()
    q[2] = 0.3
    motion = robot.simulate(q, np.array([0.4, 0, 0, 3.0, 50.0, 1.0]), contacts=ground, dt=1e-2, duration=2.0)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    agree(energy, np.full(len(motion), energy[0]), 1e-10)
    assert np.sum(np.diff(np.sign(motion.v[:, 2])) != 0) > 4


@pytest.mark.parametrize("body", [ball, disc])
def test_what_spins_flies_on_a_parabola(body) -> None:
    robot = body()
    q, v, omega = robot.neutral(), np.zeros(robot.nv), 140.0
    up, spin = (1, 2) if body is disc else (2, 4)
    v[0], v[up], v[spin] = 1.0, 2.0, omega
    motion = robot.simulate(q, v, dt=1e-2, duration=1.0, method="time-stepping")
    agree(motion.q[:, 0], motion.t, 1e-11)
    agree(motion.q[:, up], 2 * motion.t - G / 2 * motion.t**2, 1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
def test_limits_of_joints_take_no_momentum(backend: str) -> None:
    """An arm that floats, and swings against its limit."""
    b = fj.ModelBuilder("arm")
    b.add_joint("root", "free")
    b.add_body("root", 2.0, inertia=np.diag([0.02, 0.03, 0.04]))
    b.add_joint("elbow", "revolute", "root", transform(p=(0.1, 0, 0)), axis=(0, 1, 0), lower=-0.2, upper=0.2)
    b.add_body("elbow", 1.0, com=(0.2, 0, 0.05), inertia=0.02 * np.eye(3))
    robot = fj.Robot(b.build(), backend=backend)
    v = np.array([0.1, 0.2, 1.0, 0.5, -1.0, 0.3, 4.0])
    motion = robot.simulate(robot.neutral(), v, dt=4e-3, duration=0.4, method="time-stepping")
    assert abs(motion.q[:, 7]).max() > 0.2 - 1e-6  # it reaches the limit
    momentum = robot.centroidal_momentum(motion.q, motion.v)
    momentum[:, 2] += robot.mass * G * motion.t
    agree(momentum, np.tile(momentum[0], (len(motion), 1)), 1e-9)
