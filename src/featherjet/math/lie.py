"""Rotation vectors, quaternions x y z w, and the Jacobians of exp on SO(3) and SE(3), over generic scalars.

A turn by w has y = |w|^2 / 4, half its angle squared. All coefficients follow from the Stumpff functions c_n of y by
doubling the angle; no difference of nearly equal numbers occurs, at small angles or elsewhere:

    c_1(4y) = c_0 c_1,  c_2(4y) = c_1^2 / 2,  c_3(4y) = (c_2 + c_0 c_3) / 4,
    c_4(4y) = c_3 (1 + c_1) / 8,  c_5(4y) = (c_4 + c_5 + c_2 c_3) / 16.

A motion (rho, phi), linear then angular, is phi + e rho in dual numbers, e^2 = 0: each Jacobian of SE(3) is the SO(3)
one with its dual part in the upper right corner (`featherjet.math.se3`).
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

from .scalars import Scalar, where_less
from .stumpff import angle_over_sine, stumpff
from .vec3 import Mat3, Vec3

ONE = Mat3.identity()


class Quaternion(NamedTuple):
    """Hamilton's x i + y j + z k + w."""

    x: Scalar
    y: Scalar
    z: Scalar
    w: Scalar

    @property
    def vector(self) -> Vec3:
        return Vec3(self.x, self.y, self.z)

    def conjugate(self) -> Quaternion:
        return Quaternion(-self.x, -self.y, -self.z, self.w)

    def times(self, p: Quaternion) -> Quaternion:
        """The product: as rotations, p first."""
        a, b = self.vector, p.vector
        v = self.w * b + p.w * a + a.cross(b)
        return Quaternion(v.x, v.y, v.z, self.w * p.w - a.dot(b))

    def log(self) -> Vec3:
        """The rotation vector, of length <= pi, of a quaternion of unit norm, or of minus it."""
        sign = where_less(self.w, 0.0, -1.0, 1.0)
        v = self.vector
        return (2 * sign * angle_over_sine(v.dot(v), sign * self.w)) * v

    def matrix(self) -> Mat3:
        return Mat3.from_quaternion(*self)


class RotationVector:
    """The rotation by a vector w [rad], and the functions of w that exponential maps are made of.

    most: the highest order of the Stumpff functions that will be needed: 1 for the rotation itself, 3 for gamma and its
    inverse, 5 for their dual parts.
    """

    def __init__(self, w: Vec3, most: int) -> None:
        self.w, self.y = w, w.dot(w) * 0.25
        self.c = stumpff(self.y, *range(most + 1))

    def exp(self) -> Quaternion:
        """The quaternion of the rotation."""
        v = (0.5 * self.c[1]) * self.w
        return Quaternion(v.x, v.y, v.z, self.c[0])

    def matrix(self) -> Mat3:
        """The rotation matrix, 1 + c_1 [w] + c_2 [w]^2."""
        c0, c1 = self.c[:2]
        return self._polynomial(c0 * c1, 0.5 * c1 * c1)

    def times(self, r: Vec3) -> Vec3:
        """The rotated vector."""
        c0, c1 = self.c[:2]
        return self._polynomial_times(c0 * c1, 0.5 * c1 * c1, r)

    def gamma(self) -> Mat3:
        """The left Jacobian of exp, 1 + c_2 [w] + c_3 [w]^2; the right one is that of -w."""
        return self._polynomial(*self._gamma())

    def gamma_inverse(self) -> Mat3:
        """1 - [w] / 2 + d [w]^2; regular up to |w| < 2 pi."""
        return self._polynomial(-0.5, self._inverse())

    def gamma_times(self, r: Vec3) -> Vec3:
        """gamma r."""
        return self._polynomial_times(*self._gamma(), r)

    def gamma_inverse_times(self, r: Vec3) -> Vec3:
        """gamma^-1 r."""
        return self._polynomial_times(-0.5, self._inverse(), r)

    def gamma_dual(self, rho: Vec3) -> Mat3:
        """The dual part of gamma(w + e rho): c_2 R + c_3 (P R + R P) + (w.rho) ((2 c_4 - c_3) P + (3 c_5 - c_4) P^2).

        P = [w] and R = [rho]; the c_n are those of |w|^2.
        """
        w = self.w
        d0, d1, d2, d3, d4, d5 = self.c
        c2, c3 = 0.5 * d1 * d1, 0.25 * (d2 + d0 * d3)
        c4, c5 = 0.125 * d3 * (1 + d1), (d4 + d5 + d2 * d3) * (1 / 16)
        slope = w.dot(rho)
        both = outer(w, rho) + outer(rho, w) - (2 * slope) * ONE  # P R + R P
        return c2 * Mat3.skew(rho) + c3 * both + slope * self._polynomial(2 * c4 - c3, 3 * c5 - c4, 0.0)

    def gamma_inverse_dual(self, rho: Vec3) -> Mat3:
        """The dual part of gamma^-1: -gamma^-1 gamma_dual gamma^-1."""
        back = self.gamma_inverse()
        return -back.compose(self.gamma_dual(rho)).compose(back)

    def _gamma(self) -> tuple[Scalar, Scalar]:
        c0, c1, c2, c3 = self.c[:4]
        return 0.5 * c1 * c1, 0.25 * (c2 + c0 * c3)

    def _inverse(self) -> Scalar:
        c1, c2, c3 = self.c[1:4]
        return (c2 - c3) / (4 * c1)

    def _polynomial(self, b: Scalar, c: Scalar, a: Scalar = 1.0) -> Mat3:
        """a 1 + b [w] + c [w]^2."""
        w = self.w
        return b * Mat3.skew(w) + c * outer(w, w) + (a - 4 * c * self.y) * ONE

    def _polynomial_times(self, b: Scalar, c: Scalar, r: Vec3) -> Vec3:
        """(1 + b [w] + c [w]^2) r."""
        u = self.w.cross(r)
        return r + b * u + c * self.w.cross(u)


def straight(d: Vec3, w: Vec3) -> Vec3:
    """The linear part of the motion (., w) whose exponential moves the origin by exp(w / 2) d.

    d / c_1 across w, d along it, where c_1 = sin t / t, t = |w| / 2; beyond half a turn, c_1 stays what it is there.
    """
    y, most = w.dot(w) * 0.25, 0.25 * pi * pi
    c1, c3 = stumpff(where_less(y, most, y, most), 1, 3)
    along = 0.25 * c3 * most / where_less(y, most, most, y)
    return (1.0 / c1) * (d - (along * w.dot(d)) * w)


def outer(a: Vec3, b: Vec3) -> Mat3:
    """a b^T."""
    return Mat3(b.x * a, b.y * a, b.z * a)
