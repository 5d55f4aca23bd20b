"""The manifolds of joint coordinates, all with the same methods, on sequences of generic scalars.

`integrate(q, v)` is q exp(v), where v is a tangent vector at q in the body's axes. All methods are analytic, so that
complex numbers differentiate exactly (featherjet.verify), and none branches on values, so that the compiler traces
them; `difference` jumps at half a turn. Matrices are lists of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..math.lie import Quaternion, RotationVector, straight
from ..math.scalars import Scalar, sincos, sqrt
from ..math.stumpff import angle_of
from ..math.vec3 import Mat3, Vec3

Array = np.ndarray
Scalars = Sequence[Scalar] | Array
Rows = list[list[Scalar]]


class Manifold:
    """Coordinates q (nq) with tangent vectors v (nv)."""

    nq: int
    nv: int
    units: tuple[slice, ...] = ()  # parts of q whose norm must be one
    turns = False  # whether motion turns the axes of what slides; if not, the next three methods change nothing
    quaternion = "x y z w"  # the order of a quaternion's components in q

    def __repr__(self) -> str:
        return type(self).__name__

    def neutral(self) -> Array:
        """The coordinates (nq,) of zero displacement."""
        raise NotImplementedError

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """q exp(v)."""
        raise NotImplementedError

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        """The shortest v with integrate(q0, v) = q1: log(q0^-1 q1)."""
        raise NotImplementedError

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        """Coordinates (*size, nq) drawn uniformly between the limits, or over the whole group without limits."""
        raise NotImplementedError

    def adjoint_inverse(self, v: Scalars) -> Rows:
        """The Jacobian (nv, nv) of integrate by q: the adjoint of exp(-v)."""
        raise NotImplementedError

    def right_jacobian(self, v: Scalars) -> Rows:
        """The Jacobian (nv, nv) of integrate by v."""
        raise NotImplementedError

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        """The Jacobian (nv, nv) of difference by q1; that by q0 is minus the same at -v."""
        raise NotImplementedError

    def in_turned_axes(self, v: Scalars, turn: Scalars) -> list[Scalar]:
        """A velocity v in axes that a motion `turn` (nv) has turned."""
        return list(v)

    def straight(self, v: Scalars) -> list[Scalar]:
        """The motion that turns by as much as v, and moves the origin by what v says in the axes halfway."""
        return list(v)

    def still(self, v: Scalars) -> list[Scalar]:
        """dv/dt, in axes that turn, of a velocity v that is constant in axes that do not: -w x v."""
        return [0.0] * self.nv

    def rate_map(self, q: Scalars) -> Rows:
        """The matrix F (nq, nv) with dq/dt = F v: the rates of q along `integrate`; [KINDR] F."""
        raise NotImplementedError

    def rate_map_inverse(self, q: Scalars) -> Rows:
        """The matrix Fbar (nv, nq) with v = Fbar dq/dt, which ignores changes of norm; [KINDR] Fbar.

        The columns of F are orthogonal, so that dividing each by its squared norm gives the left inverse.
        """
        columns = list(zip(*self.rate_map(q), strict=True))
        scales = [1.0 / sum(x * x for x in column) for column in columns]
        return [[x * scale for x in column] for column, scale in zip(columns, scales, strict=True)]

    def normalised(self, q: Scalars) -> list[Scalar]:
        """q with its unit parts scaled to norm one; analytic, without complex conjugation."""
        q = list(q)
        for part in self.units:
            scale = 1.0 / sqrt(sum(x * x for x in q[part]))
            q[part] = [scale * x for x in q[part]]
        return q


def on_arrays(function: Callable[..., Sequence[Any]], *arrays: Array) -> Array:
    """A function of sequences of scalars on arrays (..., n): its results, or rows of results, along the last axes."""
    found = function(*(tuple(np.moveaxis(x, -1, 0)) for x in arrays))
    matrix = isinstance(found[0], list)
    flat = np.stack(np.broadcast_arrays(*([x for row in found for x in row] if matrix else found)), -1)
    return flat.reshape(*flat.shape[:-1], len(found), -1) if matrix else flat


def identity(n: int) -> Rows:
    return [[float(i == j) for j in range(n)] for i in range(n)]


class Euclidean(Manifold):
    """R^n."""

    def __init__(self, n: int) -> None:
        self.nq = self.nv = n

    def __repr__(self) -> str:
        return f"Euclidean({self.nq})"

    def neutral(self) -> Array:
        return np.zeros(self.nq)

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return [x + d for x, d in zip(q, v, strict=True)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        return rng.uniform(*bounded(lower, upper, np.pi), size=(*size, self.nq))

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return identity(self.nv)

    right_jacobian = right_jacobian_inverse = adjoint_inverse

    def rate_map(self, q: Scalars) -> Rows:
        return identity(self.nv)


class SO2(Manifold):
    """Rotations in the plane, as (cosine, sine)."""

    nq, nv, units = 2, 1, (slice(0, 2),)

    def neutral(self) -> Array:
        return np.array([1.0, 0.0])

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        s, c = sincos(v[0])
        return self.normalised([c * q[0] - s * q[1], s * q[0] + c * q[1]])

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return [angle_of(q0[0] * q1[1] - q0[1] * q1[0], q0[0] * q1[0] + q0[1] * q1[1])]

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        angle = rng.uniform(-np.pi, np.pi, size)
        return np.stack([np.cos(angle), np.sin(angle)], -1)

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return identity(1)

    right_jacobian = right_jacobian_inverse = adjoint_inverse

    def rate_map(self, q: Scalars) -> Rows:
        return [[-q[1]], [q[0]]]


class SO3(Manifold):
    """Rotations, as a unit quaternion x y z w."""

    nq, nv, units = 4, 3, (slice(0, 4),)

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return self.turned(q, RotationVector(Vec3(*v), 1))

    def turned(self, q: Scalars, turn: RotationVector) -> list[Scalar]:
        """q exp(turn)."""
        return self.normalised(Quaternion(*q).times(turn.exp()))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return entries(Quaternion(*q0).conjugate().times(Quaternion(*q1)).log())

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        return on_arrays(self.normalised, rng.normal(size=(*size, 4)))

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return rows(RotationVector(-Vec3(*v), 1).matrix())

    def right_jacobian(self, v: Scalars) -> Rows:
        return rows(RotationVector(-Vec3(*v), 3).gamma())

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        return rows(RotationVector(-Vec3(*v), 3).gamma_inverse())

    def rate_map(self, q: Scalars) -> Rows:
        """dq/dt = q (v, 0) / 2."""
        x, y, z, w = (0.5 * a for a in q)
        return [[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]]


class SE3(Manifold):
    """Placements, as (x y z, quaternion x y z w); tangent vectors are (linear, angular)."""

    nq, nv, units, turns = 7, 6, (slice(3, 7),), True
    rotation = SO3()

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        turn = RotationVector(Vec3(*v[3:]), 3)
        p = Vec3(*q[:3]) + Mat3.from_quaternion(*q[3:]) @ turn.gamma_times(Vec3(*v[:3]))
        return [*entries(p), *self.rotation.turned(q[3:], turn)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        w = Vec3(*self.rotation.difference(q0[3:], q1[3:]))
        r = Mat3.from_quaternion(*q0[3:]).transposed_times(Vec3(*q1[:3]) - Vec3(*q0[:3]))
        return [*entries(RotationVector(w, 3).gamma_inverse_times(r)), *entries(w)]

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        p = rng.uniform(*bounded(lower[:3], upper[:3], 1.0), size=(*size, 3))
        return np.concatenate([p, self.rotation.random(rng, size, lower, upper)], -1)

    def adjoint_inverse(self, v: Scalars) -> Rows:
        turn = RotationVector(-Vec3(*v[3:]), 3)
        R = turn.matrix()
        return dual(R, Mat3.skew(turn.gamma_times(-Vec3(*v[:3]))).compose(R))

    def right_jacobian(self, v: Scalars) -> Rows:
        turn = RotationVector(-Vec3(*v[3:]), 5)
        return dual(turn.gamma(), turn.gamma_dual(-Vec3(*v[:3])))

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        turn = RotationVector(-Vec3(*v[3:]), 5)
        return dual(turn.gamma_inverse(), turn.gamma_inverse_dual(-Vec3(*v[:3])))

    def in_turned_axes(self, v: Scalars, turn: Scalars) -> list[Scalar]:
        back = RotationVector(-Vec3(*turn[3:]), 1)
        return entries(back.times(Vec3(*v[:3]))) + entries(back.times(Vec3(*v[3:])))

    def straight(self, v: Scalars) -> list[Scalar]:
        return [*entries(straight(Vec3(*v[:3]), Vec3(*v[3:]))), *v[3:]]

    def still(self, v: Scalars) -> list[Scalar]:
        return [*entries(Vec3(*v[:3]).cross(Vec3(*v[3:]))), 0.0, 0.0, 0.0]

    def rate_map(self, q: Scalars) -> Rows:
        return side_by_side(rows(Mat3.from_quaternion(*q[3:])), self.rotation.rate_map(q[3:]))


class SE2(Manifold):
    """Placements in the plane, as (x, y, cosine, sine); tangent vectors are (vx, vy, wz), a subspace of SE(3)'s."""

    nq, nv, units, turns = 4, 3, (slice(2, 4),), True
    rotation, space = SO2(), SE3()
    inside = (0, 1, 5)  # the tangent directions of SE(3) that stay in the plane

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 1.0, 0.0])

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        x, y, c, s = q
        step = RotationVector(Vec3(0.0, 0.0, v[2]), 3).gamma_times(Vec3(v[0], v[1], 0.0))
        moved = [x + c * step.x - s * step.y, y + s * step.x + c * step.y]
        return [*moved, *self.rotation.integrate(q[2:], v[2:])]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        (w,) = self.rotation.difference(q0[2:], q1[2:])
        x, y, c, s = q1[0] - q0[0], q1[1] - q0[1], q0[2], q0[3]
        r = Vec3(c * x + s * y, c * y - s * x, 0.0)
        way = RotationVector(Vec3(0.0, 0.0, w), 3).gamma_inverse_times(r)
        return [way.x, way.y, w]

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        p = rng.uniform(*bounded(lower[:2], upper[:2], 1.0), size=(*size, 2))
        return np.concatenate([p, self.rotation.random(rng, size, lower, upper)], -1)

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return self._confine(self.space.adjoint_inverse(self._lift(v)))

    def right_jacobian(self, v: Scalars) -> Rows:
        return self._confine(self.space.right_jacobian(self._lift(v)))

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        return self._confine(self.space.right_jacobian_inverse(self._lift(v)))

    def rate_map(self, q: Scalars) -> Rows:
        c, s = q[2:]
        return side_by_side([[c, -s], [s, c]], self.rotation.rate_map(q[2:]))

    def in_turned_axes(self, v: Scalars, turn: Scalars) -> list[Scalar]:
        s, c = sincos(turn[2])
        return [c * v[0] + s * v[1], c * v[1] - s * v[0], v[2]]

    def straight(self, v: Scalars) -> list[Scalar]:
        way = straight(Vec3(v[0], v[1], 0.0), Vec3(0.0, 0.0, v[2]))
        return [way.x, way.y, v[2]]

    def still(self, v: Scalars) -> list[Scalar]:
        return [v[1] * v[2], -v[0] * v[2], 0.0]

    def _lift(self, v: Scalars) -> list[Scalar]:
        return [v[0], v[1], 0.0, 0.0, 0.0, v[2]]

    def _confine(self, J: Rows) -> Rows:
        return [[J[i][j] for j in self.inside] for i in self.inside]


