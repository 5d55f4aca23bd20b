"""Torques that hold a robot still, g - J^T fext, and their derivative by q: [IDSVA] eqs. 14 and 29.

With v = 0 and a = a0 everywhere, eq. 30 leaves
    dtau_i/dq_j = S_i^T IC_i (a0 x S_j),   dtau_j/dq_i = S_j^T [IC_i (a0 x S_i) + fC_i xbar* S_i]   (j strictly above i)
where fC is the weight of a subtree less the external forces on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Force, Inertia, Motion, Transform
from ...model.tree import Node
from ..dynamics import rnea
from ..motion import external, place, upward
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class Weight(Additive):
    """Inertia and force of a subtree."""

    I: Inertia
    f: Force


@dataclass(slots=True, eq=False)
class StaticTerms:
    """What a degree of freedom contributes to the entries."""

    S: Motion
    Psidd: Motion  # a0 x S, at rest
    t1: Force  # IC S
    t3: Force  # IC (a0 x S) + fC xbar* S


def static_torque(scan: Scan, q: Array, fext: Sequence | None = None) -> Array:
    """g(q) - J^T fext (nv,)."""
    return rnea.inverse_dynamics(scan, q, None, None, fext)


def static_torque_derivatives(scan: Scan, q: Array, fext: Sequence | None = None) -> Array:
    """d(g - J^T fext)/dq (nv, nv), for forces fixed in their bodies' frames."""
    fq, gravity = scan.coordinates(q), scan.tree.gravity
    X = scan.outward(place, fq)
    a0 = scan.outward(lambda node, above, q: above or upward(node, q, gravity), fq)
    weights = scan.each(weight, X, a0, fext if fext is not None else scan.constant(None))
    return scan.pairs(within, across, scan.inward(collect, weights, X, a0))[0]


def weight(node: Node, X: Transform, a0: Motion, fext) -> Weight:
    """A body's own share."""
    I, outside = node.body.placed(X), external(node, X, fext)
    return Weight(I, I @ a0 - outside if outside else I @ a0)


def collect(node: Node, C: Weight, X: Transform, a0: Motion) -> tuple[Weight, list[StaticTerms]]:
    """The terms of a joint's dofs; the weight goes on to the parent."""
    dofs = []
    for S in node.kind.subspace(X, node.pitch):
        Psidd = a0.cross(S)
        dofs.append(StaticTerms(S, Psidd, C.I @ S, C.I @ Psidd + C.f.cross_bar(S)))
    return C, dofs


def within(i: StaticTerms, k: StaticTerms) -> tuple:
    """Entry [k, i], k in the subtree of i's joint."""
    return (k.t1.dot(i.Psidd),)


def across(i: StaticTerms, k: StaticTerms) -> tuple:
    """Entry [i, k], k strictly below i's joint."""
    return (k.t3.dot(i.S),)
