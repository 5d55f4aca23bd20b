"""Spatial vector algebra ([IDSVA] Sec. III and App. A, [RBDA] ch. 2) over generic scalars.

Order [angular; linear], one common frame. Read `v.cross(m)` as v x m, `v.cross_force(f)` as v x* f, and
`f.cross_bar(v)` as f xbar* v ([IDSVA] eqs. 41-43).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .vec3 import Mat3, Scalar, Sym3, Vec3


@dataclass(slots=True, eq=False)
class Motion:
    """A motion vector: angular part, and linear velocity of the body point at the frame's origin."""

    ang: Vec3
    lin: Vec3

    def __add__(self, m: Motion) -> Motion:
        return Motion(self.ang + m.ang, self.lin + m.lin)

    def __sub__(self, m: Motion) -> Motion:
        return Motion(self.ang - m.ang, self.lin - m.lin)

    def __rmul__(self, s: Scalar) -> Motion:
        return Motion(s * self.ang, s * self.lin)

    __array_ufunc__ = None

    def cross(self, m: Motion) -> Motion:
        """self x m, the rate of m carried along by self; eq. 41."""
        return Motion(self.ang.cross(m.ang), self.lin.cross(m.ang) + self.ang.cross(m.lin))

    def cross_force(self, f: Force) -> Force:
        """self x* f, the rate of f carried along by self; eq. 42."""
        return Force(self.ang.cross(f.ang) + self.lin.cross(f.lin), self.ang.cross(f.lin))

    def dot(self, f: Force) -> Scalar:
        """Power of the force f on this motion."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)


@dataclass(slots=True, eq=False)
class Force:
    """A force vector: moment about the frame's origin, and linear force."""

    ang: Vec3
    lin: Vec3

    def __add__(self, f: Force) -> Force:
        return Force(self.ang + f.ang, self.lin + f.lin)

    def __sub__(self, f: Force) -> Force:
        return Force(self.ang - f.ang, self.lin - f.lin)

    def __rmul__(self, s: Scalar) -> Force:
        return Force(s * self.ang, s * self.lin)

    __array_ufunc__ = None

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
    """A placement: rotation R and origin p of a frame, in the frame it is placed in."""

    R: Mat3
    p: Vec3

    def compose(self, B: Transform) -> Transform:
        return Transform(self.R.compose(B.R), self.p + self.R @ B.p)

    def motion(self, m: Motion) -> Motion:
        """Express in the outer frame a motion given in the placed one; X m, [IDSVA] eqs. 38, 40."""
        ang = self.R @ m.ang
        return Motion(ang, self.R @ m.lin + self.p.cross(ang))

    def force(self, f: Force) -> Force:
        """Express in the outer frame a force given in the placed one; X* f."""
        lin = self.R @ f.lin
        return Force(self.R @ f.ang + self.p.cross(lin), lin)

    def motion_inverse(self, m: Motion) -> Motion:
        """Express in the placed frame a motion given in the outer one."""
        return Motion(self.R.transposed_times(m.ang), self.R.transposed_times(m.lin - self.p.cross(m.ang)))

    def force_inverse(self, f: Force) -> Force:
        """Express in the placed frame a force given in the outer one."""
        return Force(self.R.transposed_times(f.ang - self.p.cross(f.lin)), self.R.transposed_times(f.lin))

    @staticmethod
    def identity() -> Transform:
        return Transform(Mat3.identity(), Vec3(0.0, 0.0, 0.0))


@dataclass(slots=True, eq=False)
class BodyInertia:
    """Mass, centre of mass and rotational inertia about the centre, constant in the body's own frame."""

    m: Scalar
    c: Vec3
    Ic: Sym3

    def placed(self, X: Transform) -> Inertia:
        """The spatial inertia in the frame X is placed in."""
        c = X.p + X.R @ self.c
        h = self.m * c
        return Inertia(self.m, h, self.Ic.rotated(X.R).minus_outer(h, c).plus_diagonal(h.dot(c)))


