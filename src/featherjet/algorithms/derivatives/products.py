"""Products with the derivatives of inverse and forward dynamics, without the matrices: a few walks each, O(n).

**From the left**: the gradient of s = w.tau. With the motions V that rates w give to the bodies, s = sum of V.f over
the bodies. Moving along dof j of joint J, with parent p, carries J's subtree along, so that ([IDSVA] eqs. 30-32)

    ds/dq_j = L_j.fC + b.Psid_j + h.Psidd_j      ds/dv_j = b.S_j + h.SPd_j      ds/da_j = h.S_j + armature_j w_j
    L = V_p x S,   fC = sum of f,   h = sum of I V,   b = sum of (2B)^T V,   each over the subtree of J

All of L, Psid, Psidd and SPd are cross products with S, so they move over to the forces, once for all dofs of J:

    ds/dq_j = -S_j.(V_p x* fC + a_p x* h + v_p x* (b - v_p x* h))       ds/dv_j = S_j.(b - (v + v_p) x* h)

By an external force on body k, in its own frame: -V_k.

**From the right**: along (dq, dv, da), seen from the moving bodies, velocities change by x and accelerations by y,

    x = x_p + v_p x (S dq) + S dv        y = y_p + a_p x (S dq) + v_p x (v_p x (S dq)) + (v + v_p) x (S dv) + S da

and forces by 2B x + I y = v x* (I x) + x x* (I v) + I (y - v x x); J's ancestors also feel (S dq) x* fC.

**Forward dynamics** is the inverse of inverse dynamics: w^T da = -l^T dtau with l = M^-1 w, and da = M^-1 (dtau - dID).
The articulated bodies that give a give these too; the V of l are the accelerations of their response to w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...math.fieldwise import Additive
from ...math.spatial import Force, Motion, span
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..dynamics import aba, coupled, ltl, rnea
from ..dynamics.aba import BodyResponse
from ..frames.kinematics import components, joint_frame
from ..motion import NO_FORCE, REST, Moving, external, moving, net_force
from ..scan import Array, Scan
from .direct import accelerate

# From the left


@dataclass(slots=True, eq=False)
class SubtreeSums(Additive):
    """Over a subtree: forces f, momenta h = I V, and b = (2B)^T V, whose linear half is zero."""

    f: Force
    h: Force
    b: Vec3


@dataclass(slots=True, eq=False)
class Gradients:
    """Of a joint's dofs: the derivatives of w.tau by position, velocity and acceleration."""

    by_q: list[Scalar]
    by_v: list[Scalar]
    by_a: list[Scalar]


def inverse_dynamics_vjp(scan: Scan, q: Array, v: Array, a: Array, w: Array) -> tuple[Array, ...]:
    """w^T (dtau/dq, dtau/dv, dtau/da), (nv,) each."""
    return inverse_dynamics_force_vjp(scan, q, v, a, w)[:3]


def inverse_dynamics_force_vjp(
    scan: Scan, q: Array, v: Array, a: Array, w: Array, fext: Sequence | None = None
) -> tuple[Array, ...]:
    """The same under external forces, then w^T dtau/dfext (njoints, 6)."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    swept = scan.outward(sweep, bodies, scan.rates(w))
    return *gradients(scan, bodies, swept, fext), scan.joint_rows(scan.each(by_force, bodies, swept))


def torque_slopes(scan: Scan, q: Array, v: Array, a: Array, weights: Array) -> tuple[Array, ...]:
    """tau and the slopes of half of tau^T diag(weights) tau by q, v, a, (nv,) each."""
    fa = scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), fa)
    tau = scan.inward(rnea.project, scan.each(rnea.force, bodies, scan.constant(None)), bodies, fa)
    w = scan.each(lambda node, tau, by: [x * y for x, y in zip(by, tau, strict=True)], tau, scan.rates(weights))
    return scan.vector(tau), *gradients(scan, bodies, scan.outward(sweep, bodies, w), None)


def sweep(node: Node, parent: BodyResponse | None, body: Moving, w: Sequence[Scalar]) -> BodyResponse:
    """The motion V that rates w give to a body."""
    own = span(body.S, w)
    return BodyResponse(parent.a + own if parent else own, parent.a if parent else REST, list(w))


def gradients(
    scan: Scan, bodies: Sequence[Moving], swept: Sequence[BodyResponse], fext: Sequence | None
) -> tuple[Array, Array, Array]:
    """The derivatives of w.tau by q, v and a, where the bodies are swept with rates w."""
    seeds = scan.each(shares, bodies, swept, fext if fext is not None else scan.constant(None))
    found = scan.inward(gather, seeds, bodies, swept)
    return (
        scan.vector(scan.each(lambda node, g: g.by_q, found)),
        scan.vector(scan.each(lambda node, g: g.by_v, found)),
        scan.vector(scan.each(lambda node, g: g.by_a, found)),
    )


def shares(node: Node, body: Moving, swept: BodyResponse, fext: Sequence[Scalar] | None) -> SubtreeSums:
    """A body's own f, h and b."""
    I, v, V = node.body.placed(body.X), body.v, swept.a
    h = I @ V
    b = v.cross_force(h) - V.cross_force(I @ v) - I @ v.cross(V)  # [IDSVA] eq. 28, transposed
    return SubtreeSums(net_force(node, body, I, fext), h, b.ang)


