"""Rigid motions: homogeneous transforms T_IB (..., 4, 4) and the group SE(3) with its Jacobians.

A tangent vector xi (..., 6) is Pinocchio's [linear (m), angular (rad)], in the body's frame, and perturbs
from the RIGHT: T [+] xi = T exp(xi). `exp`, `log` and the right Jacobians are pin.exp6, log6, Jexp6, Jlog6.
(`featherjet.math.rotations` perturbs from the left, as [KINDR] does.)

The small adjoint ad(xi) = [[skew(phi), skew(rho)], [0, skew(phi)]] is skew(phi + e rho) in dual numbers,
e^2 = 0. So each SE(3) series is the SO(3) one with its dual part in the upper right corner: the Jacobian of
exp is Gamma(phi + e rho). Functions are analytic at zero and holomorphic (`log` below the angle pi).
"""

# pyright: reportConstantRedefinition=false
# Paper letters in capitals are variables here.

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherjet.math import rotations
from featherjet.math.lie import RotationVector
from featherjet.math.rotations import gamma, gamma_inverse, skew
from featherjet.math.rotations.inputs import Array, checked, times, vector
from featherjet.math.vec3 import Mat3

# Homogeneous transforms


def transform(C_IB: ArrayLike, r_IB: ArrayLike) -> Array:
    """T_IB = [[C_IB, I_r_IB], [0, 1]]; C (..., 3, 3) and r (..., 3) m -> (..., 4, 4). [KINDR] T_IB."""
    C, r = checked("transform", "C_IB", C_IB, 3, 3), checked("transform", "r_IB", r_IB, 3)
    batch = np.broadcast_shapes(C.shape[:-2], r.shape[:-1])
    T = np.zeros((*batch, 4, 4), np.result_type(C, r))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = C, r, 1
    return T


def identity(batch: tuple[int, ...] = ()) -> Array:
    """The identity transform, repeated over `batch`; (*batch, 4, 4)."""
    return transform(np.eye(3), np.zeros((*batch, 3)))


def inverse(T: ArrayLike) -> Array:
    """T_IB^-1 = T_BI = [[C^T, -C^T r], [0, 1]]; (..., 4, 4) -> (..., 4, 4)."""
    C, r = _parts("inverse", T)
    Ct = np.swapaxes(C, -1, -2)
    return transform(Ct, -times(Ct, r))


def compose(T_AB: ArrayLike, T_BC: ArrayLike) -> Array:
    """T_AC = T_AB T_BC; (..., 4, 4), leading axes broadcast."""
    return checked("compose", "T_AB", T_AB, 4, 4) @ checked("compose", "T_BC", T_BC, 4, 4)


def apply(T_IB: ArrayLike, r_BP: ArrayLike) -> Array:
    """I_r_IP = C_IB B_r_BP + I_r_IB, the point P seen from I; r (..., 3) m -> (..., 3) m."""
    C, r = _parts("apply", T_IB)
    return times(C, checked("apply", "r_BP", r_BP, 3)) + r


def _parts(function: str, T: ArrayLike) -> tuple[Array, Array]:
    T = checked(function, "T", T, 4, 4)
    return T[..., :3, :3], T[..., :3, 3]


# The group


def exp(xi: ArrayLike) -> Array:
    """[[exp(skew(phi)), Gamma(phi) rho], [0, 1]] of xi = [rho, phi]; (..., 6) -> (..., 4, 4)."""
    xi = checked("exp", "xi", xi, 6)
    rho, phi = xi[..., :3], xi[..., 3:]
    return transform(rotations.exp_matrix(phi), times(gamma(phi), rho))


def log(T: ArrayLike) -> Array:
    """xi = [Gamma(phi)^-1 r, phi] with phi = log(C), |phi| <= pi; (..., 4, 4) -> (..., 6)."""
    C, r = _parts("log", T)
    phi = rotations.log(C)
    return np.concatenate([times(gamma_inverse(phi), r), phi], -1)


