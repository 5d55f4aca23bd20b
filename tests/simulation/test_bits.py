"""Each world moves by the same bits, alone or among others, however a batch is split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import featherjet as fj

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
WORLDS, DT = 64, 4e-3


def landing() -> tuple[fj.Robot, fj.Ground, np.ndarray, np.ndarray]:
    robot, rng = fj.load("quadruped", backend="compiled"), np.random.default_rng(0)
    ground = fj.Ground(robot, FEET, friction=0.7)
    q = np.tile(robot.neutral(), (WORLDS, 1))
    q[:, 8::3], q[:, 9::3] = 0.6, -1.2
    q = robot.integrate(q, 0.1 * rng.normal(size=(WORLDS, robot.nv)))
    q[:, 2] -= ground.gap(robot, q).min(-1) - 1e-3
    v = 0.5 * rng.normal(size=(WORLDS, robot.nv))
    v[:, 2] -= 0.5
    return robot, ground, q, v


def parts() -> Iterator[slice | int]:
    """All of the worlds by sevens, then some alone: in a batch of one, and without a batch."""
    yield from (slice(k, k + 7) for k in range(0, WORLDS, 7))
    yield from (slice(k, k + 1) for k in range(0, WORLDS, 9))
    yield from range(0, WORLDS, 9)


@pytest.mark.parametrize("way", ["feet", "bounces", "servo", "rk4", "semi-implicit", "time-stepping", "held"])
def test_motion(way: str) -> None:
    robot, ground, q, v = landing()
    contacts: dict = {
        "feet": ground,
        "bounces": fj.Ground(robot, FEET, friction=0.7, restitution=0.5),
        "servo": ground,
        "held": fj.Contacts(robot, [fj.PointContact(f) for f in FEET]),
    }
    servo = fj.Servo(robot, kp=100.0, kd=4.0, target=q[0]) if way == "servo" else None
    method = way if way in ("rk4", "semi-implicit", "time-stepping") else None

    def ends(at: slice | int) -> np.ndarray:
        return robot.simulate(
            q[at], v[at], servo, contacts.get(way), dt=DT, duration=0.05, method=method, progress=False
        ).q

    whole = ends(slice(None))
    for part in parts():
        assert np.array_equal(ends(part), whole[part])


def test_derivatives() -> None:
    """Some worlds fly, others stand, and redundantly. Those of one world alone have lanes of columns, not of worlds."""
    robot, ground, q, v = landing()
    q[::3, 2] += 0.3
    for points in (ground, fj.Ground(robot, [*FEET, *(fj.Foot(f, offset=(0.01, 0, 0)) for f in FEET)])):
        step = fj.TimeStep(robot, points, dt=DT)
        whole = step.derivatives(q, v)
        for part in (slice(k, k + n) for n in (2, 7) for k in range(0, WORLDS - n, 9)):
            for x, y in zip(step.derivatives(q[part], v[part]), whole, strict=True):
                assert np.array_equal(x, y[part])
