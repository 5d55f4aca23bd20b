"""Exact derivatives of dynamics with contacts, by differentiating the system (1) of `dynamics`.

    M da - J^T dlambda  = dtau - dE,   E = ID(q, v, a) - J^T lambda     at the solution's a and lambda
    J da + mu dlambda   = -dK,         K = J a + gamma                                                             (2)

The matrix is that of (1), so its factors serve all columns; if contacts are redundant, da is determined all the same,
and dlambda the smallest. dE comes from [IDSVA] with the contact forces as external
forces, which move with their bodies. A lambda in contact axes moves with the first body; for the second, (3) adds the
missing terms. dK needs the changes of twists and accelerations in contact axes: with s = +-1 for dofs j that move only
the first or only the second body, Psid, Psidd and Sd as in [IDSVA] eqs. 31-32, and all in the common frame,

    d xi / dq_j  = s X1^-1 (Psid - v2 x S)                                d xi / dv_j  = s X1^-1 S
    d xid / dq_j = s X1^-1 (Psidd - a2 x S - (v1 + v2) x Psid + v1 x (v2 x S))
    d xid / dv_j = s X1^-1 (Sd + Psid - (v1 + v2) x S)                                                             (4)

since a displacement along S_j carries along everything beyond j, relative to which the parent, moving with v_parent,
then moves differently by v_parent x S_j. docs/contacts.md has the proof.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...math.spatial import Motion
from ...math.vec3 import Scalar, Vec3
from ...model.model import WORLD
from ..derivatives.idsva import inverse_dynamics_derivatives
from ..dynamics import ltl
from ..dynamics.coupled import reduce_matrix
from ..dynamics.rnea import inverse_dynamics
from ..motion import DofMotion, dof_motions
from ..scan import Array, Scan
from . import dynamics as ct
from . import redundant
from .dynamics import System
from .scene import ContactSet, Held, Scene, Touch, residuals, rows_of, scene, sides, wrench

STEADY = 1e-7  # of the accelerations by forces of one: rounding in how a force that does nothing changes


class ConstrainedPartials(NamedTuple):
    """Partials of accelerations (nv, nv) and forces (rows, nv) by q, v and tau, and the margins of (1)."""

    da_dq: Array
    da_dv: Array
    da_dtau: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_dtau: Array
    contact_margins: Array
    margins: Array


class ImpulsePartials(NamedTuple):
    """Partials of the jump v+ - v- (nv, nv) and of impulses (rows, nv) by q and v, and the margins."""

    djump_dq: Array
    djump_dv: Array
    dimpulses_dq: Array
    dimpulses_dv: Array
    contact_margins: Array
    margins: Array


# How contacts' motions change: equations (4), in the common frame


def xi_by_q(t: Touch, j: DofMotion) -> Motion:
    return j.Psid - t.v2.cross(j.S)


def xi_by_v(t: Touch, j: DofMotion) -> Motion:
    return j.S


def xid_by_q(t: Touch, j: DofMotion) -> Motion:
    return j.Psidd - t.a2.cross(j.S) - (t.v1 + t.v2).cross(j.Psid) + t.v1.cross(t.v2.cross(j.S))


def xid_by_v(t: Touch, j: DofMotion) -> Motion:
    return j.SPd - (t.v1 + t.v2).cross(j.S)


def error_by_q(contact: Held, t: Touch, move: Motion) -> Motion:
    """The change of the error when the first frame moves by `move`, given in contact axes."""
    e, w = t.error, move.ang
    linear = move.lin - w.cross(e.lin)
    if contact.point:
        return Motion(w, linear)
    R = t.turn  # d(R - R^T)/2 for dR = R [w]x is (tr R - R^T) w / 2
    trace = R.x.x + R.y.y + R.z.z
    return Motion(0.5 * (trace * w - R.transposed_times(w)), linear)


Change = Callable[[Touch, DofMotion], Motion]


def residual_by(contact: Held, t: Touch, j: DofMotion, dxi: Change, dxid: Change) -> Motion:
    """The change of `scene.residual` along a degree of freedom, without that of the error (see `error_by_q`)."""
    d, dd = t.F1.motion_inverse(dxi(t, j)), t.F1.motion_inverse(dxid(t, j))
    if contact.point:
        xi = t.xi
        dd = Motion(dd.ang, dd.lin + d.ang.cross(xi.lin) + xi.ang.cross(d.lin))
    return dd if contact.kd is None else dd + contact.kd * d


def residual_by_q(contact: Held, t: Touch, j: DofMotion) -> Motion:
    m = residual_by(contact, t, j, xi_by_q, xid_by_q)
    return m if contact.kp is None else m + contact.kp * error_by_q(contact, t, t.F1.motion_inverse(j.S))


def residual_by_v(contact: Held, t: Touch, j: DofMotion) -> Motion:
    return residual_by(contact, t, j, xi_by_v, xid_by_v)


# Forces that move with the first body and act on the second


def reaction_by_q(scan: Scan, contacts: ContactSet, s: Scene, forces: Array) -> Array:
    """What dtau/dq lacks (nv, nv): the force -F1 on the second body moves with the first body, not with the second.

    Entries S_i . (s_j S_j x* F1) for dofs i that move the second body.                                            (3)
    """
    rows = [[0.0] * scan.nv for _ in range(scan.nv)]
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        if c.other == WORLD:
            continue
        F = t.F1.force(wrench(c, forces[at]))
        moved = [m for n in scan.tree.path(c.other) for m in zip(n.dofs, s.bodies[n.index].S, strict=True)]
        for node, sign in sides(scan.tree, c):
            for j, Sj in zip(node.dofs, s.bodies[node.index].S, strict=True):
                change = sign * Sj.cross_force(F)
                for i, Si in moved:
                    rows[i][j] = rows[i][j] + Si.dot(change)
    return scan.matrix_of(rows)


def to_user_axes_by_q(scan: Scan, contacts: ContactSet, s: Scene, forces: Array, columns: Array) -> Array:
    """Derivatives (rows, nv) by q of forces in the user's axes, from those in contact axes, which rotate with R1."""
    turning = _angular(scan, contacts, s)
    out = columns.copy()
    for n, (c, at) in enumerate(zip(contacts.each, contacts.rows, strict=True)):
        w = Vec3(*turning[3 * n : 3 * n + 3])
        for i in range(at.start, at.stop, 3) if c.world_axes else ():
            d = w.cross(Vec3(*forces[i : i + 3]))
            out[i], out[i + 1], out[i + 2] = out[i] + d.x, out[i + 1] + d.y, out[i + 2] + d.z
    return ct.to_user_axes(contacts, s, out)


