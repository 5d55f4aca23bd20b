"""Second derivatives of where frames are and how they move, contracted with weights; arrays with any leading axes.

A column s_k of a frame's Jacobian, as the frame sees it, turns with all dofs further out: with ds_k/dq_h = -s_h x s_k
for h strictly below k's joint and zero otherwise, and with u_k = sum of s_j v_j over j strictly above k's joint, the
frame's velocity y = sum of s_k v_k and its rate c = -sum of v_k s_k x u_k + sum of s_k a_k have, for h above k or of
the same joint,

    d2y/dq_h dq_k = s_k x (s_h x u_h)                                     d2y/dq_k dv_h = -s_k x s_h, h strictly above
    d2c/dq_h dq_k = s_k x (s_h x c_h) - (s_k x (u_k - u_h)) x (s_h x u_h) - (y - u_h) x (s_k x (s_h x u_h))

where c_h is that of the bodies above h's joint. Within a joint, symmetric halves are what a chart q (+) d sees. Arrays
are (..., 6, nv), linear then angular; weights (..., 6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...model.tree import Tree

Array = np.ndarray
LINEAR, ANGULAR = slice(0, 3), slice(3, 6)


class DofOrder(NamedTuple):
    """Which dofs are above others on a path to the root, (nv, nv): entry [h, k] is 1 if h is above k, else 0.

    strictly: h belongs to another joint than k; same: both belong to one joint.
    """

    strictly: Array
    same: Array

    @classmethod
    def of(cls, tree: Tree) -> DofOrder:
        strictly, same = np.zeros((tree.nv, tree.nv)), np.zeros((tree.nv, tree.nv))
        for node in tree.nodes:
            same[node.v, node.v] = 1.0
            for above in tree.path(node.index)[:-1]:
                strictly[above.v, node.v] = 1.0
        return cls(strictly, same)

    def symmetric(self, H: Array) -> Array:
        """The whole of a matrix whose entries [h, k] hold for h above k or of the same joint."""
        upper = H * self.strictly + 0.5 * H * self.same
        return upper + transposed(upper)


class Curvature(NamedTuple):
    """Second derivatives by (q, q), (q, v), (v, v) and (q, a), (..., nv, nv) each; None where zero."""

    qq: Array
    qv: Array | None = None
    vv: Array | None = None
    qa: Array | None = None


def transposed(A: Array) -> Array:
    return np.swapaxes(A, -1, -2)


def cross3(a: Array, b: Array) -> Array:
    """a x b of vectors (..., 3, n)."""
    x, y, z = a[..., 0, :], a[..., 1, :], a[..., 2, :]
    r, s, t = b[..., 0, :], b[..., 1, :], b[..., 2, :]
    return np.stack([y * t - z * s, z * r - x * t, x * s - y * r], -2)


def cross(a: Array, b: Array) -> Array:
    """a x b of motions (..., 6, n)."""
    linear = cross3(a[..., ANGULAR, :], b[..., LINEAR, :]) + cross3(a[..., LINEAR, :], b[..., ANGULAR, :])
    return np.concatenate([linear, cross3(a[..., ANGULAR, :], b[..., ANGULAR, :])], -2)


def dual(a: Array, w: Array) -> Array:
    """The forces f with f.x = w.(a x x) for all motions x; a (..., 6, n), w (..., 6, n)."""
    linear = cross3(w[..., LINEAR, :], a[..., ANGULAR, :])
    angular = cross3(w[..., LINEAR, :], a[..., LINEAR, :]) + cross3(w[..., ANGULAR, :], a[..., ANGULAR, :])
    return np.concatenate([linear, angular], -2)


def placement_curvature(order: DofOrder, s: Array, w: Array) -> Array:
    """The Hessian (..., nv, nv) of w.xi by q, where the frame moves from T to T exp(xi)."""
    upper = 0.5 * (transposed(dual(s, w[..., None])) @ s) * order.strictly
    return upper + transposed(upper)


class MovingFrame:
    """The motion of a frame with Jacobian s (..., 6, nv), in its own axes, at joint velocities v (..., nv)."""

    def __init__(self, order: DofOrder, s: Array, v: Array) -> None:
        self.order, self.s = order, s
        self.shares = s * v[..., None, :]
        self.u = self.shares @ order.strictly  # of the body above each joint
        self.y = self.shares.sum(-1, keepdims=True)
        self.alpha = cross(s, self.u)

    @property
    def by_q(self) -> Array:
        """dy/dq (..., 6, nv)."""
        return -self.alpha

    def velocity(self, w: Array) -> Curvature:
        """Second derivatives of w.y, the frame's velocity y."""
        beta = dual(self.s, w[..., None])
        qq = self.order.symmetric(transposed(self.alpha) @ beta)
        return Curvature(qq, -(transposed(beta) @ self.s) * self.order.strictly.T)

    def acceleration(self, a: Array, w: Array) -> Curvature:
        """Second derivatives of w.dy/dt at joint accelerations a (..., nv), by (q, a) too."""
        order, s, u, alpha, w = self.order, self.s, self.u, self.alpha, w[..., None]
        beta, rest = dual(s, w), self.y - u
        steep, braked = dual(alpha, w), dual(rest, w)
        c = (s * a[..., None, :] - cross(self.shares, u)) @ order.strictly
        lever = dual(u, steep) + dual(alpha, braked)
        qq = transposed(cross(s, c)) @ beta - transposed(alpha) @ steep + transposed(lever) @ s
        push = cross(2.0 * u + self.shares @ order.same, s)
        outer = transposed(dual(u, beta) + dual(s, braked)) @ s - transposed(beta) @ push  # q_h and v_j, j above h
        inner = -(transposed(steep) @ s)  # j at or below h
        qv = outer * order.strictly.T + inner * (order.strictly + order.same)
        slopes = -(transposed(beta) @ s) * order.strictly.T
        return Curvature(order.symmetric(qq), qv, slopes + transposed(slopes), slopes)

    def seen(self, W: Array, r: Array | None) -> Curvature:
        """Second derivatives of w.(X y), where X turns along dof k as dX = X (r_k x); None: X is fixed to the frame.

        W: X^T w, the weights in the axes of the frame.
        """
        fixed = self.velocity(W)
        if r is None:
            return fixed
        turned = transposed(dual(r, W[..., None]))
        mixed = turned @ self.by_q
        qq = self.order.symmetric(turned @ cross(r, self.y)) + mixed + transposed(mixed)
        assert fixed.qv is not None
        return Curvature(fixed.qq + qq, fixed.qv + turned @ self.s)


def rotations(s: Array) -> Array:
    """Motions without their linear halves."""
    out = np.zeros_like(s)
    out[..., ANGULAR, :] = s[..., ANGULAR, :]
    return out


def weights_in_frame(w: Array, T: Array, viewpoint: str) -> Array:
    """X^T w (..., 6), where X takes motions from the axes of a frame at T (..., 4, 4) to those of a viewpoint."""
    if viewpoint == "local":
        return w
    linear, angular = w[..., LINEAR], w[..., ANGULAR]
    if viewpoint == "world":
        angular = angular + np.cross(linear, T[..., :3, 3])
    R = T[..., :3, :3]
    return np.concatenate([(x[..., None, :] @ R)[..., 0, :] for x in (linear, angular)], -1)


def viewpoint_turns(s: Array, viewpoint: str) -> Array | None:
    """The r that `MovingFrame.seen` takes for a viewpoint."""
    return {"local": None, "world": s, "world_aligned": rotations(s)}[viewpoint]
