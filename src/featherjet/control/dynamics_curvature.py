"""Second derivatives of accelerations and contact forces, contracted with weights.

Accelerations a and forces f solve  R1 = M a + h - J_f^T f - tau = 0,  R2 = J a + gamma + mu f = 0  (an impact: of the
jump a,  M a - J_f^T f = 0,  J (v + a) = 0). With multipliers m and n of

    M m + J^T n = -w_a,    J_f m - mu n = w_f

w_a.a + w_f.f does not change to first order if a and f do, once m.R1 + n.R2 is added. So its Hessian is that of
m.R1 + n.R2 by (q, v, a, f), pulled back along (1, da, df). J has the axes of the contact's frame, J_f those of forces.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algorithms.contacts.dynamics import Contact
from ..contact import Contacts
from .frame_curvature import ANGULAR, LINEAR, Moved, Order, cross3, rotations, transposed, viewed
from .motion import Motion

Array = np.ndarray


class Parts(NamedTuple):
    """Where the blocks of a Hessian (..., nd, nd) by q, v and u are."""

    q: slice
    v: slice
    u: slice

    @classmethod
    def of(cls, nv: int, nu: int) -> Parts:
        return cls(slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 2 * nv + nu))


def dynamics_curvature(m: Motion, w_a: Array, w_f: Array | None, order: Order) -> Array:
    """The Hessian (..., nd, nd) of w_a.a + w_f.f by q, v and u; w_a (..., nv), w_f (..., rows) or None for zero."""
    nv, nu = m.size.nv, m.size.nu
    H = np.zeros((*m.x.shape[:-1], 2 * nv + nu, 2 * nv + nu))
    if m.body.contacts is None:
        free(m, w_a, H)
    else:
        held(m, w_a, np.zeros_like(m.forces) if w_f is None else w_f, order, H)
    return H


def free(m: Motion, w: Array, H: Array) -> None:
    """Without contacts."""
    at = Parts.of(m.size.nv, m.size.nu)
    qq, qv, vv, qtau = m.body.kernel("forward_dynamics_hessian").values(m.q, m.v, m.tau, w)
    H[..., at.q, at.q] += 0.5 * (qq + transposed(qq))
    H[..., at.v, at.v] += vv
    both(H, at.q, at.v, qv)
    both(H, at.q, at.u, qtau[..., m.body.driven])


def both(H: Array, rows: slice, columns: slice, block: Array) -> None:
    """Add a block and its transpose."""
    H[..., rows, columns] += block
    H[..., columns, rows] += transposed(block)


class Grip:
    """A contact at all knots: its frame's placement T (..., 4, 4), its Jacobian s as the frame sees it, its rows."""

    def __init__(self, m: Motion, contact: Contact) -> None:
        X = contact.X
        frame = np.array([contact.body, *(getattr(c, k) for c in (X.R.x, X.R.y, X.R.z, X.p) for k in "xyz")], float)
        body = m.body
        self.contact = contact
        self.T = body.kernel("frame_placement").values(m.q, frame)[0]
        self.s = body.kernel("jacobian", "local").values(m.q, frame)[0]
        self.rows = slice(0, contact.rows)

    def wide(self, x: Array) -> Array:
        """A vector of its rows as one of six."""
        out = np.zeros((*x.shape[:-1], 6))
        out[..., self.rows] = x
        return out

    @property
    def J(self) -> Array:
        """In the axes of the frame."""
        return self.s[..., self.rows, :]

    @property
    def r(self) -> Array | None:
        """How the axes of forces turn, see `Moved.seen`."""
        return rotations(self.s) if self.contact.world_axes else None

    def turned(self, x: Array) -> Array:
        """Motions (..., 6, n) in the axes of forces, its rows alone."""
        if self.contact.world_axes:
            R = self.T[..., :3, :3]
            x = np.concatenate([R @ x[..., LINEAR, :], R @ x[..., ANGULAR, :]], -2)
        return x[..., self.rows, :]

    def pushed(self, order: Order, m: Array, f: Array) -> tuple[Array, Array]:
        """Of f.(J_f m), with fixed rates m: by (q, q), and by (f, q)."""
        moved = Moved(order, self.s, m)
        w = viewed(self.wide(f), self.T, "world_aligned" if self.contact.world_axes else "local")
        slopes = moved.by_q
        if self.r is not None:
            y = np.broadcast_to(moved.y, self.s.shape)
            w_s = self.s[..., ANGULAR, :]
            slopes = slopes + np.concatenate([cross3(w_s, y[..., LINEAR, :]), cross3(w_s, y[..., ANGULAR, :])], -2)
        return moved.seen(w, self.r).qq, self.turned(slopes)

    def bent(self, order: Order, m: Motion, n: Array) -> tuple[Array, Array, Array, Array]:
        """Of n.(J a + gamma): by (q, q), (q, v), (v, v) and (q, a)."""
        c, wide = self.contact, self.wide(n)
        moved = Moved(order, self.s, m.v)
        total = moved.acceleration(m.a, wide)
        assert total.qv is not None
        assert total.vv is not None
        assert total.qa is not None
        qq, qv, vv = total.qq, total.qv, total.vv
        weight = (0.0 if c.kd is None else float(c.kd)) * wide
        if c.point:  # and y.ang x y.lin
            y = moved.y[..., 0]
            weight[..., LINEAR] += np.cross(n, y[..., ANGULAR])
            weight[..., ANGULAR] += np.cross(y[..., LINEAR], n)
            slopes = (moved.by_q, self.s)
            N = [[transposed(np.cross(n[..., None], a[..., ANGULAR, :], axis=-2)) @ b[..., LINEAR, :] for b in slopes]
                 for a in slopes]  # fmt: skip
            qq, vv = qq + N[0][0] + transposed(N[0][0]), vv + N[1][1] + transposed(N[1][1])
            qv = qv + N[0][1] + transposed(N[1][0])
        more = moved.velocity(weight)
        assert more.qv is not None
        if c.kp is not None:
            qq = qq + float(c.kp) * self.strayed(order, wide)
        return qq + more.qq, qv + more.qv, vv, total.qa

    def strayed(self, order: Order, w: Array) -> Array:
        """Of w.e, displacement and sin(angle) axis from the place where the contact is held."""
        Y, R = self.contact.Y, self.T[..., :3, :3]
        home = np.array([[getattr(c, k) for c in (Y.R.x, Y.R.y, Y.R.z)] for k in "xyz"], float)
        p = self.T[..., :3, 3] - np.array([Y.p.x, Y.p.y, Y.p.z], float)
        e = (transposed(R) @ p[..., None])[..., 0]
        s, turn = self.s[..., LINEAR, :], self.s[..., ANGULAR, :]
        force, moment = w[..., LINEAR, None], w[..., ANGULAR]
        # e.lin = R^T p: by k it is s_k - turn_k x e, and for h above k by both turn_k x (turn_h x e - s_h)
        lean = np.cross(turn, e[..., None], axis=-2) - s
        H = transposed(lean) @ np.cross(force, turn, axis=-2)
        # e.ang = vee of the skew part of Q = home^T R, which is Q [turn_h] [turn_k] by both
        Q = home.T @ R
        K = 0.5 * np.einsum("...i,ijk->...jk", moment, LEVI) @ Q  # w.e = tr(K [turn_h] [turn_k])
        trace = np.trace(K, axis1=-2, axis2=-1)[..., None, None]
        H = H + transposed(turn) @ (K - trace * np.eye(3)) @ turn
        return order.symmetric(H)


