"""Six parameterisations of a rotation C_IB, and the conversions between them. Reference: [KINDR].

| kind              | array         | range of results                                                   |
|-------------------|---------------|--------------------------------------------------------------------|
| `quaternion`      | (..., 4)      | [w, x, y, z], unit; w >= 0 when made from a matrix                 |
| `matrix`          | (..., 3, 3)   | C_IB, with I_r = C_IB B_r                                          |
| `angle_axis`      | (..., 4)      | [angle, n], angle in [0, pi] rad, |n| = 1, n = e_x for no rotation |
| `rotation_vector` | (..., 3)      | angle n, of length <= pi rad                                       |
| `euler_zyx`       | (..., 3)      | [z, y, x] rad, C = Cz Cy Cx; z, x in [-pi, pi), |y| <= pi/2        |
| `euler_xyz`       | (..., 3)      | [x, y, z] rad, C = Cx Cy Cz; x, z in [-pi, pi), |y| <= pi/2        |

`convert` goes from any to any through the quaternion. Inputs may lie outside these ranges. Conversions to
quaternions, matrices and rotation vectors are holomorphic, those to angle-axis and Euler angles are real.
"""

# pyright: reportConstantRedefinition=false
# Paper letters in capitals are variables here.

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from featherjet.errors import UnknownName
from featherjet.math.lie import Quaternion, RotationVector
from featherjet.math.rotations.inputs import Array, checked, vector
from featherjet.math.rotations.quaternion import quaternion_product
from featherjet.math.vec3 import Mat3

# The square of a smaller number is no longer a normal float: a vector this short has no direction.
TINY = 1e-150
# Where cos(y) is rounding noise, so is the first Euler angle. Any value is right; zero is chosen.
GIMBAL_LOCK = 1e-15


def elementary_rotation(axis: str, angle: ArrayLike) -> Array:
    """C_IB of a rotation about the 'x', 'y' or 'z' axis; angle (...) rad -> (..., 3, 3). [KINDR] item 3."""
    if axis not in ("x", "y", "z"):
        raise UnknownName("axis", axis, "xyz")
    angle = checked("elementary_rotation", "angle", angle)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    C = np.zeros((*angle.shape, 3, 3), angle.dtype)
    C[..., i, i] = 1
    C[..., j, j] = C[..., k, k] = np.cos(angle)
    C[..., k, j] = np.sin(angle)
    C[..., j, k] = -C[..., k, j]
    return C


# Quaternion and rotation vector


def quaternion_from_rotation_vector(phi: ArrayLike) -> Array:
    """[cos(t/2), (phi/t) sin(t/2)], t = |phi|; (..., 3) -> (..., 4). Holomorphic, exact at zero."""
    phi = checked("quaternion_from_rotation_vector", "phi", phi, 3)
    x, y, z, w = RotationVector(vector(phi), 1).exp()
    return np.stack([w, x, y, z], -1)


def rotation_vector_from_quaternion(q: ArrayLike) -> Array:
    """2 atan2(|qv|, q0) qv/|qv| of q or -q, whichever has q0 >= 0; (..., 4) -> (..., 3), length <= pi."""
    w, x, y, z = np.moveaxis(checked("rotation_vector_from_quaternion", "q", q, 4), -1, 0)
    v = Quaternion(x, y, z, w).log()
    return np.stack([v.x, v.y, v.z], -1)


def _upper(q: Array) -> Array:
    return np.where(np.real(q[..., :1]) < 0, -q, q)


# Quaternion and angle-axis


def quaternion_from_angle_axis(angle_axis: ArrayLike) -> Array:
    """[cos(t/2), n sin(t/2)] of [t, n], n a unit vector; (..., 4) -> (..., 4)."""
    x = checked("quaternion_from_angle_axis", "angle_axis", angle_axis, 4)
    half = x[..., :1] / 2
    return np.concatenate([np.cos(half), x[..., 1:] * np.sin(half)], -1)


def angle_axis_from_quaternion(q: ArrayLike) -> Array:
    """[2 atan2(|qv|, q0), qv/|qv|] with q0 made >= 0; (..., 4) -> (..., 4), the angle in [0, pi].

    atan2 where [KINDR] has arccos, which near zero keeps only half of the digits.
    """
    q = _upper(checked("angle_axis_from_quaternion", "q", q, 4))
    w, vec = q[..., :1], q[..., 1:]
    sine = np.linalg.norm(vec, axis=-1, keepdims=True)
    none = sine < TINY
    axis = np.where(none, [1.0, 0.0, 0.0], vec / np.where(none, 1.0, sine))
    return np.concatenate([np.where(none, 0.0, 2 * np.arctan2(sine, w)), axis], -1)


