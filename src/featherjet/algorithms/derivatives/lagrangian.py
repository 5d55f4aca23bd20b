"""Derivatives of inverse dynamics from the closed-form equations of motion; [RSS18] eqs. 9-10, [IDSVA] ref. [17].

M, C and g are written down entry by entry, and so are the tensors dM/dq, dC/dq and dC/dqd, (n, n, n) each; then
    dtau/dq = dM/dq a + dC/dq v + dg/dq - dJ^T/dq fext        dtau/dv = dC/dv v + C                       (eq. 10)
O(n d^2) entries, O(n^3) on a chain, each in closed form from composites of subtrees, in ground coordinates: with j
above or equal to i, M_ij = S_i^T IC_i S_j, C_ij = S_i^T (IC_i Sd_j + BC_i S_j) and C_ji = S_j^T (IC_i Sd_i + BC_i S_i).
Moving dof m carries all bodies beyond it along (S -> m x S, I -> m x* I - I m x) and changes their velocities by
Psid_m. That leaves three cases: m moves both i and j, or only i, or only a part of what is beyond i. B2 stands for 2B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...math.spatial import Coriolis, Force, Inertia, Motion
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..dynamics.coriolis import Composite, seed
from ..motion import Moving, moving
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan, picked, stacked
from .statics import static_torque_derivatives


@dataclass(slots=True, eq=False)
class TensorTerms:
    """A degree of freedom, its subtree's composites, and products of both."""

    S: Motion
    Sd: Motion
    Psid: Motion
    I: Inertia
    B2: Coriolis
    B2_S: Coriolis  # B2 of the subtree, if its velocity were S, or Psid
    B2_Psid: Coriolis
    t1: Force  # IC S
    t2: Force  # IC Sd + BC S
    t4: Vec3  # 2 BC^T S
    armature: Scalar


@dataclass(slots=True, eq=False)
class Mover:
    """How a dof moves the bodies beyond it."""

    S: Motion
    Psid: Motion


Triple = tuple[Scalar, Scalar, Scalar]  # entries of dM/dq, dC/dq, dC/dv


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M, by contracting the tensors."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.no_rates())
    dofs = scan.inward(collect, scan.each(seed, bodies), bodies)
    M, C = scan.pairs(within, across, dofs, lambda i: (i.armature, 0.0))
    dM_dq, dC_dq, dC_dv = tensors(scan, dofs)
    dtau_dq = contract(dM_dq, a) + contract(dC_dq, v) + static_torque_derivatives(scan, q, fext)
    return InverseDynamicsDerivatives(dtau_dq, contract(dC_dv, v) + C, M)


def contract(T: Array, x: Array) -> Array:
    """The sum over j of T[i, j, m] x[j]."""
    return np.einsum("ijm...,j...->im...", T, x)


def collect(node: Node, C: Composite, body: Moving) -> tuple[Composite, list[TensorTerms]]:
    """The terms of a joint's dofs; the composite goes on to the parent."""
    dofs = []
    for S, armature in zip(body.S, node.armature, strict=True):
        Sd, Psid = body.v.cross(S), body.v_parent.cross(S)
        t1, t2, t4 = C.I @ S, C.I @ Sd + 0.5 * (C.B2 @ S), C.B2.transposed_times(S)
        B2_S, B2_Psid = twice(C.I, S), twice(C.I, Psid)
        dofs.append(TensorTerms(S, Sd, Psid, C.I, C.B2, B2_S, B2_Psid, t1, t2, t4, armature))
    return C, dofs


def twice(I: Inertia, v: Motion) -> Coriolis:
    """B2 of an inertia that moves with v."""
    return Coriolis.of(I, v, I @ v)


def within(j: TensorTerms, i: TensorTerms) -> tuple:
    """Entries [i, j] of M and C, j above or equal to i."""
    return i.t1.dot(j.S), i.t1.dot(j.Sd) + 0.5 * i.t4.dot(j.S.ang)


def across(j: TensorTerms, i: TensorTerms) -> tuple:
    """Entries [j, i], j strictly above i."""
    return i.t1.dot(j.S), i.t2.dot(j.S)