@dataclass(slots=True, eq=False)
class Inertia:
    """Spatial inertia by its ten parameters: mass, first moment h = m c, inertia I about the frame's origin.

    As a matrix it is [[I, hx], [-hx, m 1]].
    """

    m: Scalar
    h: Vec3
    I: Sym3

    def __add__(self, B: Inertia) -> Inertia:
        return Inertia(self.m + B.m, self.h + B.h, self.I + B.I)

    def __matmul__(self, v: Motion) -> Force:
        return Force(self.I @ v.ang + self.h.cross(v.lin), self.m * v.lin - self.h.cross(v.ang))

    def placed(self, X: Transform) -> Inertia:
        """The same inertia in the frame X is placed in: X* I X^-1."""
        y, p = X.R @ self.h, X.p
        z = y + (0.5 * self.m) * p
        I = self.I.rotated(X.R).minus_outer(p, z).minus_outer(z, p).plus_diagonal(2.0 * p.dot(z))
        return Inertia(self.m, y + self.m * p, I)


@dataclass(slots=True, eq=False)
class Coriolis:
    """Twice the body Coriolis matrix, 2B = (v x*) I - I (v x) + (I v) xbar*; [IDSVA] eq. 28.

    Its right half vanishes: 2B = [[U, 0], [-2 px, 0]], p the linear momentum. So 2B m sees only the angular part of m.
    """

    U: Mat3
    p: Vec3

    def __add__(self, B: Coriolis) -> Coriolis:
        return Coriolis(self.U + B.U, self.p + B.p)

    def __matmul__(self, m: Motion) -> Force:
        return Force(self.U @ m.ang, -2.0 * self.p.cross(m.ang))

    def transposed_times(self, m: Motion) -> Vec3:
        """(2B)^T m, of which only the angular half can be other than zero."""
        return self.U.transposed_times(m.ang) + 2.0 * self.p.cross(m.lin)

    def placed(self, X: Transform) -> Coriolis:
        """The same matrix in the frame X is placed in: X* 2B X^-1, with [a]x[b]x = b a^T - (a.b) 1."""
        p, at = X.R @ self.p, -2.0 * X.p
        U, d = self.U.conjugated(X.R), at.dot(p)
        x = U.x + at.x * p - Vec3(d, 0.0, 0.0)
        y = U.y + at.y * p - Vec3(0.0, d, 0.0)
        z = U.z + at.z * p - Vec3(0.0, 0.0, d)
        return Coriolis(Mat3(x, y, z), p)

    @staticmethod
    def of(I: Inertia, v: Motion, momentum: Force) -> Coriolis:
        """From a body's inertia, velocity and momentum I v.

        With the rows of W = [w]x I, U = W + W^T - (h l^T + l h^T) + 2 (l.h) 1 - [n]x, where v = (w, l) and n is the
        angular momentum: eq. 28 multiplied out, with [l]x[h]x = h l^T - (l.h) 1.
        """
        w, l, h, n = v.ang, v.lin, I.h, momentum.ang
        Wx = w.cross(Vec3(I.I.xx, I.I.xy, I.I.xz))
        Wy = w.cross(Vec3(I.I.xy, I.I.yy, I.I.yz))
        Wz = w.cross(Vec3(I.I.xz, I.I.yz, I.I.zz))
        x, y, z = h.x * l.x, h.y * l.y, h.z * l.z
        xx, yy, zz = 2 * (Wx.x + y + z), 2 * (Wy.y + x + z), 2 * (Wz.z + x + y)
        xy = Wy.x + Wx.y - h.x * l.y - h.y * l.x
        xz = Wz.x + Wx.z - h.x * l.z - h.z * l.x
        yz = Wz.y + Wy.z - h.y * l.z - h.z * l.y
        U = Mat3(Vec3(xx, xy - n.z, xz + n.y), Vec3(xy + n.z, yy, yz - n.x), Vec3(xz - n.y, yz + n.x, zz))
        return Coriolis(U, momentum.lin)