def is_flat(manifold: Manifold) -> bool:
    """Whether displacements add: those of a vector space, or about one axis."""
    return isinstance(manifold, Euclidean) or manifold.nv == 1


# Vectors and matrices as lists


def entries(v: Vec3) -> list[Scalar]:
    return [v.x, v.y, v.z]


def rows(M: Mat3) -> Rows:
    return [list(row) for row in zip(entries(M.x), entries(M.y), entries(M.z), strict=True)]


def dual(real: Mat3, upper: Mat3) -> Rows:
    """[[real, upper], [0, real]]."""
    diagonal, corner = rows(real), rows(upper)
    top = [a + b for a, b in zip(diagonal, corner, strict=True)]
    return top + [[0.0, 0.0, 0.0, *row] for row in diagonal]


def side_by_side(*blocks: Rows | Array) -> Rows:
    """The block-diagonal matrix."""
    widths = [len(block[0]) for block in blocks]
    before = [sum(widths[:k]) for k in range(len(blocks))]
    return [
        [0.0] * at + list(row) + [0.0] * (sum(widths) - at - width)
        for block, at, width in zip(blocks, before, widths, strict=True)
        for row in block
    ]


def bounded(lower: Array, upper: Array, default: float) -> tuple[Array, Array]:
    """Limits with infinite ones replaced by finite ones, the lower never above the upper."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * default, -default))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * default, default))
    return np.minimum(low, high), np.maximum(low, high)