def _angular(scan: Scan, contacts: ContactSet, s: Scene) -> Array:
    """The angular motion that each dof gives to each contact's first frame, in contact axes (3 contacts, nv)."""
    rows = [[0.0] * scan.nv for _ in range(3 * len(contacts.each))]
    for n, (c, t) in enumerate(zip(contacts.each, s.touches, strict=True)):
        for node in scan.tree.path(c.body):
            for j, S in zip(node.dofs, s.bodies[node.index].S, strict=True):
                w = t.F1.R.transposed_times(S.ang)
                rows[3 * n][j], rows[3 * n + 1][j], rows[3 * n + 2][j] = w.x, w.y, w.z
    return ct.by_independent(scan.tree, scan.matrix_of(rows))


# Algorithms


def constrained_dynamics_derivatives(
    scan: Scan,
    q: Array,
    v: Array,
    tau: Array,
    fext: Sequence | None = None,
    *,
    contacts: ContactSet,
    settings: Sequence[Scalar] | None = None,
) -> ConstrainedPartials:
    """The solution of (2) by q, v and tau; forces in the user's axes."""
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q, v)
    K = ct.system(scan, contacts, q, ct.jacobian(scan, contacts, s))
    h = ct.to_independent(scan.tree, inverse_dynamics(scan, q, v, None, fext))
    a, forces, margins = ct.hold(K, tau - h, -residuals(scan, contacts, s))
    a_tree = _of_tree(scan, a)
    s = scene(scan, contacts, q, v, a_tree)
    on_bodies = ct.external_forces(scan, contacts, s, forces, fext)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, a_tree, on_bodies)
    by_q = by_q + reaction_by_q(scan, contacts, s, forces)
    table = scan.each(dof_motions, s.bodies)
    K_q = ct.matrix(scan, contacts, s, lambda c, t, node, k: residual_by_q(c, t, table[node.index][k]))
    K_v = ct.matrix(scan, contacts, s, lambda c, t, node, k: residual_by_v(c, t, table[node.index][k]))
    E_q, E_v = (_square(scan, x) for x in (by_q, by_v))
    f = np.concatenate([-E_q, -E_v, _identity(E_q)], axis=1)
    da, dl, also = ct.hold(K, f, -np.concatenate([K_q, K_v, np.zeros_like(K_q)], axis=1))
    (a_q, a_v, a_tau), (l_q, l_v, l_tau) = np.split(da, 3, axis=1), np.split(dl, 3, axis=1)
    l_q = to_user_axes_by_q(scan, contacts, s, forces, l_q)
    l_v, l_tau = ct.to_user_axes(contacts, s, l_v), ct.to_user_axes(contacts, s, l_tau)
    margins = steady(scan, contacts, s, q, K, least(margins, also))
    return ConstrainedPartials(a_q, a_v, a_tau, l_q, l_v, l_tau, margins, K.margins)


