"""Derivatives along directions with compiled kernels: finite differences, and directions handed to a kernel.

All directions of all states are one batch. Where the states are moved to is prepared beforehand and not charged, which
favours these methods; what is charged are the evaluations and the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...evaluate.compiled import Kernel
from ...model.model import Array
from ...robot.robot import Robot
from ..bench.timing import Contender

STEP = float(np.sqrt(np.finfo(float).eps))

Results = Callable[[], tuple[Array, Array]]
Given = Mapping[str, Array]


def differences(name: str, kernel: Kernel, robot: Robot, given: Given, third: str) -> tuple[Contender, Results]:
    """One-sided differences of a vector by q and v: 2n + 1 evaluations for each state."""
    q, v, x = given["q"], given["v"], given[third]
    n, size = robot.nv, len(q)
    steps = STEP * np.eye(n)
    qs = np.concatenate([np.broadcast_to(q[:, None], (size, 1, q.shape[1])), robot.integrate(q[:, None], steps)], 1)
    qs = np.concatenate([qs, np.broadcast_to(q[:, None], (size, n, q.shape[1]))], 1)
    vs = np.concatenate([np.broadcast_to(v[:, None], (size, n + 1, n)), v[:, None] + steps], 1)
    xs = np.broadcast_to(x[:, None], (size, 2 * n + 1, n))
    inputs = [np.ascontiguousarray(a) for a in (qs, vs, xs)]
    value, slopes = np.empty((size, 2 * n + 1, n)), np.empty((size, 2 * n, n))

    def run(_: int) -> None:
        kernel(inputs, (value,), 1)
        np.subtract(value[:, 1:], value[:, :1], out=slopes)
        np.multiply(slopes, 1 / STEP, out=slopes)

    return Contender(name, run, size, whole=True), lambda: split(slopes, n)


def directions(name: str, kernel: Kernel, robot: Robot, given: Given, third: str) -> tuple[Contender, Results]:
    """A kernel that takes a direction (dq, dv): 2n directions for each state."""
    n, size = robot.nv, len(given["q"])
    inputs = [np.repeat(given[k][:, None], 2 * n, 1) for k in ("q", "v", third)]
    dq, dv = np.zeros(inputs[0].shape), np.zeros(inputs[1].shape)
    dq[:, :n] = robot.rate_map(given["q"]).swapaxes(1, 2)
    dv[:, n:] = np.eye(n)
    slopes = np.empty((size, 2 * n, n))

    def run(_: int) -> None:
        kernel([*inputs, dq, dv], (slopes,), 1)

    return Contender(name, run, size, whole=True), lambda: split(slopes, n)


def split(slopes: Array, n: int) -> tuple[Array, Array]:
    """The matrices by q and by v from rows that are directions."""
    return slopes[:, :n].swapaxes(1, 2), slopes[:, n:].swapaxes(1, 2)
