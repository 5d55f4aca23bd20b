"""Integrators: the next state of a knot and its Jacobians, from accelerations and theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.kernel import Kernel
from ..model.configuration import Places
from ..model.manifolds import Euclidean
from .code import compiled
from .signals import Sizes

Array = np.ndarray


def advanced(places: Places, x: Array, a: Array, dt: Any) -> tuple[list[Any], list[Any]]:
    """Semi-implicit Euler: q (+) (dt v + dt^2 a) and v + dt a; and the way on the manifold."""
    q, v = x[: places.nq], x[places.nq :]
    way = [dt * (y + dt * z) for y, z in zip(v, a, strict=True)]
    found: list[Any] = []
    for p in places.nodes:
        found += p.manifold.integrate(q[p.q], way[p.v])
    return [*found, *(y + dt * z for y, z in zip(v, a, strict=True))], way


def euler(size: Sizes) -> Kernel:
    """The code of a step: (x, a, dt) -> next."""
    places, nv = size.places, size.nv

    def run(x: Array, a: Array, dt: Array) -> list[Array]:
        return [np.array(advanced(places, x, a, dt[0])[0], object)]

    nx = size.nq + nv
    inputs = {"x": (nx,), "a": (nv,), "dt": (1,)}
    return compiled(run, inputs, ("euler", places.digest), "steps", [(nx,)])


def euler_slopes(size: Sizes, driven: Array) -> Kernel:
    """The code of a step with its Jacobians: (x, a, dt, a_q, a_v, a_tau) -> next, Fx, Fu.

    By the way w: w_q = dt^2 a_q, w_v = dt + dt^2 a_v, w_u = dt^2 a_u, then the Jacobians of (+).
    """
    places, nv, nu = size.places, size.nv, len(driven)
    columns = driven.tolist()

    def run(x: Array, a: Array, dt: Array, a_q: Array, a_v: Array, a_tau: Array) -> list[Array]:
        h = dt[0]
        after, way = advanced(places, x, a, h)
        low = np.concatenate([h * a_q, h * a_v, h * a_tau[:, columns]], 1)  # of v + h a, without the identity
        low[range(nv), range(nv, 2 * nv)] = [low[k, nv + k] + 1.0 for k in range(nv)]
        high = h * low
        for p in places.nodes:
            turn = not isinstance(p.manifold, Euclidean) and p.manifold.nv > 1
            if turn:
                J = np.array(p.manifold.right_jacobian(way[p.v]), object)
                high[p.v] = product(J, high[p.v])
                back = np.array(p.manifold.adjoint_inverse(way[p.v]), object)
            else:
                back = np.eye(p.manifold.nv)
            high[p.v, p.v] = high[p.v, p.v] + back
        F = np.concatenate([high, low])
        return [np.array(after, object), F[:, : 2 * nv], F[:, 2 * nv :]]

    nx = size.nq + nv
    inputs = {"x": (nx,), "a": (nv,), "dt": (1,), "a_q": (nv, nv), "a_v": (nv, nv), "a_tau": (nv, nv)}
    shapes = [(nx,), (2 * nv, 2 * nv), (2 * nv, nu)]
    return compiled(run, inputs, ("euler slopes", places.digest, tuple(columns)), "steps and slopes", shapes)


def product(A: Array, B: Array) -> Array:
    """A B of traced matrices, where entries of A may be zero."""
    out = np.empty((A.shape[0], B.shape[1]), object)
    for i, row in enumerate(A):
        for j in range(B.shape[1]):
            total: Any = 0.0
            for a, b in zip(row, B[:, j], strict=True):
                total = a * b + total
            out[i, j] = total
    return out
