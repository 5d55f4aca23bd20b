"""Motion on the manifold of configurations, joint by joint: integrate, difference, interpolate, and their Jacobians.

Tangent vectors are in the axes of velocities: the Jacobians (nv, nv) map between the tangent spaces of both ends, and
consist of one block for each joint. The scan may walk a tree, or the joints of any configuration space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..math.scalars import Scalar
from ..model.manifolds import Rows
from .scan import Array, Scan


def integrate(scan: Scan, q: Array, dv: Array) -> Array:
    """q moved along the tangent vector dv, (nq,)."""

    def step(node: Any, q: tuple, dv: tuple) -> list[Scalar]:
        return node.manifold.integrate(q, dv)

    return scan.configuration(scan.each(step, scan.coordinates(q), scan.rates(dv)))


def difference(scan: Scan, q0: Array, q1: Array) -> Array:
    """The tangent vector at q0 that leads to q1, (nv,)."""

    def step(node: Any, q0: tuple, q1: tuple) -> list[Scalar]:
        return node.manifold.difference(q0, q1)

    return scan.vector(scan.each(step, scan.coordinates(q0), scan.coordinates(q1)))


def interpolate(scan: Scan, q0: Array, q1: Array, t: Array) -> Array:
    """The geodesic from q0 (t = 0) to q1 (t = 1), (nq,); t has one entry."""

    def step(node: Any, q0: tuple, q1: tuple) -> list[Scalar]:
        return node.manifold.integrate(q0, [t[0] * x for x in node.manifold.difference(q0, q1)])

    return scan.configuration(scan.each(step, scan.coordinates(q0), scan.coordinates(q1)))


def integrate_jacobians(scan: Scan, q: Array, dv: Array) -> tuple[Array, Array]:
    """The Jacobians of integrate by q and by dv, each (nv, nv)."""
    way = scan.rates(dv)
    return (
        blocks(scan, lambda node, x: node.manifold.adjoint_inverse(x), way),
        blocks(scan, lambda node, x: node.manifold.right_jacobian(x), way),
    )


def difference_jacobians(scan: Scan, q0: Array, q1: Array) -> tuple[Array, Array]:
    """The Jacobians of difference by q0 and by q1, each (nv, nv)."""
    way = scan.rates(difference(scan, q0, q1))

    return blocks(scan, by_start, way), blocks(scan, lambda node, x: node.manifold.right_jacobian_inverse(x), way)


def by_start(node: Any, x: tuple) -> Rows:
    """The Jacobian of difference by q0, for one joint that moved along x."""
    return [[-a for a in row] for row in node.manifold.right_jacobian_inverse([-a for a in x])]


# Products with these Jacobians, joint by joint


def integrate_vjp(scan: Scan, q: Array, dv: Array, w: Array) -> tuple[Array, Array]:
    """w^T times the Jacobians of integrate by q and by dv, each (nv,)."""

    def by_q(node: Any, dv: tuple, w: tuple) -> list[Scalar]:
        return left(w, node.manifold.adjoint_inverse(dv))

    def by_dv(node: Any, dv: tuple, w: tuple) -> list[Scalar]:
        return left(w, node.manifold.right_jacobian(dv))

    way, weights = scan.rates(dv), scan.rates(w)
    return scan.vector(scan.each(by_q, way, weights)), scan.vector(scan.each(by_dv, way, weights))


def integrate_jvp(scan: Scan, q: Array, dv: Array, dq: Array, ddv: Array) -> Array:
    """The rate (nv,) of integrate, in the tangent space of its result, along dq and ddv."""

    def step(node: Any, dv: tuple, dq: tuple, ddv: tuple) -> list[Scalar]:
        parts = right(node.manifold.adjoint_inverse(dv), dq), right(node.manifold.right_jacobian(dv), ddv)
        return [a + b for a, b in zip(*parts, strict=True)]

    return scan.vector(scan.each(step, scan.rates(dv), scan.rates(dq), scan.rates(ddv)))


def difference_vjp(scan: Scan, q0: Array, q1: Array, w: Array) -> tuple[Array, Array]:
    """w^T times the Jacobians of difference by q0 and by q1, each (nv,)."""

    def by_q0(node: Any, x: tuple, w: tuple) -> list[Scalar]:
        return left(w, by_start(node, x))

    def by_q1(node: Any, x: tuple, w: tuple) -> list[Scalar]:
        return left(w, node.manifold.right_jacobian_inverse(x))

    way, weights = scan.rates(difference(scan, q0, q1)), scan.rates(w)
    return scan.vector(scan.each(by_q0, way, weights)), scan.vector(scan.each(by_q1, way, weights))


def difference_jvp(scan: Scan, q0: Array, q1: Array, dq0: Array, dq1: Array) -> Array:
    """The rate (nv,) of difference along dq0 and dq1."""

    def step(node: Any, x: tuple, dq0: tuple, dq1: tuple) -> list[Scalar]:
        parts = right(by_start(node, x), dq0), right(node.manifold.right_jacobian_inverse(x), dq1)
        return [a + b for a, b in zip(*parts, strict=True)]

    return scan.vector(scan.each(step, scan.rates(difference(scan, q0, q1)), scan.rates(dq0), scan.rates(dq1)))


def left(w: Sequence[Scalar], rows: Rows) -> list[Scalar]:
    """w^T times a matrix."""
    return [sum(a * b for a, b in zip(w, column, strict=True)) for column in zip(*rows, strict=True)]


def right(rows: Rows, x: Sequence[Scalar]) -> list[Scalar]:
    """A matrix times x."""
    return [sum(a * b for a, b in zip(row, x, strict=True)) for row in rows]


def tangent_rate(scan: Scan, dv: Array, v: Array) -> Array:
    """The rate (nv,) of dv while integrate(q, dv) moves with the velocity v: the Jacobian of difference by q1, times v.

    Methods for differential equations on a manifold integrate this rate (Munthe-Kaas).
    """

    def step(node: Any, dv: tuple, v: tuple) -> list[Scalar]:
        return right(node.manifold.right_jacobian_inverse(dv), v)

    return scan.vector(scan.each(step, scan.rates(dv), scan.rates(v)))


def rate_map(scan: Scan, q: Array) -> Array:
    """F (nq, nv) with dq/dt = F v; [KINDR] F."""
    return blocks(scan, lambda node, x: node.manifold.rate_map(x), scan.coordinates(q))


def rate_map_inverse(scan: Scan, q: Array) -> Array:
    """Fbar (nv, nq) with v = Fbar dq/dt, blind to changes of norm; [KINDR] Fbar."""
    return blocks(scan, lambda node, x: node.manifold.rate_map_inverse(x), scan.coordinates(q))


def blocks(scan: Scan, block: Callable[[Any, tuple], Rows], given: Any) -> Array:
    """The matrix with one block for each joint, on zeros."""
    found = scan.each(block, given)
    out = scan.zeros(sum(map(len, found)), sum(len(rows[0]) for rows in found))
    i = j = 0
    for rows in found:
        for r, row in enumerate(rows):
            for c, x in enumerate(row):
                out[i + r, j + c] = x
        i, j = i + len(rows), j + len(rows[0])
    return out
