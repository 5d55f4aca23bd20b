"""Derivatives of forward dynamics directly by articulated bodies: neither M^-1 nor dtau/dq is formed.

Column j of dtau/dq is a set of forces linear in two motions x and y. On every body k of the subtree of j's joint J
    w_k = 2B_k x + I_k y,      x = Psid_j, y = Psidd_j                      ([IDSVA] eq. 30)
and, on J's ancestors only, g = fC_J xbar* S_j. For dtau/dv: x = S_j, y = Sd_j + Psid_j, g = 0 (eq. 32).
-M^-1 times the column is the response of the robot at rest to these forces. Eliminating degrees of freedom from the
leaves inward reduces the forces of a whole subtree to PA x + IA y, where IA is the articulated inertia and PA an
articulated Coriolis matrix, which obeys the same recursion from the seeds 2B:
    U = IA S, d = S^T U + armature, R = PA^T S:    IA <- IA - U U^T / d,   PA <- PA - U R^T / d
So a column needs no inward pass over its subtree: what J hands on is h = PA x + IA y + g. And since M^-1 is symmetric,
row k of da/dq, da/dv and da/dtau = M^-1 follows from one response, that to a unit torque at k: -h^T a with the
acceleration a of J's parent; and where k is in J's subtree, p^T (Omega h - y) + phi^T x, with p and phi handed up from
k to J, and the compliance Omega of J's parent. docs/direct.md has the proof.

Hessians, which differentiate once more, go by columns: h up to the root as in the articulated-body algorithm, and back
outward, r = u - U^T a / d with the u found on the way, and in J's subtree, with a shifted by y,
r = -(R^T x + U^T a) / d.

Letters: docs/direct.md proves in U and R; the code divides once and computes in K and Q.
    IA, PA   articulated inertia, and articulated Coriolis matrix (its angular half)
    U, R     IA S and PA^T S, for a dof that is being eliminated
    d        S^T U + armature, its pivot
    K, Q     -U / d and -R / d: r = u + K^T a + Q^T x; p <- p + K S^T p, phi <- phi - Q S^T p
    Omega    a body's compliance: handed p, it accelerates by -Omega p
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...math.fieldwise import Additive
from ...math.spatial import ArticulatedInertia, Coriolis, Force, Motion
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.tree import Node
from ..dynamics import torques
from ..dynamics.aba import Articulated, BodyResponse, articulated, inertia, margins, respond, subspace
from ..dynamics.minv import response, unit_torque, up
from ..dynamics.rnea import force
from ..dynamics.torques import Compliant, Handed, TorqueDof, comply
from ..motion import NO_FORCE, REST, DofMotion, Moving, dof_motions, moving, net_force
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class ArticulatedCoriolis(Additive):
    """PA, a 6x6 matrix [[ang, 0], [lin, 0]] from motions to forces, by its angular half; the other half is zero."""

    ang: Mat3
    lin: Mat3

    def __matmul__(self, x: Vec3) -> Force:
        return Force(self.ang @ x, self.lin @ x)

    def transposed_times(self, m: Motion) -> Vec3:
        """The angular half of PA^T m; the linear half is zero."""
        return self.ang.transposed_times(m.ang) + self.lin.transposed_times(m.lin)

    def plus_outer(self, f: Force, x: Vec3) -> ArticulatedCoriolis:
        """self + f x^T."""
        ang = Mat3(self.ang.x + x.x * f.ang, self.ang.y + x.y * f.ang, self.ang.z + x.z * f.ang)
        lin = Mat3(self.lin.x + x.x * f.lin, self.lin.y + x.y * f.lin, self.lin.z + x.z * f.lin)
        return ArticulatedCoriolis(ang, lin)

    @staticmethod
    def of(B2: Coriolis) -> ArticulatedCoriolis:
        """PA of a rigid body: 2B."""
        return ArticulatedCoriolis(B2.A, Mat3.skew(-2.0 * B2.p))


@dataclass(slots=True, eq=False)
class ArticulatedForces(Additive):
    """Of a subtree: PA, with its joints free, and its whole force fC."""

    PA: ArticulatedCoriolis
    f: Force


@dataclass(slots=True, eq=False)
class CoriolisPivot:
    """An eliminated degree of freedom: K = -U / d, 1 / d, and Q = -R / d."""

    S: Motion
    K: Force
    dinv: Scalar
    Q: Vec3


@dataclass(slots=True, eq=False)
class EliminatedJoint:
    """All that columns need of a joint: its dofs, and what its parent feels of its subtree."""

    dofs: list[CoriolisPivot]
    motions: list[DofMotion]
    IA: ArticulatedInertia
    PA: ArticulatedCoriolis
    f: Force


@dataclass(slots=True, eq=False)
class CoriolisDof(TorqueDof):
    """All that rows need of a dof j: its pivot with Q = -R / d, and for columns by q and by v

    x       the angular half of x: Psid by q; S by v
    push    -(PA x + IA y + g), the force that moves J's parent
    shift   -(y + a), a the acceleration of J's parent by that force
    """

    Q: Vec3
    xq: Vec3
    push_q: Force
    push_v: Force
    shift_q: Motion
    shift_v: Motion


@dataclass(slots=True, eq=False)
class CoriolisHanded(Handed):
    """And phi: how the subtree of a joint, moved by the torque, reacts to x."""

    phi: Vec3

    def through(self, dof: Any, felt: Scalar) -> CoriolisHanded:
        return CoriolisHanded(self.p + felt * dof.K, self.phi - felt * dof.Q)


@dataclass(slots=True, eq=False)
class Accelerated:
    """Forward dynamics at a state: bodies with their accelerations, articulated joints, and the margins of M."""

    bodies: Sequence[Moving]
    free: Sequence[Articulated]
    margins: Array


def forward_dynamics_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """(da/dq, da/dv, da/dtau = M^-1) and the margins of M."""
    at = accelerate(scan, q, v, tau, fext)
    compliant = scan.outward(comply, at.free)
    dofs = scan.each(coriolis_dofs, eliminated(scan, at, fext), compliant)
    Minv, by_q, by_v = scan.torques(torque, torques.up, above, torques.turn, out, dofs)
    return ForwardDynamicsDerivatives(by_q, by_v, Minv), at.margins


def accelerate(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None) -> Accelerated:
    """The steps of `aba.forward_dynamics`, kept."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.no_rates())
    bias = scan.each(force, bodies, fext if fext is not None else scan.constant(None))
    inertias, S = scan.each(inertia, bodies), scan.each(subspace, bodies)
    free = articulated(scan, inertias, S)
    margin = margins(scan, free, inertias, S)
    return Accelerated(scan.each(accelerated, bodies, respond(scan, free, bias, scan.rates(tau))), free, margin)


