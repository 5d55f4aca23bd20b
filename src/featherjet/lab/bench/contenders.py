"""Every way to compute a quantity for a batch of states: ours, the peers', and finite differences on our own kernels.

A way knows its results, so that they can be compared before anything is timed: a fast wrong answer is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
from ...errors import FeatherjetError
from ...evaluate.evaluator import processors
from ...model.model import Array
from ...robot.robot import Robot
from .peers import NotAvailable, peer, to_mujoco, to_pinocchio
from .timing import Contender

QUANTITIES = (
    "inverse_dynamics",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
BATCH, THREADS, SINGLE, BOUND, REFERENCE = (
    "featherjet, batch, one thread",
    "featherjet, batch, all threads",
    "featherjet, one state",
    "featherjet, one state, bound",
    "featherjet, numpy reference",
)
PIN_LOOP, PIN_CALL = "Pinocchio, loop over batch", "Pinocchio, one state"
MUJOCO, DIFFERENCES = "MuJoCo", "central differences, compiled"
WAYS = (BATCH, THREADS, SINGLE, BOUND, REFERENCE, PIN_LOOP, PIN_CALL, MUJOCO, DIFFERENCES)

EXACT = 1e-8  # what results may differ by, relative to the largest entry
LONG, LONG_EXACT = 100, 1e-6  # the same for forward dynamics of so many dofs, where M is ill-conditioned
APPROXIMATE = 1e-3  # the same for finite differences
COMPARED = 8  # samples
STEP = 1e-6  # of finite differences
REFERENCE_LANES, DIFFERENCE_LANES = 20_000, 8192  # work these are given at a time


class Disagreement(FeatherjetError):
    """Two ways to compute the same thing have different results: there is nothing to time."""


@dataclass
class Way(Contender):
    """A contender with its results: arrays over samples, filled by run, in our conventions; None if not comparable."""

    results: Callable[[], tuple[Array, ...] | None] = field(default=lambda: None)
    tolerance: float = EXACT
    compared: int = COMPARED  # samples of the batch that it is checked on, if it does not take the batch in one go


@dataclass
class States:
    """A batch of states, and the torques that go with them."""

    q: Array
    v: Array
    a: Array
    tau: Array
    shared: dict[tuple, tuple[Array, ...]] = field(default_factory=dict)

    @staticmethod
    def random(robot: Robot, size: int, seed: int = 0) -> States:
        rng = np.random.default_rng(seed)
        q = robot.random_configuration(rng, size)
        v, a = rng.normal(size=(2, size, robot.nv))
        return States(q, v, a, robot.inverse_dynamics(q, v, a))

    def inputs(self, quantity: str) -> tuple[Array, Array, Array]:
        return self.q, self.v, self.a if quantity.startswith("inverse") else self.tau

    def room(self, quantity: str, owner: str, size: int | None = None) -> tuple[Array, ...]:
        """Arrays for results: the first way has its own, to compare with; the others take turns with the same."""
        n, matrices = self.v.shape[1], quantity.endswith("derivatives")
        key = owner == BATCH, matrices
        if key not in self.shared:
            shape = (len(self.q), n, n) if matrices else (len(self.q), n)
            self.shared[key] = tuple(np.full(shape, np.nan) for _ in range(3 if matrices else 1))
        return tuple(x[:size] for x in self.shared[key])

    def forget(self, n: int) -> None:
        """Wipe the first n samples of what ways share, so that none passes with the results of another."""
        for (own, _), arrays in self.shared.items():
            for x in () if own else arrays:
                x[:n] = np.nan


def ways(robot: Robot, quantity: str, states: States) -> tuple[list[Way], dict[str, str]]:
    """All contenders, ours first, and why the others are missing."""
    makers: dict[str, Callable[[str, Robot, str, States], Way]] = {
        BATCH: batch,
        THREADS: batch,
        SINGLE: single,
        BOUND: bound,
        REFERENCE: reference,
        PIN_LOOP: pinocchio_loop,
        PIN_CALL: pinocchio_call,
        MUJOCO: mujoco_loop,
        DIFFERENCES: differences,
    }
    found, missing = [], {}
    for name, make in makers.items():
        if name == DIFFERENCES and not quantity.endswith("derivatives"):
            continue
        try:
            way = make(name, robot, quantity, states)
            if quantity.startswith("forward") and robot.nv > LONG:
                way.tolerance = max(way.tolerance, LONG_EXACT)
            found.append(way)
        except NotAvailable as why:
            missing[name] = str(why)
    return found, missing


def check(found: list[Way], states: States) -> dict[str, float]:
    """Compare every way's results with those of the first; errors relative to each sample's largest entry."""
    first, *others = found
    first.run(first.batch)
    true = first.results()
    assert true is not None
    errors = {}
    for way in others:
        n = way.batch if way.whole else min(way.batch, way.compared)
        states.forget(n)
        way.run(n)
        got = way.results()
        if got is None:
            continue
        pairs = [(x[:n], t[: min(n, len(x))]) for x, t in zip(got, true, strict=False)]  # some have fewer
        worst = max(difference(x, t) for x, t in pairs)
        if not worst <= way.tolerance:
            raise Disagreement(
                f"{way.name!r} differs from {first.name!r} by {worst:.1e} of the largest entry "
                f"(allowed: {way.tolerance:.0e}); wrong results are not timed"
            )
        errors[way.name] = worst
    return errors


def difference(got: Array, true: Array) -> float:
    """The largest difference, relative to the largest entry of the same sample; infinite for NaN."""
    worst = 0.0
    for x, t in zip(got, true, strict=True):
        scale = np.abs(t).max()
        error = np.abs(x - t).max() / (scale if scale > 0 else 1.0)
        worst = max(worst, float(np.nan_to_num(error, nan=np.inf)))
    return worst


# featherjet


def batch(name: str, robot: Robot, quantity: str, states: States) -> Way:
    threads = processors() if name == THREADS else 1
    if name == THREADS and threads == 1:
        raise NotAvailable("there is one core only")
    call = getattr(Robot(robot.model, "compiled", threads), quantity)
    inputs = states.inputs(quantity)
    out = states.room(quantity, name)
    into = out if quantity.endswith("derivatives") else out[0]

    def run(_: int) -> None:
        call(*inputs, out=into)

    return Way(name, run, len(states.q), whole=True, pinned=threads == 1, results=lambda: out)


def single(name: str, robot: Robot, quantity: str, states: States) -> Way:
    call = getattr(Robot(robot.model, "compiled", 1), quantity)
    q, v, x = (one[0].copy() for one in states.inputs(quantity))
    last: list[Any] = [None]

    def run(n: int) -> None:
        result = None
        for _ in range(n):
            result = call(q, v, x)
        last[0] = result

    return Way(name, run, 1 << 20, results=lambda: alone(last[0]))


def bound(name: str, robot: Robot, quantity: str, states: States) -> Way:
    step = Robot(robot.model, "compiled", 1).bind(quantity)
    q, v, x = (one[0].copy() for one in states.inputs(quantity))
    to_q, to_v, to_x = (getattr(step, one) for one in step.inputs)

    def run(n: int) -> None:
        for _ in range(n):
            to_q[:] = q
            to_v[:] = v
            to_x[:] = x
            step()

    return Way(name, run, 1 << 20, results=lambda: alone(tuple(getattr(step, one) for one in step.results)))


def reference(name: str, robot: Robot, quantity: str, states: States) -> Way:
    call = getattr(Robot(robot.model, "numpy"), quantity)
    inputs = states.inputs(quantity)
    work = robot.nv ** (2 if quantity.endswith("derivatives") else 1)
    size = max(1, min(len(states.q), REFERENCE_LANES // work))
    last: list[Any] = [None]

    def run(n: int) -> None:
        last[0] = call(*(x[:n] for x in inputs))

    return Way(name, run, size, whole=True, results=lambda: together(last[0]))


def alone(results: Any) -> tuple[Array, ...]:
    """The results of one state as a batch of one."""
    return tuple(np.asarray(x)[None] for x in together(results))


def together(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


# Pinocchio


def pinocchio_loop(name: str, robot: Robot, quantity: str, states: States) -> Way:
    model = to_pinocchio(robot.model)
    data, call = model.createData(), _pinocchio(quantity)
    q, v, x = states.inputs(quantity)
    out = states.room(quantity, name)

    def values(n: int) -> None:
        (y,) = out
        for k in range(n):
            y[k] = call(model, data, q[k], v[k], x[k])

    def derivatives(n: int) -> None:
        by_q, by_v, by_x = out
        for k in range(n):
            by_q[k], by_v[k], by_x[k] = call(model, data, q[k], v[k], x[k])

    return Way(name, values if len(out) == 1 else derivatives, len(q), results=lambda: out)


def pinocchio_call(name: str, robot: Robot, quantity: str, states: States) -> Way:
    model = to_pinocchio(robot.model)
    data, call = model.createData(), _pinocchio(quantity)
    q, v, x = (one[0].copy() for one in states.inputs(quantity))
    last: list[Any] = [None]

    def run(n: int) -> None:
        result = None
        for _ in range(n):
            result = call(model, data, q, v, x)
        last[0] = result

    return Way(name, run, 1 << 20, results=lambda: alone(last[0]))


def _pinocchio(quantity: str) -> Callable[..., Any]:
    names = ("rnea", "aba", "computeRNEADerivatives", "computeABADerivatives")
    return getattr(peer("pinocchio"), names[QUANTITIES.index(quantity)])


# MuJoCo


def mujoco_loop(name: str, robot: Robot, quantity: str, states: States) -> Way:
    """mj_inverse, mj_forward, and their finite differences mjd_inverseFD and mjd_transitionFD.

    The last gives no da/dtau. Where a robot floats, MuJoCo's tangent space is another one, so its derivatives there
    are timed and not compared; the values are.
    """
    model, n = robot.model, robot.nv
    m = to_mujoco(model)
    mujoco = peer("mujoco")
    mujoco.set_mju_user_warning(lambda message: None)  # by default it writes a log file into the folder
    d = mujoco.MjData(m)
    q, v, x = states.inputs(quantity)
    inverse = quantity.startswith("inverse")
    qpos, qvel = configuration_to_mujoco(model, q), velocity_to_mujoco(model, q, v)
    given = acceleration_to_mujoco(model, q, v, x) if inverse else force_to_mujoco(model, q, x)
    target = d.qacc if inverse else d.qfrc_applied
    out = states.room(quantity, name)
    A, at = np.zeros((2 * n, 2 * n)), np.arange(n)
    floats = any(joint.kind.name == "free" for joint in model.joints)

    def prepare(k: int) -> None:
        d.qpos[:] = qpos[k]
        d.qvel[:] = qvel[k]
        target[:] = given[k]

    def values(count: int) -> None:
        (y,) = out
        compute, result = (mujoco.mj_inverse, d.qfrc_inverse) if inverse else (mujoco.mj_forward, d.qacc)
        for k in range(count):
            prepare(k)
            compute(m, d)
            y[k] = result

    def inverse_derivatives(count: int) -> None:
        for k in range(count):
            prepare(k)
            by_q, by_v, by_a = (one[k] for one in out)
            mujoco.mjd_inverseFD(m, d, STEP, False, by_q, by_v, by_a, None, None, None, None)

    def forward_derivatives(count: int) -> None:
        by_q, by_v, _ = out
        for k in range(count):
            prepare(k)
            mujoco.mjd_transitionFD(m, d, STEP, False, A, None, None, None)
            by_q[k], by_v[k] = A[n:, :n], A[n:, n:]

    def results() -> tuple[Array, ...] | None:
        if len(out) == 1:
            if inverse:
                return (force_from_mujoco(model, qpos, np.nan_to_num(out[0])),)
            return (acceleration_from_mujoco(model, qpos, qvel, np.nan_to_num(out[0])),)
        if floats:
            return None
        if inverse:
            return tuple(one.swapaxes(1, 2) for one in out)
        by_q, by_v = out[0] / m.opt.timestep, out[1] / m.opt.timestep
        by_v[:, at, at] -= 1 / m.opt.timestep
        return by_q, by_v

    run = values if len(out) == 1 else inverse_derivatives if inverse else forward_derivatives
    if len(out) == 1:
        return Way(name, run, len(q), results=results)
    return Way(name, run, len(q), results=results, tolerance=APPROXIMATE, compared=1)


# Finite differences


def differences(name: str, robot: Robot, quantity: str, states: States) -> Way:
    """By q and v with central differences, all directions in one batch; by a or tau with the kernel for that matrix."""
    one, n = Robot(robot.model, "compiled", 1), robot.nv
    value = getattr(one, quantity.removesuffix("_derivatives"))
    matrix = one.mass_matrix if quantity.startswith("inverse") else one.inverse_mass_matrix
    q, v, x = states.inputs(quantity)
    size = max(1, min(len(q), DIFFERENCE_LANES // (4 * n)))
    steps = STEP * np.concatenate([np.eye(n), -np.eye(n)])
    by_q, by_v, by_x = out = states.room(quantity, name, size)

    def slope(y: Array) -> Array:
        return ((y[:, :n] - y[:, n:]) / (2 * STEP)).swapaxes(1, 2)

    def run(count: int) -> None:
        q_, v_, x_ = q[:count, None], v[:count, None], x[:count, None]
        by_q[:count] = slope(value(one.integrate(q_, steps), v_, x_))
        by_v[:count] = slope(value(q_, v_ + steps, x_))
        matrix(q[:count], out=by_x[:count])

    return Way(name, run, size, whole=True, results=lambda: out, tolerance=APPROXIMATE)
