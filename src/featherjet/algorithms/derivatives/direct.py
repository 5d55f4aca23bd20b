"""Derivatives of forward dynamics directly by articulated bodies: neither M^-1 nor dtau/dq is formed.

Column j of dtau/dq is a set of forces linear in two motions x and y: on every body k of the subtree of j's joint J
    w_k = 2B_k x + I_k y,      x = Psid_j, y = Psidd_j                      ([IDSVA] eq. 30)
and, felt by J's ancestors only, g = fC_J xbar* S_j. For dtau/dv: x = S_j, y = Sd_j + Psid_j, g = 0 (eq. 32).
-M^-1 times the column is the response of the robot at rest to these forces. Eliminating degrees of freedom from the
leaves inward, the forces of a whole subtree reduce to PA x + IA y, where IA is the articulated inertia and PA an
articulated Coriolis matrix, which obeys the same recursion from the seeds 2B:
    U = IA S, d = S^T U + armature, R = S^T PA:    IA <- IA - U U^T / d,   PA <- PA - U R^T / d
So a column needs no inward pass over its subtree. It starts at J with what J hands on, PA x + IA y + g; goes up to the
root as in the articulated-body algorithm; and comes back outward: r = u - U^T a / d with the u found on the way, and
in J's subtree, with a shifted by y, r = -(R x + U^T a) / d. The r are the column of da/dq (or da/dv); a unit torque at
j instead of the forces gives the column of M^-1. docs/direct.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import ArticulatedInertia, Coriolis, Force, Motion
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.tree import Node
from ..dynamics.aba import NO_FORCE, Articulated, Pivot, Response, articulated, inertia, margins, respond, subspace
from ..dynamics.rnea import force
from ..motion import REST, Moving, moving, net_force
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class ArticulatedCoriolis:
    """The angular half of a 6x6 [[A, 0], [B, 0]] from motions to forces; the other half vanishes."""

    A: Mat3
    B: Mat3

    def __add__(self, other: ArticulatedCoriolis) -> ArticulatedCoriolis:
        return ArticulatedCoriolis(self.A + other.A, self.B + other.B)

    def __matmul__(self, x: Vec3) -> Force:
        return Force(self.A @ x, self.B @ x)

    def transposed_times(self, m: Motion) -> Vec3:
        return self.A.transposed_times(m.ang) + self.B.transposed_times(m.lin)

    def plus_outer(self, f: Force, x: Vec3) -> ArticulatedCoriolis:
        """self + f x^T."""
        A = Mat3(self.A.x + x.x * f.ang, self.A.y + x.y * f.ang, self.A.z + x.z * f.ang)
        B = Mat3(self.B.x + x.x * f.lin, self.B.y + x.y * f.lin, self.B.z + x.z * f.lin)
        return ArticulatedCoriolis(A, B)

    @staticmethod
    def of(B: Coriolis) -> ArticulatedCoriolis:
        p = -2.0 * B.p
        zero = 0.0 * p.x
        px = Mat3(Vec3(zero, p.z, -p.y), Vec3(-p.z, zero, p.x), Vec3(p.y, -p.x, zero))
        return ArticulatedCoriolis(B.U, px)


@dataclass(slots=True, eq=False)
class Subtree:
    """Of a subtree: its Coriolis matrix when its joints are free, and its whole force fC."""

    PA: ArticulatedCoriolis
    f: Force

    def __add__(self, other: Subtree) -> Subtree:
        return Subtree(self.PA + other.PA, self.f + other.f)


@dataclass(slots=True, eq=False)
class Eliminated:
    """A degree of freedom's pivot, and Q = -R / d."""

    S: Motion
    K: Force
    dinv: Scalar
    Q: Vec3


@dataclass(slots=True, eq=False)
class Joint:
    """All that columns need of a joint: its dofs, and what its parent feels of its subtree."""

    dofs: list[Eliminated]
    columns: list[Column]
    IA: ArticulatedInertia
    PA: ArticulatedCoriolis
    f: Force


@dataclass(slots=True, eq=False)
class Column:
    """What happens at one degree of freedom: x (its angular half) and y, for the derivatives by q and by v."""

    S: Motion
    xq: Vec3
    yq: Motion
    yv: Motion

    @property
    def xv(self) -> Vec3:
        return self.S.ang


