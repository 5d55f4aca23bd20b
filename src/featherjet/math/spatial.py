"""Spatial vector algebra ([IDSVA] Sec. III and App. A, [RBDA] ch. 2) over generic scalars.

Order [angular; linear], one common frame. Read `v.cross(m)` as v x m, `v.cross_force(f)` as v x* f, and
`f.cross_bar(v)` as f xbar* v ([IDSVA] eqs. 41-43).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from .fieldwise import Additive, Linear
from .vec3 import Mat3, Scalar, Sym3, Vec3

Six = TypeVar("Six", bound="Symmetric6")
Vector = TypeVar("Vector", "Motion", "Force")


@dataclass(slots=True, eq=False)
class Motion(Linear):
    """A motion vector: angular part, and linear velocity of the body point at the frame's origin."""

    ang: Vec3
    lin: Vec3

    def cross(self, m: Motion) -> Motion:
        """self x m, the rate of m when self carries it along; eq. 41."""
        return Motion(self.ang.cross(m.ang), self.lin.cross(m.ang) + self.ang.cross(m.lin))

    def cross_force(self, f: Force) -> Force:
        """self x* f, the rate of f when self carries it along; eq. 42."""
        return Force(self.ang.cross(f.ang) + self.lin.cross(f.lin), self.ang.cross(f.lin))

    def dot(self, f: Force) -> Scalar:
        """Power of the force f on this motion."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)


@dataclass(slots=True, eq=False)
class Force(Linear):
    """A force vector: moment about the frame's origin, and linear force."""

    ang: Vec3
    lin: Vec3

    def cross_bar(self, m: Motion) -> Force:
        """self xbar* m = m x* self; eq. 43."""
        return m.cross_force(self)

    def dot(self, m: Motion) -> Scalar:
        return m.dot(self)


Subspace = Sequence[Motion]


def span(S: Subspace, rates: Sequence[Scalar]) -> Motion:
    """S qd: the motion of a joint with columns S at the given rates."""
    total = rates[0] * S[0]
    for s, rate in zip(S[1:], rates[1:], strict=True):
        total = total + rate * s
    return total


@dataclass(slots=True, eq=False)
class Transform:
    """A placement: rotation R and origin p of a frame, expressed in an outer frame."""

    R: Mat3
    p: Vec3

    def compose(self, B: Transform) -> Transform:
        return Transform(self.R.compose(B.R), self.p + self.R @ B.p)

    def motion(self, m: Motion) -> Motion:
        """A motion given in the placed frame, expressed in the outer frame; X m, [IDSVA] eqs. 38, 40."""
        ang = self.R @ m.ang
        return Motion(ang, self.R @ m.lin + self.p.cross(ang))

    def force(self, f: Force) -> Force:
        """A force given in the placed frame, expressed in the outer frame; X* f."""
        lin = self.R @ f.lin
        return Force(self.R @ f.ang + self.p.cross(lin), lin)

    def motion_inverse(self, m: Motion) -> Motion:
        """A motion given in the outer frame, expressed in the placed frame; X^-1 m."""
        return Motion(self.R.transposed_times(m.ang), self.R.transposed_times(m.lin - self.p.cross(m.ang)))

    def force_inverse(self, f: Force) -> Force:
        """A force given in the outer frame, expressed in the placed frame; (X*)^-1 f."""
        return Force(self.R.transposed_times(f.ang - self.p.cross(f.lin)), self.R.transposed_times(f.lin))

    @staticmethod
    def identity() -> Transform:
        return Transform(Mat3.identity(), Vec3(0.0, 0.0, 0.0))


@dataclass(slots=True, eq=False)
class BodyInertia:
    """Mass [kg], centre of mass [m] and rotational inertia about it [kg m^2], constant in the body's own frame."""

    m: Scalar
    c: Vec3
    Ic: Sym3

    def placed(self, X: Transform) -> Inertia:
        """The spatial inertia in the outer frame of X."""
        c = X.p + X.R @ self.c
        h = self.m * c
        return Inertia(self.m, h, self.Ic.rotated(X.R).minus_outer(h, c).plus_diagonal(h.dot(c)))