def impulse_dynamics_derivatives(
    scan: Scan,
    q: Array,
    v: Array,
    restitution: Sequence[Scalar],
    *,
    contacts: ContactSet,
    settings: Sequence[Scalar] | None = None,
) -> ImpulsePartials:
    """The solution of (2) for M dv = J^T Lambda and J (v + dv) + mu Lambda = -e J v, restitution e (1,).

    The force balance is that of inverse dynamics at rest, without gravity, with a = dv; and J (v + dv + e v) changes
    with q as the twist xi of that velocity does.
    """
    contacts = contacts.with_settings(settings)
    speed = 1.0 + restitution[0]
    s = scene(scan, contacts, q, v)
    J = ct.jacobian(scan, contacts, s)
    K = ct.system(scan, contacts, q, J)
    xi = scan.vector([rows_of(c, t.xi) for c, t in zip(contacts.each, s.touches, strict=True)])
    jump, impulses, margins = ct.hold(K, np.zeros_like(K.Y[:, 0]), -xi * speed)
    jump_tree = _of_tree(scan, jump)
    on_bodies = ct.external_forces(scan, contacts, s, impulses, None)
    by_q, _, _ = inverse_dynamics_derivatives(_weightless(scan), q, np.zeros_like(jump_tree), jump_tree, on_bodies)
    E_q = _square(scan, by_q + reaction_by_q(scan, contacts, s, impulses))
    s = scene(scan, contacts, q, v * speed + jump_tree)
    table = scan.each(dof_motions, s.bodies)
    K_q = ct.matrix(scan, contacts, s, lambda c, t, node, k: t.F1.motion_inverse(xi_by_q(t, table[node.index][k])))
    f = np.concatenate([-E_q, np.zeros_like(E_q)], axis=1)
    dv, dl, also = ct.hold(K, f, -np.concatenate([K_q, J * speed], axis=1))
    (v_q, v_v), (l_q, l_v) = np.split(dv, 2, axis=1), np.split(dl, 2, axis=1)
    l_q, l_v = to_user_axes_by_q(scan, contacts, s, impulses, l_q), ct.to_user_axes(contacts, s, l_v)
    margins = steady(scan, contacts, s, q, K, least(margins, also))
    return ImpulsePartials(v_q, v_v, l_q, l_v, margins, K.margins)


def least(margins: Array, others: Array) -> Array:
    """The smaller margins; symbols have the same of values and derivatives."""
    return margins if margins.dtype == object else np.where(margins < others, margins, others)


