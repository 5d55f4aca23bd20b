"""Charts: a joint's coordinates in other conventions, on other manifolds, with velocities partly in fixed axes.

Fixed axes are those of the frame that the joint is attached to: the world's, for a floating base. A chart lists the
parts of the standard v that its convention expresses in fixed axes (`turned`), and the order of its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..math import rotations as so3
from ..math.lie import Quaternion, RotationVector
from ..math.scalars import Scalar
from ..model.manifolds import SO3, Euclidean, Manifold, Rows, Scalars, entries, side_by_side

Array = np.ndarray
T = TypeVar("T")


class BodyQuaternion(SO3):
    """Rotations by a unit quaternion w x y z, tangent in the body's axes."""

    quaternion = "w x y z"

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def turned(self, q: Scalars, turn: RotationVector) -> list[Scalar]:
        return self.normalised(real_first(real_last(q).times(turn.exp())))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return super().difference(real_last(q0), real_last(q1))

    def rate_map(self, q: Scalars) -> Rows:
        return real_first(super().rate_map(real_last(q)))


class FixedQuaternion(BodyQuaternion):
    """Rotations by a unit quaternion w x y z, tangent in fixed axes: exp(v) q."""

    def turned(self, q: Scalars, turn: RotationVector) -> list[Scalar]:
        return self.normalised(real_first(turn.exp().times(real_last(q))))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return entries(real_last(q1).times(real_last(q0).conjugate()).log())

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return super().adjoint_inverse([-x for x in v])

    def right_jacobian(self, v: Scalars) -> Rows:
        return super().right_jacobian([-x for x in v])

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        return super().right_jacobian_inverse([-x for x in v])

    def rate_map(self, q: Scalars) -> Rows:
        """dq/dt = (v, 0) q / 2: as that in the body's axes, with the vector negated."""
        w, x, y, z = (0.5 * a for a in q)
        return [[-x, -y, -z], [w, z, -y], [-z, w, x], [y, -x, w]]


def real_last(q: Scalars) -> Quaternion:
    """The quaternion of w x y z."""
    w, x, y, z = q
    return Quaternion(x, y, z, w)


def real_first(q: Sequence[T]) -> list[T]:
    """x y z w as w x y z."""
    x, y, z, w = q
    return [w, x, y, z]


