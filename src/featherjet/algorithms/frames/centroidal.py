"""Derivatives of centroidal momentum and of its rate; the columns of [IDSVA] eqs. 30 and 32 before they meet S_i^T.

About the world's origin, h = sum I_k v_k and f = sum (I_k a_k + v_k x* I_k v_k), a without gravity; for dof j
    dh/dq_j = hC_j xbar* S_j + IC_j Psid_j          (J5)
    df/dq_j = 2 BC_j Psid_j + IC_j Psidd_j + fC_j xbar* S_j,   df/dv_j = 2 BC_j S_j + IC_j (Psid_j + Sd_j),
    df/da_j = IC_j S_j
and about the centre of mass c, where dc/dq_j = (IC_j S_j).lin / m: moments lose c x and, by q, dc x (linear part).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...math.spatial import Coriolis, Force, Inertia, Motion
from ...model.tree import Node
from ..motion import Moving
from ..scan import Array, Scan
from .derivatives import in_world
from .kinematics import shifted, stack_motions


class CentroidalDerivatives(NamedTuple):
    """Of the momentum h about the centre of mass and its rate, (..., 6, nv) each, rows linear then angular."""

    dh_dq: Array
    dhdot_dq: Array
    dhdot_dv: Array
    dhdot_da: Array


@dataclass(slots=True, eq=False)
class Composite:
    """Inertia, (twice) Coriolis matrix, momentum and its rate, of a subtree."""

    I: Inertia
    B: Coriolis
    h: Force
    f: Force

    def __add__(self, other: Composite) -> Composite:
        return Composite(self.I + other.I, self.B + other.B, self.h + other.h, self.f + other.f)


def centroidal_derivatives(scan: Scan, q: Array, v: Array, a: Array) -> CentroidalDerivatives:
    """dh_dq, dhdot_dq, dhdot_dv, dhdot_da; dh_dv is the centroidal map."""
    bodies = in_world(scan, q, v, a)
    seeds = scan.each(seed, bodies)
    total = seeds[0]
    for one in seeds[1:]:
        total = total + one
    per_mass = 1.0 / total.I.m
    c = per_mass * total.I.h
    found: tuple[list[Force], ...] = ([], [], [], [])
    for joint in scan.inward(collect, seeds, bodies):
        for h_q, f_q, f_v, f_a in joint:
            dc = per_mass * f_a.lin
            by_q = [Force(x.ang - dc.cross(whole.lin), x.lin) for x, whole in ((h_q, total.h), (f_q, total.f))]
            for column, x in zip(found, (*by_q, f_v, f_a), strict=True):
                column.append(shifted(x, c))
    return CentroidalDerivatives(*(stack_motions(scan, [Motion(x.ang, x.lin) for x in column]) for column in found))


def seed(node: Node, body: Moving) -> Composite:
    I = node.body.placed(body.X)
    h = I @ body.v
    return Composite(I, Coriolis.of(I, body.v, h), h, I @ body.a + body.v.cross_force(h))


def collect(node: Node, C: Composite, body: Moving) -> tuple[Composite, list[tuple[Force, ...]]]:
    """For each dof: dh/dq, df/dq, df/dv and df/da about the world's origin."""
    dofs = []
    for S in body.S:
        Psid = body.v_parent.cross(S)
        Psidd = body.a_parent.cross(S) + body.v_parent.cross(Psid)
        h_q = C.h.cross_bar(S) + C.I @ Psid
        f_q = C.B @ Psid + C.I @ Psidd + C.f.cross_bar(S)
        dofs.append((h_q, f_q, C.B @ S + C.I @ (Psid + body.v.cross(S)), C.I @ S))
    return C, dofs
