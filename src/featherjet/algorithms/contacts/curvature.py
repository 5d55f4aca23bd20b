"""Second derivatives of constrained dynamics, contracted with weights: arrays of numbers, or of traced scalars.

Accelerations a and forces f solve  R1 = M a + h - J_f^T f - tau = 0,  R2 = J a + gamma + mu f = 0  (an impact: of the
jump a,  M a - J_f^T f = 0,  J (v + a) = 0). J has the axes of the contact's frame, J_f those of forces. With
multipliers m and n of

    M m + J^T n = -w_a,    J_f m - mu n = w_f

w_a.a + w_f.f does not change to first order if a and f do, once m.R1 + n.R2 is added. So its Hessian is that of
m.R1 + n.R2 by (q, v, a, f), pulled back along (1, da, df). A contact adds to m.R1 + n.R2, with w its share of n,

    w.(J a + gamma) - f.(J_f m),        at an impact   w.J (v + a) - f.(J_f m)

It has a frame at T whose Jacobian, in its own axes, is s (6, n), by the n dofs on its path to the root.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..frames.curvature import (
    ANGULAR,
    LINEAR,
    DofOrder,
    MovingFrame,
    cross3,
    rotations,
    transposed,
    weights_in_frame,
)

Array = np.ndarray
LEVI_CIVITA = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI_CIVITA[_i, _j, _k], LEVI_CIVITA[_i, _k, _j] = 1.0, -1.0


class ForceAxes(Protocol):
    """The rows of a contact, 3 or 6, and whether its forces have the world's axes."""

    @property
    def world_axes(self) -> bool: ...
    @property
    def rows(self) -> int: ...


class ContactForm(NamedTuple):
    """The facts of a contact that its second derivatives depend on, besides numbers.

    pulled: whether its position is held (kp); impact: whether it strikes; dofs: how many dofs are on its path;
    strictly, same: their `DofOrder`, as nested tuples.
    """

    point: bool
    world_axes: bool
    pulled: bool
    impact: bool
    dofs: int
    strictly: tuple[tuple[float, ...], ...]
    same: tuple[tuple[float, ...], ...]

    @property
    def rows(self) -> int:
        return 3 if self.point else 6

    @property
    def order(self) -> DofOrder:
        return DofOrder(np.array(self.strictly), np.array(self.same))


def multipliers(M: Array, J: Array, J_f: Array, mu: float, w_a: Array, w_f: Array) -> tuple[Array, Array]:
    """m (..., nv) and n (..., rows) of M m + J^T n = -w_a, J_f m - mu n = w_f."""
    nv, rows = w_a.shape[-1], w_f.shape[-1]
    K = np.zeros((*w_a.shape[:-1], nv + rows, nv + rows))
    K[..., :nv, :nv], K[..., :nv, nv:], K[..., nv:, :nv] = M, transposed(J), J_f
    if mu:
        K[..., range(nv, nv + rows), range(nv, nv + rows)] = -mu
    both = np.linalg.solve(K, np.concatenate([-w_a, w_f], -1)[..., None])[..., 0]
    return both[..., :nv], both[..., nv:]


def in_force_axes(contact: ForceAxes, T: Array, x: Array) -> Array:
    """The rows (..., rows, n) of motions (..., 6, n) in a contact's axes, turned to the axes of its forces."""
    if contact.world_axes:
        R = T[..., :3, :3]
        x = np.concatenate([R @ x[..., LINEAR, :], R @ x[..., ANGULAR, :]], -2)
    return x[..., : contact.rows, :]


def six_rows(x: Array) -> Array:
    """Three or six rows (..., rows) as six, those of a moment zero."""
    return x if x.shape[-1] == 6 else np.concatenate([x, 0.0 * x], -1)


