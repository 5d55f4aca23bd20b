"""The joint kinds: how a joint moves its body, its motion subspace, and the manifold of its coordinates.

A one-axis joint moves along or about the z axis of its frame; `Tree` rotates frames so that this covers every axis.
Scalars in `move` and `subspace` are generic; the columns of a subspace are constant in the body's frame.
To add a joint, add a class here and an entry in KINDS; the tests find it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..math.scalars import Scalar, sincos
from ..math.spatial import Motion, Subspace, Transform
from ..math.vec3 import Mat3, Vec3
from .manifolds import SE2, SE3, SO2, SO3, Euclidean, Manifold

ZERO = Vec3(0.0, 0.0, 0.0)


def turn(axis: Vec3, p: Vec3) -> Motion:
    """The unit rotation about the line through p."""
    return Motion(axis, p.cross(axis))


def slide(axis: Vec3) -> Motion:
    """The unit translation along an axis."""
    return Motion(ZERO, axis)


class JointKind:
    """What all joints of one kind share."""

    name: ClassVar[str]
    manifold: ClassVar[Manifold]
    has_axis: ClassVar[bool] = False
    slides: ClassVar[bool] = False  # whether its frame's origin moves
    q_parts: ClassVar[tuple[str, ...]] = ("",)  # names of its coordinates, and of its rates
    v_parts: ClassVar[tuple[str, ...]] = ("",)

    @property
    def nq(self) -> int:
        return self.manifold.nq

    @property
    def nv(self) -> int:
        return self.manifold.nv

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        """The body's placement at q, where X is the placement of the joint's frame at zero displacement."""
        raise NotImplementedError

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        """The columns S, one per degree of freedom, at the body's placement X."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return kind, (self.name,)


class Revolute(JointKind):
    """Rotation about an axis; q = angle [rad]."""

    name, manifold, has_axis = "revolute", Euclidean(1), True

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        s, c = sincos(q[0])
        return Transform(X.R.rotate_z(c, s), X.p)

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [turn(X.R.z, X.p)]


class Continuous(Revolute):
    """Unbounded rotation about an axis; q = (cosine, sine)."""

    name, manifold, q_parts = "continuous", SO2(), ("cos", "sin")

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        return Transform(X.R.rotate_z(q[0], q[1]), X.p)


class Prismatic(JointKind):
    """Translation along an axis; q = distance [m]."""

    name, manifold, has_axis, slides = "prismatic", Euclidean(1), True, True

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        return Transform(X.R, X.p + q[0] * X.R.z)

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [slide(X.R.z)]


class Helical(JointKind):
    """A screw: rotation about an axis, and translation along it by `pitch` [m/rad]; q = angle [rad]."""

    name, manifold, has_axis, slides = "helical", Euclidean(1), True, True

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        s, c = sincos(q[0])
        return Transform(X.R.rotate_z(c, s), X.p + (pitch * q[0]) * X.R.z)

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [turn(X.R.z, X.p) + pitch * slide(X.R.z)]


class Spherical(JointKind):
    """Rotation about a point; q = quaternion x y z w, v = angular velocity in the body's frame."""

    name, manifold = "spherical", SO3()
    q_parts, v_parts = ("qx", "qy", "qz", "qw"), ("rx", "ry", "rz")

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        return Transform(X.R.compose(Mat3.from_quaternion(*q)), X.p)

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [turn(axis, X.p) for axis in (X.R.x, X.R.y, X.R.z)]


class TranslationJoint(JointKind):
    """Translation in space; q = x y z [m]."""

    name, manifold, slides = "translation", Euclidean(3), True
    q_parts = v_parts = ("x", "y", "z")

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        return Transform(X.R, X.p + X.R @ Vec3(*q))

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [slide(axis) for axis in (X.R.x, X.R.y, X.R.z)]


class Planar(JointKind):
    """Motion in the xy plane; q = (x, y, cosine, sine), v = (vx, vy, wz) in the body's frame."""

    name, manifold, slides = "planar", SE2(), True
    q_parts, v_parts = ("x", "y", "cos", "sin"), ("x", "y", "rz")

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        x, y, c, s = q
        return Transform(X.R.rotate_z(c, s), X.p + x * X.R.x + y * X.R.y)

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        return [slide(X.R.x), slide(X.R.y), turn(X.R.z, X.p)]


class Free(JointKind):
    """Any motion; q = (x y z, quaternion x y z w), v = (linear, angular) velocity in the body's frame."""

    name, manifold, slides = "free", SE3(), True
    q_parts, v_parts = ("x", "y", "z", "qx", "qy", "qz", "qw"), ("x", "y", "z", "rx", "ry", "rz")

    def move(self, X: Transform, q: Sequence[Scalar], pitch: Scalar) -> Transform:
        return X.compose(Transform(Mat3.from_quaternion(*q[3:]), Vec3(*q[:3])))

    def subspace(self, X: Transform, pitch: Scalar) -> Subspace:
        axes = (X.R.x, X.R.y, X.R.z)
        return [slide(axis) for axis in axes] + [turn(axis, X.p) for axis in axes]


KINDS: dict[str, JointKind] = {
    cls.name: cls() for cls in (Revolute, Continuous, Prismatic, Helical, Spherical, TranslationJoint, Planar, Free)
}


def kind(name: str) -> JointKind:
    """The joint kind of that name."""
    from ..errors import UnknownName

    if name not in KINDS:
        raise UnknownName("joint kind", name, KINDS)
    return KINDS[name]
