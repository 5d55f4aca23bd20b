"""Analytical derivatives of inverse dynamics; [IDSVA] Algorithm 1, for multi-dof joints and external forces.

An external force is fixed in its body's frame: it rides along in fC, since by J3 its share in the derivative of an
outer joint cancels, and for an inner one it obeys the same rule as the other forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import Coriolis, Force, Inertia, Motion
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..motion import Moving, moving, net_force
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import Local


@dataclass(slots=True, eq=False)
class Composite:
    """Inertia, (twice) Coriolis matrix and force of a subtree."""

    I: Inertia
    B: Coriolis
    f: Force

    def __add__(self, other: Composite) -> Composite:
        return Composite(self.I + other.I, self.B + other.B, self.f + other.f)


@dataclass(slots=True, eq=False)
class Dof:
    """All that one degree of freedom brings to the pair pass."""

    S: Motion
    Psid: Motion
    Psidd: Motion
    SPd: Motion  # Sd + Psid
    t1: Force
    t2: Force
    t3: Force
    t4: Vec3
    armature: Scalar


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""
    fields = scan.coordinates(q), scan.rates(v), scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), *fields)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.pairs(within, across, scan.inward(collect, seeds, bodies), diagonal))


def seed(node: Node, body: Moving, fext) -> Composite:
    """A body's own share; lines 8-10."""
    I = node.body.placed(body.X)
    return Composite(I, Coriolis.of(I, body.v, I @ body.v), net_force(node, body, I, fext))


def collect(node: Node, C: Composite, body: Moving) -> tuple[Composite, list[Dof]]:
    """Lines 5-7 and 13-16, for each column of S; C.B is 2 BC."""
    return C, [dof(C, body, S, armature) for S, armature in zip(body.S, node.armature, strict=True)]


def dof(C: Composite, body: Moving | Local, S: Motion, armature: Scalar) -> Dof:
    Psid = body.v_parent.cross(S)
    Psidd = body.a_parent.cross(S) + body.v_parent.cross(Psid)
    SPd = body.v.cross(S) + Psid
    t1 = C.I @ S
    t2 = C.B @ S + C.I @ SPd
    t3 = C.B @ Psid + C.I @ Psidd + C.f.cross_bar(S)
    t4 = C.B.transposed_times(S)
    return Dof(S, Psid, Psidd, SPd, t1, t2, t3, t4, armature)


def within(i: Dof, k: Dof) -> tuple:
    """Entries [k, i], k in the subtree of i's joint; lines 19-20."""
    return (
        k.t4.dot(i.Psid.ang) + k.t1.dot(i.Psidd),
        k.t4.dot(i.S.ang) + k.t1.dot(i.SPd),
        k.t1.dot(i.S),
    )


def across(i: Dof, k: Dof) -> tuple:
    """Entries [i, k], k strictly below i's joint; lines 17-18."""
    return k.t3.dot(i.S), k.t2.dot(i.S), k.t1.dot(i.S)


def diagonal(i: Dof) -> tuple:
    return 0.0, 0.0, i.armature