def forward_dynamics_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """da/dq, da/dv and da/dtau = M^-1; returns them and the margins of M."""
    fext = fext if fext is not None else scan.constant(None)
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.no_rates())
    bias = scan.each(force, bodies, fext)
    inertias, S = scan.each(inertia, bodies), scan.each(subspace, bodies)
    free = articulated(scan, inertias, S)
    margin = margins(scan, free, inertias, S)
    bodies = scan.each(accelerated, bodies, respond(scan, free, bias, scan.rates(tau)))
    joints = scan.inward(eliminate, scan.each(seed, bodies, fext), free, scan.each(columns, bodies))
    by = scan.responses(start, through, outward, joints, scan.each(lambda node, j: j.columns, joints))
    return ForwardDynamicsDerivatives(*by), margin


def accelerated(node: Node, body: Moving, r: Response) -> Moving:
    """The body with its joints' accelerations added to those it has from velocity and gravity."""
    return Moving(body.X, body.S, body.v, body.a + r.a, body.v_parent, body.a_parent + r.a_parent)


def seed(node: Node, body: Moving, fext) -> Subtree:
    I = node.body.placed(body.X)
    B = Coriolis.of(I, body.v, I @ body.v)
    return Subtree(ArticulatedCoriolis.of(B), net_force(node, body, I, fext))


def columns(node: Node, body: Moving) -> list[Column]:
    """[IDSVA] eqs. 31 and 32."""
    out = []
    for S in body.S:
        Psid = body.v_parent.cross(S)
        Psidd = body.a_parent.cross(S) + body.v_parent.cross(Psid)
        out.append(Column(S, Psid.ang, Psidd, body.v.cross(S) + Psid))
    return out


def eliminate(node: Node, sub: Subtree, free: Articulated, cols: list[Column]) -> tuple[Subtree, Joint]:
    """R and PA along the pivots of IA, last dof first."""
    PA, dofs = sub.PA, []
    for pivot in reversed(free.pivots):
        R = PA.transposed_times(pivot.S)
        PA = PA.plus_outer(pivot.K, R)
        dofs.append(Eliminated(pivot.S, pivot.K, pivot.dinv, -pivot.dinv * R))
    return Subtree(PA, sub.f), Joint(dofs[::-1], cols, free.IA, PA, sub.f)


def start(node: Node, j: int, joint: Joint) -> tuple:
    """What the joint hands to its parent: for columns by q, by v, and for a unit torque at its dof j."""
    c = joint.columns[j]
    pq = joint.PA @ c.xq + joint.IA @ c.yq + joint.f.cross_bar(c.S)
    pv = joint.PA @ c.xv + joint.IA @ c.yv
    pt, left = torque(joint.dofs, j)
    return (pq, pv, pt), [(0.0, 0.0, u) for u in left]


def torque(dofs: Sequence, j: int) -> tuple[Force, list[Scalar]]:
    """What a unit torque at a joint's dof j leaves at its dofs, and the force handed to the parent."""
    p, left = NO_FORCE, []
    for k in reversed(range(len(dofs))):
        dof = dofs[k]
        felt = dof.S.dot(p)
        left.append(0.0 if k > j else dof.dinv if k == j else -dof.dinv * felt)
        p = p if k > j else -1.0 * dof.K if k == j else p + felt * dof.K
    return p, left[::-1]


def up(node: Node, handed: tuple, dofs: Sequence) -> tuple:
    """Through an ancestor: u = -S^T p / d for each dof, and p + U u = p + K S^T p goes on."""
    left = []
    for dof in reversed(dofs):
        felt = tuple(dof.S.dot(p) for p in handed)
        handed = tuple(p + x * dof.K for p, x in zip(handed, felt, strict=True))
        left.append(tuple(-dof.dinv * x for x in felt))
    return handed, left[::-1]


def through(node: Node, handed: tuple, joint: Joint) -> tuple:
    return up(node, handed, joint.dofs)


def outward(
    node: Node, parent: tuple | None, joint: Joint, left: Sequence | None, below: Column | None, here: Column | None
) -> tuple:
    """r = u + Q^T x + K^T a, where x counts in J's subtree only, and a is shifted by y from J on."""
    state = parent or (REST, REST, REST)
    if here:
        state = state[0] + here.yq, state[1] + here.yv, state[2]
    xs = (below.xq, below.xv, None) if below else (None, None, None)
    rates = []
    for k, dof in enumerate(joint.dofs):
        us = left[k] if left else (None, None, None)
        rs = tuple(response(dof, a, u, x) for a, u, x in zip(state, us, xs, strict=True))
        state = tuple(a + r * dof.S for a, r in zip(state, rs, strict=True))
        rates.append(rs)
    return state, rates


def response(dof: Eliminated | Pivot, a: Motion, u: Scalar | None, x: Vec3 | None = None) -> Scalar:
    """How a dof answers to the acceleration a of what it stands on."""
    r = dof.K.dot(a)
    if x is not None:
        r = r + dof.Q.dot(x)  # type: ignore[union-attr]
    return r if u is None else u + r
