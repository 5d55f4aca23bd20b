"""Linear cones of contact forces: matrices A and bounds with lower <= A f <= upper, for forces in the world's axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ... import arrays
from ...errors import InputError

Array = np.ndarray


def axes_of(normal: ArrayLike) -> Array:
    """Two tangents and the normal as columns (3, 3); the first tangent is as near to the world's x axis as it gets."""
    n = arrays.finite_exactly("normal", normal, (3,), "x y z")
    if not n.any():
        raise InputError("normal: must not be zero")
    n = n / np.linalg.norm(n)
    x = np.array([1.0, 0.0, 0.0]) if abs(n[0]) < 0.9 else np.array([0.0, 0.0, -1.0])
    t = x - (n @ x) * n
    t /= np.linalg.norm(t)
    return np.stack([t, np.cross(n, t), n], -1)


def coefficient(mu: float) -> float:
    if not np.isfinite(mu) or mu < 0:
        raise InputError(f"mu: expected a coefficient of friction >= 0, got {mu!r}")
    return float(mu)


def half_of(half_size: tuple[float, float]) -> tuple[float, float]:
    """Half the length and half the width of a foot, which must be positive."""
    length, width = arrays.finite_exactly("half_size", half_size, (2,), "half the length, half the width").tolist()
    if length <= 0 or width <= 0:
        raise InputError(f"half_size: expected positive numbers, got {half_size!r}")
    return length, width


def friction_cone(mu: float, normal: ArrayLike, facets: int, inner: bool) -> tuple[Array, Array, Array]:
    """t.f <= mu n.f for tangents t all around, and n.f >= 0; A (facets + 1, 3), lower, upper.

    inner: makes mu smaller, so that the edges of the pyramid lie on the cone, and not its facets.
    """
    if facets < 4 or facets % 2:
        raise InputError(f"facets: expected an even number of at least 4, got {facets!r}")
    R, mu = axes_of(normal), coefficient(mu) * (np.cos(np.pi / facets) if inner else 1.0)
    angle = 2 * np.pi / facets * np.arange(facets // 2)
    t = np.cos(angle)[:, None] * R[:, 0] + np.sin(angle)[:, None] * R[:, 1]
    sides = np.stack([t, -t], 1).reshape(facets, 3) - mu * R[:, 2]
    A = np.concatenate([sides, R[None, :, 2]])
    return A, np.r_[np.full(facets, -np.inf), 0.0], np.r_[np.zeros(facets), np.inf]


def pressure_rows(half_size: tuple[float, float]) -> Array:
    """Moments that would tip a foot over its sides, A (4, 6): |m_x| <= width f_z, |m_y| <= length f_z."""
    length, width = half_of(half_size)
    A = np.zeros((4, 6))
    A[:, 2] = [-width, -width, -length, -length]
    A[[0, 1, 2, 3], [3, 3, 4, 4]] = [1.0, -1.0, 1.0, -1.0]
    return A


def wrench_cone(mu: float, half_size: tuple[float, float], facets: int, inner: bool) -> tuple[Array, Array, Array]:
    """Friction, the centre of pressure and the yaw moment of a flat foot; A (facets + 13, 6), lower, upper.

    The yaw moment is bounded by what friction at the four corners can give [Caron 2015, (20)-(22)].
    """
    length, width = half_of(half_size)
    cone, _, _ = friction_cone(mu, (0.0, 0.0, 1.0), facets, inner)
    A = np.zeros((facets + 13, 6))
    A[:facets, :3] = cone[:facets]
    A[facets : facets + 4] = pressure_rows(half_size)
    mu = -cone[0, 2]
    reach = mu * (length + width)
    signs = [(sx, sy, sz) for sz in (-1.0, 1.0) for sx in (-1.0, 1.0) for sy in (-1.0, 1.0)]
    for row, (sx, sy, sz) in zip(A[facets + 4 : -1], signs, strict=True):
        row[:] = sx * width, sy * length, -reach, sz * sx * mu, sz * sy * mu, sz
    A[-1, 2] = 1.0
    n = len(A) - 1
    return A, np.r_[np.full(n, -np.inf), 0.0], np.r_[np.zeros(n), np.inf]
