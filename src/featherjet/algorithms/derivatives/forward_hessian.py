"""The second derivatives of s = w.a, forward dynamics contracted with a vector, by articulated bodies.

With l = M^-1 w, the Hessian H of inverse dynamics contracted with -l, and its block P = H.qa, the chain rule gives

    qq = H.qq + P da/dq + (P da/dq)^T     qv = H.qv + P da/dv     vv = H.vv     qtau = P M^-1

P r is the derivative by q of -l^T M r: with the motions Y that rates r give to the bodies, (P r)_i = L_i.f_i + Y_p.(S_i
x* h), where f_i is the sum of I Y over the subtree of i's joint and p its parent (letters as in `hessian`). The columns
r that `direct` finds need not be multiplied by P: on their way out they know the force that i's joint transmits,
IA Y_p and whatever the column's own forces add. So the entry (P r)_i is read off beside the entry r_i, from the state a
that r_i is computed from:

    (P r)_i = Z_i.a + X_i.x  below the column's joint,   Z_i.a + L_i.p_i  above it,   Z_i.a  beside it
    Z_i = IA L_i + S_i x* h,   X_i = PA^T L_i,   IA and PA as i's parent feels them, p_i the force handed to the parent

less terms in IC, 2BC and fC, all of which are terms of H.qq and H.qv as well and cancel. What remains of H is, with
E_j = S_j.ang x b + D(Psid_j) and G_j = D(S_j), for i strictly above j

    qq: Psid_i.E_j        qv, by q_i and v_j: Psid_i.G_j        qv, by v_i and q_j: S_i.E_j        vv: S_i.G_j

docs/second-order.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...math.spatial import Coriolis, Force, Motion
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..dynamics import aba, coupled, ltl
from ..dynamics.aba import BodyResponse
from ..dynamics.minv import up
from ..motion import NO_FORCE, DofMotion, Moving
from ..results import ForwardDynamicsDerivatives, ForwardDynamicsHessian
from ..scan import Array, Scan
from . import direct, fdsva
from .direct import EliminatedJoint
from .hessian import Swept, inverse_dynamics_hessian


@dataclass(slots=True, eq=False)
class Reading:
    """The vectors with which an entry of P r is read off."""

    L: Motion
    Z: Force
    X: Vec3


@dataclass(slots=True, eq=False)
class SweptJoint(EliminatedJoint):
    """All that columns need of a joint: what `direct` needs, and the readings of its dofs."""

    readings: list[Reading]


@dataclass(slots=True, eq=False)
class RestTerms(DofMotion):
    """What is left of a degree of freedom's terms in the pair pass."""

    E: Vec3
    G: Vec3
    L: Motion
    turned: Force  # S x* fC
    swept: Force  # S x* h


def forward_dynamics_hessian(
    scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None
) -> tuple[ForwardDynamicsHessian, Array]:
    """qq, qv, vv, qtau of w.a, (nv, nv) each, and the margins of M."""
    hessian, _, margins = by_columns(scan, (q, v, tau, w), fext, first=False)
    return hessian, margins


def forward_dynamics_second_order(
    scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None
) -> tuple[ForwardDynamicsHessian, ForwardDynamicsDerivatives, Array]:
    """The same with the first derivatives of a, which cost nothing more."""
    hessian, first, margins = by_columns(scan, (q, v, tau, w), fext, first=True)
    return hessian, ForwardDynamicsDerivatives(*first), margins


def by_columns(
    scan: Scan, given: tuple[Array, Array, Array, Array], fext: Sequence | None, first: bool
) -> tuple[ForwardDynamicsHessian, Sequence[Array], Array]:
    """The Hessian, the first derivatives if they are asked for, and the margins of M."""
    q, v, tau, w = given
    at = direct.accelerate(scan, q, v, tau, fext)
    less = scan.each(lambda node, w: [-x for x in w], scan.rates(w))
    swept = aba.respond(scan, at.free, scan.constant(NO_FORCE), less)
    sweeps = scan.inward(lambda node, C: (C, C), scan.each(sweep, at.bodies, swept))
    joints = scan.each(extended, direct.eliminated(scan, at, fext), sweeps, swept)
    qq, qv, vv = scan.pairs(within, across, scan.each(rest, joints, sweeps), own=own)
    motions = scan.each(lambda node, j: j.motions, joints)
    *by, z_q, z_v, z_tau = scan.responses(start, through, outward(first), joints, motions)
    return ForwardDynamicsHessian(scan.added(qq, z_q, transposed=True), scan.added(qv, z_v), vv, z_tau), by, at.margins


def sweep(node: Node, body: Moving, swept: BodyResponse) -> Swept:
    """A body's own share."""
    I = node.body.placed(body.X)
    return Swept.of(I, Coriolis.of(I, body.v, I @ body.v), swept.a)


def extended(node: Node, joint: EliminatedJoint, C: Swept, swept: BodyResponse) -> SweptJoint:
    """The joint with the readings of its dofs."""
    readings = []
    for d in joint.dofs:
        L = swept.a_parent.cross(d.S)
        readings.append(Reading(L, joint.IA @ L + C.h.cross_bar(d.S), joint.PA.transposed_times(L)))
    return SweptJoint(joint.dofs, joint.motions, joint.IA, joint.PA, joint.f, readings)


