"""References of residuals: arrays of finite numbers, rotations as quaternions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ... import arrays
from ...errors import InputError
from ...math.scalars import Scalar, sqrt, where_less

Array = np.ndarray
ROUNDED = 1e-6  # how far a rotation matrix may be from one


def finite_numbers(what: str, values: ArrayLike) -> Array:
    """An array of finite numbers of any shape."""
    try:
        numbers = np.asarray(values, float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: expected numbers, got {arrays.shortened(values)}") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{what}: every number must be finite")
    return numbers


def check_rotations(name: str, R: Array) -> None:
    """Raise unless these are rotation matrices (..., 3, 3)."""
    if not (np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)) < ROUNDED).all() or not (np.linalg.det(R) > 0).all():
        raise InputError(f"{name}: the reference has no rotation matrix, whose columns are a right-handed frame's axes")


def quaternion(R: Array) -> list[Scalar]:
    """The quaternion x y z w of a traced rotation matrix, from its largest entry, so that no digit is lost.

    The four candidates are the columns of 4 q q^T, each divided by its norm; the trace and the diagonal choose.
    """
    t = R[0, 0] + R[1, 1] + R[2, 2]
    square = [1.0 + 2.0 * R[k, k] - t for k in range(3)] + [1.0 + t]  # 4 x^2, 4 y^2, 4 z^2, 4 w^2
    ones = [R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]]  # 4 x y, 4 x z, 4 y z
    turns = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]  # 4 x w, 4 y w, 4 z w
    columns = [
        [square[0], ones[0], ones[1], turns[0]],
        [ones[0], square[1], ones[2], turns[1]],
        [ones[1], ones[2], square[2], turns[2]],
        [*turns, square[3]],
    ]
    best, size = columns[3], square[3]
    for column, s in zip(columns[:3], square[:3], strict=True):
        best = [where_less(size, s, a, b) for a, b in zip(column, best, strict=True)]
        size = where_less(size, s, s, size)
    length = 2.0 * sqrt(size)
    return [x / length for x in best]


def quaternions(R: Array) -> Array:
    """The quaternions (..., 4) of rotation matrices (..., 3, 3)."""
    return np.stack(quaternion(np.moveaxis(R, (-2, -1), (0, 1))), -1)