class ContactCurvature:
    """Second derivatives of a contact's part of m.R1 + n.R2; s (..., 6, n), T (..., 4, 4)."""

    def __init__(self, form: ContactForm, s: Array, T: Array) -> None:
        self.form, self.order, self.s, self.T = form, form.order, s, T
        self.r = rotations(s) if form.world_axes else None

    def of_force(self, m: Array, f: Array) -> tuple[Array, Array]:
        """The Hessian of f.(J_f m) by (q, q), and that by (f, q), (..., rows, n)."""
        frame = MovingFrame(self.order, self.s, m)
        w = weights_in_frame(six_rows(f), self.T, "world_aligned" if self.form.world_axes else "local")
        slopes = frame.by_q
        if self.r is not None:
            turn, y = self.s[..., ANGULAR, :], frame.y
            slopes = slopes + np.concatenate([cross3(turn, y[..., LINEAR, :]), cross3(turn, y[..., ANGULAR, :])], -2)
        return frame.seen(w, self.r).qq, in_force_axes(self.form, self.T, slopes)

    def of_acceleration(
        self, v: Array, a: Array, w: Array, kd: Any, pull: Array | None
    ) -> tuple[Array, Array, Array, Array]:
        """The Hessian of w.(J a + gamma) by (q, q), (q, v), (v, v) and (q, a); pull (13,): kp, and home of `of_drift`.

        A point's acceleration has y.ang x y.lin in it.
        """
        frame = MovingFrame(self.order, self.s, v)
        total = frame.acceleration(a, six_rows(w))
        assert total.qv is not None
        assert total.vv is not None
        assert total.qa is not None
        qq, qv, vv = total.qq, total.qv, total.vv
        weight = kd * six_rows(w)
        if self.form.point:
            y, n = frame.y, w[..., None]
            more = [cross3(n, y[..., ANGULAR, :]), cross3(y[..., LINEAR, :], n)]
            weight = weight + np.concatenate(more, -2)[..., 0]
            slopes = (frame.by_q, self.s)
            N = [[transposed(cross3(n, x[..., ANGULAR, :])) @ z[..., LINEAR, :] for z in slopes] for x in slopes]
            qq, vv = qq + N[0][0] + transposed(N[0][0]), vv + N[1][1] + transposed(N[1][1])
            qv = qv + N[0][1] + transposed(N[1][0])
        more_v = frame.velocity(weight)
        assert more_v.qv is not None
        if pull is not None:
            qq = qq + pull[0] * self.of_drift(six_rows(w), pull[1:])
        return qq + more_v.qq, qv + more_v.qv, vv, total.qa

    def of_drift(self, w: Array, home: Array) -> Array:
        """The Hessian of w.e by q, e the displacement and sin(angle) axis from home (12,): the columns of R, and p.

        e.lin = R^T p is s_k - turn_k x e by k, and for h above k turn_k x (turn_h x e - s_h) by both. e.ang is the axis
        of the skew part of Q, the rotation from home, which is Q [turn_h] [turn_k] by both.
        """
        R = self.T[..., :3, :3]
        p = (self.T[..., :3, 3] - home[9:])[..., None]
        e = transposed(R) @ p
        s, turn = self.s[..., LINEAR, :], self.s[..., ANGULAR, :]
        H = transposed(cross3(turn, e) - s) @ cross3(w[..., LINEAR, None], turn)
        Q = home[:9].reshape(3, 3) @ R
        K = 0.5 * sum(w[..., 3 + i, None, None] * LEVI_CIVITA[i] for i in range(3)) @ Q
        trace = (K[..., 0, 0] + K[..., 1, 1] + K[..., 2, 2])[..., None, None]
        return self.order.symmetric(H + transposed(turn) @ (K - trace * np.eye(3)) @ turn)


def curvature_of_contact(
    form: ContactForm, s: Array, T: Array, v: Array, w: Array, m: Array, f: Array, a: Any, kd: Any, pull: Any
) -> list[Array]:
    """A contact's part of the Hessian by (q, q), (q, v), (v, v), (q, a) and (f, q).

    At an impact v stands for v + a, and there are no parts by (v, v) and (q, a).
    """
    contact = ContactCurvature(form, s, T)
    push, by_f = contact.of_force(m, f)
    if form.impact:
        jump = MovingFrame(contact.order, s, v).velocity(six_rows(w))
        assert jump.qv is not None
        return [jump.qq - push, jump.qv, by_f]
    qq, *others = contact.of_acceleration(v, a, w, kd, pull)
    return [qq - push, *others, by_f]
