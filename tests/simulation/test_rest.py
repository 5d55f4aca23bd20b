"""The derivative of a step at rest: one value whatever the last bits of the state, that of differences."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.contacts import feet
from featherjet.model.builder import transform
from helpers import agree

DT = 2e-3


def standing_box() -> tuple[fj.TimeStep, np.ndarray, np.ndarray]:
    b = fj.ModelBuilder("box")
    b.add_joint("root", "free")
    b.add_body("root", 2.0, inertia=np.diag([0.02, 0.03, 0.04]))
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        b.add_frame(f"corner{k}", "root", transform(p=(0.2 * x, 0.15 * y, -0.1)))
    robot = fj.Robot(b.build(), backend="compiled")
    ground = fj.Ground(robot, [f"corner{k}" for k in range(4)], friction=0.5)
    q = robot.neutral()
    q[2], q[5], q[6] = 0.1, np.sin(0.15), np.cos(0.15)
    return fj.TimeStep(robot, ground, dt=DT), q, np.zeros(6)


def standing_quadruped() -> tuple[fj.TimeStep, np.ndarray, np.ndarray]:
    robot = fj.load("quadruped", backend="compiled")
    ground = fj.Ground(robot, ["LF_foot", "LH_foot", "RF_foot", "RH_foot"], friction=0.8)
    q = robot.neutral()
    q[8::3], q[9::3] = 0.6, -1.2
    q[2] -= ground.gap(robot, q).min()
    servo = fj.Servo(robot, kp=400.0, kd=10.0, target=q)
    return fj.TimeStep(robot, ground, dt=DT, servo=servo), q, np.zeros(robot.nv)


@pytest.mark.parametrize("standing", [standing_box, standing_quadruped])
def test_what_stands_has_one_derivative(standing) -> None:
    """Over seven ulps of height; dv_z/dz of a standing ANYmal was 2.1, 8.6 or 10.7."""
    step, q, v = standing()
    for _ in range(1000 if standing is standing_quadruped else 100):
        q, v, _ = step(q, v)
    ground = step.contacts
    assert ground is not None
    assert np.abs(ground.gaps(step.evaluator, q)).max() < 1e-9
    heights = np.tile(q, (7, 1))
    heights[:, 2] += np.arange(-3, 4) * np.spacing(q[2])
    found = step.derivatives(heights, v).dv_dq
    agree(found, np.tile(found[3], (7, 1, 1)), 1e-10)
    move, (integrate,) = 1e-7, (step.evaluator,)
    tangents = move * np.eye(len(v))
    ends = [step(integrate("integrate", np.tile(q, (len(v), 1)), way), v).v for way in (tangents, -tangents)]
    agree(found[3], (ends[0] - ends[1]).T / (2 * move), 1e-6)


@pytest.mark.parametrize("h", [1e-5, 2e-4, 2e-3])
def test_landing_is_continuous_and_lifts_no_higher_than_the_depth(h: float) -> None:
    depth = np.geomspace(1e-12, 1.0, 2000)
    up = -feet.landing(h, -depth)
    assert (up**2 / (2 * feet.GRAVITY) <= depth * (1 + 1e-12)).all()
    near = feet.hardly(h)
    agree(feet.landing(h, -near * (1 + 1e-9)), feet.landing(h, -near * (1 - 1e-9)), 1e-4)
    agree(feet.landing(h, 0.3), 0.3 / h, 1e-15)