@dataclass(slots=True, eq=False)
class Inertia(Additive):
    """Spatial inertia by its ten parameters: mass, first moment h = m c, inertia I about the frame's origin.

    As a matrix it is [[I, hx], [-hx, m 1]].
    """

    m: Scalar
    h: Vec3
    I: Sym3

    def __matmul__(self, v: Motion) -> Force:
        return Force(self.I @ v.ang + self.h.cross(v.lin), self.m * v.lin - self.h.cross(v.ang))

    def rate(self, v: Motion) -> Sym3:
        """The angular part of v x* I - I v x, the rate at which this inertia changes when v carries it along.

        With the rows of W = [w]x I it is W + W^T - (h l^T + l h^T) + 2 (l.h) 1, where v = (w, l), since
        [l]x[h]x = h l^T - (l.h) 1.
        """
        w, l, h, I = v.ang, v.lin, self.h, self.I
        Wx = w.cross(Vec3(I.xx, I.xy, I.xz))
        Wy = w.cross(Vec3(I.xy, I.yy, I.yz))
        Wz = w.cross(Vec3(I.xz, I.yz, I.zz))
        x, y, z = h.x * l.x, h.y * l.y, h.z * l.z
        return Sym3(
            2 * (Wx.x + y + z),
            Wy.x + Wx.y - h.x * l.y - h.y * l.x,
            Wz.x + Wx.z - h.x * l.z - h.z * l.x,
            2 * (Wy.y + x + z),
            Wz.y + Wy.z - h.y * l.z - h.z * l.y,
            2 * (Wz.z + x + y),
        )

    def placed(self, X: Transform) -> Inertia:
        """The same inertia in the outer frame of X: X* I X^-1."""
        y, p = X.R @ self.h, X.p
        z = y + (0.5 * self.m) * p
        I = self.I.rotated(X.R).minus_outer(p, z).minus_outer(z, p).plus_diagonal(2.0 * p.dot(z))
        return Inertia(self.m, y + self.m * p, I)


@dataclass(slots=True, eq=False)
class Coriolis(Additive):
    """Twice the body Coriolis matrix, B2 = 2B = (v x*) I - I (v x) + (I v) xbar*; [IDSVA] eq. 28.

    Its right half vanishes: 2B = [[A, 0], [-2 px, 0]], with the linear momentum p. So 2B m depends on the angular part
    of m alone.
    """

    A: Mat3
    p: Vec3

    def __matmul__(self, m: Motion) -> Force:
        return Force(self.A @ m.ang, -2.0 * self.p.cross(m.ang))

    def transposed_times(self, m: Motion) -> Vec3:
        """The angular half of (2B)^T m; the linear half is zero."""
        return self.A.transposed_times(m.ang) + 2.0 * self.p.cross(m.lin)

    def placed(self, X: Transform) -> Coriolis:
        """The same matrix in the outer frame of X: X* 2B X^-1, with [a]x[b]x = b a^T - (a.b) 1."""
        p, at = X.R @ self.p, -2.0 * X.p
        A, d = self.A.conjugated(X.R), at.dot(p)
        x = A.x + at.x * p - Vec3(d, 0.0, 0.0)
        y = A.y + at.y * p - Vec3(0.0, d, 0.0)
        z = A.z + at.z * p - Vec3(0.0, 0.0, d)
        return Coriolis(Mat3(x, y, z), p)

    @staticmethod
    def of(I: Inertia, v: Motion, momentum: Force) -> Coriolis:
        """From a body's inertia, velocity and momentum I v: A = I.rate(v) - [n]x, n the angular momentum; eq. 28."""
        R, n = I.rate(v), momentum.ang
        A = Mat3(
            Vec3(R.xx, R.xy - n.z, R.xz + n.y),
            Vec3(R.xy + n.z, R.yy, R.yz - n.x),
            Vec3(R.xz - n.y, R.yz + n.x, R.zz),
        )
        return Coriolis(A, momentum.lin)


