"""Derivatives along directions with compiled code: finite differences, and algorithms that take a direction.

All directions of all states form one batch. The moved states are prepared beforehand and not charged, which favours
these methods; evaluations and differences are charged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...model.model import Array
from ...robot.robot import Robot
from ..bench.timing import Contender
from ..internals import BatchFunction

STEP = float(np.sqrt(np.finfo(float).eps))

Results = Callable[[], tuple[Array, Array]]
StateArrays = Mapping[str, Array]  # q (B, nq), v, a, tau (B, nv)


def differences(
    name: str, function: BatchFunction, robot: Robot, states: StateArrays, third: str
) -> tuple[Contender, Results]:
    """One-sided differences of function(q, v, third) by q and v: 2n + 1 evaluations per state."""
    q, v, x = states["q"], states["v"], states[third]
    n, size = robot.nv, len(q)
    steps = STEP * np.eye(n)
    qs = np.concatenate([np.broadcast_to(q[:, None], (size, 1, q.shape[1])), robot.integrate(q[:, None], steps)], 1)
    qs = np.concatenate([qs, np.broadcast_to(q[:, None], (size, n, q.shape[1]))], 1)
    vs = np.concatenate([np.broadcast_to(v[:, None], (size, n + 1, n)), v[:, None] + steps], 1)
    xs = np.broadcast_to(x[:, None], (size, 2 * n + 1, n))
    inputs = [np.ascontiguousarray(a) for a in (qs, vs, xs)]
    value, slopes = np.empty((size, 2 * n + 1, n)), np.empty((size, 2 * n, n))

    def run(_: int) -> None:
        function(inputs, (value,))
        np.subtract(value[:, 1:], value[:, :1], out=slopes)
        np.multiply(slopes, 1 / STEP, out=slopes)

    return Contender(name, run, size, whole=True), lambda: split(slopes, n)


def directions(
    name: str, function: BatchFunction, robot: Robot, states: StateArrays, third: str
) -> tuple[Contender, Results]:
    """Derivatives by function(q, v, third, dq, dv), which takes one direction: 2n directions per state."""
    n, size = robot.nv, len(states["q"])
    inputs = [np.repeat(states[k][:, None], 2 * n, 1) for k in ("q", "v", third)]
    dq, dv = np.zeros(inputs[0].shape), np.zeros(inputs[1].shape)
    dq[:, :n] = robot.rate_map(states["q"]).swapaxes(1, 2)
    dv[:, n:] = np.eye(n)
    slopes = np.empty((size, 2 * n, n))

    def run(_: int) -> None:
        function([*inputs, dq, dv], (slopes,))

    return Contender(name, run, size, whole=True), lambda: split(slopes, n)


def split(slopes: Array, n: int) -> tuple[Array, Array]:
    """The matrices (B, n, n) by q and by v, from the derivatives (B, 2n, n) along directions."""
    return slopes[:, :n].swapaxes(1, 2), slopes[:, n:].swapaxes(1, 2)
