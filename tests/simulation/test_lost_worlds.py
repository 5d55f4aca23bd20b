"""Worlds that diverge are marked, and the others go on as if alone; what only feet hold is told of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError, SimulationError, SimulationWarning, SingularMassMatrix
from featherjet.simulation.lost import Living
from featherjet.simulation.steps import Stepped, TimeStepping

FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
WORLDS, LOST = 6, 2


def standing(count: int, convention: str | None = None) -> tuple[fj.Robot, fj.Ground, np.ndarray, np.ndarray]:
    robot = fj.load("quadruped", backend="compiled")
    ground = fj.Ground(robot, FEET, friction=0.8)
    q = np.tile(robot.neutral(), (count, 1))
    q[:, 8::3], q[:, 9::3] = 0.6, -1.2
    q[:, 7:] += 0.05 * np.random.default_rng(0).normal(size=(count, 12))
    q[:, 2] -= ground.gap(robot, q).min(-1)
    return robot, ground, q, np.zeros((count, robot.nv))


def others(x: np.ndarray) -> np.ndarray:
    return np.delete(x, LOST, 0)


@pytest.mark.parametrize("wrong", [np.nan, 1e30])
@pytest.mark.parametrize("bouncing", [False, True])
def test_one_world_is_lost_and_the_others_go_on(wrong: float, bouncing: bool) -> None:
    robot, ground, q, v = standing(WORLDS)
    if bouncing:
        ground = fj.Ground(robot, FEET, friction=0.8, restitution=0.3)
    held = fj.Servo(robot, kp=100.0, kd=5.0, target=q[0])

    def control(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = held(t, q, v)
        if t > 0.019 and len(q) == WORLDS:
            tau[LOST, 8] = wrong
        return tau

    with pytest.warns(SimulationWarning, match=r"world 2 diverges.* from t = 0\.0[23].* s on"):
        motion = robot.simulate(q, v, control, ground, dt=2e-3, duration=0.06, passive=False)
    alone = robot.simulate(others(q), others(v), control, ground, dt=2e-3, duration=0.06, passive=False)
    for name in ("q", "v", "tau", "forces", "residual"):
        together = getattr(motion, name)
        assert np.isfinite(others(together)).all()
        assert np.isfinite(together[LOST, :10]).all()
        assert np.isnan(together[LOST, -5:]).all()
        if name in "qv":
            assert np.abs(others(together) - getattr(alone, name)).max() < 1e-9
    with pytest.raises((SimulationError, InputError)):
        robot.simulate(q[0], v[0], lambda t, q, v: wrong * np.ones(18), ground, dt=2e-3, duration=0.06, passive=False)


def test_a_world_that_diverges_by_itself() -> None:
    """Fast spin in a smooth motion, too, in another convention."""
    robot = fj.load("quadruped", backend="compiled").with_convention("drake")
    q, v = np.tile(robot.neutral(), (3, 1)), np.zeros((3, robot.nv))
    v[1, 7:] = 1e6
    with pytest.warns(SimulationWarning, match="world 1 diverges"):
        motion = robot.simulate(q, v, dt=1e-2, duration=0.1, method="rk4", passive=False)
    assert np.isnan(motion.q[1, -1]).all()
    assert np.isfinite(motion.q[[0, 2]]).all()


def test_a_world_of_many_is_lost_and_comes_back() -> None:
    robot, ground, q, v = standing(WORLDS)
    world, alone = fj.World(robot, q, v, ground, dt=2e-3), fj.World(robot, others(q), others(v), ground, dt=2e-3)
    world.q[LOST, 3] = np.nan
    with pytest.warns(SimulationWarning, match="world 2 diverges"):
        world.step()
    alone.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        world.step(3)
    alone.step(3)
    assert np.isnan(world.q[LOST]).all()
    assert np.abs(others(world.q) - alone.q).max() < 1e-12
    d = world.step_derivatives()
    assert np.isnan(d.dv_dq[LOST]).all()
    assert np.isfinite(others(d.dv_dq)).all()
    world.q[LOST], world.v[LOST] = q[LOST], v[LOST]
    world.step()
    assert np.isfinite(world.q).all()
    world.q[:] = np.nan
    with pytest.raises(InputError, match=r"world\.q"):
        world.step()


def test_bodies_that_go_below_the_ground_are_told_once() -> None:
    robot, ground, q, v = standing(1)
    with pytest.warns(SimulationWarning, match="only feet collide") as told:
        robot.simulate(q[0], v[0], None, ground, dt=2e-3, duration=1.0)
    assert len([x for x in told if "only feet collide" in str(x.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        servo = fj.Servo(robot, kp=200.0, kd=5.0, target=q[0])
        robot.simulate(q[0], v[0], servo, ground, dt=2e-3, duration=0.5)


def test_what_did_not_converge_is_always_said(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, ground, q, v = standing(1)
    step, world = fj.TimeStep(robot, ground, dt=2e-3), fj.World(robot, q, v, ground, dt=2e-3)
    monkeypatch.setattr(TimeStepping, "settled", lambda self, report, P, held: np.zeros(report.shape[:-1], bool))
    calls = (
        lambda: step(q, v),
        lambda: step.derivatives(q, v),
        world.step,
        lambda: robot.simulate(q, v, None, ground, dt=2e-3, duration=4e-3),
    )
    for call in calls:
        with pytest.warns(SimulationWarning, match="did not converge"):
            call()


class Refusing:
    """Steps that fail where a world has a velocity above 1."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, pull: object = None) -> Stepped:
        self.calls += 1
        if (v > 1).any():
            raise SingularMassMatrix("no number")
        none = np.zeros(v.shape[:-1])
        return Stepped(q, v + tau, v, none, none == 0)

    def forget(self, which: np.ndarray) -> None:
        pass


def test_worlds_that_make_a_step_fail_are_found() -> None:
    v = np.zeros((4, 8, 2))
    v[1, 3] = v[2, 7] = 2.0
    living = Living(Refusing(), (4, 8))
    found = living(v, v, np.ones_like(v))
    assert np.argwhere(living.lost).tolist() == [[1, 3], [2, 7]]
    assert (found.v == 1).all()
    with pytest.raises(SingularMassMatrix):
        Living(Refusing(), (4, 8))(v + 2, v + 2, v)
    with pytest.raises(SingularMassMatrix):
        Living(Refusing(), ())(v[1, 3], v[1, 3], v[1, 3])