def gather(node: Node, C: SubtreeSums, body: Moving, swept: BodyResponse) -> tuple[SubtreeSums, Gradients]:
    """The derivatives along a joint's dofs; its parent takes all sums over."""
    return C, along(node, C.f, C.h, Force(C.b, REST.ang), body, swept)


def along(node: Node, f: Force, h: Force, b: Force, body: Moving, swept: BodyResponse) -> Gradients:
    """The forces on a joint's columns that give the derivatives along its dofs."""
    carried = body.v_parent.cross_force(h)
    # the joint's own velocity does not turn a single column
    own = carried if node.kind.nv == 1 else body.v.cross_force(h)
    rate = b - carried
    turn = swept.a_parent.cross_force(f) + body.a_parent.cross_force(h) + body.v_parent.cross_force(rate)
    rate = rate - own
    by_a = [S.dot(h) + arm * w for S, arm, w in zip(body.S, node.armature, swept.rates, strict=True)]
    return Gradients([-(S.dot(turn)) for S in body.S], [S.dot(rate) for S in body.S], by_a)


def by_force(node: Node, body: Moving, swept: BodyResponse) -> tuple:
    """-V in the joint's frame, linear then angular."""
    return components(joint_frame(node, body.X).motion_inverse(-swept.a))


# From the right


@dataclass(slots=True, eq=False)
class Change:
    """A body's changes x of velocity and y of acceleration, seen from the body, and the motion S dq of its joint."""

    x: Motion
    y: Motion
    turn: Motion


@dataclass(slots=True, eq=False)
class ForceChange(Additive):
    """Over a subtree: forces, and their changes as seen from the bodies."""

    f: Force
    df: Force


def inverse_dynamics_jvp(
    scan: Scan,
    q: Array,
    v: Array,
    a: Array,
    dq: Array,
    dv: Array,
    da: Array,
    dfext: Array | None = None,
    fext: Sequence | None = None,
) -> Array:
    """dtau (nv,) along (dq, dv, da) and along a change of the external forces."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    return scan.vector(pushed(scan, bodies, (dq, dv), scan.rates(da), dfext, fext))


def pushed(
    scan: Scan,
    bodies: Sequence[Moving],
    along: tuple[Array, Array],
    da: Sequence,
    dfext: Array | None,
    fext: Sequence | None,
) -> list[list[Scalar]]:
    """For each joint, the changes of its torques."""
    none = scan.constant(None)
    changes = scan.outward(change, bodies, *map(scan.rates, along), da)
    seeds = scan.each(
        changed, bodies, changes, none if fext is None else fext, none if dfext is None else scan.forces(dfext)
    )
    return scan.inward(project, seeds, bodies, changes, da)


def change(node: Node, parent: Change | None, body: Moving, dq, dv, da) -> Change:
    """The outward step: x and y."""
    turn, rate = span(body.S, dq), span(body.S, dv)
    carried = body.v_parent.cross(turn)
    x = carried + rate
    y = body.a_parent.cross(turn) + body.v_parent.cross(carried) + (body.v + body.v_parent).cross(rate)
    y = y + span(body.S, da)
    return Change(parent.x + x, parent.y + y, turn) if parent else Change(x, y, turn)


def changed(node: Node, body: Moving, c: Change, fext, dfext) -> ForceChange:
    """A body's own force and its change."""
    I, v = node.body.placed(body.X), body.v
    df = v.cross_force(I @ c.x) + c.x.cross_force(I @ v) + I @ (c.y - v.cross(c.x))
    outside = external(node, body.X, dfext)
    return ForceChange(net_force(node, body, I, fext), df - outside if outside else df)


