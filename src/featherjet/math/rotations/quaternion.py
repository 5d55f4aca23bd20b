"""Skew matrices and Hamilton quaternions, stored as [w, x, y, z] (kindr's order, the real part FIRST).

featherjet's configurations, like Pinocchio's, hold x y z w: convert with `wxyz_from_xyzw` and
`xyzw_from_wxyz` at the border. Everything but the input checks is holomorphic. Reference: [KINDR].
"""

# pyright: reportConstantRedefinition=false
# Paper letters in capitals are variables here.

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherjet.errors import InputError
from featherjet.math.rotations.inputs import Array, checked


def skew(a: ArrayLike) -> Array:
    """The matrix of a cross product, skew(a) b = a x b; a (..., 3) -> (..., 3, 3)."""
    a = checked("skew", "a", a, 3)
    S = np.zeros((*a.shape, 3), a.dtype)
    S[..., 2, 1], S[..., 0, 2], S[..., 1, 0] = a[..., 0], a[..., 1], a[..., 2]
    return S - np.swapaxes(S, -1, -2)


def unskew(S: ArrayLike) -> Array:
    """The vector of a skew matrix; S (..., 3, 3) -> (..., 3). A symmetric part of S is dropped."""
    S = checked("unskew", "S", S, 3, 3)
    D = S - np.swapaxes(S, -1, -2)
    return np.stack([D[..., 2, 1], D[..., 0, 2], D[..., 1, 0]], -1) / 2


def wxyz_from_xyzw(q: ArrayLike) -> Array:
    """[w, x, y, z] from Pinocchio's [x, y, z, w]; (..., 4) -> (..., 4)."""
    return np.roll(checked("wxyz_from_xyzw", "q", q, 4), 1, axis=-1)


def xyzw_from_wxyz(q: ArrayLike) -> Array:
    """Pinocchio's [x, y, z, w] from [w, x, y, z]; (..., 4) -> (..., 4)."""
    return np.roll(checked("xyzw_from_wxyz", "q", q, 4), -1, axis=-1)


def quaternion_identity(batch: tuple[int, ...] = ()) -> Array:
    """The quaternion [1, 0, 0, 0] of no rotation, repeated over `batch`; (*batch, 4)."""
    q = np.zeros((*batch, 4))
    q[..., 0] = 1
    return q


def quaternion_matrix(q: ArrayLike) -> Array:
    """Q(q), of the product from the left: q (x) p = Q(q) p; (..., 4) -> (..., 4, 4). [KINDR] Q."""
    return _product_matrix(checked("quaternion_matrix", "q", q, 4), 1)


def quaternion_matrix_bar(p: ArrayLike) -> Array:
    """Qbar(p), of the product from the right: q (x) p = Qbar(p) q; (..., 4) -> (..., 4, 4). [KINDR] Qbar."""
    return _product_matrix(checked("quaternion_matrix_bar", "p", p, 4), -1)


def _product_matrix(q: Array, sign: int) -> Array:
    w, vec = q[..., 0], q[..., 1:]
    M = np.empty((*q.shape, 4), q.dtype)
    M[..., 0, 0], M[..., 0, 1:], M[..., 1:, 0] = w, -vec, vec
    M[..., 1:, 1:] = w[..., None, None] * np.eye(3) + sign * skew(vec)
    return M


def quaternion_product(q: ArrayLike, p: ArrayLike) -> Array:
    """Hamilton's q (x) p = (q0 p0 - qv.pv, q0 pv + p0 qv + qv x pv); (..., 4), leading axes broadcast."""
    q, p = checked("quaternion_product", "q", q, 4), checked("quaternion_product", "p", p, 4)
    q0, q1, q2, q3 = (q[..., i] for i in range(4))
    p0, p1, p2, p3 = (p[..., i] for i in range(4))
    return np.stack(
        [
            q0 * p0 - q1 * p1 - q2 * p2 - q3 * p3,
            q0 * p1 + q1 * p0 + q2 * p3 - q3 * p2,
            q0 * p2 - q1 * p3 + q2 * p0 + q3 * p1,
            q0 * p3 + q1 * p2 - q2 * p1 + q3 * p0,
        ],
        -1,
    )


def quaternion_conjugate(q: ArrayLike) -> Array:
    """(q0, -qv), the inverse of a unit quaternion; (..., 4) -> (..., 4)."""
    return checked("quaternion_conjugate", "q", q, 4) * np.array([1.0, -1.0, -1.0, -1.0])


def quaternion_inverse(q: ArrayLike) -> Array:
    """(q0, -qv) / (q.q), the inverse of any quaternion but zero; (..., 4) -> (..., 4)."""
    q = checked("quaternion_inverse", "q", q, 4)
    return quaternion_conjugate(q) / _square("quaternion_inverse", q)


def quaternion_normalise(q: ArrayLike) -> Array:
    """q / sqrt(q.q), without conjugate so that complex steps pass; (..., 4) -> (..., 4)."""
    q = checked("quaternion_normalise", "q", q, 4)
    return q / np.sqrt(_square("quaternion_normalise", q))


def _square(function: str, q: Array) -> Array:
    square = np.sum(q * q, -1, keepdims=True)
    if np.any(square == 0):
        raise InputError(f"{function}: a zero quaternion is no rotation and has no inverse")
    return square
