"""Operations of the rotation group: exp, log, concatenation, box plus and minus, interpolation, Jacobian.

A rotation Phi is a quaternion (..., 4) or a matrix (..., 3, 3), distinguished by its last axis; results are of the same
kind. Tangent vectors are (..., 3) in rad and perturb from the LEFT, as in [KINDR]: Phi [+] v = exp(v) (x) Phi.
(`featherjet.math.se3` perturbs from the right, as Pinocchio does.) All functions are holomorphic, for complex steps;
`log` only below the angle pi, where it jumps.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherjet.errors import InputError, UnknownName
from featherjet.math.lie import RotationVector
from featherjet.math.rotations.conversions import (
    matrix_from_rotation_vector,
    quaternion_from_rotation_vector,
    rotation_vector_from_matrix,
    rotation_vector_from_quaternion,
)
from featherjet.math.rotations.inputs import Array, checked, checked_rotation, vector
from featherjet.math.rotations.quaternion import quaternion_conjugate, quaternion_product

Frame = Literal["I", "B"]


def check_frame(frame: str) -> None:
    """Raise unless `frame` is 'I' (inertial) or 'B' (body)."""
    if frame not in ("I", "B"):
        raise UnknownName("frame", frame, "IB", "I is the inertial frame, B the body's")


def exp(v: ArrayLike) -> Array:
    """The quaternion of the rotation vector v; (..., 3) -> (..., 4). [KINDR] item 6."""
    return quaternion_from_rotation_vector(checked("exp", "v", v, 3))


def exp_matrix(v: ArrayLike) -> Array:
    """The rotation matrix exp(skew(v)); (..., 3) -> (..., 3, 3). [KINDR] item 6."""
    return matrix_from_rotation_vector(checked("exp_matrix", "v", v, 3))


def log(phi: ArrayLike) -> Array:
    """The rotation vector v, |v| <= pi, with exp(v) = Phi; -> (..., 3). [KINDR] item 7."""
    phi = checked_rotation("log", "phi", phi)
    return rotation_vector_from_quaternion(phi) if _is_quaternion(phi) else rotation_vector_from_matrix(phi)


def _is_quaternion(phi: Array) -> bool:
    return phi.shape[-1] == 4


def inverse(phi: ArrayLike) -> Array:
    """Phi^-1: the conjugate of a quaternion, the transpose of a matrix. [KINDR] item 4."""
    phi = checked_rotation("inverse", "phi", phi)
    return quaternion_conjugate(phi) if _is_quaternion(phi) else np.swapaxes(phi, -1, -2)


def concatenate(phi2: ArrayLike, phi1: ArrayLike) -> Array:
    """Phi2 (x) Phi1; as an active rotation it applies Phi1 first. C_AC = C_AB C_BC. [KINDR] item 5."""
    phi2, phi1 = checked_rotation("concatenate", "phi2", phi2), checked_rotation("concatenate", "phi1", phi1)
    if phi2.shape[-1] != phi1.shape[-1]:
        raise InputError("concatenate: phi2 and phi1 must both be quaternions or both be matrices")
    return quaternion_product(phi2, phi1) if _is_quaternion(phi2) else phi2 @ phi1


def rotate(phi: ArrayLike, r: ArrayLike) -> Array:
    """Active rotation of the vector r, C(Phi) r; with Phi = Phi_IB it maps B_r to I_r. r (..., 3) -> (..., 3).

    rotate(b, rotate(a, r)) = rotate(concatenate(b, a), r). [KINDR] items 1 and 5.
    """
    phi, r = checked_rotation("rotate", "phi", phi), checked("rotate", "r", r, 3)
    if not _is_quaternion(phi):
        return (phi @ r[..., None])[..., 0]
    w, vec = phi[..., :1], phi[..., 1:]
    u = 2 * np.cross(vec, r)
    return r + w * u + np.cross(vec, u)


def rotate_frame(phi: ArrayLike, r: ArrayLike) -> Array:
    """Passive rotation: the frame turns by Phi, the arrow stays; r's components in the new frame, C(Phi)^T r.

    Phi_P = Phi_A^-1, so frames turned one after the other read left to right:
    rotate_frame(b, rotate_frame(a, r)) = rotate_frame(concatenate(a, b), r). [KINDR] items 2, 4 and 5.
    """
    return rotate(inverse(phi), r)


def box_plus(phi: ArrayLike, v: ArrayLike) -> Array:
    """Phi [+] v = exp(v) (x) Phi; v (..., 3) rad. [KINDR] item 8."""
    phi, v = checked_rotation("box_plus", "phi", phi), checked("box_plus", "v", v, 3)
    return concatenate(exp(v) if _is_quaternion(phi) else exp_matrix(v), phi)


def box_minus(phi1: ArrayLike, phi2: ArrayLike) -> Array:
    """Phi1 [-] Phi2 = log(Phi1 (x) Phi2^-1), so that Phi2 [+] it = Phi1; -> (..., 3). [KINDR] item 9."""
    return log(concatenate(phi1, inverse(phi2)))


def integrate(phi_IB: ArrayLike, omega: ArrayLike, dt: ArrayLike, *, frame: Frame = "I") -> Array:
    """Phi_IB after the constant angular velocity omega_IB (rad/s, in `frame`) for dt (s, shape (...)).

    I: Phi_IB [+] I_omega dt. B: Phi_IB (x) exp(B_omega dt), the inverse of [KINDR] item 10's
    Phi_BI [+] (-B_omega dt).
    """
    check_frame(frame)
    phi = checked_rotation("integrate", "phi_IB", phi_IB)
    v = checked("integrate", "omega", omega, 3) * checked("integrate", "dt", dt)[..., None]
    if frame == "I":
        return box_plus(phi, v)
    return inverse(box_plus(inverse(phi), -v))


def differentiate(phi_IB_next: ArrayLike, phi_IB: ArrayLike, dt: ArrayLike, *, frame: Frame = "I") -> Array:
    """The constant omega_IB (rad/s, in `frame`) that moves Phi_IB to Phi_IB_next in dt (s); -> (..., 3).

    I: (next [-] Phi_IB) / dt. B: -(next^-1 [-] Phi_IB^-1) / dt. [KINDR] item 11.
    """
    check_frame(frame)
    dt = checked("differentiate", "dt", dt)[..., None]
    if frame == "I":
        return box_minus(phi_IB_next, phi_IB) / dt
    return -box_minus(inverse(phi_IB_next), inverse(phi_IB)) / dt


def slerp(phi0: ArrayLike, phi1: ArrayLike, t: ArrayLike) -> Array:
    """Phi0 [+] t (Phi1 [-] Phi0), the shorter arc; t (...) broadcasts with leading axes. [KINDR] item 12."""
    phi0 = checked_rotation("slerp", "phi0", phi0)
    return box_plus(phi0, checked("slerp", "t", t)[..., None] * box_minus(phi1, phi0))


def gamma(v: ArrayLike) -> Array:
    """Gamma(v), the left Jacobian of exp: exp(v + dv) = exp(Gamma(v) dv) (x) exp(v) to first order.

    Gamma = 1 + ((1 - cos t)/t^2) skew(v) + ((t - sin t)/t^3) skew(v)^2, t = |v|; (..., 3) -> (..., 3, 3).
    The right Jacobian is Gamma(-v) = Gamma(v)^T.
    """
    return RotationVector(vector(checked("gamma", "v", v, 3)), 3).gamma().to_array()


def gamma_inverse(v: ArrayLike) -> Array:
    """Gamma(v)^-1 = 1 - skew(v)/2 + ((1 - (t/2) cot(t/2))/t^2) skew(v)^2; (..., 3) -> (..., 3, 3).

    Regular up to t = |v| < 2 pi, where exp folds and no inverse exists.
    """
    return RotationVector(vector(checked("gamma_inverse", "v", v, 3)), 3).gamma_inverse().to_array()
