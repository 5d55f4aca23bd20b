"""Joint limits and dry friction of robots that bilateral contacts hold: closed forms, and robots bolted down."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.model.builder import transform
from helpers import agree

DT, G = 1e-3, 9.81


def sled(friction: float = 0.0, upper: float = np.inf) -> fj.Robot:
    """A free box of 3 kg, with a slider of 2 kg along x."""
    b = fj.ModelBuilder("sled")
    parent = b.add_joint("box", "free")
    b.add_body("box", 3.0, np.array([0.1, 0.0, 0.2]), np.diag([0.1, 0.2, 0.3]))
    b.add_joint("slide", "prismatic", parent, axis=(1, 0, 0), friction=friction, upper=upper)
    b.add_body("slide", 2.0)
    return fj.Robot(b.build(), backend="compiled")


def held(robot: fj.Robot) -> fj.Contacts:
    return fj.Contacts(robot, [fj.SurfaceContact("box")])


def run(robot: fj.Robot, v: float, duration: float, **settings) -> fj.Trajectory:
    start = np.zeros(robot.nv)
    start[-1] = v
    return robot.simulate(robot.neutral(), start, None, held(robot), dt=DT, duration=duration, **settings)


def test_a_slider_with_dry_friction_stops_and_stays() -> None:
    """It loses f / m each second, and the box feels the friction; then it rests."""
    motion = run(sled(friction=4.0), 0.5, 0.4)
    t = motion.t
    agree(motion.v[:, -1], np.maximum(0.5 - 2.0 * t, 0.0), 1e-12, floor=1.0)
    expected = 0.5 * t - t * t  # the semi-implicit method is late by half a step
    assert np.abs(motion.q[:200, -1] - expected[:200]).max() < DT
    agree(motion.forces[:200, 0], np.full(200, -4.0), 1e-9)
    agree(motion.forces[260:, 0], np.zeros(141), 1e-9, floor=4.0)
    agree(motion.forces[:, 2], np.full(401, 5.0 * G), 1e-9)
    assert np.abs(motion.v[:, :6]).max() < 1e-12


@pytest.mark.parametrize("method", [None, "rk4", "semi-implicit", "time-stepping"])
def test_a_slider_stops_at_its_limit(method: str | None) -> None:
    """It stops there without bounce and never goes beyond; the box feels the blow."""
    motion = run(sled(upper=0.1), 0.5, 0.4, method=method)
    assert motion.q[:, -1].max() < 0.1 + 1e-12
    agree(motion.q[-1, -1], 0.1, 1e-9)
    assert np.abs(motion.v[-1, -1]) < 1e-12
    agree((motion.forces[:-1, 0] * DT).sum(), -2.0 * 0.5, 1e-9)


def test_worlds_do_not_see_each_other() -> None:
    robot = sled(friction=4.0, upper=0.02)
    speeds = np.array([0.5, 0.0, -0.3, 0.1])
    start = np.zeros((4, robot.nv))
    start[:, -1] = speeds
    together = robot.simulate(robot.neutral(), start, None, held(robot), dt=DT, duration=0.2)
    for k, speed in enumerate(speeds):
        alone = run(robot, speed, 0.2)
        agree(together.v[k], alone.v, 1e-12, floor=1e-3)
        agree(together.forces[k], alone.forces, 1e-9, floor=1.0)


def arm(base: bool) -> fj.Robot:
    """A box with two links that swing, with limits, friction and damping; the box is free, or the world."""
    b = fj.ModelBuilder("arm")
    parent = None
    if base:
        parent = b.add_joint("box", "free")
        b.add_body("box", 3.0, np.array([0.1, 0.0, 0.2]), np.diag([0.1, 0.2, 0.3]))
    for name, limit in (("first", 0.8), ("second", 0.4)):
        at = None if name == "first" else transform(p=(0.5, 0.0, 0.0))
        parent = b.add_joint(
            name, "revolute", parent, at, axis=(0, 1, 0), lower=-limit, upper=limit, friction=0.3, damping=0.2
        )
        b.add_body(name, 1.0, np.array([0.3, 0.0, 0.0]), np.diag([0.01, 0.02, 0.02]))
    return fj.Robot(b.build(), backend="compiled")


def test_a_box_held_is_a_box_bolted_down() -> None:
    """Steps of both methods converge to the same motion, through limits, sliding and sticking."""
    free, fixed = arm(True), arm(False)
    contacts, errors = fj.Contacts(free, [fj.SurfaceContact("box")]), []
    for dt in (2e-3, 1e-3):
        mine = free.simulate(free.neutral(), np.zeros(8), None, contacts, dt=dt, duration=0.6)
        theirs = fixed.simulate(np.zeros(2), np.zeros(2), None, None, dt=dt, duration=0.6)
        assert (mine.q[:, -2:] < [0.8 + 1e-3, 0.4 + 1e-3]).all()
        assert mine.q[-1, -2] > 0.799, "it rests at its limit"
        errors.append(np.abs(mine.q[:, -2:] - theirs.q).max())
    assert errors[0] < 0.02
    assert errors[1] < 0.7 * errors[0]


def test_stiff_servos_are_stable() -> None:
    """The servo's gains are implicit in a time step, as without contacts."""
    robot = arm(True)
    goal = robot.neutral()
    goal[-2:] = 0.3, -0.2
    servo = fj.Servo(robot, kp=np.array([0.0] * 6 + [1e5] * 2), kd=np.array([0.0] * 6 + [1e4] * 2), target=goal)
    motion = robot.simulate(
        robot.neutral(), np.zeros(8), servo, fj.Contacts(robot, [fj.SurfaceContact("box")]), dt=DT, duration=0.5
    )
    agree(motion.q[-1, -2:], goal[-2:], 1e-2)
    assert np.abs(motion.v).max() < 10.0


def test_a_planar_four_bar_with_friction_comes_to_rest() -> None:
    """Redundant contacts; energy only falls, and the loop stays closed."""
    b = fj.ModelBuilder("four-bar")
    parent = None
    for name in ("first", "second", "third"):
        at = None if parent is None else transform(p=(1.0, 0.0, 0.0))
        parent = b.add_joint(name, "revolute", parent, at, axis=(0, 1, 0), friction=2.0)
        b.add_body(parent, 1.5, np.array([0.5, 0.0, 0.0]), np.diag([0.01, 0.2, 0.2]))
    b.add_frame("end", parent, transform(p=(1.0, 0.0, 0.0)))
    robot = fj.Robot(b.build(), backend="compiled")
    q = np.array([np.pi / 2 + 0.8, -np.pi / 2 - 0.6, -np.pi / 2 - 0.4])
    place = robot.frame_placement(q, "end")[:3, 3]
    contacts = fj.Contacts(robot, [fj.PointContact("end", at=place)], baumgarte=(400.0, 40.0))
    motion = robot.simulate(q, np.zeros(3), None, contacts, dt=DT, duration=2.0)
    energy = robot.kinetic_energy(motion.q, motion.v) + robot.potential_energy(motion.q)
    assert np.abs(motion.v).max() > 0.1
    assert np.abs(motion.v[-1]).max() < 1e-6
    assert energy[-1] < energy[0]
    assert np.abs(robot.frame_placement(motion.q, "end")[:, :3, 3] - place).max() < 1e-3
