"""Derivatives of inverse dynamics by the Balafoutis-Patel recursion on angular acceleration tensors; [BP].

Body coordinates and three-vectors: w, wd, the tensor Omega = wd~ + w~ w~ (x~ is the matrix of x cross), the
acceleration sdd of each frame's origin, then forces and moments; every equation with all its partials by q, qd and qdd,
O(Nd) outward and O(Nd) inward. [BP] treats trees of revolute joints. Here a joint may turn and slide along any axes
z_k, y_k that are fixed in its body (as those of all joint kinds are), with A its rotation and s its position in the
parent, wJ = z qd, uJ = y qd:
    w   = A^T w_p + wJ                     wd = A^T wd_p + (A^T w_p) x wJ + z qdd
    sdd = A^T (sdd_p + Omega_p s) + 2 (A^T w_p) x uJ + wJ x uJ + y qdd
and by one of its own coordinates, in the tangent space, d(A^T x) = (A^T x) x z_k and ds = A y_k.

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
from ...math.spatial import Force, Subspace, Transform, span
from ...math.vec3 import Mat3, Sym3, Vec3
from ...model.tree import Node
from ..motion import external, upward
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import IDENTITY, Entries, Partials, Sets, own

NONE = Vec3(0.0, 0.0, 0.0)
tilde = Mat3.skew


@dataclass(slots=True, eq=False)
class Spin:
    """Angular velocity and acceleration, the tensor of both, the origin's acceleration; or a partial of all four."""

    w: Vec3
    wd: Vec3
    Omega: Mat3
    sdd: Vec3


@dataclass(slots=True, eq=False)
class SpinningBody:
    """A body's motion with its partials by q, qd and qdd of the joints above."""

    X: Transform
    S: Subspace
    at: Spin
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

    def outward(node: Node, parent: SpinningBody | None, q, v, a) -> SpinningBody:
        ground = upward(node, q, scan.tree.gravity).lin if parent is None else NONE
        return moved(node, parent, ground, q, v, a)

    bodies = scan.outward(outward, scan.coordinates(q), scan.rates(v), scan.rates(a))
    loads = scan.each(load, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.entries(scan.inward(inward, loads, bodies)))


def dual(K: Mat3) -> Vec3:
    """The vector of the skew matrix K - K^T."""
    return Vec3(K.y.z - K.z.y, K.z.x - K.x.z, K.x.y - K.y.x)


def moved(node: Node, parent: SpinningBody | None, ground: Vec3, q, v, a) -> SpinningBody:
    """The outward recursion with its partials; `ground` is A^T (-g) for a root."""
    X = node.kind.move(node.X, q, node.pitch)
    S = node.kind.subspace(IDENTITY, node.pitch)
    J, Jd = span(S, v), span(S, a)
    wJ, uJ = J.ang, J.lin
    to_body = X.R.transposed_times
    if parent:
        p = parent.at
        w_p, wd_p, sdd_p = to_body(p.w), to_body(p.wd), to_body(p.sdd + p.Omega @ X.p)
        seen = [to_body(p.Omega @ (X.R @ s.lin)) for s in S]  # A^T Omega_p A y
        above = parent.by
    else:
        w_p, wd_p, sdd_p, seen = NONE, NONE, ground, [NONE for _ in S]
        above = Sets((Partials(), Partials(), Partials()))

    w = w_p + wJ
    wd = wd_p + w_p.cross(wJ) + Jd.ang
    sdd = sdd_p + 2.0 * w_p.cross(uJ) + wJ.cross(uJ) + Jd.lin

    def spin(dw: Vec3, dwd: Vec3, dsdd: Vec3) -> Spin:
        """With dOmega = dwd~ + dw~ w~ + (dw~ w~)^T."""
        product = tilde(dw).compose(tilde(w))
        return Spin(dw, dwd, tilde(dwd) + product + product.transposed(), dsdd)

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
    spinning = tilde(w)
    return SpinningBody(X, S, Spin(w, wd, tilde(wd) + spinning.compose(spinning), sdd), sets)


def load(node: Node, body: SpinningBody, fext) -> Load:
    """F = m (Omega r + sdd), M~ = Omega Jc - (Omega Jc)^T, eta = r x F + M; and the same of their partials."""
    m, r, Ic = node.body.m, node.body.c, node.body.Ic
    half = 0.5 * (Ic.xx + Ic.yy + Ic.zz)
    E = Sym3(half - Ic.xx, -Ic.xy, -Ic.xz, half - Ic.yy, -Ic.yz, half - Ic.zz)
    Jc = Mat3(E.column(0), E.column(1), E.column(2))

    def wrench(at: Spin) -> Force:
        F = m * (at.Omega @ r + at.sdd)
        return Force(r.cross(F) + dual(at.Omega.compose(Jc)), F)

    f = wrench(body.at)
    outside = external(node, IDENTITY, fext)
    return Load(f - outside if outside else f, body.by.map(wrench))


def inward(node: Node, total: Load, body: SpinningBody) -> tuple[Load, Entries]:
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
