"""featherjet in JAX, beside JAX itself, frax and MuJoCo's MJX.

XLA computes on one thread, as frax recommends too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jax import wrap
from ...model.builtin import quadruped
from ...robot.robot import Robot
from .frameworks import Duel, Make
from .peers import peer, to_mujoco
from .robots import entrant

jax.config.update("jax_enable_x64", True)
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()  # read when XLA first computes
BATCH, SMALL_BATCH, STEPS = 1024, 256, 1000


def waiting(f: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    """A compiled function as a call that returns when the results are there."""
    run, arrays = jax.jit(f), [jnp.asarray(x) for x in given]
    return lambda: jax.block_until_ready(run(*arrays))


def states(robot: Robot, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [robot.random_configuration(rng, size), *rng.normal(size=(2, size, robot.nv))]


@cache
def panda() -> Robot:
    return Robot(entrant("panda").robot.model, backend="compiled", threads=1)


def one_call() -> Duel:
    x = [y[0] for y in states(panda(), 1)]
    ours = waiting(wrap(panda()).inverse_dynamics, *x)
    return Duel("one ID of panda", ours, waiting(lambda q, v, a: q + v + a, *x), 1.3, "jnp add of the same arrays")


def squares(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda *x: (f(*x) ** 2).sum(), (0, 1, 2))


def jacobians(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(jax.jacfwd(f, (0, 1, 2)))


def beside_frax(title: str, bar: float, transformed: Callable[..., Any], own_batch: bool) -> Duel:
    """frax has a panda of its own."""
    peer("frax")
    from frax.robots.franka_panda import load_panda  # type: ignore[import-not-found]

    other, gravity = load_panda(), jnp.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])

    def rnea(q: Any, v: Any, a: Any) -> Any:
        return other.rnea(q, v, a, gravity, None)

    theirs = transformed(rnea) if own_batch else transformed(jax.vmap(rnea))
    x = states(panda(), BATCH)
    ours = waiting(transformed(wrap(panda()).inverse_dynamics), *x)
    return Duel(f"{title} of ID, panda, batch {BATCH}", ours, waiting(theirs, *x), bar, "frax", faster=True)


def beside_mjx() -> Duel:
    """Values and derivatives of inverse dynamics of the same robot, in MuJoCo's coordinates and in ours."""
    mjx, mujoco = peer("mujoco.mjx"), peer("mujoco")
    robot = Robot(quadruped(), backend="compiled", threads=1)
    model = to_mujoco(robot.model)
    placed, data = mjx.put_model(model), mjx.put_data(model, mujoco.MjData(model))

    def inverse(q: Any, v: Any, a: Any) -> Any:
        return mjx.inverse(placed, data.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse

    def both(f: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(lambda *x: (f(*x), jax.jacfwd(f, (0, 1, 2))(*x)))

    x = states(robot, SMALL_BATCH)
    same = robot.with_convention("mujoco")
    rng = np.random.default_rng(1)
    theirs_x = [same.random_configuration(rng, SMALL_BATCH), *x[1:]]
    other = waiting(both(inverse), *theirs_x)

    def difference() -> float:
        found, wanted = np.asarray(other()[0]), same.inverse_dynamics(theirs_x[0], theirs_x[1], theirs_x[2])
        return float(np.abs(found - wanted).max() / np.abs(wanted).max())

    ours = waiting(both(wrap(robot).inverse_dynamics), *x)
    title = f"ID and jacfwd, quadruped, batch {SMALL_BATCH}"
    return Duel(title, ours, other, 50.0, "MJX", faster=True, difference=difference)


def rollout() -> Duel:
    robot = Robot(entrant("hyq").robot.model, backend="compiled", threads=1, unroll=True)
    r = wrap(robot)

    def step(state: Any, _: Any) -> Any:
        q, v = state
        v = v + 1e-4 * r.forward_dynamics(q, v, -v)
        return (r.integrate(q, 1e-4 * v), v), None

    q, v, _ = (x[0] for x in states(robot, 1))
    ours = waiting(lambda q, v: jax.lax.scan(step, (q, v), None, length=STEPS)[0], q, v)
    return Duel("step of lax.scan: FD and integrate, hyq, unrolled", ours, None, 2.0, "", each=STEPS)


DUELS: list[tuple[str, Make]] = [
    ("one ID of panda", one_call),
    ("values beside frax", partial(beside_frax, "value", 40.0, lambda f: f, False)),
    ("gradients beside frax", partial(beside_frax, "gradient", 30.0, squares, False)),
    ("Jacobians beside frax", partial(beside_frax, "vmap of jacfwd", 100.0, jacobians, True)),
    ("ID beside MJX", beside_mjx),
    ("a step of lax.scan", rollout),
]