@dataclass(slots=True, eq=False)
class Symmetric6(Linear):
    """A symmetric 6x6 matrix [[A, H], [H^T, M]]."""

    A: Sym3
    H: Mat3
    M: Sym3

    def minus_outer(self: Six, f: Vector, g: Vector) -> Six:
        """self - f g^T, where f and g are parallel."""
        H = Mat3(
            self.H.x - g.lin.x * f.ang,
            self.H.y - g.lin.y * f.ang,
            self.H.z - g.lin.z * f.ang,
        )
        return type(self)(self.A.minus_outer(f.ang, g.ang), H, self.M.minus_outer(f.lin, g.lin))

    def minus_pair(self: Six, f: Vector, g: Vector) -> Six:
        """self - f g^T - g f^T."""
        H = Mat3(
            self.H.x - g.lin.x * f.ang - f.lin.x * g.ang,
            self.H.y - g.lin.y * f.ang - f.lin.y * g.ang,
            self.H.z - g.lin.z * f.ang - f.lin.z * g.ang,
        )
        A = self.A.minus_outer(f.ang, g.ang).minus_outer(g.ang, f.ang)
        return type(self)(A, H, self.M.minus_outer(f.lin, g.lin).minus_outer(g.lin, f.lin))


@dataclass(slots=True, eq=False)
class Compliance(Symmetric6):
    """From forces to motions: how a body accelerates, its robot's joints free."""

    def __matmul__(self, f: Force) -> Motion:
        return Motion(self.A @ f.ang + self.H @ f.lin, self.H.transposed_times(f.ang) + self.M @ f.lin)

    @staticmethod
    def none() -> Compliance:
        """That of the ground."""
        return Compliance(Sym3(*(0.0,) * 6), Mat3(_NONE, _NONE, _NONE), Sym3(*(0.0,) * 6))


@dataclass(slots=True, eq=False)
class ArticulatedInertia(Symmetric6):
    """From motions to forces: the inertia of bodies with free joints."""

    def __matmul__(self, v: Motion) -> Force:
        return Force(self.A @ v.ang + self.H @ v.lin, self.H.transposed_times(v.ang) + self.M @ v.lin)

    def placed(self, X: Transform) -> ArticulatedInertia:
        """The same inertia in the outer frame of X: X* self X^-1."""
        A, H, M, p = self.A.rotated(X.R), self.H.conjugated(X.R), self.M.rotated(X.R), X.p
        moved = H + Mat3(p.cross(M.column(0)), p.cross(M.column(1)), p.cross(M.column(2)))  # H + px M
        rows, others = H.transposed(), moved.transposed()
        P = Mat3(p.cross(rows.x), p.cross(rows.y), p.cross(rows.z))  # px H^T
        Q = Mat3(p.cross(others.x), p.cross(others.y), p.cross(others.z)).transposed()  # moved px^T
        return ArticulatedInertia(A + Sym3.of(P + Q), moved, M)

    def carried(self, m: Motion) -> ArticulatedInertia:
        """The rate m x* self - self m x of an inertia that moves with m."""
        f = [self @ m.cross(e) for e in UNITS]  # columns of N = self m x; the rate is -(N + N^T)
        ang, lin = Mat3(f[0].ang, f[1].ang, f[2].ang), Mat3(f[3].lin, f[4].lin, f[5].lin)
        cross = Mat3(f[3].ang, f[4].ang, f[5].ang) + Mat3(f[0].lin, f[1].lin, f[2].lin).transposed()
        return -1.0 * ArticulatedInertia(Sym3.of(ang + ang.transposed()), cross, Sym3.of(lin + lin.transposed()))

    @staticmethod
    def of(I: Inertia) -> ArticulatedInertia:
        """The inertia of a rigid body, [[I, hx], [-hx, m 1]]."""
        m = I.m
        return ArticulatedInertia(I.I, Mat3.skew(I.h), Sym3(m, 0.0, 0.0, m, 0.0, m))


_AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
_NONE = Vec3(0.0, 0.0, 0.0)
UNITS = (*(Motion(e, _NONE) for e in _AXES), *(Motion(_NONE, e) for e in _AXES))
