"""The manifolds of joint coordinates, all with the same methods, vectorised over leading axes.

`integrate(q, v)` is q exp(v), where v is a tangent vector at q in the body's axes. `integrate` is analytic, so that
complex tangent vectors differentiate exactly (featherjet.verify).
"""

from __future__ import annotations

import numpy as np

from ..math import rotations as so3
from ..math import se3

Array = np.ndarray


class Manifold:
    """Coordinates q (nq,) with tangent vectors v (nv,)."""

    nq: int
    nv: int
    units: tuple[slice, ...] = ()  # parts of q whose norm must be one
    quaternion = "x y z w"  # the order of a quaternion's components in q

    def neutral(self) -> Array:
        """The coordinates (nq,) of zero displacement."""
        raise NotImplementedError

    def integrate(self, q: Array, v: Array) -> Array:
        """q exp(v)."""
        raise NotImplementedError

    def difference(self, q0: Array, q1: Array) -> Array:
        """The shortest v with integrate(q0, v) = q1: log(q0^-1 q1)."""
        raise NotImplementedError

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        """Coordinates (*size, nq) drawn uniformly between the limits, or over the whole group without limits."""
        raise NotImplementedError

    def adjoint_inverse(self, v: Array) -> Array:
        """The Jacobian (..., nv, nv) of integrate by q: the adjoint of exp(-v)."""
        raise NotImplementedError

    def right_jacobian(self, v: Array) -> Array:
        """The Jacobian (..., nv, nv) of integrate by v."""
        raise NotImplementedError

    def right_jacobian_inverse(self, v: Array) -> Array:
        """The Jacobian (..., nv, nv) of difference by q1; that by q0 is minus the same at -v."""
        raise NotImplementedError

    def rate_map(self, q: Array) -> Array:
        """The matrix F (..., nq, nv) with dq/dt = F v: the rates of q along `integrate`; [KINDR] F."""
        raise NotImplementedError

    def rate_map_inverse(self, q: Array) -> Array:
        """The matrix Fbar (..., nv, nq) with v = Fbar dq/dt, which ignores changes of norm; [KINDR] Fbar.

        The columns of F are orthogonal, so that dividing each by its squared norm gives the left inverse.
        """
        F = self.rate_map(q)
        return np.swapaxes(F / (F * F).sum(-2, keepdims=True), -1, -2)

    def normalised(self, q: Array) -> Array:
        """q with its unit parts scaled to norm one; analytic, without complex conjugation."""
        q = q.copy()
        for part in self.units:
            x = q[..., part]
            q[..., part] = x / np.sqrt((x * x).sum(-1, keepdims=True))
        return q


class Euclidean(Manifold):
    """R^n."""

    def __init__(self, n: int) -> None:
        self.nq = self.nv = n

    def neutral(self) -> Array:
        return np.zeros(self.nq)

    def integrate(self, q: Array, v: Array) -> Array:
        return q + v

    def difference(self, q0: Array, q1: Array) -> Array:
        return q1 - q0

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        return rng.uniform(*bounded(lower, upper, np.pi), size=(*size, self.nq))

    def adjoint_inverse(self, v: Array) -> Array:
        return np.broadcast_to(np.eye(self.nv), (*v.shape, self.nv))

    right_jacobian = right_jacobian_inverse = adjoint_inverse

    def rate_map(self, q: Array) -> Array:
        return np.broadcast_to(np.eye(self.nv), (*q.shape, self.nv))


class SO2(Manifold):
    """Rotations in the plane, as (cosine, sine)."""

    nq, nv, units = 2, 1, (slice(0, 2),)

    def neutral(self) -> Array:
        return np.array([1.0, 0.0])

    def integrate(self, q: Array, v: Array) -> Array:
        c, s = np.cos(v[..., 0]), np.sin(v[..., 0])
        x, y = q[..., 0], q[..., 1]
        return self.normalised(np.stack([c * x - s * y, s * x + c * y], -1))

    def difference(self, q0: Array, q1: Array) -> Array:
        cos = q0[..., 0] * q1[..., 0] + q0[..., 1] * q1[..., 1]
        sin = q0[..., 0] * q1[..., 1] - q0[..., 1] * q1[..., 0]
        return np.arctan2(sin, cos)[..., None]

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        angle = rng.uniform(-np.pi, np.pi, size)
        return np.stack([np.cos(angle), np.sin(angle)], -1)

    def adjoint_inverse(self, v: Array) -> Array:
        return np.ones((*v.shape, 1))

    right_jacobian = right_jacobian_inverse = adjoint_inverse

    def rate_map(self, q: Array) -> Array:
        return np.stack([-q[..., 1], q[..., 0]], -1)[..., None]


class SO3(Manifold):
    """Rotations, as a unit quaternion x y z w."""

    nq, nv, units = 4, 3, (slice(0, 4),)

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        turned = so3.quaternion_product(so3.wxyz_from_xyzw(q), so3.exp(v))
        return self.normalised(so3.xyzw_from_wxyz(turned))

    def difference(self, q0: Array, q1: Array) -> Array:
        back = so3.quaternion_conjugate(so3.wxyz_from_xyzw(q0))
        return so3.log(so3.quaternion_product(back, so3.wxyz_from_xyzw(q1)))

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        return self.normalised(rng.normal(size=(*size, 4)))

    def adjoint_inverse(self, v: Array) -> Array:
        return so3.exp_matrix(-v)

    def right_jacobian(self, v: Array) -> Array:
        return so3.gamma(-v)

    def right_jacobian_inverse(self, v: Array) -> Array:
        return so3.gamma_inverse(-v)

    def rate_map(self, q: Array) -> Array:
        wxyz = np.swapaxes(so3.quaternion_rate_map(so3.wxyz_from_xyzw(q), "B"), -1, -2) / 2
        return np.roll(wxyz, -1, axis=-2)