def box_plus(T: ArrayLike, xi: ArrayLike) -> Array:
    """T [+] xi = T exp(xi), xi in the body's frame; (..., 4, 4) and (..., 6) -> (..., 4, 4)."""
    return compose(T, exp(xi))


def box_minus(T1: ArrayLike, T0: ArrayLike) -> Array:
    """T1 [-] T0 = log(T0^-1 T1), so that T0 [+] it = T1; (..., 4, 4) twice -> (..., 6)."""
    return log(compose(inverse(T0), T1))


def interpolate(T0: ArrayLike, T1: ArrayLike, t: ArrayLike) -> Array:
    """T0 [+] t (T1 [-] T0), a screw motion from T0 to T1; t (...) broadcasts with the leading axes."""
    return box_plus(T0, checked("interpolate", "t", t)[..., None] * box_minus(T1, T0))


# Adjoints


def adjoint(T_AB: ArrayLike) -> Array:
    """Ad with A_v = Ad B_v for motions [linear, angular]: [[C, skew(r) C], [0, C]]; -> (..., 6, 6)."""
    C, r = _parts("adjoint", T_AB)
    return _blocks(C, skew(r) @ C, np.zeros_like(C))


def adjoint_dual(T_AB: ArrayLike) -> Array:
    """Ad^-T with A_f = Ad^-T B_f for forces [force, moment]: [[C, 0], [skew(r) C, C]]; -> (..., 6, 6)."""
    C, r = _parts("adjoint_dual", T_AB)
    return _blocks(C, np.zeros_like(C), skew(r) @ C)


def small_adjoint(xi: ArrayLike) -> Array:
    """ad with ad(xi) eta = [xi, eta], the cross product of motions; (..., 6) -> (..., 6, 6)."""
    xi = checked("small_adjoint", "xi", xi, 6)
    S = skew(xi[..., 3:])
    return _blocks(S, skew(xi[..., :3]), np.zeros_like(S))


def _blocks(diagonal: Array, upper: Array, lower: Array) -> Array:
    return np.concatenate(
        [np.concatenate([diagonal, upper], -1), np.concatenate([lower, diagonal], -1)],
        -2,
    )


# Jacobians of exp


def left_jacobian(xi: ArrayLike) -> Array:
    """J with exp(xi + dxi) = exp(J dxi) exp(xi) to first order; (..., 6) -> (..., 6, 6).

    J = [[Gamma(phi), Q], [0, Gamma(phi)]], Q the dual part of Gamma (`featherjet.math.lie`).
    """
    xi = checked("left_jacobian", "xi", xi, 6)
    turn = RotationVector(vector(xi[..., 3:]), 5)
    return _dual(turn.gamma(), turn.gamma_dual(vector(xi[..., :3])))


def left_jacobian_inverse(xi: ArrayLike) -> Array:
    """The inverse [[Gi, -Gi Q Gi], [0, Gi]] of the left Jacobian, Gi = Gamma(phi)^-1; -> (..., 6, 6).

    Regular up to |phi| < 2 pi.
    """
    xi = checked("left_jacobian_inverse", "xi", xi, 6)
    turn = RotationVector(vector(xi[..., 3:]), 5)
    return _dual(turn.gamma_inverse(), turn.gamma_inverse_dual(vector(xi[..., :3])))


def _dual(real: Mat3, dual: Mat3) -> Array:
    diagonal = real.to_array()
    return _blocks(diagonal, dual.to_array(), np.zeros_like(diagonal))


def right_jacobian(xi: ArrayLike) -> Array:
    """J with exp(xi + dxi) = exp(xi) exp(J dxi) to first order, pin.Jexp6; (..., 6) -> (..., 6, 6)."""
    return left_jacobian(-checked("right_jacobian", "xi", xi, 6))


def right_jacobian_inverse(xi: ArrayLike) -> Array:
    """The derivative of log(exp(xi) exp(d)) by d at zero, pin.Jlog6; (..., 6) -> (..., 6, 6)."""
    return left_jacobian_inverse(-checked("right_jacobian_inverse", "xi", xi, 6))