LEVI = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI[_i, _j, _k], LEVI[_i, _k, _j] = 1.0, -1.0


def held(m: Motion, w_a: Array, w_f: Array, order: Order, H: Array) -> None:
    """With contacts, or at an impact."""
    body = m.body
    contacts = body.contacts
    assert isinstance(contacts, Contacts)
    nv, rows = m.size.nv, body.rows
    at, hits = Parts.of(nv, m.size.nu), body.hits
    grips = [Grip(m, c) for c in contacts.core.each]
    K = np.zeros((*m.x.shape[:-1], nv + rows, nv + rows))
    K[..., :nv, :nv] = m.of_robot("mass_matrix")[0]
    for g, part in zip(grips, contacts.slices, strict=True):
        below = slice(nv + part.start, nv + part.stop)
        K[..., :nv, below], K[..., below, :nv] = transposed(g.J), g.turned(g.s)
    if contacts.core.mu is not None and not hits:
        K[..., range(nv, nv + rows), range(nv, nv + rows)] = -float(contacts.core.mu)
    found = np.linalg.solve(K, np.concatenate([-w_a, w_f], -1)[..., None])[..., 0]
    rates, n = found[..., :nv], found[..., nv:]
    s = m.slopes
    qa, fq = inertial(m, rates, H), np.zeros((*m.x.shape[:-1], rows, nv))
    for g, part in zip(grips, contacts.slices, strict=True):
        qq, fq[..., part, :] = g.pushed(order, rates, m.forces[..., part])
        H[..., at.q, at.q] -= qq
        if hits:
            moved = Moved(order, g.s, m.v + m.a).velocity(g.wide(n[..., part]))
            assert moved.qv is not None
            H[..., at.q, at.q] += moved.qq
            both(H, at.q, at.v, moved.qv)
            qa = qa + moved.qv
        else:
            qq, qv, vv, slopes = g.bent(order, m, n[..., part])
            H[..., at.q, at.q] += qq
            H[..., at.v, at.v] += vv
            both(H, at.q, at.v, qv)
            qa = qa + slopes
    by = [(at.q, s.a_q, s.forces[0]), (at.v, s.a_v, s.forces[1])]
    if s.a_u is not None:
        by.append((at.u, s.a_u, s.forces[2]))
    for part, a_by, f_by in by:
        both(H, at.q, part, qa @ a_by - transposed(fq) @ f_by)


def inertial(m: Motion, rates: Array, H: Array) -> Array:
    """Add what M a + h bends by, at an impact M a; returns its part by (q, a)."""
    at, body = Parts.of(m.size.nv, m.size.nu), m.body
    hessian = body.kernel("inverse_dynamics_hessian")
    if body.hits:
        qq, _, _, qa = hessian.values(m.q, body.still, m.a, rates)
        qq = qq - hessian.values(m.q, body.still, body.still, rates)[0]
    else:
        qq, qv, vv, qa = hessian.values(m.q, m.v, m.a, rates)
        H[..., at.v, at.v] += vv
        both(H, at.q, at.v, qv)
    H[..., at.q, at.q] += 0.5 * (qq + transposed(qq))
    return qa