class SE3(Manifold):
    """Placements, as (x y z, quaternion x y z w); tangent vectors are (linear, angular)."""

    nq, nv, units = 7, 6, (slice(3, 7),)
    rotation = SO3()

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, v: Array) -> Array:
        R = so3.matrix_from_quaternion(so3.wxyz_from_xyzw(q[..., 3:]))
        step = R @ (so3.gamma(v[..., 3:]) @ v[..., :3, None])
        turned = self.rotation.integrate(q[..., 3:], v[..., 3:])
        return np.concatenate([q[..., :3] + step[..., 0], turned], -1)

    def difference(self, q0: Array, q1: Array) -> Array:
        w = self.rotation.difference(q0[..., 3:], q1[..., 3:])
        R0 = so3.matrix_from_quaternion(so3.wxyz_from_xyzw(q0[..., 3:]))
        r = np.swapaxes(R0, -1, -2) @ (q1[..., :3] - q0[..., :3])[..., None]
        return np.concatenate([(so3.gamma_inverse(w) @ r)[..., 0], w], -1)

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        p = rng.uniform(*bounded(lower[:3], upper[:3], 1.0), size=(*size, 3))
        return np.concatenate([p, self.rotation.random(rng, size, lower, upper)], -1)

    def adjoint_inverse(self, v: Array) -> Array:
        return se3.adjoint(se3.exp(-v))

    def right_jacobian(self, v: Array) -> Array:
        return se3.right_jacobian(v)

    def right_jacobian_inverse(self, v: Array) -> Array:
        return se3.right_jacobian_inverse(v)

    def rate_map(self, q: Array) -> Array:
        R = so3.matrix_from_quaternion(so3.wxyz_from_xyzw(q[..., 3:]))
        return side_by_side(R, self.rotation.rate_map(q[..., 3:]))


class SE2(Manifold):
    """Placements in the plane, as (x, y, cosine, sine); tangent vectors are (vx, vy, wz), a subspace of SE(3)'s."""

    nq, nv, units = 4, 3, (slice(2, 4),)
    rotation, space = SO2(), SE3()
    inside = np.array([0, 1, 5])  # the tangent directions of SE(3) that stay in the plane

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 1.0, 0.0])

    def integrate(self, q: Array, v: Array) -> Array:
        step = so3.gamma(self._lift(v)[..., 3:])[..., :2, :2] @ v[..., :2, None]
        shift = self._rotate(q[..., 2], q[..., 3], step[..., 0])
        return np.concatenate([q[..., :2] + shift, self.rotation.integrate(q[..., 2:], v[..., 2:])], -1)

    def difference(self, q0: Array, q1: Array) -> Array:
        w = self.rotation.difference(q0[..., 2:], q1[..., 2:])
        r = self._rotate(q0[..., 2], -q0[..., 3], q1[..., :2] - q0[..., :2])
        axis = w * np.array([0.0, 0.0, 1.0])
        return np.concatenate([(so3.gamma_inverse(axis)[..., :2, :2] @ r[..., None])[..., 0], w], -1)

    def random(self, rng: np.random.Generator, size: tuple[int, ...], lower: Array, upper: Array) -> Array:
        p = rng.uniform(*bounded(lower[:2], upper[:2], 1.0), size=(*size, 2))
        return np.concatenate([p, self.rotation.random(rng, size, lower, upper)], -1)

    def adjoint_inverse(self, v: Array) -> Array:
        return self._confine(self.space.adjoint_inverse(self._lift(v)))

    def right_jacobian(self, v: Array) -> Array:
        return self._confine(self.space.right_jacobian(self._lift(v)))

    def right_jacobian_inverse(self, v: Array) -> Array:
        return self._confine(self.space.right_jacobian_inverse(self._lift(v)))

    def rate_map(self, q: Array) -> Array:
        return side_by_side(plane_rotation(q[..., 2:]), self.rotation.rate_map(q[..., 2:]))

    def _lift(self, v: Array) -> Array:
        lifted = np.zeros((*v.shape[:-1], 6), v.dtype)
        lifted[..., self.inside] = v
        return lifted

    def _confine(self, J: Array) -> Array:
        return J[..., self.inside[:, None], self.inside]

    @staticmethod
    def _rotate(c: Array, s: Array, x: Array) -> Array:
        return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], -1)


def plane_rotation(cs: Array) -> Array:
    """The matrix (..., 2, 2) of a cosine and sine (..., 2)."""
    c, s = cs[..., 0], cs[..., 1]
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def side_by_side(*blocks: Array) -> Array:
    """The block-diagonal matrix (..., m, n) of matrices with a common batch."""
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    sizes = [b.shape[-2:] for b in blocks]
    out = np.zeros((*batch, sum(m for m, _ in sizes), sum(n for _, n in sizes)), np.result_type(*blocks))
    i = j = 0
    for block, (m, n) in zip(blocks, sizes, strict=True):
        out[..., i : i + m, j : j + n] = block
        i, j = i + m, j + n
    return out


def bounded(lower: Array, upper: Array, default: float) -> tuple[Array, Array]:
    """Limits with infinite ones replaced by finite ones, the lower never above the upper."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * default, -default))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * default, default))
    return np.minimum(low, high), np.maximum(low, high)
