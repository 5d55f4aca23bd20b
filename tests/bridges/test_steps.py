"""Time steps in JAX and PyTorch: gradients of rollouts against those of NumPy, and against central differences."""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError
from helpers import agree

STEPS, DT = 100, 4e-3


@cache
def hopper() -> tuple[fj.Robot, fj.Ground, np.ndarray, np.ndarray]:
    """A ball that spins, slides and bounces, with a pendulum in it."""
    b = fj.ModelBuilder("hopper")
    b.add_joint("root", "free")
    b.add_body("root", 1.5, inertia=0.006 * np.eye(3))
    b.add_joint("swing", "revolute", "root", axis=(0, 1, 0), damping=0.01)
    b.add_body("swing", 0.3, com=(0.0, 0.0, -0.05), inertia=0.001 * np.eye(3))
    robot = fj.Robot(b.build(), backend="compiled")
    q, v = robot.neutral(), np.zeros(7)
    q[2], v[0], v[4] = 0.15, 1.0, 3.0
    return robot, fj.Ground(robot, [fj.Foot("root", radius=0.1)], friction=0.4, restitution=0.6), q, v


@cache
def torques() -> np.ndarray:
    u = np.zeros((STEPS, 7))
    u[:, 6] = 0.02 * np.random.default_rng(0).normal(size=STEPS)
    return u


@cache
def by_numpy() -> tuple[float, np.ndarray]:
    """The loss, how far and how fast the ball is at the end, and its gradient by the torques."""
    robot, ground, q, v = hopper()
    step = fj.TimeStep(robot, ground, dt=DT)
    u, states = torques(), []
    for tau in u:
        states.append((q, v))
        q, v, _ = step(q, v, tau)
    d = step.derivatives(*map(np.array, zip(*states, strict=True)), u)
    by_entries = np.zeros(8)
    by_entries[0] = 1.0
    wq, wv, gradient = by_entries @ robot.rate_map(q), 2.0 * v, np.zeros_like(u)
    for k in reversed(range(STEPS)):
        gradient[k] = wq @ d.dq_dtau[k] + wv @ d.dv_dtau[k]
        wq, wv = wq @ d.dq_dq[k] + wv @ d.dv_dq[k], wq @ d.dq_dv[k] + wv @ d.dv_dv[k]
    return float(q[0] + v @ v), gradient


def test_numpy_by_differences() -> None:
    """The oracle itself: a rollout with bounces, moved a little."""
    robot, ground, q0, v0 = hopper()
    step, ends = fj.TimeStep(robot, ground, dt=DT), []
    direction = np.random.default_rng(1).normal(size=torques().shape)
    for s in (1e-6, -1e-6):
        q, v = q0, v0
        for tau in torques() + s * direction:
            q, v, _ = step(q, v, tau)
        ends.append(q[0] + v @ v)
    agree((by_numpy()[1] * direction).sum(), (ends[0] - ends[1]) / 2e-6, 1e-5)


def test_a_scan_in_jax() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    robot, ground, q, v = hopper()
    wrapped = fj.jax.wrap(robot)

    def loss(u: Any) -> Any:
        def advance(state: Any, tau: Any) -> Any:
            return wrapped.step(*state, tau, ground, dt=DT)[:2], None

        (end, speed), _ = jax.lax.scan(advance, (jnp.asarray(q), jnp.asarray(v)), u)
        return end[0] + (speed**2).sum()

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.asarray(torques()))
        agree(value, by_numpy()[0], 1e-12)
        agree(gradient, by_numpy()[1], 1e-10)
        many = jax.vmap(lambda v: wrapped.step(q, v, 0 * v, ground, dt=DT))(jnp.stack([v, 2 * v]))
        agree(many.v[1], fj.TimeStep(robot, ground, dt=DT)(q, 2 * v).v, 1e-12)
        rows = jax.jacfwd(lambda v: wrapped.step(q, v, 0 * v, ground, dt=DT).v)(jnp.asarray(v))
        agree(rows, fj.TimeStep(robot, ground, dt=DT).derivatives(q, v).dv_dv, 1e-12)
    finally:
        jax.config.update("jax_enable_x64", before)


def test_a_loop_in_torch() -> None:
    torch = pytest.importorskip("torch")
    robot, ground, q0, v0 = hopper()
    wrapped = fj.torch.wrap(robot)
    u = torch.tensor(torques(), requires_grad=True)
    q, v = torch.tensor(q0), torch.tensor(v0)
    for tau in u:
        q, v, _ = wrapped.step(q, v, tau, ground, dt=DT)
    loss = q[0] + (v**2).sum()
    loss.backward()
    agree(loss.item(), by_numpy()[0], 1e-12)
    agree(u.grad.numpy(), by_numpy()[1], 1e-10)
    q, v = torch.tensor(q0), torch.tensor(v0)
    rows = torch.func.jacrev(lambda v: wrapped.step(q, v, 0 * v, ground, dt=DT).v)(v)
    agree(rows.numpy(), fj.TimeStep(robot, ground, dt=DT).derivatives(q0, v0).dv_dv, 1e-12)


def test_what_is_not_finite_gives_nan_and_quaternions_are_normalised() -> None:
    torch = pytest.importorskip("torch")
    robot, ground, q, v = hopper()
    wrapped = fj.torch.wrap(robot)
    states = np.stack([q, q, q])
    states[1, 0] = np.nan
    states[2, 3:7] *= 3.0
    end = wrapped.step(torch.tensor(states), torch.tensor(v), torch.zeros(7, dtype=torch.float64), ground, dt=DT)
    assert torch.isnan(end.v[1]).all()
    agree(end.q[2].numpy(), end.q[0].numpy(), 1e-12)
    single = wrapped.step(*(torch.tensor(x, dtype=torch.float32) for x in (q, v, 0 * v)), ground, dt=DT)
    assert single.q.dtype == torch.float32
    with pytest.raises(InputError, match="contacts: expected a Ground"):
        wrapped.step(*(torch.tensor(x) for x in (q, v, 0 * v)), "ground")  # type: ignore[arg-type]
