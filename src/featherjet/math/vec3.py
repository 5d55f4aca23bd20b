"""Vectors and 3x3 matrices over generic scalars.

A scalar is anything with + - * /: a float, a complex number, a NumPy array (one entry per sample of a batch), or a
compiler's tracer. Code here therefore never branches on values and never uses abs or conjugate.
"""

# pyright: reportConstantRedefinition=false
# Paper letters in capitals are variables here.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fieldwise import Linear
from .scalars import Scalar


@dataclass(slots=True, eq=False)
class Vec3(Linear):
    """A vector (x, y, z)."""

    x: Scalar
    y: Scalar
    z: Scalar

    def dot(self, b: Vec3) -> Scalar:
        return self.x * b.x + self.y * b.y + self.z * b.z

    def cross(self, b: Vec3) -> Vec3:
        return Vec3(
            self.y * b.z - self.z * b.y,
            self.z * b.x - self.x * b.z,
            self.x * b.y - self.y * b.x,
        )


@dataclass(slots=True, eq=False)
class Mat3(Linear):
    """A 3x3 matrix by its columns x, y, z; the columns of a rotation are the rotated axes."""

    x: Vec3
    y: Vec3
    z: Vec3

    def __matmul__(self, v: Vec3) -> Vec3:
        return v.x * self.x + v.y * self.y + v.z * self.z

    def compose(self, B: Mat3) -> Mat3:
        """The product self B."""
        return Mat3(self @ B.x, self @ B.y, self @ B.z)

    def transposed_times(self, v: Vec3) -> Vec3:
        """self^T v."""
        return Vec3(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def transposed(self) -> Mat3:
        x, y, z = self.x, self.y, self.z
        return Mat3(Vec3(x.x, y.x, z.x), Vec3(x.y, y.y, z.y), Vec3(x.z, y.z, z.z))

    def conjugated(self, R: Mat3) -> Mat3:
        """R self R^T."""
        return R.compose(self).compose(R.transposed())

    def rotate_z(self, c: Scalar, s: Scalar) -> Mat3:
        """self Rz(theta), given the cosine and sine of theta."""
        return Mat3(c * self.x + s * self.y, c * self.y - s * self.x, self.z)

    @staticmethod
    def identity() -> Mat3:
        return Mat3(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))

    @staticmethod
    def skew(v: Vec3) -> Mat3:
        """The matrix of v x: skew(v) w = v x w."""
        return Mat3(Vec3(0.0, v.z, -v.y), Vec3(-v.z, 0.0, v.x), Vec3(v.y, -v.x, 0.0))

    @staticmethod
    def from_quaternion(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Mat3:
        """The rotation matrix of a unit Hamilton quaternion; [KINDR] 'Rotation Quaternion - Rotation Matrix'."""
        xx, yy, zz = 2 * x * x, 2 * y * y, 2 * z * z
        xy, xz, yz = 2 * x * y, 2 * x * z, 2 * y * z
        wx, wy, wz = 2 * w * x, 2 * w * y, 2 * w * z
        return Mat3(
            Vec3(1 - yy - zz, xy + wz, xz - wy),
            Vec3(xy - wz, 1 - xx - zz, yz + wx),
            Vec3(xz + wy, yz - wx, 1 - xx - yy),
        )

    def to_array(self) -> NDArray[Any]:
        """An array (..., 3, 3) from entries that are floats or arrays (...)."""
        entries = [(c.x, c.y, c.z) for c in (self.x, self.y, self.z)]
        flat = [x for column in entries for x in column]
        A = np.empty((*np.broadcast(*flat).shape, 3, 3), np.result_type(*flat))
        for k, column in enumerate(entries):
            A[..., 0, k], A[..., 1, k], A[..., 2, k] = column
        return A

    @staticmethod
    def from_array(A: NDArray[Any]) -> Mat3:
        """A constant matrix from an array (3, 3) of floats."""
        A = np.asarray(A, float)
        x, y, z = (Vec3(A[0, k].item(), A[1, k].item(), A[2, k].item()) for k in range(3))
        return Mat3(x, y, z)


@dataclass(slots=True, eq=False)
class Sym3(Linear):
    """A symmetric 3x3 matrix by its six entries."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    def __matmul__(self, v: Vec3) -> Vec3:
        return Vec3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def minus_outer(self, a: Vec3, b: Vec3) -> Sym3:
        """self - a b^T, where the result is known to be symmetric, possibly only after further such terms."""
        return Sym3(
            self.xx - a.x * b.x,
            self.xy - a.x * b.y,
            self.xz - a.x * b.z,
            self.yy - a.y * b.y,
            self.yz - a.y * b.z,
            self.zz - a.z * b.z,
        )

    def plus_diagonal(self, d: Scalar) -> Sym3:
        """self + d 1."""
        return Sym3(self.xx + d, self.xy, self.xz, self.yy + d, self.yz, self.zz + d)

    def rotated(self, R: Mat3) -> Sym3:
        """R self R^T, through its rows: row i of the product is R self r_i, r_i being row i of R."""
        row1 = Vec3(R.x.x, R.y.x, R.z.x)
        row2 = Vec3(R.x.y, R.y.y, R.z.y)
        row3 = Vec3(R.x.z, R.y.z, R.z.z)
        A1, A2 = self @ row1, self @ row2
        return Sym3(A1.dot(row1), A1.dot(row2), A1.dot(row3), A2.dot(row2), A2.dot(row3), (self @ row3).dot(row3))

    def adjugate(self) -> tuple[Sym3, Scalar]:
        """The inverse times the determinant, and the determinant."""
        xx, xy, xz, yy, yz, zz = self.xx, self.xy, self.xz, self.yy, self.yz, self.zz
        A = Sym3(
            yy * zz - yz * yz,
            xz * yz - xy * zz,
            xy * yz - xz * yy,
            xx * zz - xz * xz,
            xy * xz - xx * yz,
            xx * yy - xy * xy,
        )
        return A, xx * A.xx + xy * A.xy + xz * A.xz

    def inverse(self) -> Sym3:
        A, det = self.adjugate()
        return (1.0 / det) * A

    def column(self, k: int) -> Vec3:
        """Column (or row) k."""
        return (
            Vec3(self.xx, self.xy, self.xz),
            Vec3(self.xy, self.yy, self.yz),
            Vec3(self.xz, self.yz, self.zz),
        )[k]

    @staticmethod
    def of(A: Mat3) -> Sym3:
        """From a matrix known to be symmetric: its lower triangle."""
        return Sym3(A.x.x, A.x.y, A.x.z, A.y.y, A.y.z, A.z.z)

    @staticmethod
    def from_array(A: NDArray[Any]) -> Sym3:
        """A constant matrix from a symmetric array (3, 3) of floats."""
        A = np.asarray(A, float)
        return Sym3(*(A[i, j].item() for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))))
