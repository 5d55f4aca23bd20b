"""Pinocchio and MuJoCo as contenders: loops in Python over a batch of states, and single calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...conventions.mujoco import (
    acceleration_from_mujoco,
    acceleration_to_mujoco,
    configuration_to_mujoco,
    force_from_mujoco,
    force_to_mujoco,
    velocity_to_mujoco,
)
from ...model.model import Array
from ...robot.robot import Robot
from .checking import APPROXIMATE, CheckedContender, States
from .peers import peer, to_mujoco, to_pinocchio
from .quantities import BenchmarkedQuantity

STEP = 1e-6  # of MuJoCo's finite differences


def single_results(results: Any) -> tuple[Array, ...]:
    """The results of one state, one array or a tuple of them, as a batch of one."""
    return tuple(np.asarray(x)[None] for x in (results if isinstance(results, tuple) else (results,)))


# Pinocchio


def pinocchio_loop(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """A loop that stores what each call returns."""
    model = to_pinocchio(robot.model)
    data, call = model.createData(), getattr(peer("pinocchio"), quantity.pinocchio)
    q, v, third = states.inputs(quantity)
    results = states.results(quantity)

    def values(n: int) -> None:
        (y,) = results
        for k in range(n):
            y[k] = call(model, data, q[k], v[k], third[k])

    def derivatives(n: int) -> None:
        by_q, by_v, by_third = results
        for k in range(n):
            by_q[k], by_v[k], by_third[k] = call(model, data, q[k], v[k], third[k])

    return CheckedContender(name, values if len(results) == 1 else derivatives, len(q), results=lambda: results)


def pinocchio_call(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """The same state again and again."""
    model = to_pinocchio(robot.model)
    data, call = model.createData(), getattr(peer("pinocchio"), quantity.pinocchio)
    q, v, third = states.first_inputs(quantity)
    last: list[Any] = [None]

    def run(n: int) -> None:
        result = None
        for _ in range(n):
            result = call(model, data, q, v, third)
        last[0] = result

    return CheckedContender(name, run, 1 << 20, results=lambda: single_results(last[0]))


# MuJoCo


def mujoco_loop(name: str, robot: Robot, quantity: BenchmarkedQuantity, states: States) -> CheckedContender:
    """mj_inverse, mj_forward, and their finite differences mjd_inverseFD and mjd_transitionFD.

    The last has no da/dtau. The tangent space of a free joint differs from featherjet's, so that derivatives of robots
    that float are timed without being compared; values are compared.
    """
    makers = {
        "inverse_dynamics": _mujoco_torques,
        "forward_dynamics": _mujoco_accelerations,
        "inverse_dynamics_derivatives": _mujoco_torque_derivatives,
        "forward_dynamics_derivatives": _mujoco_acceleration_derivatives,
    }
    simulation = MujocoStates(robot, states)
    run, results = makers[quantity.name](simulation, states.results(quantity))
    if quantity.derivative_of is None:
        return CheckedContender(name, run, len(states.q), results=results)
    if simulation.floats:
        results = lambda: None  # noqa: E731
    return CheckedContender(name, run, len(states.q), results=results, tolerance=APPROXIMATE, compared=1)


Run = Callable[[int], None]
Results = Callable[[], "tuple[Array, ...] | None"]


class MujocoStates:
    """A batch of states in MuJoCo's coordinates: qpos (B, nq), and qvel, qacc, qfrc (B, nv)."""

    def __init__(self, robot: Robot, states: States) -> None:
        self.robot_model = model = robot.model
        self.model = to_mujoco(model)
        self.mujoco = peer("mujoco")
        self.mujoco.set_mju_user_warning(lambda message: None)  # by default it writes a log file into the folder
        self.data = self.mujoco.MjData(self.model)
        self.qpos = configuration_to_mujoco(model, states.q)
        self.qvel = velocity_to_mujoco(model, states.q, states.v)
        self.qacc = acceleration_to_mujoco(model, states.q, states.v, states.a)
        self.qfrc = force_to_mujoco(model, states.q, states.tau)
        self.floats = any(joint.kind.name == "free" for joint in model.joints)

    def setter(self, field: str, values: Array) -> Callable[[int], None]:
        """A function that gives MuJoCo the k-th state, and the k-th of `values` in a field of its data."""
        qpos, qvel, target = self.data.qpos, self.data.qvel, getattr(self.data, field)
        own_qpos, own_qvel = self.qpos, self.qvel

        def set_state(k: int) -> None:
            qpos[:] = own_qpos[k]
            qvel[:] = own_qvel[k]
            target[:] = values[k]

        return set_state


def _mujoco_torques(s: MujocoStates, out: tuple[Array, ...]) -> tuple[Run, Results]:
    (tau,) = out
    compute, model, data, result = s.mujoco.mj_inverse, s.model, s.data, s.data.qfrc_inverse
    set_state = s.setter("qacc", s.qacc)

    def run(count: int) -> None:
        for k in range(count):
            set_state(k)
            compute(model, data)
            tau[k] = result

    return run, lambda: (force_from_mujoco(s.robot_model, s.qpos, np.nan_to_num(tau)),)


def _mujoco_accelerations(s: MujocoStates, out: tuple[Array, ...]) -> tuple[Run, Results]:
    (a,) = out
    compute, model, data, result = s.mujoco.mj_forward, s.model, s.data, s.data.qacc
    set_state = s.setter("qfrc_applied", s.qfrc)

    def run(count: int) -> None:
        for k in range(count):
            set_state(k)
            compute(model, data)
            a[k] = result

    return run, lambda: (acceleration_from_mujoco(s.robot_model, s.qpos, s.qvel, np.nan_to_num(a)),)


def _mujoco_torque_derivatives(s: MujocoStates, out: tuple[Array, ...]) -> tuple[Run, Results]:
    """MuJoCo's matrices are transposed: row j is the derivative by the j-th coordinate."""
    by_q, by_v, by_a = out
    compute, model, data = s.mujoco.mjd_inverseFD, s.model, s.data
    set_state = s.setter("qacc", s.qacc)

    def run(count: int) -> None:
        for k in range(count):
            set_state(k)
            compute(model, data, STEP, False, by_q[k], by_v[k], by_a[k], None, None, None, None)

    return run, lambda: tuple(x.swapaxes(1, 2) for x in out)


def _mujoco_acceleration_derivatives(s: MujocoStates, out: tuple[Array, ...]) -> tuple[Run, Results]:
    """From the derivative of one time step: the next velocity is v + h a."""
    by_q, by_v, _ = out
    compute, model, data, h = s.mujoco.mjd_transitionFD, s.model, s.data, s.model.opt.timestep
    n = by_q.shape[1]
    set_state = s.setter("qfrc_applied", s.qfrc)
    A, diagonal = np.zeros((2 * n, 2 * n)), np.arange(n)

    def run(count: int) -> None:
        for k in range(count):
            set_state(k)
            compute(model, data, STEP, False, A, None, None, None)
            by_q[k], by_v[k] = A[n:, :n], A[n:, n:]

    def results() -> tuple[Array, ...]:
        da_dq, da_dv = by_q / h, by_v / h
        da_dv[:, diagonal, diagonal] -= 1 / h
        return da_dq, da_dv

    return run, results