def project(node: Node, C: ForceChange, body: Moving, c: Change, da) -> tuple[ForceChange, list[Scalar]]:
    """The change of a joint's torques; its parent also feels its force turned."""
    dtau = [S.dot(C.df) + arm * x for S, arm, x in zip(body.S, node.armature, da, strict=True)]
    return ForceChange(C.f, C.df + c.turn.cross_force(C.f)), dtau


# Forward dynamics


def forward_dynamics_vjp(scan: Scan, q: Array, v: Array, tau: Array, w: Array) -> tuple[Array, ...]:
    """w^T (da/dq, da/dv, da/dtau), (nv,) each, and the margins of M."""
    by_q, by_v, by_tau, _, margins = forward_dynamics_force_vjp(scan, q, v, tau, w)
    return by_q, by_v, by_tau, margins


def forward_dynamics_force_vjp(
    scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None
) -> tuple[Array, ...]:
    """The same under external forces, then w^T da/dfext (njoints, 6) and the margins."""
    at = accelerate(scan, q, v, tau, fext)
    # of -w, so that all signs come out as they are in w^T da = -l^T dtau
    less = scan.each(lambda node, w: [-x for x in w], scan.rates(w))
    swept = aba.respond(scan, at.free, scan.constant(NO_FORCE), less)
    by_q, by_v, _ = gradients(scan, at.bodies, swept, fext)
    by_tau = scan.vector(scan.each(lambda node, r: [-x for x in r.rates], swept))
    return by_q, by_v, by_tau, scan.joint_rows(scan.each(by_force, at.bodies, swept)), at.margins


def forward_dynamics_jvp(
    scan: Scan,
    q: Array,
    v: Array,
    tau: Array,
    dq: Array,
    dv: Array,
    dtau: Array,
    dfext: Array | None = None,
    fext: Sequence | None = None,
) -> tuple[Array, Array]:
    """da (nv,) along (dq, dv, dtau) and along a change of the external forces; and the margins of M."""
    at = accelerate(scan, q, v, tau, fext)
    change = pushed(scan, at.bodies, (dq, dv), scan.no_rates(), dfext, fext)
    left = scan.each(lambda node, t, x: [s - y for s, y in zip(t, x, strict=True)], scan.rates(dtau), change)
    return aba.rates(scan, aba.respond(scan, at.free, scan.constant(NO_FORCE), left)), at.margins


# Forward dynamics with mimicking joints, v_tree = G v (see `coupled`)


def coupled_vjp(scan: Scan, G: Array, q: Array, v: Array, tau: Array, w: Array) -> tuple[Array, ...]:
    """`forward_dynamics_vjp` in the independent coordinates."""
    by_q, by_v, by_tau, _, margins = coupled_force_vjp(scan, G, q, v, tau, w)
    return by_q, by_v, by_tau, margins


def coupled_force_vjp(
    scan: Scan, G: Array, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None
) -> tuple[Array, ...]:
    """`forward_dynamics_force_vjp` in the independent coordinates."""
    a = coupled.forward_dynamics(scan, G, q, v, tau, fext).a
    M, margins = coupled.factor(scan, G, q)
    l = ltl.solve(M, np.broadcast_to(w, a.shape).astype(a.dtype))
    by_q, by_v, _, by_fext = inverse_dynamics_force_vjp(scan, q, v, expanded(G, a), expanded(G, -l), fext)
    return coupled.reduce_vector(G, by_q), coupled.reduce_vector(G, by_v), l, by_fext, margins


def coupled_jvp(
    scan: Scan,
    G: Array,
    q: Array,
    v: Array,
    tau: Array,
    dq: Array,
    dv: Array,
    dtau: Array,
    dfext: Array | None = None,
    fext: Sequence | None = None,
) -> tuple[Array, Array]:
    """`forward_dynamics_jvp` in the independent coordinates."""
    a = coupled.forward_dynamics(scan, G, q, v, tau, fext).a
    M, margins = coupled.factor(scan, G, q)
    change = inverse_dynamics_jvp(scan, q, v, expanded(G, a), dq, dv, scan.zeros(scan.nv), dfext, fext)
    return ltl.solve(M, dtau - coupled.reduce_vector(G, change)), margins


def expanded(G: Array, x: Any) -> Array:
    """The tree's rates G x."""
    return np.tensordot(G, x, 1)