@dataclass(slots=True, eq=False)
class ArticulatedInertia:
    """A symmetric 6x6 [[A, H], [H^T, M]] from motions to forces: inertia of bodies free to move at their joints."""

    A: Sym3
    H: Mat3
    M: Sym3

    def __add__(self, B: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + B.A, self.H + B.H, self.M + B.M)

    def __matmul__(self, v: Motion) -> Force:
        return Force(self.A @ v.ang + self.H @ v.lin, self.H.transposed_times(v.ang) + self.M @ v.lin)

    def minus_outer(self, f: Force, g: Force) -> ArticulatedInertia:
        """self - f g^T, where f and g are parallel."""
        H = Mat3(
            self.H.x - g.lin.x * f.ang,
            self.H.y - g.lin.y * f.ang,
            self.H.z - g.lin.z * f.ang,
        )
        return ArticulatedInertia(self.A.minus_outer(f.ang, g.ang), H, self.M.minus_outer(f.lin, g.lin))

    def minus_pair(self, f: Force, g: Force) -> ArticulatedInertia:
        """self - f g^T - g f^T."""
        H = Mat3(
            self.H.x - g.lin.x * f.ang - f.lin.x * g.ang,
            self.H.y - g.lin.y * f.ang - f.lin.y * g.ang,
            self.H.z - g.lin.z * f.ang - f.lin.z * g.ang,
        )
        A = self.A.minus_outer(f.ang, g.ang).minus_outer(g.ang, f.ang)
        return ArticulatedInertia(A, H, self.M.minus_outer(f.lin, g.lin).minus_outer(g.lin, f.lin))

    def placed(self, X: Transform) -> ArticulatedInertia:
        """The same inertia in the frame X is placed in: X* self X^-1."""
        A, H, M, p = self.A.rotated(X.R), self.H.conjugated(X.R), self.M.rotated(X.R), X.p
        moved = H + Mat3(p.cross(M.column(0)), p.cross(M.column(1)), p.cross(M.column(2)))  # H + px M
        rows, others = H.transposed(), moved.transposed()
        P = Mat3(p.cross(rows.x), p.cross(rows.y), p.cross(rows.z))  # px H^T
        Q = Mat3(p.cross(others.x), p.cross(others.y), p.cross(others.z)).transposed()  # moved px^T
        return ArticulatedInertia(A + Sym3.of(P + Q), moved, M)

    def carried(self, m: Motion) -> ArticulatedInertia:
        """The rate m x* self - self m x of an inertia that moves along with m."""
        f = [self @ m.cross(e) for e in UNITS]  # columns of N = self m x; the rate is -(N + N^T)
        ang, lin = Mat3(f[0].ang, f[1].ang, f[2].ang), Mat3(f[3].lin, f[4].lin, f[5].lin)
        cross = Mat3(f[3].ang, f[4].ang, f[5].ang) + Mat3(f[0].lin, f[1].lin, f[2].lin).transposed()
        return -1.0 * ArticulatedInertia(Sym3.of(ang + ang.transposed()), cross, Sym3.of(lin + lin.transposed()))

    def __rmul__(self, s: Scalar) -> ArticulatedInertia:
        return ArticulatedInertia(s * self.A, s * self.H, s * self.M)

    __array_ufunc__ = None

    @staticmethod
    def of(I: Inertia) -> ArticulatedInertia:
        m, h = I.m, I.h
        zero = 0.0 * m
        hx = Mat3(Vec3(zero, h.z, -h.y), Vec3(-h.z, zero, h.x), Vec3(h.y, -h.x, zero))
        return ArticulatedInertia(I.I, hx, Sym3(m, zero, zero, m, zero, m))


_AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
_NONE = Vec3(0.0, 0.0, 0.0)
UNITS = (*(Motion(e, _NONE) for e in _AXES), *(Motion(_NONE, e) for e in _AXES))