def rest(node: Node, joint: SweptJoint, C: Swept) -> list[RestTerms]:
    """The terms of a joint's dofs."""
    found = []
    for d, m in zip(joint.readings, joint.motions, strict=True):
        E = m.S.ang.cross(C.b) + C.D(m.Psid)
        turned, swept = joint.f.cross_bar(m.S), C.h.cross_bar(m.S)
        found.append(RestTerms(m.S, m.Psid, m.Psidd, m.SPd, E, C.D(m.S), d.L, turned, swept))
    return found


# Pairs


def within(i: RestTerms, k: RestTerms) -> tuple:
    """Entries [k, i] of qq, qv and vv, k strictly below i's joint."""
    return i.Psid.ang.dot(k.E), i.S.ang.dot(k.E), i.S.ang.dot(k.G)


def across(i: RestTerms, k: RestTerms) -> tuple:
    """Entries [i, k], k strictly below i's joint."""
    return i.Psid.ang.dot(k.E), i.Psid.ang.dot(k.G), i.S.ang.dot(k.G)


def own(i: RestTerms, k: RestTerms) -> tuple:
    """Entries [k, i], i and k of one joint."""
    return (
        i.Psid.ang.dot(k.E) + i.L.dot(k.turned) - k.Psidd.dot(i.swept),
        k.Psid.ang.dot(i.G) - i.SPd.dot(k.swept),
        0.5 * (i.S.ang.dot(k.G) + k.S.ang.dot(i.G)),
    )


# Columns: the steps of `direct`, with L.p left on the way up and P r read off on the way out


def start(node: Node, j: int, joint: SweptJoint) -> tuple:
    handed, left = direct.start(node, j, joint)
    pt = handed[2]
    return handed, [(*us, 0.0, 0.0, d.L.dot(pt)) for us, d in zip(left, joint.readings, strict=True)]


def through(node: Node, handed: tuple, joint: SweptJoint) -> tuple:
    handed, left = up(node, handed, joint.dofs)
    return handed, [(*us, *(d.L.dot(p) for p in handed)) for us, d in zip(left, joint.readings, strict=True)]


def outward(first: bool) -> Callable[..., tuple]:
    """The outward step; entries begin with those of the first derivatives if they are asked for."""

    def step(
        node: Node,
        parent: tuple | None,
        joint: SweptJoint,
        left: Sequence | None,
        below: DofMotion | None,
        here: DofMotion | None,
    ) -> tuple:
        begin = direct.entering(parent, here)
        rates = None if left is None else [us[:3] for us in left]
        state, found = direct.outward(node, parent, joint, rates, below, here)
        entries = []
        for k, (d, rs) in enumerate(zip(joint.readings, found, strict=True)):
            loads = (below.Psid.ang.dot(d.X), below.S.ang.dot(d.X), 0.0) if below else (0.0, 0.0, 0.0)
            zs = tuple(d.Z.dot(a) + load for a, load in zip(begin, loads, strict=True))
            if left is not None:
                zs = tuple(z + x for z, x in zip(zs, left[k][3:], strict=True))
            entries.append((*rs, *zs) if first else zs)
        return state, entries

    return step


# By products of matrices: on NumPy, for small robots, and with mimicking joints


def by_products(first_derivatives: Callable[..., Any]) -> Callable[..., tuple]:
    """The Hessian and the first derivatives, which a function gives; P is multiplied by them."""

    def second_order(scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None):
        first, margins = first_derivatives(scan, q, v, tau, fext)
        a, l = aba.forward_dynamics(scan, q, v, tau, fext).a, scan.product(first.da_dtau, w[:, None])[:, 0]
        H = inverse_dynamics_hessian(scan, q, v, a, -l, fext)
        return chained(scan, H, first), first, margins

    return second_order


def chained(scan: Scan, H: Any, first: ForwardDynamicsDerivatives) -> ForwardDynamicsHessian:
    """The chain rule: from the Hessian of inverse dynamics, contracted with -M^-1 w, and the derivatives of a."""
    by_q, by_v, by_tau = (scan.product(H.qa, x) for x in first)
    return ForwardDynamicsHessian(H.qq + by_q + np.swapaxes(by_q, 0, 1), H.qv + by_v, H.vv, by_tau)


on_numpy = by_products(fdsva.auto)


def hessian_alone(second_order: Callable[..., tuple]) -> Callable[..., tuple]:
    """Without the first derivatives."""

    def hessian(*given: Any, **options: Any) -> tuple:
        found, _, margins = second_order(*given, **options)
        return found, margins

    return hessian


def auto(scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None):
    """By products of matrices, whether joints mimic or not."""
    if scan.tree.coupling is not None:
        return reduced(scan, scan.tree.coupling.G, q, v, tau, w, fext)
    return on_numpy(scan, q, v, tau, w, fext)


def reduced(scan: Scan, G: Array, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None):
    """The Hessian and the first derivatives in the independent coordinates of mimicking joints, v_tree = G v."""
    first, margins = fdsva.reduced(scan, G, q, v, tau, fext)
    a = coupled.forward_dynamics(scan, G, q, v, tau, fext).a
    l = ltl.solve(coupled.factor(scan, G, q)[0], np.broadcast_to(w, a.shape).astype(a.dtype))
    H = inverse_dynamics_hessian(scan, q, v, np.tensordot(G, a, 1), np.tensordot(G, -l, 1), fext)
    return chained(scan, H._make(coupled.reduce_matrix(G, x) for x in H), first), first, margins