# Quaternion and matrix


def matrix_from_quaternion(q: ArrayLike) -> Array:
    """C = 1 + 2 q0 skew(qv) + 2 skew(qv)^2 of a unit q; (..., 4) -> (..., 3, 3). Holomorphic."""
    w, x, y, z = np.moveaxis(checked("matrix_from_quaternion", "q", q, 4), -1, 0)
    return Mat3.from_quaternion(x, y, z, w).to_array()


def quaternion_from_matrix(C: ArrayLike) -> Array:
    """The unit quaternion with q0 >= 0 of a rotation matrix; (..., 3, 3) -> (..., 4).

    C gives all of K = 4 q q^T; the row of its largest diagonal entry, which is at least 1, is divided by
    the root of that entry, so that no accuracy is lost for any rotation.
    """
    C = checked("quaternion_from_matrix", "C", C, 3, 3)
    i, trace = np.arange(3), np.trace(C, axis1=-2, axis2=-1)
    K = np.empty((*C.shape[:-2], 4, 4), C.dtype)
    K[..., 1:, 1:] = C + np.swapaxes(C, -1, -2)
    K[..., i + 1, i + 1] += (1 - trace)[..., None]
    K[..., 0, 0] = 1 + trace
    K[..., 0, 1:] = np.stack([C[..., (a + 2) % 3, (a + 1) % 3] - C[..., (a + 1) % 3, (a + 2) % 3] for a in i], -1)
    K[..., 1:, 0] = K[..., 0, 1:]
    diagonal = np.diagonal(K, axis1=-2, axis2=-1)
    best = np.argmax(np.real(diagonal), -1)[..., None]
    row = np.take_along_axis(K, best[..., None], -2)[..., 0, :]
    return _upper(row / (2 * np.sqrt(np.take_along_axis(diagonal, best, -1))))


# Matrix and rotation vector


def matrix_from_rotation_vector(phi: ArrayLike) -> Array:
    """1 + (sin t/t) skew(phi) + ((1 - cos t)/t^2) skew(phi)^2; (..., 3) -> (..., 3, 3). Holomorphic."""
    return RotationVector(vector(checked("matrix_from_rotation_vector", "phi", phi, 3)), 1).matrix().to_array()


def rotation_vector_from_matrix(C: ArrayLike) -> Array:
    """The rotation vector, of length <= pi, of a rotation matrix; (..., 3, 3) -> (..., 3)."""
    C = checked("rotation_vector_from_matrix", "C", C, 3, 3)
    return rotation_vector_from_quaternion(quaternion_from_matrix(C))


# Euler angles. The last angle is read from the matrix after the first one is undone: near gimbal lock both are
# noisy, but their errors cancel and the angles still reproduce the matrix.


def matrix_from_euler_zyx(zyx: ArrayLike) -> Array:
    """C = Cz(z) Cy(y) Cx(x); [z, y, x] (..., 3) -> (..., 3, 3)."""
    z, y, x = np.moveaxis(checked("matrix_from_euler_zyx", "zyx", zyx, 3), -1, 0)
    return elementary_rotation("z", z) @ elementary_rotation("y", y) @ elementary_rotation("x", x)


def matrix_from_euler_xyz(xyz: ArrayLike) -> Array:
    """C = Cx(x) Cy(y) Cz(z); [x, y, z] (..., 3) -> (..., 3, 3)."""
    x, y, z = np.moveaxis(checked("matrix_from_euler_xyz", "xyz", xyz, 3), -1, 0)
    return elementary_rotation("x", x) @ elementary_rotation("y", y) @ elementary_rotation("z", z)


def euler_zyx_from_matrix(C: ArrayLike) -> Array:
    """[z, y, x] with C = Cz Cy Cx; (..., 3, 3) -> (..., 3). In gimbal lock (|y| = pi/2) z = 0 is chosen."""
    C = checked("euler_zyx_from_matrix", "C", C, 3, 3)
    cos_y = np.hypot(C[..., 0, 0], C[..., 1, 0])
    z = np.where(cos_y < GIMBAL_LOCK, 0.0, np.arctan2(C[..., 1, 0], C[..., 0, 0]))
    row = np.cos(z)[..., None] * C[..., 1, :] - np.sin(z)[..., None] * C[..., 0, :]  # of Cz^T C = Cy Cx
    y, x = np.arctan2(-C[..., 2, 0], cos_y), np.arctan2(-row[..., 2], row[..., 1])
    return np.stack([_half_open(z), y, _half_open(x)], -1)


