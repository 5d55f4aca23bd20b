"""Compiled steps of semi-implicit Euler, and moves and differences of states; see `algorithms.integrators`."""

from __future__ import annotations

import numpy as np

from ...algorithms.integrators import euler_slopes, moved_state, semi_implicit_euler, state_difference
from ...jit.kernel import Kernel
from ...model.configuration import Places
from ..residuals.signals import Sizes
from .kernels import traced_kernel

Array = np.ndarray


def difference_kernel(places: Places) -> Kernel:
    """(x0, x1) -> the tangent (2 nv,) at x0 that leads to x1."""
    nx, ndx = places.nq + places.nv, 2 * places.nv

    def run(x0: Array, x1: Array) -> list[Array]:
        return [np.array(state_difference(places, x0, x1), object)]

    return traced_kernel(run, {"x0": (nx,), "x1": (nx,)}, ("difference", places.digest), "differences", [(ndx,)])


def move_state_kernel(places: Places) -> Kernel:
    """(x, dx) -> the state (nq + nv,) that a tangent leads to."""
    nx, ndx = places.nq + places.nv, 2 * places.nv

    def run(x: Array, dx: Array) -> list[Array]:
        return [np.array(moved_state(places, x, dx), object)]

    return traced_kernel(run, {"x": (nx,), "dx": (ndx,)}, ("integrate", places.digest), "moves", [(nx,)])


def euler_kernel(places: Places) -> Kernel:
    """(x, a, dt) -> the next state."""
    nx, nv = places.nq + places.nv, places.nv

    def run(x: Array, a: Array, dt: Array) -> list[Array]:
        return [np.array(semi_implicit_euler(places, x, a, dt[0])[0], object)]

    return traced_kernel(run, {"x": (nx,), "a": (nv,), "dt": (1,)}, ("euler", places.digest), "steps", [(nx,)])


def euler_slopes_kernel(size: Sizes, driven: Array) -> Kernel:
    """(x, a, dt, a_q, a_v, a_tau) -> the next state and its Jacobians Fx, Fu by x and the driven torques."""
    places, nv, nu = size.places, size.nv, len(driven)
    columns = driven.tolist()

    def run(x: Array, a: Array, dt: Array, a_q: Array, a_v: Array, a_tau: Array) -> list[Array]:
        return euler_slopes(places, x, a, dt[0], a_q, a_v, a_tau[:, columns])

    nx = size.nq + nv
    inputs = {"x": (nx,), "a": (nv,), "dt": (1,), "a_q": (nv, nv), "a_v": (nv, nv), "a_tau": (nv, nv)}
    shapes = [(nx,), (2 * nv, 2 * nv), (2 * nv, nu)]
    return traced_kernel(run, inputs, ("euler slopes", places.digest, tuple(columns)), "steps and slopes", shapes)
