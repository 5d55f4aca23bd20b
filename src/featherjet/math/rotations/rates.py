"""Time derivatives of every parameterisation, to and from angular velocity.

omega is always omega_IB, the angular velocity of the body B relative to the inertial frame I, in rad/s and with
components in `frame`: "I" or "B" (I_omega = C_IB B_omega). The parameters are those of C_IB. For each kind
there are `<kind>_rate(x, omega, frame)` and `omega_from_<kind>_rate(x, dx, frame)`; `rate` and
`omega_from_rate` take the kind by name. Rates raise an InputError where their parameterisation is singular.
Reference: [KINDR].
"""

# pyright: reportConstantRedefinition=false
# Paper letters in capitals are variables here.

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from featherjet.errors import InputError, UnknownName
from featherjet.math.rotations.conversions import PARAMETERISATIONS
from featherjet.math.rotations.group import Frame, check_frame, gamma, gamma_inverse
from featherjet.math.rotations.inputs import Array, checked, times
from featherjet.math.rotations.quaternion import skew, unskew

# A rate divided by a sine or cosine below this keeps fewer than six digits.
SMALLEST_DIVISOR = 1e-10


def _refuse_where(singular: Array, function: str, why: str) -> None:
    if np.any(singular):
        raise InputError(f"{function}: {why}; use the quaternion's rate, which is regular everywhere")


# Rotation matrix


