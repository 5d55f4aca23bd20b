"""Steps of integrators on the manifold of configurations, and their derivatives, for generic scalars.

A state x = [q, v] has nq + nv numbers, its tangents 2 nv. q (+) w moves a configuration along a tangent vector. In the
chart q (+) w around a knot's q, a motion is dw/dt = R(w) v, dv/dt = a(q (+) w, v, u), where R is the inverse of the
right Jacobian of (+) [Munthe-Kaas 1999]. Runge-Kutta methods take their stages in that chart.

Second derivatives of a move are seen in charts at both of its ends: q (+) w moves by d(dq, dw) =
log(exp(-w) exp(dq) exp(w + dw)). With B and L, its Jacobians by dq and dw, the Baker-Campbell-Hausdorff formula gives

    p.d by (dq, dq): 0     by (dq_i, dw_j): p.[B_i, L_j] / 2     by (dw, dw): the symmetric half of d(p^T L(w))/dw
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.configuration import Places
from ..model.manifolds import SE2, SE3, SO3, Euclidean, Manifold, is_flat

Array = np.ndarray
Differentiate = Callable[[Sequence[Any], Sequence[Any]], Array]  # (values, inputs) -> their Jacobian


class Tableau(NamedTuple):
    """shares: of dt from each stage to the next; weights: of the stages in the step."""

    shares: tuple[float, ...]
    weights: tuple[float, ...]


TABLEAUX = {"rk2": Tableau((0.5,), (0.0, 1.0)), "rk4": Tableau((0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))}


def moved(places: Places, q: Any, w: Any) -> list[Any]:
    """q (+) w, (nq,)."""
    return [y for p in places.nodes for y in p.manifold.integrate(q[p.q], list(w[p.v]))]


def moved_state(places: Places, x: Array, dx: Array) -> list[Any]:
    """The state (nq + nv,) that a tangent dx (2 nv,) leads to."""
    nq, nv = places.nq, places.nv
    return [*moved(places, x, dx), *(a + b for a, b in zip(x[nq:], dx[nv:], strict=True))]


def state_difference(places: Places, x0: Array, x1: Array) -> list[Any]:
    """The tangent (2 nv,) at x0 that leads to x1."""
    way = [y for p in places.nodes for y in p.manifold.difference(x0[p.q], x1[p.q])]
    return [*way, *(x1[places.nq :] - x0[places.nq :])]


def chart_rates(places: Places, w: Any, v: Any) -> list[Any]:
    """R(w) v, (nv,)."""
    rates: list[Any] = []
    for p in places.nodes:
        J = p.manifold.right_jacobian_inverse(list(w[p.v]))
        rates += [sum((a * b for a, b in zip(row, v[p.v], strict=True)), 0.0) for row in J]
    return rates


def semi_implicit_euler(places: Places, x: Array, a: Array, dt: Any) -> tuple[list[Any], list[Any]]:
    """The next state, q (+) w and v + dt a, and w = dt (v + dt a)."""
    q, v = x[: places.nq], x[places.nq :]
    w = [dt * (y + dt * z) for y, z in zip(v, a, strict=True)]
    return [*moved(places, q, w), *(y + dt * z for y, z in zip(v, a, strict=True))], w


def euler_slopes(places: Places, x: Array, a: Array, dt: Any, by_q: Array, by_v: Array, by_u: Array) -> list[Array]:
    """The next state of `semi_implicit_euler`, and its Jacobians by x (2 nv, 2 nv) and u (2 nv, nu); by_q...: of a.

    By the way w: w_q = dt^2 a_q, w_v = dt + dt^2 a_v, w_u = dt^2 a_u, then the Jacobians of (+).
    """
    nv = places.nv
    after, w = semi_implicit_euler(places, x, a, dt)
    low = np.concatenate([dt * by_q, dt * by_v, dt * by_u], 1)  # of v + dt a, without the identity
    low[range(nv), range(nv, 2 * nv)] = [low[k, nv + k] + 1.0 for k in range(nv)]
    high = dt * low
    for p in places.nodes:
        if not isinstance(p.manifold, Euclidean) and p.manifold.nv > 1:
            high[p.v] = product(np.array(p.manifold.right_jacobian(w[p.v]), object), high[p.v])
            back = np.array(p.manifold.adjoint_inverse(w[p.v]), object)
        else:
            back = np.eye(p.manifold.nv)
        high[p.v, p.v] = high[p.v, p.v] + back
    F = np.concatenate([high, low])
    return [np.array(after, object), F[:, : 2 * nv], F[:, 2 * nv :]]


def product(A: Array, B: Array) -> Array:
    """A B of matrices of scalars, where entries of A may be zero."""
    out = np.empty((A.shape[0], B.shape[1]), object)
    for i, row in enumerate(A):
        for j in range(B.shape[1]):
            total: Any = 0.0
            for a, b in zip(row, B[:, j], strict=True):
                total = a * b + total
            out[i, j] = total
    return out


# Second derivatives


def bracket(manifold: Manifold, a: Any, b: Any) -> list[Any]:
    """The commutator [a, b] of two tangent vectors."""
    if isinstance(manifold, SO3):
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    if isinstance(manifold, SE2):
        return [b[2] * a[1] - a[2] * b[1], a[2] * b[0] - b[2] * a[0], 0.0]
    assert isinstance(manifold, SE3)
    spin = SO3()
    first, second = bracket(spin, a[3:], b[:3]), bracket(spin, a[:3], b[3:])
    return [*(x + y for x, y in zip(first, second, strict=True)), *bracket(spin, a[3:], b[3:])]


def is_flat_space(places: Places) -> bool:
    """Whether moves of all joints add, so that they have no second derivatives."""
    return all(is_flat(p.manifold) for p in places.nodes)


def move_hessian(places: Places, w: Array, p: Array, differentiate: Differentiate) -> list[Array]:
    """Second derivatives of p.d by (dq, dw) and (dw, dw), (nv, nv) each."""
    nv = places.nv
    mixed, along_w = np.zeros((nv, nv), object), np.zeros((nv, nv), object)
    for node in places.nodes:
        if is_flat(node.manifold):
            continue
        own, weights, n = w[node.v], p[node.v], node.manifold.nv
        back = np.array(node.manifold.adjoint_inverse(list(own)), object)
        along = np.array(node.manifold.right_jacobian(list(own)), object)
        slopes = differentiate([dot(weights, along[:, j]) for j in range(n)], list(own))
        along_w[node.v, node.v] = 0.5 * (slopes + slopes.T)
        mixed[node.v, node.v] = [
            [0.5 * dot(weights, bracket(node.manifold, back[:, i], along[:, j])) for j in range(n)] for i in range(n)
        ]
    return [mixed, along_w]


def dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


# Arrays of numbers, with any leading axes


def transposed_times(A: Array, x: Array) -> Array:
    """A^T x."""
    return (x[..., None, :] @ A)[..., 0, :]


def pulled_back(H: Array, slopes: Array) -> Array:
    """The Hessian along slopes J: J^T H J."""
    return np.swapaxes(slopes, -1, -2) @ (H @ slopes)
