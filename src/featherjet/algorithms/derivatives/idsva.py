"""Analytical derivatives of inverse dynamics; [IDSVA] Algorithm 1, for multi-dof joints and external forces.

An external force is fixed in its body's frame and is simply part of fC: by J3 its share in the derivative of an outer
joint cancels, and for an inner joint it obeys the same rule as the other forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import Coriolis, Force, Motion
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..dynamics.coriolis import Composite
from ..motion import DofMotion, Moving, dof_motion, moving, net_force
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class ForcedComposite(Composite):
    """Of a subtree: inertia, twice the Coriolis matrix, and force fC."""

    f: Force


@dataclass(slots=True, eq=False)
class DofTerms(DofMotion):
    """All that a degree of freedom contributes to the pair pass."""

    t1: Force  # IC S
    t2: Force  # 2 BC S + IC (Sd + Psid)
    t3: Force  # 2 BC Psid + IC Psidd + fC xbar* S
    t4: Vec3  # 2 BC^T S, angular half
    armature: Scalar


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""
    fields = scan.coordinates(q), scan.rates(v), scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), *fields)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.pairs(within, across, scan.inward(collect, seeds, bodies), diagonal))


def seed(node: Node, body: Moving, fext) -> ForcedComposite:
    """A body's own share; lines 8-10."""
    I = node.body.placed(body.X)
    return ForcedComposite(I, Coriolis.of(I, body.v, I @ body.v), net_force(node, body, I, fext))


def collect(node: Node, C: ForcedComposite, body: Moving) -> tuple[ForcedComposite, list[DofTerms]]:
    """Lines 5-7 and 13-16, for each column of S."""
    return C, [dof_terms(C, body, S, armature) for S, armature in zip(body.S, node.armature, strict=True)]


def dof_terms(C: ForcedComposite, body: Moving, S: Motion, armature: Scalar) -> DofTerms:
    """The terms of one column S, in the frame that C and the body's motion are given in."""
    m = dof_motion(body, S)
    t1 = C.I @ S
    t2 = C.B2 @ S + C.I @ m.SPd
    t3 = C.B2 @ m.Psid + C.I @ m.Psidd + C.f.cross_bar(S)
    t4 = C.B2.transposed_times(S)
    return DofTerms(S, m.Psid, m.Psidd, m.SPd, t1, t2, t3, t4, armature)


def within(i: DofTerms, k: DofTerms) -> tuple:
    """Entries [k, i], k in the subtree of i's joint; lines 19-20."""
    return (
        k.t4.dot(i.Psid.ang) + k.t1.dot(i.Psidd),
        k.t4.dot(i.S.ang) + k.t1.dot(i.SPd),
        k.t1.dot(i.S),
    )


def across(i: DofTerms, k: DofTerms) -> tuple:
    """Entries [i, k], k strictly below i's joint; lines 17-18."""
    return k.t3.dot(i.S), k.t2.dot(i.S), k.t1.dot(i.S)


def diagonal(i: DofTerms) -> tuple:
    """Armature is added to M alone."""
    return 0.0, 0.0, i.armature