class ProductManifold(Manifold):
    """The product of two manifolds, each integrated by itself: a floating base moves straight while it turns."""

    def __init__(self, first: Manifold, second: Manifold) -> None:
        self.nq, self.nv = first.nq + second.nq, first.nv + second.nv
        self.quaternion = "w x y z"
        shifted = tuple(slice(u.start + first.nq, u.stop + first.nq) for u in second.units)
        self.units = first.units + shifted
        self._factors = first, second

    def __repr__(self) -> str:
        return f"Product{self._factors}"

    def neutral(self) -> Array:
        return np.concatenate([m.neutral() for m in self._factors])

    def integrate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        parts = zip(self._factors, self._split_q(q), self._split_v(v), strict=True)
        return [x for m, part, d in parts for x in m.integrate(part, d)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        ends = zip(self._factors, self._split_q(q0), self._split_q(q1), strict=True)
        return [x for m, a, b in ends for x in m.difference(a, b)]

    def adjoint_inverse(self, v: Scalars) -> Rows:
        return self._blocks(lambda m, x: m.adjoint_inverse(x), self._split_v(v))

    def right_jacobian(self, v: Scalars) -> Rows:
        return self._blocks(lambda m, x: m.right_jacobian(x), self._split_v(v))

    def right_jacobian_inverse(self, v: Scalars) -> Rows:
        return self._blocks(lambda m, x: m.right_jacobian_inverse(x), self._split_v(v))

    def rate_map(self, q: Scalars) -> Rows:
        return self._blocks(lambda m, x: m.rate_map(x), self._split_q(q))

    def _split_q(self, q: Scalars) -> tuple[Scalars, Scalars]:
        return q[: self._factors[0].nq], q[self._factors[0].nq :]

    def _split_v(self, v: Scalars) -> tuple[Scalars, Scalars]:
        return v[: self._factors[0].nv], v[self._factors[0].nv :]

    def _blocks(self, block: Callable[[Manifold, Scalars], Rows], given: tuple[Scalars, Scalars]) -> Rows:
        return side_by_side(*(block(m, x) for m, x in zip(self._factors, given, strict=True)))


def plane_rotation(cs: Array) -> Array:
    """The matrix (..., 2, 2) of a cosine and sine (..., 2)."""
    c, s = cs[..., 0], cs[..., 1]
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


@dataclass(frozen=True, eq=False)
class Chart:
    """The coordinates of one kind of joint in a convention.

    `to_standard` and `from_standard` convert coordinates to featherjet's standard ones (Pinocchio's) and back. Its
    velocities are u = (T v)[order], with the standard velocities v. T is R, the body's axes in the fixed ones, on the
    `turned` parts of v, and the identity elsewhere.
    """

    manifold: Manifold
    to_standard: Callable[[Array], Array]
    from_standard: Callable[[Array], Array]
    rotation: Callable[[Array], Array] | None = None  # R (..., k, k) of the standard q
    turned: tuple[slice, ...] = ()
    axes: slice | None = None  # the angular velocity in the standard v
    order: tuple[int, ...] = ()

    def B(self, q: Array) -> Array:
        """v = B u at the standard q, (..., nv, nv), orthogonal; [KINDR] 'Transformation of Equations of Motion'."""
        assert self.rotation is not None
        R = self.rotation(q)
        T = np.zeros((*q.shape[:-1], self.manifold.nv, self.manifold.nv), q.dtype) + np.eye(self.manifold.nv)
        for part in self.turned:
            T[..., part, part] = R
        return np.swapaxes(T[..., self.order, :], -1, -2)

    def limits(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Limits of the standard coordinates as limits of the chart's; an angle stored as cosine and sine has none."""
        if self.from_standard is not angle:
            return self.from_standard(lower), self.from_standard(upper)
        none = np.full(1, np.inf)
        return np.concatenate([lower[:-2], -none]), np.concatenate([upper[:-2], none])

    @property
    def gamma(self) -> Array:
        """Gamma (nv, nv, nv), the constant derivative of B: (dB/dq . d) x = Gamma(B x, B d).

        Along d the body turns by w = (B d)[axes], and dR^T = -[w]x R^T: a part y of B x in fixed axes changes by y x w.
        """
        n = self.manifold.nv
        gamma = np.zeros((n, n, n))
        size = self.axes.stop - self.axes.start if self.axes else 0
        for part in self.turned:
            k = part.stop - part.start
            gamma[part, part, self.axes] = LEVI_CIVITA[:k, :k, 3 - size :]  # in the plane, w is about z
        return gamma


LEVI_CIVITA = np.cross(np.eye(3)[:, None], np.eye(3)[None]).transpose(2, 0, 1)  # [i, j, k]: (e_j x e_k)_i
LINEAR, ANGULAR, PLANE, ALL = slice(0, 3), slice(3, 6), slice(0, 2), slice(0, 3)


def quaternion_last(q: Array) -> Array:
    """w x y z to x y z w."""
    return q[..., [1, 2, 3, 0]]


def quaternion_first(q: Array) -> Array:
    return q[..., [3, 0, 1, 2]]


def matrix(q: Array) -> Array:
    """R of a quaternion x y z w."""
    return so3.matrix_from_quaternion(quaternion_first(q))


def cosine_sine(x: Array) -> Array:
    return np.concatenate([x[..., :-1], np.cos(x[..., -1:]), np.sin(x[..., -1:])], -1)


def angle(q: Array) -> Array:
    """The cosine and sine at the end of q as an angle, in (-pi, pi]."""
    return np.concatenate([q[..., :-2], np.arctan2(q[..., -1:], q[..., -2:-1])], -1)


CONTINUOUS = Chart(Euclidean(1), cosine_sine, angle)
PLANAR = Chart(Euclidean(3), cosine_sine, angle, lambda q: plane_rotation(q[..., 2:]), (PLANE,), slice(2, 3), (0, 1, 2))
BODY_SPHERICAL = Chart(BodyQuaternion(), quaternion_last, quaternion_first)
FIXED_SPHERICAL = Chart(FixedQuaternion(), quaternion_last, quaternion_first, matrix, (ALL,), ALL, (0, 1, 2))
POSITION_FIRST = Chart(
    ProductManifold(Euclidean(3), BodyQuaternion()),
    lambda q: q[..., [0, 1, 2, 4, 5, 6, 3]],
    lambda q: q[..., [0, 1, 2, 6, 3, 4, 5]],
    lambda q: matrix(q[..., 3:]),
    (LINEAR,),
    ANGULAR,
    (0, 1, 2, 3, 4, 5),
)
ROTATION_FIRST = Chart(
    ProductManifold(FixedQuaternion(), Euclidean(3)),
    lambda q: q[..., [4, 5, 6, 1, 2, 3, 0]],
    lambda q: q[..., [6, 3, 4, 5, 0, 1, 2]],
    lambda q: matrix(q[..., 3:]),
    (LINEAR, ANGULAR),
    ANGULAR,
    (3, 4, 5, 0, 1, 2),
)

# Joints without a chart keep their standard coordinates.
KINDR = {"continuous": CONTINUOUS, "planar": PLANAR, "spherical": BODY_SPHERICAL, "free": POSITION_FIRST}
CONVENTIONS: Mapping[str, Mapping[str, Chart]] = {
    "pinocchio": {},
    "kindr": KINDR,
    "mujoco": KINDR,
    "drake": {"continuous": CONTINUOUS, "planar": PLANAR, "spherical": FIXED_SPHERICAL, "free": ROTATION_FIRST},
}