def euler_xyz_from_matrix(C: ArrayLike) -> Array:
    """[x, y, z] with C = Cx Cy Cz; (..., 3, 3) -> (..., 3). In gimbal lock (|y| = pi/2) x = 0 is chosen."""
    C = checked("euler_xyz_from_matrix", "C", C, 3, 3)
    cos_y = np.hypot(C[..., 1, 2], C[..., 2, 2])
    x = np.where(cos_y < GIMBAL_LOCK, 0.0, np.arctan2(-C[..., 1, 2], C[..., 2, 2]))
    row = np.cos(x)[..., None] * C[..., 1, :] + np.sin(x)[..., None] * C[..., 2, :]  # of Cx^T C = Cy Cz
    y, z = np.arctan2(C[..., 0, 2], cos_y), np.arctan2(row[..., 0], row[..., 1])
    return np.stack([_half_open(x), y, _half_open(z)], -1)


def _half_open(angle: Array) -> Array:
    return np.where(angle >= np.pi, -np.pi, angle)


def quaternion_from_euler_zyx(zyx: ArrayLike) -> Array:
    """q = qz(z) (x) qy(y) (x) qx(x); [z, y, x] (..., 3) -> (..., 4)."""
    z, y, x = np.moveaxis(checked("quaternion_from_euler_zyx", "zyx", zyx, 3), -1, 0)
    return quaternion_product(quaternion_product(_about(2, z), _about(1, y)), _about(0, x))


def quaternion_from_euler_xyz(xyz: ArrayLike) -> Array:
    """q = qx(x) (x) qy(y) (x) qz(z); [x, y, z] (..., 3) -> (..., 4)."""
    x, y, z = np.moveaxis(checked("quaternion_from_euler_xyz", "xyz", xyz, 3), -1, 0)
    return quaternion_product(quaternion_product(_about(0, x), _about(1, y)), _about(2, z))


def _about(axis: int, angle: Array) -> Array:
    q = np.zeros((*angle.shape, 4), angle.dtype)
    q[..., 0], q[..., 1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
    return q


def euler_zyx_from_quaternion(q: ArrayLike) -> Array:
    """[z, y, x] of a unit quaternion; (..., 4) -> (..., 3)."""
    return euler_zyx_from_matrix(matrix_from_quaternion(checked("euler_zyx_from_quaternion", "q", q, 4)))


def euler_xyz_from_quaternion(q: ArrayLike) -> Array:
    """[x, y, z] of a unit quaternion; (..., 4) -> (..., 3)."""
    return euler_xyz_from_matrix(matrix_from_quaternion(checked("euler_xyz_from_quaternion", "q", q, 4)))


# Any to any


def _quaternion(q: ArrayLike) -> Array:
    return checked("convert", "quaternion", q, 4)


Conversion = Callable[[ArrayLike], Array]
TO_AND_FROM_QUATERNION: dict[str, tuple[Conversion, Conversion]] = {
    "quaternion": (_quaternion, _quaternion),
    "matrix": (quaternion_from_matrix, matrix_from_quaternion),
    "angle_axis": (quaternion_from_angle_axis, angle_axis_from_quaternion),
    "rotation_vector": (quaternion_from_rotation_vector, rotation_vector_from_quaternion),
    "euler_zyx": (quaternion_from_euler_zyx, euler_zyx_from_quaternion),
    "euler_xyz": (quaternion_from_euler_xyz, euler_xyz_from_quaternion),
}
PARAMETERISATIONS = tuple(TO_AND_FROM_QUATERNION)


def convert(x: ArrayLike, source: str, target: str) -> Array:
    """The rotation `x` of kind `source` as kind `target`, both named in `PARAMETERISATIONS`.

    From a kind to itself brings it into the ranges of the module's table.
    """
    for kind in (source, target):
        if kind not in TO_AND_FROM_QUATERNION:
            raise UnknownName("rotation parameterisation", kind, PARAMETERISATIONS)
    to_quaternion, from_quaternion = TO_AND_FROM_QUATERNION[source][0], TO_AND_FROM_QUATERNION[target][1]
    return from_quaternion(to_quaternion(x))
