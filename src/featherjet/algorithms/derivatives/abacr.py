"""Derivatives of forward dynamics by the chain rule on the articulated-body algorithm; ABACR of [IDSVA] Table II.

Every line of ABA ([RBDA] table 7.1, in body coordinates) is differentiated by q, v and tau and carries sets of
partials: velocities by the joints above, articulated inertias by the joints beyond, bias forces by both, accelerations
by all. O(Nd) for the first two passes, with a symmetric 6x6 matrix for each pair of a body and a joint beyond it;
O(N^2) for the last. Neither M nor inverse dynamics appears, which [IDSVA] Sec. V-A found to cost no digits. Degrees of
freedom are eliminated one by one, as in `aba`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import ArticulatedInertia, Force, Motion
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..dynamics import aba
from ..motion import external
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan
from .partials import IDENTITY, Entries, Local, Partials, Sets, local, own

NOTHING: Partials = Partials()


@dataclass(slots=True, eq=False)
class Drift:
    """A body's velocity partials, its bias acceleration c = v x vJ, and the partials of that; by q and by v."""

    v: Sets[Motion]
    c: Motion
    dc: Sets[Motion]


@dataclass(slots=True, eq=False)
class VariedSubtree(Additive):
    """The force f = IA a + p that a subtree exerts on its parent; partials of IA by q, of p by q, v and tau."""

    IA: ArticulatedInertia
    p: Force
    dIA: Partials[ArticulatedInertia]
    dp: Sets[Force]


@dataclass(slots=True, eq=False)
class VariedPivot:
    """An eliminated dof: U = IA S, d = S^T U + armature, g = (tau - S^T p) / d, and their partials."""

    S: Motion
    U: Force
    dinv: Scalar
    g: Scalar
    dU: Partials[Force]
    ddinv: Partials[Scalar]
    dg: Sets[Scalar]


@dataclass(slots=True, eq=False)
class VariedAcceleration:
    """A body's acceleration, its partials, and those of the rates of its joint's dofs."""

    a: Motion
    by: Sets[Motion]
    rates: list[Sets[Scalar]]


def forward_dynamics_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """(da/dq, da/dv, da/dtau) and the margins of M."""
    fext = fext if fext is not None else scan.constant(None)
    bodies = scan.outward(local(scan), scan.coordinates(q), scan.rates(v), scan.no_rates())
    drifts = scan.outward(drift, bodies)
    pivots = scan.inward(eliminate, scan.each(bias, bodies, drifts, fext), bodies, drifts, scan.rates(tau))
    found = scan.outward(accelerate, bodies, drifts, pivots)
    by = scan.entries(scan.each(entries, found))
    return ForwardDynamicsDerivatives(*by), aba.forward_dynamics(scan, q, v, tau).margins


def drift(node: Node, parent: Drift | None, body: Local) -> Drift:
    """First pass: dv = X dv_parent, and for the joint's own dofs (X v_parent) x S by q, S by v."""
    above = parent.v.map(body.X.motion_inverse) if parent else Sets((NOTHING, NOTHING))
    v = above + Sets((own(node, [body.v_parent.cross(s) for s in body.S]), own(node, body.S)))
    c_q, c_v = v.map(lambda x: x.cross(body.vJ))
    return Drift(v, body.v.cross(body.vJ), Sets((c_q, c_v + own(node, [body.v.cross(s) for s in body.S]))))


def bias(node: Node, body: Local, drift: Drift, fext) -> VariedSubtree:
    """IA = I and p = v x* I v - fext, with dp = dv x* h + v x* I dv."""
    I, v = node.body.placed(IDENTITY), body.v
    h = I @ v
    p, outside = v.cross_force(h), external(node, IDENTITY, fext)
    p_q, p_v = drift.v.map(lambda x: x.cross_force(h) + v.cross_force(I @ x))
    return VariedSubtree(ArticulatedInertia.of(I), p - outside if outside else p, NOTHING, Sets((p_q, p_v, NOTHING)))


