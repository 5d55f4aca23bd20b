"""What contacts add to the second derivatives of dynamics: arrays of numbers, or of traced scalars for compiled code.

A contact has a frame at T whose Jacobian, as it sees itself, is s (6, n), by the dofs on its path to the root. With
multipliers m of torques and w of its rows (see `dynamics_curvature`), contacts add to m.R1 + w.R2

    w.(J a + gamma) - f.(J_f m),        at an impact   w.J (v + a) - f.(J_f m)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..jit.kernel import Kernel
from .code import compiled
from .frame_curvature import ANGULAR, LINEAR, Moved, Order, cross3, rotations, transposed, viewed

Array = np.ndarray
LEVI = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI[_i, _j, _k], LEVI[_i, _k, _j] = 1.0, -1.0


class GripForm(NamedTuple):
    """What the code of a contact depends on.

    dofs: the number of dofs on its path; strictly, same: see `Order`, as nested tuples. pulled: whether it has kp.
    """

    point: bool
    world_axes: bool
    pulled: bool
    hits: bool
    dofs: int
    strictly: tuple[tuple[float, ...], ...]
    same: tuple[tuple[float, ...], ...]

    @property
    def rows(self) -> int:
        return 3 if self.point else 6

    @property
    def order(self) -> Order:
        return Order(np.array(self.strictly), np.array(self.same))


class Axes(Protocol):
    """What a contact's rows are."""

    @property
    def world_axes(self) -> bool: ...
    @property
    def rows(self) -> int: ...


def in_force_axes(contact: Axes, T: Array, x: Array) -> Array:
    """Motions (..., 6, n), as a contact's frame sees them, in the axes of its forces; its rows alone."""
    if contact.world_axes:
        R = T[..., :3, :3]
        x = np.concatenate([R @ x[..., LINEAR, :], R @ x[..., ANGULAR, :]], -2)
    return x[..., : contact.rows, :]


def wide(x: Array) -> Array:
    """Three or six rows (..., rows) as six."""
    return x if x.shape[-1] == 6 else np.concatenate([x, 0.0 * x], -1)


class Grip:
    """A contact: s (..., 6, n), T (..., 4, 4)."""

    def __init__(self, form: GripForm, s: Array, T: Array) -> None:
        self.form, self.order, self.s, self.T = form, form.order, s, T
        self.r = rotations(s) if form.world_axes else None

    def pushed(self, m: Array, f: Array) -> tuple[Array, Array]:
        """Of f.(J_f m): by (q, q), and by (f, q)."""
        moved = Moved(self.order, self.s, m)
        w = viewed(wide(f), self.T, "world_aligned" if self.form.world_axes else "local")
        slopes = moved.by_q
        if self.r is not None:
            turn, y = self.s[..., ANGULAR, :], moved.y
            slopes = slopes + np.concatenate([cross3(turn, y[..., LINEAR, :]), cross3(turn, y[..., ANGULAR, :])], -2)
        return moved.seen(w, self.r).qq, in_force_axes(self.form, self.T, slopes)

    def bent(self, v: Array, a: Array, w: Array, kd: Any, pull: Array | None) -> tuple[Array, Array, Array, Array]:
        """Of w.(J a + gamma): by (q, q), (q, v), (v, v) and (q, a)."""
        moved = Moved(self.order, self.s, v)
        total = moved.acceleration(a, wide(w))
        assert total.qv is not None
        assert total.vv is not None
        assert total.qa is not None
        qq, qv, vv = total.qq, total.qv, total.vv
        weight = kd * wide(w)
        if self.form.point:  # and y.ang x y.lin
            y, n = moved.y, w[..., None]
            more = [cross3(n, y[..., ANGULAR, :]), cross3(y[..., LINEAR, :], n)]
            weight = weight + np.concatenate(more, -2)[..., 0]
            slopes = (moved.by_q, self.s)
            N = [[transposed(cross3(n, x[..., ANGULAR, :])) @ z[..., LINEAR, :] for z in slopes] for x in slopes]
            qq, vv = qq + N[0][0] + transposed(N[0][0]), vv + N[1][1] + transposed(N[1][1])
            qv = qv + N[0][1] + transposed(N[1][0])
        more_v = moved.velocity(weight)
        assert more_v.qv is not None
        if pull is not None:
            qq = qq + pull[0] * self.strayed(wide(w), pull[1:])
        return qq + more_v.qq, qv + more_v.qv, vv, total.qa

    def strayed(self, w: Array, home: Array) -> Array:
        """Of w.e, displacement and sin(angle) axis from where it is held, home (12,): the columns of R, and p.

        e.lin = R^T p is s_k - turn_k x e by k, and for h above k turn_k x (turn_h x e - s_h) by both. e.ang is the axis
        of the skew part of Q, the rotation from home, which is Q [turn_h] [turn_k] by both.
        """
        R = self.T[..., :3, :3]
        p = (self.T[..., :3, 3] - home[9:])[..., None]
        e = transposed(R) @ p
        s, turn = self.s[..., LINEAR, :], self.s[..., ANGULAR, :]
        H = transposed(cross3(turn, e) - s) @ cross3(w[..., LINEAR, None], turn)
        Q = home[:9].reshape(3, 3) @ R
        K = 0.5 * sum(w[..., 3 + i, None, None] * LEVI[i] for i in range(3)) @ Q
        trace = (K[..., 0, 0] + K[..., 1, 1] + K[..., 2, 2])[..., None, None]
        return self.order.symmetric(H + transposed(turn) @ (K - trace * np.eye(3)) @ turn)


def grip_code(form: GripForm) -> Kernel:
    """(s, T, v, a, w, m, f, kd, pull) -> qq, qv, vv, qa, and fq: of f.(J_f m) by (f, q); pull: kp and home.

    At an impact (s, T, rates, w, m, f) -> qq, qv, fq, with rates v + a; qa is qv.
    """
    n, rows = form.dofs, form.rows
    inputs = {"s": (6, n), "T": (4, 4), "v": (n,)} | ({} if form.hits else {"a": (n,)})
    inputs |= {"w": (rows,), "m": (n,), "f": (rows,)} | ({} if form.hits else {"kd": (1,)})
    inputs |= {"pull": (13,)} if form.pulled and not form.hits else {}
    square = (n, n)

    def run(s: Array, T: Array, v: Array, w: Array, m: Array, f: Array, **rest: Array) -> list[Array]:
        grip = Grip(form, s, T)
        push, by_f = grip.pushed(m, f)
        if form.hits:
            moved = Moved(grip.order, s, v).velocity(wide(w))
            assert moved.qv is not None
            return [moved.qq - push, moved.qv, by_f]
        qq, *others = grip.bent(v, rest["a"], w, rest["kd"][0], rest.get("pull"))
        return [qq - push, *others, by_f]

    shapes = [square, square, (rows, n)] if form.hits else [square] * 4 + [(rows, n)]
    return compiled(run, inputs, ("grip", form), "bent contacts", shapes)
