"""Controls that hold a robot still, for solvers to begin with."""

from __future__ import annotations

import numpy as np

from ...blas import one_blas_thread
from ...jit.kernel import Kernel
from .robot import STATIC_QUANTITIES, PhaseRobot

Array = np.ndarray


def static_controls(robot: PhaseRobot, q: Array) -> Array:
    """Controls (..., nu), together with contact forces the smallest ones that hold the robot still at q (..., nq)."""
    nv, nu = robot.size.nv, robot.size.nu
    gravity, *jacobian = static_kernels(robot)
    g = gravity.values(q)[0]
    A = np.zeros((*q.shape[:-1], nv, nu + robot.rows))
    A[..., robot.driven, range(nu)] = 1.0
    for kernel in jacobian:
        A[..., nu:] = np.swapaxes(kernel.values(q)[0], -1, -2)
    with one_blas_thread:
        return (np.linalg.pinv(A) @ g[..., None])[..., :nu, 0]


def static_kernels(robot: PhaseRobot) -> list[Kernel]:
    """The code of gravity, and of the contacts' Jacobian if there are any: what `static_controls` runs."""
    return [robot.kernel(name) for name in (STATIC_QUANTITIES if robot.contacts else STATIC_QUANTITIES[:1])]
