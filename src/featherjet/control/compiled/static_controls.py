"""Controls that hold a robot still, for solvers to begin with."""

from __future__ import annotations

import numpy as np

from ...jit.kernel import Kernel
from .motion import STATIC_QUANTITIES, PhaseRobot

Array = np.ndarray


def static_controls(body: PhaseRobot, q: Array) -> Array:
    """Controls (..., nu), together with contact forces the smallest ones that hold the robot still at q (..., nq)."""
    nv, nu = body.size.nv, body.size.nu
    gravity, *jacobian = static_kernels(body)
    g = gravity.values(q)[0]
    A = np.zeros((*q.shape[:-1], nv, nu + body.rows))
    A[..., body.driven, range(nu)] = 1.0
    for kernel in jacobian:
        A[..., nu:] = np.swapaxes(kernel.values(q)[0], -1, -2)
    return (np.linalg.pinv(A) @ g[..., None])[..., :nu, 0]


def static_kernels(body: PhaseRobot) -> list[Kernel]:
    """The code that `holding` runs: of gravity, and of the contacts' Jacobian, if there are any."""
    return [body.kernel(name) for name in (STATIC_QUANTITIES if body.contacts else STATIC_QUANTITIES[:1])]
