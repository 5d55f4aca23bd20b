"""Forward dynamics by the articulated-body algorithm ([RBDA] ch. 7), and products with M^-1 (AZA, [IDSVA] eq. 34).

Degrees of freedom are eliminated one at a time, also those of one joint: eliminating a dof with column S from
f = IA (a + S qdd) + p subtracts U U^T / d from IA, with U = IA S and d = S^T U + armature. A joint of n dofs takes n
rank-one steps, and no small matrix has to be inverted. The code keeps K = -U / d, as `direct` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...math.spatial import ArticulatedInertia, Force, Inertia, Motion, Subspace
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import NO_FORCE, REST, Moving, moving, place
from ..scan import Array, Scan
from .rnea import force


@dataclass(slots=True, eq=False)
class Pivot:
    """An eliminated degree of freedom: K = -U / d, so that a parent's acceleration a causes qdd = K^T a."""

    S: Motion
    K: Force
    d: Scalar
    dinv: Scalar


@dataclass(slots=True, eq=False)
class Articulated:
    """A joint with its degrees of freedom eliminated, and the inertia its parent then feels."""

    pivots: list[Pivot]
    IA: ArticulatedInertia


@dataclass(slots=True, eq=False)
class BodyResponse:
    """A body's acceleration, its parent's, and the accelerations of its joint's dofs."""

    a: Motion
    a_parent: Motion
    rates: list[Scalar]


class Forward(NamedTuple):
    """Accelerations, and the margins of M; see `margins`."""

    a: Array
    margins: Array


def forward_dynamics(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None) -> Forward:
    """a = M^-1 (tau - C v - g + J^T fext)."""
    fq, fv, rest = scan.coordinates(q), scan.rates(v), scan.no_rates()
    bodies = scan.outward(moving(scan.tree.gravity), fq, fv, rest)
    inertias, S = scan.each(inertia, bodies), scan.each(subspace, bodies)
    joints = articulated(scan, inertias, S)
    margin = margins(scan, joints, inertias, S)
    # With zero joint accelerations, f = I a + v x* I v is a body's whole bias force. What remains is the response to
    # it, without velocity or gravity.
    bias = scan.each(force, bodies, fext if fext is not None else scan.constant(None))
    return Forward(rates(scan, respond(scan, joints, bias, scan.rates(tau))), margin)


def inertia(node: Node, body: Moving) -> Inertia:
    """The body's spatial inertia in the common frame."""
    return node.body.placed(body.X)


def articulated(scan: Scan, inertias: Sequence[Inertia], S: Sequence[Subspace]) -> Sequence[Articulated]:
    """Every joint eliminated, from the leaves inward."""
    return scan.inward(articulate, scan.each(lambda node, I: ArticulatedInertia.of(I), inertias), S)


def subspace(node: Node, body: Moving) -> Subspace:
    return body.S


def articulate(node: Node, IA: ArticulatedInertia, S: Subspace) -> tuple[ArticulatedInertia, Articulated]:
    """Eliminate the joint's degrees of freedom, last first; the parent feels what remains."""
    return eliminate(IA, S, node.armature)


def eliminate(
    IA: ArticulatedInertia, S: Subspace, armature: Sequence[Scalar]
) -> tuple[ArticulatedInertia, Articulated]:
    """Eliminate degrees of freedom with columns S and their own inertias."""
    pivots = []
    for s, arm in zip(reversed(S), reversed(armature), strict=True):
        U = IA @ s
        d = s.dot(U) + arm
        dinv = 1.0 / d
        part = dinv * U
        IA = IA.minus_outer(U, part)
        pivots.append(Pivot(s, -1.0 * part, d, dinv))
    return IA, Articulated(pivots[::-1], IA)


def respond(scan: Scan, joints: Sequence[Articulated], bias: Sequence[Force], tau: Sequence) -> Sequence[BodyResponse]:
    """The response of a robot at rest, without gravity, to forces `-bias` on its bodies and tau on its joints."""
    return scan.outward(accelerate, joints, scan.inward(reduce, bias, joints, tau))


def reduce(node: Node, p: Force, joint: Articulated, tau) -> tuple[Force, list[Scalar]]:
    """For each dof u = (tau - S^T p) / d; the parent feels p + U u = p - K (tau - S^T p)."""
    left = []
    for pivot, t in zip(reversed(joint.pivots), reversed(tau), strict=True):
        rest = t - pivot.S.dot(p)
        p = p - rest * pivot.K
        left.append(pivot.dinv * rest)
    return p, left[::-1]


def accelerate(node: Node, parent: BodyResponse | None, joint: Articulated, left) -> BodyResponse:
    """qdd = u + K^T a, and S qdd is added to the body's acceleration."""
    a = a_parent = parent.a if parent else REST
    rates = []
    for pivot, u in zip(joint.pivots, left, strict=True):
        qdd = u + pivot.K.dot(a) if parent or rates else u
        a = a + qdd * pivot.S
        rates.append(qdd)
    return BodyResponse(a, a_parent, rates)


def rates(scan: Scan, responses: Sequence[BodyResponse]) -> Array:
    """The joints' accelerations (nv,)."""
    return scan.vector(scan.each(lambda node, r: r.rates, responses))


def factors(scan: Scan, q: Array) -> Sequence[Articulated]:
    """The articulated inertias at q alone, for repeated products with M^-1."""
    return articulated(scan, *at_rest(scan, q))


def at_rest(scan: Scan, q: Array) -> tuple[Sequence[Inertia], Sequence[Subspace]]:
    """Inertias and subspaces of all bodies at q."""
    X = scan.outward(place, scan.coordinates(q))
    S = scan.each(lambda node, X: node.kind.subspace(X, node.pitch), X)
    return scan.each(lambda node, X: node.body.placed(X), X), S


def solve(scan: Scan, joints: Sequence[Articulated], b: Array) -> Array:
    """M^-1 b for b (nv, ..., lanes): columns are further lanes; AZA, [IDSVA] eq. 34."""
    wide = scan.wide(b)
    return rates(wide, respond(wide, joints, wide.constant(NO_FORCE), wide.rates(b)))


def margins(scan: Scan, joints: Sequence[Articulated], inertias: Sequence[Inertia], S: Sequence[Subspace]) -> Array:
    """How far M is from singular (nv,): the share d / M_ii of a dof's inertia that remains when outer joints are free.

    Between 0 and 1; a share of rounding size, or 0/0, means that the dof can move without moving any inertia.
    """

    def locked(node: Node, IC: Inertia, S: Subspace) -> tuple[Inertia, list[Scalar]]:
        return IC, [s.dot(IC @ s) + arm for s, arm in zip(S, node.armature, strict=True)]

    def share(node: Node, joint: Articulated, M: list[Scalar]) -> list[Scalar]:
        return [pivot.d / m for pivot, m in zip(joint.pivots, M, strict=True)]

    return scan.vector(scan.each(share, joints, scan.inward(locked, inertias, S)))
