"""The Coriolis matrix C for which Mdot - 2C is skew; [IDSVA] refs. [20]-[22], with the body-level B of eq. 28.

C = sum over bodies of J^T (I Jd + B J). Mdot = C + C^T follows from Id = B + B^T, and C v holds all terms in v.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Coriolis, Force, Inertia, Motion
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..motion import Moving, moving
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class Composite(Additive):
    """Of a subtree: inertia and twice the Coriolis matrix, B2 = 2 BC."""

    I: Inertia
    B2: Coriolis


@dataclass(slots=True, eq=False)
class CoriolisTerms:
    """What a degree of freedom contributes to the entries of C."""

    S: Motion
    Sd: Motion
    t1: Force  # IC S
    t2: Force  # IC Sd + BC S
    t4: Vec3  # BC^T S, angular half


def coriolis_matrix(scan: Scan, q: Array, v: Array) -> Array:
    """C(q, v) (nv, nv)."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.no_rates())
    seeds = scan.each(seed, bodies)
    return scan.pairs(within, across, scan.inward(collect, seeds, bodies))[0]


def seed(node: Node, body: Moving) -> Composite:
    """A body's own share."""
    I = node.body.placed(body.X)
    return Composite(I, Coriolis.of(I, body.v, I @ body.v))


def collect(node: Node, C: Composite, body: Moving) -> tuple[Composite, list[CoriolisTerms]]:
    """The terms of a joint's dofs; the composite goes on to the parent."""
    dofs = []
    for S in body.S:
        Sd = body.v.cross(S)
        t2 = C.I @ Sd + 0.5 * (C.B2 @ S)
        dofs.append(CoriolisTerms(S, Sd, C.I @ S, t2, 0.5 * C.B2.transposed_times(S)))
    return C, dofs


def within(i: CoriolisTerms, k: CoriolisTerms) -> tuple:
    """Entry [k, i], k in the subtree of i's joint."""
    return (k.t4.dot(i.S.ang) + k.t1.dot(i.Sd),)


def across(i: CoriolisTerms, k: CoriolisTerms) -> tuple:
    """Entry [i, k], k strictly below i's joint."""
    return (k.t2.dot(i.S),)
