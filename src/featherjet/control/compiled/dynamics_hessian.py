"""The Hessian of w_a.a + w_f.f at all knots: accelerations a and contact forces f, contracted with weights.

With contacts the second derivatives are those of `algorithms.contacts.curvature`, of its multipliers m and n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algorithms.contacts.curvature import ContactForm, curvature_of_contact, in_force_axes, multipliers
from ...algorithms.contacts.scene import Contact
from ...algorithms.frames.curvature import transposed
from ...contact import Contacts
from ...jit.kernel import Kernel
from ...math.spatial import Transform
from .kernels import traced_kernel
from .motion import PhaseMotion
from .robot import PhaseRobot

Array = np.ndarray


class HessianParts(NamedTuple):
    """Where q, v and u are among the rows and columns of a Hessian (..., nd, nd)."""

    q: slice
    v: slice
    u: slice

    @classmethod
    def of(cls, nv: int, nu: int) -> HessianParts:
        return cls(slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 2 * nv + nu))


def dynamics_hessian(m: PhaseMotion, w_a: Array, w_f: Array | None) -> Array:
    """The Hessian (..., nd, nd) of w_a.a + w_f.f by q, v and u; w_a (..., nv), w_f (..., rows) or None for zero."""
    nv, nu = m.size.nv, m.size.nu
    H = np.zeros((*m.x.shape[:-1], 2 * nv + nu, 2 * nv + nu))
    if m.robot.contacts is None:
        add_free(m, w_a, H)
    else:
        add_constrained(m, w_a, np.zeros_like(m.forces) if w_f is None else w_f, H)
    return H


def add_free(m: PhaseMotion, w: Array, H: Array) -> None:
    """Add the Hessian of w.a without contacts."""
    at = HessianParts.of(m.size.nv, m.size.nu)
    qq, qv, vv, qtau = m.robot.kernel("forward_dynamics_hessian").values(m.q, m.v, m.tau, w)
    H[..., at.q, at.q] += 0.5 * (qq + transposed(qq))
    H[..., at.v, at.v] += vv
    add_both(H, at.q, at.v, qv)
    add_both(H, at.q, at.u, qtau[..., m.robot.driven])


def add_both(H: Array, rows: slice, columns: slice, block: Array) -> None:
    """Add a block and its transpose."""
    H[..., rows, columns] += block
    H[..., columns, rows] += transposed(block)


class ContactAtKnots:
    """A contact at all knots: where its frame is, its Jacobians, and the code of its second derivatives."""

    def __init__(self, m: PhaseMotion, contact: Contact, number: int) -> None:
        robot = m.robot
        self.contact, self.path = contact, np.array(robot.evaluator.tree.dof_path(contact.body))
        frame = np.array([contact.body, *entries(contact.X)], float)
        self.T = robot.kernel("frame_placement").values(m.q, frame)[0]
        self.s = robot.kernel("jacobian", "local").values(m.q, frame)[0]
        self.kernel = robot.code(("contact curvature", number), lambda: contact_kernel(self._form(robot)))

    def _form(self, robot: PhaseRobot) -> ContactForm:
        own, c = np.ix_(self.path, self.path), self.contact
        above = (tuple(map(tuple, x[own].tolist())) for x in (robot.order.strictly, robot.order.same))
        pulled = c.kp is not None and not robot.hits
        return ContactForm(c.point, c.world_axes, pulled, robot.hits, len(self.path), *above)

    @property
    def jacobians(self) -> tuple[Array, Array]:
        """Its Jacobian (..., rows, nv) in the axes of its frame, and in those of its forces."""
        return self.s[..., : self.contact.rows, :], in_force_axes(self.contact, self.T, self.s)

    def second_derivatives(self, m: PhaseMotion, w: Array, rates: Array, f: Array) -> tuple[Array, ...]:
        """By (q, q), (q, v), (v, v), (q, a) and (f, q), for multipliers `rates` and w and its forces f."""
        kernel, c, path = self.kernel, self.contact, self.path
        s = np.ascontiguousarray(self.s[..., path])
        m_path = np.ascontiguousarray(rates[..., path])
        w, f = np.ascontiguousarray(w), np.ascontiguousarray(f)
        if m.robot.hits:
            qq, qv, by_f = kernel.values(s, self.T, (m.v + m.a)[..., path], w, m_path, f)
            return qq, qv, np.zeros_like(qq), qv, by_f
        inputs = [s, self.T, m.v[..., path], m.a[..., path], w, m_path, f, np.array([float(c.kd or 0.0)])]
        pull = [] if c.kp is None else [np.array([float(c.kp), *entries(c.Y)])]
        return kernel.values(*inputs, *pull)


def contact_kernel(form: ContactForm) -> Kernel:
    """(s, T, v, a, w, m, f, kd, pull) -> second derivatives by (q, q), (q, v), (v, v), (q, a) and (f, q).

    pull: kp and home, if there is a kp. At an impact (s, T, v + a, w, m, f) -> those by (q, q), (q, v) and (f, q).
    """
    n, rows = form.dofs, form.rows
    inputs = {"s": (6, n), "T": (4, 4), "v": (n,)} | ({} if form.impact else {"a": (n,)})
    inputs |= {"w": (rows,), "m": (n,), "f": (rows,)} | ({} if form.impact else {"kd": (1,)})
    inputs |= {"pull": (13,)} if form.pulled and not form.impact else {}

    def run(s: Array, T: Array, v: Array, w: Array, m: Array, f: Array, **rest: Any) -> list[Array]:
        kd = rest.get("kd", (0.0,))[0]
        return curvature_of_contact(form, s, T, v, w, m, f, rest.get("a"), kd, rest.get("pull"))

    shapes = [(n, n)] * (2 if form.impact else 4) + [(rows, n)]
    return traced_kernel(run, inputs, ("contact curvature", form), "second derivatives of contacts", shapes)


def entries(X: Transform) -> list[float]:
    """The columns of R, and p."""
    return [float(getattr(c, k)) for c in (X.R.x, X.R.y, X.R.z, X.p) for k in "xyz"]


def add_constrained(m: PhaseMotion, w_a: Array, w_f: Array, H: Array) -> None:
    """Add the Hessian of w_a.a + w_f.f with contacts, or at an impact."""
    robot = m.robot
    contacts = robot.contacts
    assert isinstance(contacts, Contacts)
    nv, rows = m.size.nv, robot.rows
    each = [ContactAtKnots(m, c, k) for k, c in enumerate(contacts.core.each)]
    J, J_f = (np.concatenate(x, -2) for x in zip(*(c.jacobians for c in each), strict=True))
    mu = 0.0 if contacts.core.mu is None or robot.hits else float(contacts.core.mu)
    rates, n = multipliers(m.of_robot("mass_matrix")[0], J, J_f, mu, w_a, w_f)
    qa, fq = add_inertial(m, rates, H), np.zeros((*m.x.shape[:-1], rows, nv))
    for c, part in zip(each, contacts.slices, strict=True):
        qq, qv, vv, own_qa, by_f = c.second_derivatives(m, n[..., part], rates, m.forces[..., part])
        rows_of, columns = c.path[:, None], c.path
        H[..., rows_of, columns] += qq
        H[..., nv + rows_of, nv + columns] += vv
        H[..., rows_of, nv + columns] += qv
        H[..., nv + rows_of, columns] += transposed(qv)
        qa[..., rows_of, columns] += own_qa
        fq[..., part, columns] = by_f
    by_a, by_forces = (np.concatenate([x for x in s if x is not None], -1) for s in (m.a_slopes, m.force_slopes))
    along_q = qa @ by_a - transposed(fq) @ by_forces
    add_both(H, HessianParts.of(nv, m.size.nu).q, slice(0, H.shape[-1]), along_q)


def add_inertial(m: PhaseMotion, rates: Array, H: Array) -> Array:
    """Add the Hessian of rates.(M a + h), at an impact of rates.(M a); returns its part by (q, a)."""
    at, robot = HessianParts.of(m.size.nv, m.size.nu), m.robot
    hessian, zero = robot.kernel("inverse_dynamics_hessian"), robot.zero_acceleration
    if robot.hits:
        qq, _, _, qa = hessian.values(m.q, zero, m.a, rates)
        qq = qq - hessian.values(m.q, zero, zero, rates)[0]
    else:
        qq, qv, vv, qa = hessian.values(m.q, m.v, m.a, rates)
        H[..., at.v, at.v] += vv
        add_both(H, at.q, at.v, qv)
    H[..., at.q, at.q] += 0.5 * (qq + transposed(qq))
    return qa