def tensors(scan: Scan, dofs: Sequence[Sequence[TensorTerms]]) -> tuple[Array, Array, Array]:
    """dM/dq, dC/dq and dC/dv; entry [i, j, m] is the derivative of [i, j] by dof m."""
    n, tree = scan.nv, scan.tree
    flat = [r for joint in dofs for r in joint]
    movers = stacked([Mover(r.S, r.Psid) for r in flat], scan.stack)
    ends = [node.v.stop for node in tree.nodes for _ in node.dofs]
    out = tuple(scan.zeros(n, n, n) for _ in range(3))

    def put(row: int, column: int, ms, values: Triple) -> None:
        for T, x in zip(out, values, strict=True):
            T[row, column, ms] = x

    for node in tree.nodes:
        path = tree.dof_path(node.index)
        above = picked(movers, path)  # type: ignore[arg-type]
        beyond = slice(node.v.stop, tree.subtree(node).stop)
        outer = stacked(flat[beyond], scan.stack) if beyond.start < beyond.stop else None
        for i in node.dofs:
            B2_S, B2_Psid = twice(flat[i].I, above.S), twice(flat[i].I, above.Psid)
            for j in path:
                strict = j < node.v.start
                both = len([m for m in path if m < ends[j]])  # these move j as well
                for turns, part in ((True, slice(0, both)), (False, slice(both, len(path)))):
                    if part.start < part.stop:
                        m = picked(above, part), picked(B2_S, part), picked(B2_Psid, part)
                        put(i, j, path[part], lower(flat[i], flat[j], *m, turns))
                        if strict:
                            put(j, i, path[part], upper(flat[i], flat[j], *m, turns))
                if outer:
                    put(i, j, beyond, inside(flat[i].S, flat[j], outer))
                    if strict:
                        put(j, i, beyond, inside(flat[j].S, flat[i], outer))
    return out  # type: ignore[return-value]


def lower(i: TensorTerms, j: TensorTerms, m: Mover, B2_S: Coriolis, B2_Psid: Coriolis, turns: bool) -> Triple:
    """By m on i's path to the root, entry [i, j]; `turns`: m moves j as well."""
    dC_dq = 0.5 * i.S.dot(B2_Psid @ j.S)
    dC_dv = 0.5 * i.S.dot(B2_S @ j.S)
    turned = m.S.cross(j.S)
    if turns:
        return 0.0, dC_dq + i.t1.dot(m.Psid.cross(j.S)), dC_dv + i.t1.dot(turned)
    return -i.t1.dot(turned), dC_dq - i.t1.dot(m.S.cross(j.Sd)) - 0.5 * i.t4.dot(turned.ang), dC_dv


def upper(i: TensorTerms, j: TensorTerms, m: Mover, B2_S: Coriolis, B2_Psid: Coriolis, turns: bool) -> Triple:
    """By m on i's path to the root, entry [j, i], j strictly above i."""
    dC_dq = i.I @ m.Psid.cross(i.S) + 0.5 * (B2_Psid @ i.S)
    dC_dv = (i.I @ m.S.cross(i.S) + 0.5 * (B2_S @ i.S)).dot(j.S)
    if turns:
        return 0.0, dC_dq.dot(j.S), dC_dv
    return -i.t1.dot(m.S.cross(j.S)), (dC_dq + m.S.cross_force(i.t2)).dot(j.S), dC_dv


def inside(row: Motion, j: TensorTerms, m: TensorTerms) -> Triple:
    """By m strictly below both dofs: only what is beyond m moves."""
    turned = m.S.cross(j.S)
    dM = m.S.cross_force(m.I @ j.S) - m.I @ turned
    dI = m.S.cross_force(m.I @ j.Sd) - m.I @ m.S.cross(j.Sd)
    dB = m.S.cross_force(m.B2 @ j.S) - m.B2 @ turned + m.B2_Psid @ j.S
    return row.dot(dM), row.dot(dI + 0.5 * dB), 0.5 * row.dot(m.B2_S @ j.S)
