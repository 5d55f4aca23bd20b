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

from ..algorithms.contacts.scene import Contact
from ..contact import Contacts
from ..math.spatial import Transform
from .frame_curvature import transposed
from .grip_curvature import GripForm, grip_code, in_force_axes
from .motion import Body, Motion

Array = np.ndarray


class Parts(NamedTuple):
    """Where the blocks of a Hessian (..., nd, nd) by q, v and u are."""

    q: slice
    v: slice
    u: slice

    @classmethod
    def of(cls, nv: int, nu: int) -> Parts:
        return cls(slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 2 * nv + nu))


def dynamics_curvature(m: Motion, w_a: Array, w_f: Array | None) -> Array:
    """The Hessian (..., nd, nd) of w_a.a + w_f.f by q, v and u; w_a (..., nv), w_f (..., rows) or None for zero."""
    nv, nu = m.size.nv, m.size.nu
    H = np.zeros((*m.x.shape[:-1], 2 * nv + nu, 2 * nv + nu))
    if m.body.contacts is None:
        free(m, w_a, H)
    else:
        held(m, w_a, np.zeros_like(m.forces) if w_f is None else w_f, H)
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


class Holding:
    """A contact at all knots, and the code of its second derivatives."""

    def __init__(self, m: Motion, contact: Contact, number: int) -> None:
        body = m.body
        self.contact, self.path = contact, np.array(body.evaluator.tree.dof_path(contact.body))
        frame = np.array([contact.body, *entries(contact.X)], float)
        self.T = body.kernel("frame_placement").values(m.q, frame)[0]
        self.s = body.kernel("jacobian", "local").values(m.q, frame)[0]
        self.code = body.code(("grip", number), lambda: grip_code(self._form(body)))

    def _form(self, body: Body) -> GripForm:
        own, c = np.ix_(self.path, self.path), self.contact
        above = (tuple(map(tuple, x[own].tolist())) for x in (body.order.strictly, body.order.same))
        pulled = c.kp is not None and not body.hits
        return GripForm(c.point, c.world_axes, pulled, body.hits, len(self.path), *above)

    @property
    def jacobians(self) -> tuple[Array, Array]:
        """In the axes of its frame, and in those of its forces."""
        return self.s[..., : self.contact.rows, :], in_force_axes(self.contact, self.T, self.s)

    def __call__(self, m: Motion, w: Array, rates: Array, f: Array) -> tuple[Array, ...]:
        """By (q, q), (q, v), (v, v), (q, a) and, with forces, (f, q)."""
        code, c, path = self.code, self.contact, self.path
        s = np.ascontiguousarray(self.s[..., path])
        m_path = np.ascontiguousarray(rates[..., path])
        w, f = np.ascontiguousarray(w), np.ascontiguousarray(f)
        if m.body.hits:
            qq, qv, by_f = code.values(s, self.T, (m.v + m.a)[..., path], w, m_path, f)
            return qq, qv, np.zeros_like(qq), qv, by_f
        given = [s, self.T, m.v[..., path], m.a[..., path], w, m_path, f, np.array([float(c.kd or 0.0)])]
        pull = [] if c.kp is None else [np.array([float(c.kp), *entries(c.Y)])]
        return code.values(*given, *pull)


def entries(X: Transform) -> list[float]:
    """The columns of R, and p."""
    return [float(getattr(c, k)) for c in (X.R.x, X.R.y, X.R.z, X.p) for k in "xyz"]


def held(m: Motion, w_a: Array, w_f: Array, H: Array) -> None:
    """With contacts, or at an impact."""
    body = m.body
    contacts = body.contacts
    assert isinstance(contacts, Contacts)
    nv, rows = m.size.nv, body.rows
    at = Parts.of(nv, m.size.nu)
    grips = [Holding(m, c, k) for k, c in enumerate(contacts.core.each)]
    K = np.zeros((*m.x.shape[:-1], nv + rows, nv + rows))
    K[..., :nv, :nv] = m.of_robot("mass_matrix")[0]
    for g, part in zip(grips, contacts.slices, strict=True):
        below = slice(nv + part.start, nv + part.stop)
        J, J_f = g.jacobians
        K[..., :nv, below], K[..., below, :nv] = transposed(J), J_f
    if contacts.core.mu is not None and not body.hits:
        K[..., range(nv, nv + rows), range(nv, nv + rows)] = -float(contacts.core.mu)
    found = np.linalg.solve(K, np.concatenate([-w_a, w_f], -1)[..., None])[..., 0]
    rates, n = found[..., :nv], found[..., nv:]
    qa, fq = inertial(m, rates, H), np.zeros((*m.x.shape[:-1], rows, nv))
    for g, part in zip(grips, contacts.slices, strict=True):
        qq, qv, vv, qa_own, by_f = g(m, n[..., part], rates, m.forces[..., part])
        rows_of, columns = g.path[:, None], g.path
        H[..., rows_of, columns] += qq
        H[..., nv + rows_of, nv + columns] += vv
        H[..., rows_of, nv + columns] += qv
        H[..., nv + rows_of, columns] += transposed(qv)
        qa[..., rows_of, columns] += qa_own
        fq[..., part, columns] = by_f
    by_a, by_forces = (np.concatenate([x for x in s if x is not None], -1) for s in (m.a_slopes, m.force_slopes))
    bent = qa @ by_a - transposed(fq) @ by_forces
    both(H, at.q, slice(0, H.shape[-1]), bent)


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