def eliminated(scan: Scan, at: Accelerated, fext: Sequence | None) -> Sequence[EliminatedJoint]:
    """Every joint with its articulated Coriolis matrix, from the leaves inward."""
    seeds = scan.each(seed, at.bodies, fext if fext is not None else scan.constant(None))
    return scan.inward(eliminate, seeds, at.free, scan.each(dof_motions, at.bodies))


def accelerated(node: Node, body: Moving, r: BodyResponse) -> Moving:
    """The body with its joints' accelerations added to those due to velocity and gravity."""
    return Moving(body.X, body.S, body.v, body.a + r.a, body.v_parent, body.a_parent + r.a_parent)


def seed(node: Node, body: Moving, fext) -> ArticulatedForces:
    """A body's own share."""
    I = node.body.placed(body.X)
    B2 = Coriolis.of(I, body.v, I @ body.v)
    return ArticulatedForces(ArticulatedCoriolis.of(B2), net_force(node, body, I, fext))


def eliminate(
    node: Node, sub: ArticulatedForces, free: Articulated, motions: list[DofMotion]
) -> tuple[ArticulatedForces, EliminatedJoint]:
    """R and PA along the pivots of IA, last dof first."""
    PA, dofs = sub.PA, []
    for pivot in reversed(free.pivots):
        R = PA.transposed_times(pivot.S)
        PA = PA.plus_outer(pivot.K, R)
        dofs.append(CoriolisPivot(pivot.S, pivot.K, pivot.dinv, -pivot.dinv * R))
    return ArticulatedForces(PA, sub.f), EliminatedJoint(dofs[::-1], motions, free.IA, PA, sub.f)


