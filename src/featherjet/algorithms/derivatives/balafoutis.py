"""Derivatives of inverse dynamics by the Balafoutis-Patel recursion on angular acceleration tensors; [BP].

Every equation of `dynamics.balafoutis` with all its partials by q, qd and qdd, O(Nd) outward and O(Nd) inward. By one
of a joint's own coordinates, in the tangent space, d(A^T x) = (A^T x) x z_k and ds = A y_k.

Misprints of [BP], found by complex step:
- sdd_0 = A_0^T g has the wrong sign: the ground accelerates upwards, -g. (And g is 9.80665, not 9.80655.)
- d wd/dq_j at i+ = j: its second term has dA^T/dq wd where dA^T/dq w is meant.
- In d rdd and d eta, r_{i,i+} stands for r_{i+,i+} and r_{i,i}; in d f, A df_i for A df_i+.
- dM/dq is given for the dual of M, without its tilde; in d eta the tilde then stands for the way back.
- dP/dtheta lacks the factor tau_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Force
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..dynamics import balafoutis as values
from ..dynamics.balafoutis import NONE, Spin, ground, handed, tilde, varied, wrench
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import Entries, Partials, Sets, own


@dataclass(slots=True, eq=False)
class VariedBody(values.SpinningBody):
    """A body's motion with its partials by q, qd and qdd of the joints above."""

    by: Sets[Spin]


@dataclass(slots=True, eq=False)
class Load(Additive):
    """The wrench (eta, f) through a joint with its partials by q, qd and qdd."""

    f: Force
    by: Sets[Force]


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""

    def outward(node: Node, parent: VariedBody | None, q, v, a) -> VariedBody:
        return moved(node, parent, ground(scan, node, q), q, v, a)

    bodies = scan.outward(outward, scan.coordinates(q), scan.rates(v), scan.rates(a))
    loads = scan.each(load, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.entries(scan.inward(inward, loads, bodies)))


def moved(node: Node, parent: VariedBody | None, ground: Vec3, q, v, a) -> VariedBody:
    """The outward recursion with its partials; `ground` is A^T (-g) for a root."""
    given = handed(node, parent.at if parent else None, ground, q, v, a)
    at, X, S = given.spin, given.X, given.S
    w_p, wd_p, sdd_p, wJ, uJ = given.w, given.wd, given.sdd, given.J.ang, given.J.lin
    to_body = X.R.transposed_times
    if parent:
        seen = [to_body(parent.at.Omega @ (X.R @ s.lin)) for s in S]  # A^T Omega_p A y
        above = parent.by
    else:
        seen = [NONE for _ in S]
        above = Sets((Partials(), Partials(), Partials()))

    def spin(dw: Vec3, dwd: Vec3, dsdd: Vec3) -> Spin:
        return varied(at.w, dw, dwd, dsdd)

    def passed(d: Spin) -> Spin:
        """The partial by a coordinate further in."""
        dw = to_body(d.w)
        dsdd = to_body(d.sdd + d.Omega @ X.p) + 2.0 * dw.cross(uJ)
        return spin(dw, to_body(d.wd) + dw.cross(wJ), dsdd)

    def passed_still(d: Spin) -> Spin:
        """The partial by an acceleration further in: no velocity changes."""
        dwd = to_body(d.wd)
        return Spin(NONE, dwd, tilde(dwd), to_body(d.sdd + d.Omega @ X.p))

    by_q, by_v, by_a = [], [], []
    for s, y in zip(S, seen, strict=True):
        dw = w_p.cross(s.ang)
        by_q.append(spin(dw, wd_p.cross(s.ang) + dw.cross(wJ), sdd_p.cross(s.ang) + y + 2.0 * dw.cross(uJ)))
        slide = (2.0 * w_p + wJ).cross(s.lin) + s.ang.cross(uJ)
        by_v.append(spin(s.ang, w_p.cross(s.ang), slide))
        by_a.append(Spin(NONE, s.ang, tilde(s.ang), s.lin))
    sets = Sets((above[0].map(passed), above[1].map(passed), above[2].map(passed_still)))
    sets = sets + Sets(own(node, columns) for columns in (by_q, by_v, by_a))
    return VariedBody(X, S, at, sets)


def load(node: Node, body: VariedBody, fext) -> Load:
    """The net wrench on a body, and its partials; external forces are constant in their bodies' frames."""
    return Load(values.load(node, body, fext), body.by.map(wrench(node)))


def inward(node: Node, total: Load, body: VariedBody) -> tuple[Load, Entries]:
    """tau = z.eta + y.f; the parent feels (A eta + s x A f, A f), whose partials by the joint's own q add dA and ds."""
    rows = enumerate(body.S, node.v.start)
    entries = {(i, k): tuple(s.dot(d[k]) for d in total.by) for i, s in rows for k in total.by[0]}
    for i, arm in enumerate(node.armature, node.v.start):
        by_q, by_v, M = entries[i, i]
        entries[i, i] = by_q, by_v, M + arm
    if node.is_root:
        return total, entries
    up = body.X.force
    moved = own(node, [s.cross_force(total.f) for s in body.S])
    return Load(up(total.f), (total.by + Sets((moved, Partials(), Partials()))).map(up)), entries
