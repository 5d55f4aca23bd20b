"""Checks of arguments, and a product, shared by the rotation and SE(3) functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featherjet.errors import InputError
from featherjet.math.vec3 import Vec3

Array = NDArray[Any]


def checked(function: str, name: str, value: ArrayLike, *trailing: int) -> Array:
    """`value` as a float or complex array whose last axes are `trailing`; leading axes are free."""
    try:
        x = np.asarray(value)
        if x.dtype.kind not in "fc":
            x = x.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{function}: {name} must hold numbers, got {type(value).__name__}") from error
    if x.shape[x.ndim - len(trailing) :] != trailing or x.ndim < len(trailing):
        expected = ", ".join(["...", *map(str, trailing)])
        raise InputError(f"{function}: {name} must have shape ({expected}), got {x.shape}")
    return x


def checked_rotation(function: str, name: str, value: ArrayLike) -> Array:
    """A quaternion (..., 4) or a rotation matrix (..., 3, 3); distinguished by its last axis."""
    x = np.asarray(value)
    if x.ndim and x.shape[-1] == 4:
        return checked(function, name, x, 4)
    if x.shape[-2:] == (3, 3):
        return checked(function, name, x, 3, 3)
    raise InputError(
        f"{function}: {name} must be a quaternion (..., 4) or a rotation matrix (..., 3, 3), got {x.shape}"
    )


def times(M: Array, x: Array) -> Array:
    """M x for matrices (..., n, m) and vectors (..., m); leading axes broadcast."""
    return (M @ x[..., None])[..., 0]


def vector(x: Array) -> Vec3:
    """Vectors (..., 3) as one vector whose scalars are arrays (...)."""
    return Vec3(x[..., 0], x[..., 1], x[..., 2])