def eliminate(node: Node, at: VariedSubtree, body: Local, drift: Drift, tau) -> tuple[VariedSubtree, list[VariedPivot]]:
    """Second pass: the joint's dofs, last first; then the drift, and the change of frame."""
    pivots = []
    for k in reversed(range(len(body.S))):
        pivot = pivoted(node.v.start + k, at, body.S[k], node.armature[k], tau[k])
        at = without(at, pivot)
        pivots.append(pivot)
    c_q, c_v = drift.dc.map(lambda x: at.IA @ x)
    p = at.p + at.IA @ drift.c
    by_q = at.dp[0] + c_q + at.dIA.map(lambda dIA: dIA @ drift.c)
    by_v, by_tau = at.dp[1] + c_v, at.dp[2]
    if node.is_root:
        return at, pivots[::-1]
    X, up = body.X, body.X.force
    dIA = at.dIA + own(node, [at.IA.carried(s) for s in body.S])
    by_q = by_q + own(node, [s.cross_force(p) for s in body.S])
    dp = Sets((by_q, by_v, by_tau)).map(up)
    return VariedSubtree(at.IA.placed(X), up(p), dIA.map(lambda x: x.placed(X)), dp), pivots[::-1]


def pivoted(i: int, at: VariedSubtree, S: Motion, armature: Scalar, tau: Scalar) -> VariedPivot:
    """U, d and g of dof i, differentiated."""
    U = at.IA @ S
    dinv = 1.0 / (S.dot(U) + armature)
    u = tau - S.dot(at.p)
    dU = at.dIA.map(lambda dIA: dIA @ S)
    ddinv = dU.map(lambda x: -(dinv * dinv) * S.dot(x))
    dg = at.dp.map(lambda x: -dinv * S.dot(x))
    dg = dg + Sets((ddinv.map(lambda x: x * u), NOTHING, Partials({i: dinv})))
    return VariedPivot(S, U, dinv, dinv * u, dU, ddinv, dg)


def without(at: VariedSubtree, x: VariedPivot) -> VariedSubtree:
    """IA - U U^T / d and p + U g, differentiated."""
    dIA = Partials({k: dIA.minus_pair(x.dinv * x.dU[k] + (0.5 * x.ddinv[k]) * x.U, x.U) for k, dIA in at.dIA.items()})
    dp = at.dp + x.dg.map(lambda y: y * x.U)
    dp = dp + Sets((x.dU.map(lambda dU: x.g * dU), NOTHING, NOTHING))
    return VariedSubtree(at.IA.minus_outer(x.U, x.dinv * x.U), at.p + x.g * x.U, dIA, dp)


def accelerate(
    node: Node, parent: VariedAcceleration | None, body: Local, drift: Drift, pivots: list[VariedPivot]
) -> VariedAcceleration:
    """Third pass: a' = X a_parent + c, qdd = g - U^T a' / d, a = a' + S qdd, differentiated."""
    to_body = body.X.motion_inverse
    above = to_body(parent.a) if parent else body.a_parent
    a = above + drift.c
    by = parent.by.map(to_body) if parent else Sets((NOTHING, NOTHING, NOTHING))
    by = by + Sets((*drift.dc, NOTHING)) + Sets((own(node, [above.cross(s) for s in body.S]), NOTHING, NOTHING))
    found = []
    for x in pivots:
        load = x.U.dot(a)
        rates = x.dg + by.map(lambda y, x=x: -x.dinv * x.U.dot(y))
        changed = Partials({k: -(x.ddinv[k] * load + x.dinv * x.dU[k].dot(a)) for k in x.dU})
        rates = rates + Sets((changed, NOTHING, NOTHING))
        a = a + (x.g - x.dinv * load) * x.S
        by = by + rates.map(lambda y, x=x: y * x.S)
        found.append(rates)
    return VariedAcceleration(a, by, found)


def entries(node: Node, body: VariedAcceleration) -> Entries:
    """The rows of a joint's dofs: their rates by q, v and tau of every dof that they depend on."""
    rows = zip(node.dofs, body.rates, strict=True)
    return {(i, k): tuple(r.get(k, 0.0) for r in rates) for i, rates in rows for k in {k for r in rates for k in r}}
