"""Inverse dynamics by the Balafoutis-Patel recursion on angular acceleration tensors; [BP].

Body coordinates and three-vectors: w, wd, the tensor Omega = wd~ + w~ w~ (x~ is the matrix of x cross), and the
acceleration sdd of each frame's origin. [BP] treats revolute joints. Here a joint may turn and slide along any axes
z_k, y_k that are fixed in its body (as those of all joint kinds are), with A its rotation and s its position in the
parent, wJ = z qd, uJ = y qd:
    w   = A^T w_p + wJ                     wd = A^T wd_p + (A^T w_p) x wJ + z qdd
    sdd = A^T (sdd_p + Omega_p s) + 2 (A^T w_p) x uJ + wJ x uJ + y qdd
    F   = m (Omega r + sdd)                M~ = Omega Jc - (Omega Jc)^T,   eta = r x F + M
In straight-line code it takes about half of the instructions of Newton-Euler in ground coordinates, and loops over
bodies take three quarters of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...math.spatial import Force, Motion, Subspace, Transform, span
from ...math.vec3 import Mat3, Sym3, Vec3
from ...model.tree import Node
from ..motion import external, upward
from ..scan import Array, Scan

NONE = Vec3(0.0, 0.0, 0.0)
IDENTITY = Transform.identity()
tilde = Mat3.skew


@dataclass(slots=True, eq=False)
class Spin:
    """Angular velocity and acceleration, the tensor of both, the origin's acceleration; or a partial of all four."""

    w: Vec3
    wd: Vec3
    Omega: Mat3
    sdd: Vec3


@dataclass(slots=True, eq=False)
class Received:
    """What a body gets from its parent, in its own frame: w_p, wd_p, sdd_p; its placement and subspace; vJ and aJ."""

    X: Transform
    S: Subspace
    J: Motion
    Jd: Motion
    w: Vec3
    wd: Vec3
    sdd: Vec3

    @property
    def spin(self) -> Spin:
        """The body's own motion."""
        wJ, uJ = self.J.ang, self.J.lin
        w = self.w + wJ
        wd = self.wd + self.w.cross(wJ) + self.Jd.ang
        sdd = self.sdd + 2.0 * self.w.cross(uJ) + wJ.cross(uJ) + self.Jd.lin
        spinning = tilde(w)
        return Spin(w, wd, tilde(wd) + spinning.compose(spinning), sdd)


@dataclass(slots=True, eq=False)
class SpinningBody:
    """A body's placement, subspace and motion."""

    X: Transform
    S: Subspace
    at: Spin


def inverse_dynamics(scan: Scan, q: Array, v: Array | None, a: Array | None, fext: Sequence | None = None) -> Array:
    """tau (nv,) = M(q) a + C(q, v) v + g(q) - J^T fext; v and a are None where zero."""

    def outward(node: Node, parent: SpinningBody | None, q, v, a) -> SpinningBody:
        given = handed(node, parent.at if parent else None, ground(scan, node, q), q, v, a)
        return SpinningBody(given.X, given.S, given.spin)

    def inward(node: Node, f: Force, body: SpinningBody, a) -> tuple[Force, list]:
        tau = [s.dot(f) + arm * x for s, arm, x in zip(body.S, node.armature, a, strict=True)]
        return f if node.is_root else body.X.force(f), tau

    speeds, rates = (scan.no_rates() if x is None else scan.rates(x) for x in (v, a))
    bodies = scan.outward(outward, scan.coordinates(q), speeds, rates)
    forces = scan.each(load, bodies, fext if fext is not None else scan.constant(None))
    return scan.vector(scan.inward(inward, forces, bodies, rates))


def bias(scan: Scan, q: Array, v: Array, fext: Sequence | None = None) -> Array:
    """C(q, v) v + g(q) - J^T fext."""
    return inverse_dynamics(scan, q, v, None, fext)


def gravity(scan: Scan, q: Array) -> Array:
    """g(q)."""
    return inverse_dynamics(scan, q, None, None)


def ground(scan: Scan, node: Node, q) -> Vec3:
    """A^T (-g), with which a root's parent accelerates; nothing for other bodies."""
    return upward(node, q, scan.tree.gravity).lin if node.is_root else NONE


def handed(node: Node, parent: Spin | None, ground: Vec3, q, v, a) -> Received:
    """The parent's motion in the body's frame."""
    X = node.kind.move(node.X, q, node.pitch)
    S = node.kind.subspace(IDENTITY, node.pitch)
    J, Jd = span(S, v), span(S, a)
    if parent is None:
        return Received(X, S, J, Jd, NONE, NONE, ground)
    to_body = X.R.transposed_times
    return Received(X, S, J, Jd, to_body(parent.w), to_body(parent.wd), to_body(parent.sdd + parent.Omega @ X.p))


def wrench(node: Node) -> Callable[[Spin], Force]:
    """F = m (Omega r + sdd), M~ = Omega Jc - (Omega Jc)^T, eta = r x F + M; linear."""
    m, r, Jc = node.body.m, node.body.c, spread(node)

    def of(at: Spin) -> Force:
        F = m * (at.Omega @ r + at.sdd)
        return Force(r.cross(F) + dual(at.Omega.compose(Jc)), F)

    return of


def spread(node: Node) -> Mat3:
    """Jc = tr(Ic)/2 - Ic: the second moments of a body's mass about its centre."""
    Ic = node.body.Ic
    half = 0.5 * (Ic.xx + Ic.yy + Ic.zz)
    E = Sym3(half - Ic.xx, -Ic.xy, -Ic.xz, half - Ic.yy, -Ic.yz, half - Ic.zz)
    return Mat3(E.column(0), E.column(1), E.column(2))


def dual(K: Mat3) -> Vec3:
    """The vector of the skew matrix K - K^T."""
    return Vec3(K.y.z - K.z.y, K.z.x - K.x.z, K.x.y - K.y.x)


def varied(w: Vec3, dw: Vec3, dwd: Vec3, dsdd: Vec3) -> Spin:
    """A partial of a body's motion, with dOmega = dwd~ + dw~ w~ + (dw~ w~)^T."""
    product = tilde(dw).compose(tilde(w))
    return Spin(dw, dwd, tilde(dwd) + product + product.transposed(), dsdd)


def load(node: Node, body: SpinningBody, fext) -> Force:
    """The net wrench on a body, in its own frame."""
    return loaded(node, body.at, fext)


def loaded(node: Node, at: Spin, fext) -> Force:
    """The net wrench on a body that moves like this, or a partial of it by partials of motion and external force."""
    f, outside = wrench(node)(at), external(node, IDENTITY, fext)
    return f - outside if outside else f
