"""Derivatives of centroidal momentum and of its rate; the columns of [IDSVA] eqs. 30 and 32 before they meet S_i^T.

About the world's origin, h = sum I_k v_k and f = sum (I_k a_k + v_k x* I_k v_k), a without gravity; for dof j
    dh/dq_j = hC_j xbar* S_j + IC_j Psid_j          (J5)
    df/dq_j = 2 BC_j Psid_j + IC_j Psidd_j + fC_j xbar* S_j,   df/dv_j = 2 BC_j S_j + IC_j (Psid_j + Sd_j),
    df/da_j = IC_j S_j
and about the centre of mass c, where dc/dq_j = (IC_j S_j).lin / m: moments lose c x the linear part and, by q, dc x it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...display import compact
from ...math.spatial import Coriolis, Force
from ...model.tree import Node
from ..dynamics.coriolis import Composite
from ..motion import Moving, dof_motions
from ..scan import Array, Scan
from .derivatives import in_world
from .kinematics import components, shifted


@compact
class CentroidalDerivatives(NamedTuple):
    """Partials of the momentum about the centre of mass and of its rate, (..., 6, nv) each, linear then angular."""

    dh_dq: Array
    dhdot_dq: Array
    dhdot_dv: Array
    dhdot_da: Array


@dataclass(slots=True, eq=False)
class MomentumComposite(Composite):
    """Of a subtree: inertia, twice the Coriolis matrix, momentum and its rate."""

    h: Force
    f: Force


def centroidal_derivatives(scan: Scan, q: Array, v: Array, a: Array) -> CentroidalDerivatives:
    """dh_dq, dhdot_dq, dhdot_dv, dhdot_da; dh_dv is the centroidal map."""
    bodies = in_world(scan, q, v, a)
    seeds = scan.each(seed, bodies)
    dofs = scan.inward(collect, seeds, bodies)
    m, mc, h, f = (scan.total(x) for x in shares(scan, seeds))
    per_mass = 1.0 / m
    c = per_mass * mc

    def about_center(node: Node, joint: Sequence[tuple[Force, ...]]) -> list[tuple[Force, ...]]:
        found = []
        for h_q, f_q, f_v, f_a in joint:
            dc = per_mass * f_a.lin
            by_q = [Force(x.ang - dc.cross(whole.lin), x.lin) for x, whole in ((h_q, h), (f_q, f))]
            found.append(tuple(shifted(x, c) for x in (*by_q, f_v, f_a)))
        return found

    def column(k: int) -> Array:
        return scan.dof_columns(scan.each(lambda _, joint: [components(x[k]) for x in joint], columns))

    columns = scan.each(about_center, dofs)
    return CentroidalDerivatives(*map(column, range(4)))


def shares(scan: Scan, seeds: Sequence[MomentumComposite]) -> Sequence[Sequence[Any]]:
    """Of each body: mass, mass times centre, momentum and its rate."""
    picks = (lambda _, s: s.I.m, lambda _, s: s.I.h, lambda _, s: s.h, lambda _, s: s.f)
    return [scan.each(pick, seeds) for pick in picks]


def seed(node: Node, body: Moving) -> MomentumComposite:
    """A body's own share."""
    I = node.body.placed(body.X)
    h = I @ body.v
    return MomentumComposite(I, Coriolis.of(I, body.v, h), h, I @ body.a + body.v.cross_force(h))


def collect(node: Node, C: MomentumComposite, body: Moving) -> tuple[MomentumComposite, list[tuple[Force, ...]]]:
    """For each dof: dh/dq, df/dq, df/dv and df/da about the world's origin."""
    dofs = []
    for m in dof_motions(node, body):
        h_q = C.h.cross_bar(m.S) + C.I @ m.Psid
        f_q = C.B2 @ m.Psid + C.I @ m.Psidd + C.f.cross_bar(m.S)
        dofs.append((h_q, f_q, C.B2 @ m.S + C.I @ m.SPd, C.I @ m.S))
    return C, dofs