def matrix_rate(C: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """dC/dt = skew(I_omega) C = C skew(B_omega); C (..., 3, 3), omega (..., 3) -> (..., 3, 3) in 1/s."""
    check_frame(frame)
    C, omega = checked("matrix_rate", "C", C, 3, 3), checked("matrix_rate", "omega", omega, 3)
    return skew(omega) @ C if frame == "I" else C @ skew(omega)


def omega_from_matrix_rate(C: ArrayLike, dC: ArrayLike, frame: Frame) -> Array:
    """I_omega = unskew(dC C^T), B_omega = unskew(C^T dC); (..., 3, 3) twice -> (..., 3)."""
    check_frame(frame)
    C = checked("omega_from_matrix_rate", "C", C, 3, 3)
    dC = checked("omega_from_matrix_rate", "dC", dC, 3, 3)
    Ct = np.swapaxes(C, -1, -2)
    return unskew(dC @ Ct if frame == "I" else Ct @ dC)


# Quaternion


def quaternion_rate_map(q: ArrayLike, frame: Frame) -> Array:
    """H = [-qv, q0 1 + skew(qv)] for I, Hbar = [-qv, q0 1 - skew(qv)] for B; (..., 4) -> (..., 3, 4)."""
    check_frame(frame)
    q = checked("quaternion_rate_map", "q", q, 4)
    w, vec = q[..., :1, None], q[..., 1:]
    S = skew(vec) if frame == "I" else -skew(vec)
    return np.concatenate([-vec[..., None], w * np.eye(3) + S], -1)


def quaternion_rate(q: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """dq/dt = H^T I_omega / 2 = Hbar^T B_omega / 2; q (..., 4), omega (..., 3) -> (..., 4)."""
    omega = checked("quaternion_rate", "omega", omega, 3)
    return times(np.swapaxes(quaternion_rate_map(q, frame), -1, -2), omega) / 2


def omega_from_quaternion_rate(q: ArrayLike, dq: ArrayLike, frame: Frame) -> Array:
    """I_omega = 2 H dq/dt, B_omega = 2 Hbar dq/dt; (..., 4) twice -> (..., 3)."""
    return 2 * times(quaternion_rate_map(q, frame), checked("omega_from_quaternion_rate", "dq", dq, 4))


# Angle-axis


def angle_axis_rate(angle_axis: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """[n.omega, (-cot(t/2) skew(n)^2 -+ skew(n)) omega / 2], - for I and + for B; -> (..., 4).

    angle_axis = [t, n] (..., 4), n a unit vector; omega (..., 3). Singular at t = 2 pi k: no axis there.
    """
    check_frame(frame)
    x = checked("angle_axis_rate", "angle_axis", angle_axis, 4)
    omega = checked("angle_axis_rate", "omega", omega, 3)
    half, n = x[..., :1] / 2, x[..., 1:]
    _refuse_where(np.abs(np.sin(half)) < SMALLEST_DIVISOR, "angle_axis_rate", "no axis at an angle of 0 or 2 pi k")
    turned = np.cross(n, omega)
    sign = -1 if frame == "I" else 1
    dn = (sign * turned - np.cos(half) / np.sin(half) * np.cross(n, turned)) / 2
    return np.concatenate([np.sum(n * omega, -1, keepdims=True), dn], -1)


def omega_from_angle_axis_rate(angle_axis: ArrayLike, rate: ArrayLike, frame: Frame) -> Array:
    """n dt + dn sin t +- (1 - cos t) n x dn, + for I and - for B; (..., 4) twice -> (..., 3)."""
    check_frame(frame)
    x = checked("omega_from_angle_axis_rate", "angle_axis", angle_axis, 4)
    dx = checked("omega_from_angle_axis_rate", "rate", rate, 4)
    t, n, dn = x[..., :1], x[..., 1:], dx[..., 1:]
    sign = 1 if frame == "I" else -1
    return n * dx[..., :1] + dn * np.sin(t) + sign * 2 * np.sin(t / 2) ** 2 * np.cross(n, dn)


# Rotation vector


def rotation_vector_rate(phi: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """dphi/dt = Gamma(phi)^-1 I_omega = Gamma(-phi)^-1 B_omega; (..., 3) twice -> (..., 3).

    Regular at zero; singular at |phi| = 2 pi k, k > 0.
    """
    check_frame(frame)
    phi = checked("rotation_vector_rate", "phi", phi, 3)
    length = np.sqrt(np.sum(phi * phi, -1))
    folded = (np.abs(length) > np.pi) & (np.abs(np.sin(length / 2)) < SMALLEST_DIVISOR)
    _refuse_where(folded, "rotation_vector_rate", "the exponential map folds at a length of 2 pi k")
    Gi = gamma_inverse(phi if frame == "I" else -phi)
    return times(Gi, checked("rotation_vector_rate", "omega", omega, 3))


def omega_from_rotation_vector_rate(phi: ArrayLike, dphi: ArrayLike, frame: Frame) -> Array:
    """I_omega = Gamma(phi) dphi/dt, B_omega = Gamma(-phi) dphi/dt; (..., 3) twice -> (..., 3)."""
    check_frame(frame)
    phi = checked("omega_from_rotation_vector_rate", "phi", phi, 3)
    G = gamma(phi if frame == "I" else -phi)
    return times(G, checked("omega_from_rotation_vector_rate", "dphi", dphi, 3))


# Euler angles: the columns of E are the three axes turned about, det E = -cos(y) for ZYX and cos(y) for XYZ.


def _cos_sin(function: str, angles: ArrayLike) -> tuple[Array, ...]:
    a = np.moveaxis(checked(function, "angles", angles, 3), -1, 0)
    return tuple(part for angle in a for part in (np.cos(angle), np.sin(angle)))


def _matrix(rows: list[list[Array | float]]) -> Array:
    flat = np.broadcast_arrays(*[entry for row in rows for entry in row])
    entries: Array = np.stack(flat, -1)
    return np.reshape(entries, (*flat[0].shape, 3, 3))


def _refuse_gimbal_lock(function: str, cos_y: Array) -> None:
    lock = np.abs(cos_y) < SMALLEST_DIVISOR
    _refuse_where(lock, function, "Euler angles have no rates in gimbal lock, at y = pi/2 + k pi")


def euler_zyx_map(zyx: ArrayLike, frame: Frame) -> Array:
    """E with omega = E d[z, y, x]/dt in `frame`; (..., 3) -> (..., 3, 3). [KINDR] eq. 5 and 7."""
    check_frame(frame)
    cz, sz, cy, sy, cx, sx = _cos_sin("euler_zyx_map", zyx)
    if frame == "I":
        return _matrix([[0, -sz, cy * cz], [0, cz, cy * sz], [1, 0, -sy]])
    return _matrix([[-sy, 0, 1], [cy * sx, cx, 0], [cy * cx, -sx, 0]])


def euler_zyx_map_inverse(zyx: ArrayLike, frame: Frame) -> Array:
    """E^-1 with d[z, y, x]/dt = E^-1 omega; (..., 3) -> (..., 3, 3), not in gimbal lock. [KINDR] eq. 6, 8."""
    check_frame(frame)
    cz, sz, cy, sy, cx, sx = _cos_sin("euler_zyx_map_inverse", zyx)
    _refuse_gimbal_lock("euler_zyx_map_inverse", cy)
    if frame == "I":
        return _matrix([[cz * sy / cy, sz * sy / cy, 1], [-sz, cz, 0], [cz / cy, sz / cy, 0]])
    return _matrix([[0, sx / cy, cx / cy], [0, cx, -sx], [1, sx * sy / cy, cx * sy / cy]])


def euler_xyz_map(xyz: ArrayLike, frame: Frame) -> Array:
    """E with omega = E d[x, y, z]/dt in `frame`; (..., 3) -> (..., 3, 3). Derived here as [KINDR] eq. 1-5."""
    check_frame(frame)
    cx, sx, cy, sy, cz, sz = _cos_sin("euler_xyz_map", xyz)
    if frame == "I":
        return _matrix([[1, 0, sy], [0, cx, -sx * cy], [0, sx, cx * cy]])
    return _matrix([[cy * cz, sz, 0], [-cy * sz, cz, 0], [sy, 0, 1]])


def euler_xyz_map_inverse(xyz: ArrayLike, frame: Frame) -> Array:
    """E^-1 with d[x, y, z]/dt = E^-1 omega; (..., 3) -> (..., 3, 3); singular in gimbal lock."""
    check_frame(frame)
    cx, sx, cy, sy, cz, sz = _cos_sin("euler_xyz_map_inverse", xyz)
    _refuse_gimbal_lock("euler_xyz_map_inverse", cy)
    if frame == "I":
        return _matrix([[1, sx * sy / cy, -cx * sy / cy], [0, cx, sx], [0, -sx / cy, cx / cy]])
    return _matrix([[cz / cy, -sz / cy, 0], [sz, cz, 0], [-cz * sy / cy, sz * sy / cy, 1]])


def euler_zyx_rate(zyx: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """d[z, y, x]/dt = E^-1 omega; (..., 3) twice -> (..., 3) rad/s."""
    return times(euler_zyx_map_inverse(zyx, frame), checked("euler_zyx_rate", "omega", omega, 3))


def omega_from_euler_zyx_rate(zyx: ArrayLike, dzyx: ArrayLike, frame: Frame) -> Array:
    """omega = E d[z, y, x]/dt; (..., 3) twice -> (..., 3) rad/s."""
    return times(euler_zyx_map(zyx, frame), checked("omega_from_euler_zyx_rate", "dzyx", dzyx, 3))


def euler_xyz_rate(xyz: ArrayLike, omega: ArrayLike, frame: Frame) -> Array:
    """d[x, y, z]/dt = E^-1 omega; (..., 3) twice -> (..., 3) rad/s."""
    return times(euler_xyz_map_inverse(xyz, frame), checked("euler_xyz_rate", "omega", omega, 3))


def omega_from_euler_xyz_rate(xyz: ArrayLike, dxyz: ArrayLike, frame: Frame) -> Array:
    """omega = E d[x, y, z]/dt; (..., 3) twice -> (..., 3) rad/s."""
    return times(euler_xyz_map(xyz, frame), checked("omega_from_euler_xyz_rate", "dxyz", dxyz, 3))


# Any kind by name


RateFunction = Callable[[ArrayLike, ArrayLike, Frame], Array]
RATE_AND_OMEGA: dict[str, tuple[RateFunction, RateFunction]] = {
    "quaternion": (quaternion_rate, omega_from_quaternion_rate),
    "matrix": (matrix_rate, omega_from_matrix_rate),
    "angle_axis": (angle_axis_rate, omega_from_angle_axis_rate),
    "rotation_vector": (rotation_vector_rate, omega_from_rotation_vector_rate),
    "euler_zyx": (euler_zyx_rate, omega_from_euler_zyx_rate),
    "euler_xyz": (euler_xyz_rate, omega_from_euler_xyz_rate),
}


def rate(x: ArrayLike, omega: ArrayLike, kind: str, frame: Frame) -> Array:
    """dx/dt of a rotation of that `kind` turning with omega (..., 3) rad/s; shaped as x."""
    return _of_kind(kind)[0](x, omega, frame)


def omega_from_rate(x: ArrayLike, dx: ArrayLike, kind: str, frame: Frame) -> Array:
    """The angular velocity (..., 3) rad/s of a rotation of that `kind` changing by dx/dt."""
    return _of_kind(kind)[1](x, dx, frame)


def _of_kind(kind: str) -> tuple[RateFunction, RateFunction]:
    if kind not in RATE_AND_OMEGA:
        raise UnknownName("rotation parameterisation", kind, PARAMETERISATIONS)
    return RATE_AND_OMEGA[kind]