def steady(scan: Scan, contacts: ContactSet, s: Scene, q: Array, K: System, margins: Array) -> Array:
    """The margins, but zero where forces that do nothing here do something nearby; see `redundant`."""
    n = redundant.idle(K.whole, K.contact_margins)
    some = ct.redundant_lanes(K)
    if n is None or some is None:
        return margins
    n[..., some] = ct.refined(K, 0.0 * K.Y[:, 0], 0.0 * n, n, some)[0]  # without forces that do something
    rest = np.zeros((scan.nv, *scan.lanes), margins.dtype)
    pulls = ct.external_forces(scan, contacts, s, n, None)
    change, _, _ = inverse_dynamics_derivatives(_weightless(scan), q, rest, rest, pulls)
    columns = _square(scan, change + reaction_by_q(scan, contacts, s, n))
    free, _, _ = ct.hold(K, columns, np.zeros((len(n), *columns.shape[1:]), columns.dtype))
    unit = np.abs(ltl.solve_outward(K.M, K.Y.copy())).max((0, 1))  # accelerations by forces of one
    return np.where(np.abs(free).max((0, 1)) <= STEADY * unit, margins, 0.0)


# Products


def constrained_dynamics_vjp(
    scan: Scan, q: Array, v: Array, tau: Array, w_a: Array, w_forces: Array, fext: Sequence | None = None, **held: Any
) -> tuple[Array, ...]:
    """w_a^T da + w_forces^T dforces by q, v and tau, (nv,) each; and the margins."""
    D = constrained_dynamics_derivatives(scan, q, v, tau, fext, **held)
    by = (_left(w_a, a) + _left(w_forces, l) for a, l in zip(D[:3], D[3:6], strict=True))
    return *by, D.contact_margins, D.margins


def constrained_dynamics_jvp(
    scan: Scan,
    q: Array,
    v: Array,
    tau: Array,
    dq: Array,
    dv: Array,
    dtau: Array,
    fext: Sequence | None = None,
    **held: Any,
) -> tuple[Array, ...]:
    """da (nv,) and dforces (rows,) along (dq, dv, dtau); and the margins."""
    D = constrained_dynamics_derivatives(scan, q, v, tau, fext, **held)
    da, dl = (_right(x[0], dq) + _right(x[1], dv) + _right(x[2], dtau) for x in (D[:3], D[3:6]))
    return da, dl, D.contact_margins, D.margins


def impulse_dynamics_vjp(
    scan: Scan, q: Array, v: Array, restitution: Sequence[Scalar], w_v: Array, w_impulses: Array, **held: Any
) -> tuple[Array, ...]:
    """w_v^T djump + w_impulses^T dimpulses by q and v, (nv,) each; and the margins."""
    D = impulse_dynamics_derivatives(scan, q, v, restitution, **held)
    by = (_left(w_v, a) + _left(w_impulses, l) for a, l in zip(D[:2], D[2:4], strict=True))
    return *by, D.contact_margins, D.margins


def impulse_dynamics_jvp(
    scan: Scan, q: Array, v: Array, restitution: Sequence[Scalar], dq: Array, dv: Array, **held: Any
) -> tuple[Array, ...]:
    """The changes of the jump (nv,) and of impulses (rows,) along (dq, dv); and the margins."""
    D = impulse_dynamics_derivatives(scan, q, v, restitution, **held)
    djump, dl = (_right(x[0], dq) + _right(x[1], dv) for x in (D[:2], D[2:4]))
    return djump, dl, D.contact_margins, D.margins


def _left(w: Array, A: Array) -> Array:
    """w^T A."""
    return (w[:, None] * A).sum(0)


def _right(A: Array, d: Array) -> Array:
    """A d."""
    return (A * d[None]).sum(1)


def _weightless(scan: Scan) -> Scan:
    """A scan of the same tree without gravity."""
    light = copy.copy(scan)
    light.tree = scan.tree.weightless()
    return light


def _of_tree(scan: Scan, x: Array) -> Array:
    """Rates of the independent joints as rates of the tree's dofs."""
    return x if scan.tree.coupling is None else np.tensordot(scan.tree.coupling.G, x, 1)


def _square(scan: Scan, x: Array) -> Array:
    """A matrix by the tree's dofs, reduced to the independent ones."""
    return x if scan.tree.coupling is None else reduce_matrix(scan.tree.coupling.G, x)


def _identity(A: Array) -> Array:
    """The identity of A's shape."""
    identity = np.zeros_like(A)
    for i in range(len(A)):
        identity[i, i] = identity[i, i] + 1.0
    return identity