def start(node: Node, j: int, joint: EliminatedJoint) -> tuple:
    """What the joint hands to its parent: for columns by q, by v, and for a unit torque at its dof j."""
    pt, left = unit_torque(joint.dofs, j)
    return (*pushes(joint, joint.motions[j]), pt), [(0.0, 0.0, u) for u in left]


def pushes(joint: EliminatedJoint, m: DofMotion) -> tuple[Force, Force]:
    """h = PA x + IA y + g of a dof's columns by q and by v."""
    by_q = joint.PA @ m.Psid.ang + joint.IA @ m.Psidd + joint.f.cross_bar(m.S)
    return by_q, joint.PA @ m.S.ang + joint.IA @ m.SPd


def through(node: Node, handed: tuple, joint: EliminatedJoint) -> tuple:
    """Through an ancestor of J."""
    return up(node, handed, joint.dofs)


def outward(
    node: Node,
    parent: tuple | None,
    joint: EliminatedJoint,
    left: Sequence | None,
    below: DofMotion | None,
    here: DofMotion | None,
) -> tuple:
    """r = u + K^T a + Q^T x, where x acts in J's subtree only, and a is shifted by y from J on."""
    state = entering(parent, here)
    rates = []
    for k, dof in enumerate(joint.dofs):
        us = left[k] if left else (None, None, None)
        loads = (dof.Q.dot(below.Psid.ang), dof.Q.dot(below.S.ang), None) if below else (None, None, None)
        rs = tuple(response(dof, a, u, load) for a, u, load in zip(state, us, loads, strict=True))
        state = tuple(a + r * dof.S for a, r in zip(state, rs, strict=True))
        rates.append(rs)
    return state, rates


def entering(parent: tuple | None, here: DofMotion | None) -> tuple:
    """A joint's state before its own dofs move: its parent's, shifted by y at J."""
    state = parent or (REST, REST, REST)
    return (state[0] + here.Psidd, state[1] + here.SPd, state[2]) if here else state


def coriolis_dofs(node: Node, joint: EliminatedJoint, body: Compliant) -> list[CoriolisDof]:
    """What the parent feels of each dof's columns."""
    dofs = []
    for dof, m in zip(joint.dofs, joint.motions, strict=True):
        push_q, push_v = (-1.0 * f for f in pushes(joint, m))
        shift_q, shift_v = (-1.0 * (y + body.parent @ f) for y, f in ((m.Psidd, push_q), (m.SPd, push_v)))
        known = dof.S, dof.K, dof.dinv, body, dof.Q, m.Psid.ang
        dofs.append(CoriolisDof(*known, push_q, push_v, shift_q, shift_v))
    return dofs


def torque(node: Node, k: int, dofs: Sequence[CoriolisDof]) -> tuple:
    """A unit torque at dof k."""
    return torques.unit_torque(CoriolisHanded(NO_FORCE, REST.ang), node, k, dofs)


def above(node: Node, handed: CoriolisHanded, dofs: Sequence[CoriolisDof]) -> list[tuple]:
    """Entries [k, j], k in j's subtree: -(p^T y + phi^T x) and the share of the parent's motion."""
    p, phi = handed.p, handed.phi
    return [(d.shift_q.dot(p) + phi.dot(d.xq), d.shift_v.dot(p) + phi.dot(d.S.ang)) for d in dofs]


def out(node: Node, a: Motion, dofs: Sequence[CoriolisDof]) -> tuple[Motion, list[tuple]]:
    """Entries [k, j] elsewhere: by reciprocity, the push of j's columns along the motion that the torque causes."""
    a_body, entries = torques.out(node, a, dofs)
    return a_body, [(*r, d.push_q.dot(a), d.push_v.dot(a)) for r, d in zip(entries, dofs, strict=True)]
