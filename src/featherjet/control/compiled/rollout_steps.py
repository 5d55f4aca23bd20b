"""Compiled steps of rollouts: one knot under a policy, and one impact, from state to next state."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.integrators import moved_state, state_difference
from ...jit.chain import Chain, Link
from ...jit.kernel import Kernel
from ...math.scalars import where_less
from .integrators import euler_kernel
from .kernels import traced_kernel
from .robot import PhaseRobot
from .runge_kutta import RungeKutta

Array = np.ndarray


def rollout_step(robot: PhaseRobot) -> Kernel:
    """The code of a step of a phase or an impact; made once for a robot, as windows and parts of a problem share it."""
    return robot.code("rollout step", lambda: impact_step(robot) if robot.hits else policy_step(robot))


def policy_step(robot: PhaseRobot) -> Kernel:
    """The code of a knot under a policy: (raw, gap, xs, us, k, K, lower, upper, dt) -> x, u, a, forces, next raw x.

    A raw state is one before its gap is closed in part: x = raw (+) gap.
    """
    places, nu = robot.size.places, robot.size.nu
    nq, nv, driven = places.nq, places.nv, robot.driven.tolist()
    nx, ndx = nq + nv, 2 * nv

    def policy(raw: Any, gap: Any, xs: Any, us: Any, k: Any, K: Any, lower: Any, upper: Any) -> list[Array]:
        x = np.array(moved_state(places, raw, gap), object)
        dx = state_difference(places, xs, x)
        u = []
        for i in range(nu):
            total = us[i] - k[i]
            for j in range(ndx):
                total = total - K[i * ndx + j] * dx[j]
            u.append(where_less(upper[i], total, upper[i], where_less(total, lower[i], lower[i], total)))
        tau = np.full(nv, 0.0, object)
        tau[driven] = u
        return [x, np.array(u, object), x[:nq], x[nq:], tau]

    inputs = {
        "raw": (nx,), "gap": (ndx,), "xs": (nx,), "us": (nu,), "k": (nu,), "K": (nu * ndx,), "lower": (nu,),
        "upper": (nu,),
    }  # fmt: skip
    key = places.digest, tuple(driven)
    first = traced_kernel(policy, inputs, ("policy", key), "policies", [(nx,), (nu,), (nq,), (nv,), (nv,)])
    forces = ("forces",) if robot.rows else ()
    links = [
        Link(first, (*inputs, "x", "u", "q", "v", "tau")),
        Link(robot.kernel(robot.dynamics), ("q", "v", "tau", "a", *forces)),
    ]
    between: dict[str, tuple[int, ...]] = {"q": (nq,), "v": (nv,), "tau": (nv,)}
    if robot.integrator == "euler":
        links.append(Link(euler_kernel(places), ("x", "a", "dt", "next")))
    else:
        more, temporaries = RungeKutta(robot, robot.integrator).links("x", "a")
        links += more
        between |= temporaries
    results = {"x": (nx,), "u": (nu,), "a": (nv,), **({"forces": (robot.rows,)} if forces else {}), "next": (nx,)}
    return chained(f"policy_step_{robot.integrator}", {**inputs, "dt": (1,)}, results, between, links, robot)


def impact_step(robot: PhaseRobot) -> Kernel:
    """The code of an impact: (raw, gap, restitution) -> x, jump of velocities, impulses, next raw x."""
    places = robot.size.places
    nq, nv, nx = places.nq, places.nv, places.nq + places.nv

    def arrive(raw: Any, gap: Any) -> list[Array]:
        x = np.array(moved_state(places, raw, gap), object)
        return [x, x[:nq], x[nq:]]

    def leave(x: Any, a: Any) -> list[Array]:
        return [np.array([*x[:nq], *(x[nq:] + a)], object)]

    first = traced_kernel(
        arrive, {"raw": (nx,), "gap": (2 * nv,)}, ("arrive", places.digest), "moves", [(nx,), (nq,), (nv,)]
    )
    last = traced_kernel(leave, {"x": (nx,), "a": (nv,)}, ("leave", nq, nv), "jumps", [(nx,)])
    links = [
        Link(first, ("raw", "gap", "x", "q", "v")),
        Link(robot.kernel(robot.dynamics), ("q", "v", "restitution", "a", "forces")),
        Link(last, ("x", "a", "next")),
    ]
    inputs = {"raw": (nx,), "gap": (2 * nv,), "restitution": (1,)}
    results = {"x": (nx,), "a": (nv,), "forces": (robot.rows,), "next": (nx,)}
    return chained("impact_step", inputs, results, {"q": (nq,), "v": (nv,)}, links, robot)


def chained(name: str, inputs: Any, results: Any, between: Any, links: list[Link], robot: PhaseRobot) -> Kernel:
    return Chain(name, robot.evaluator.compiler.target, inputs, results, between, links, {})
