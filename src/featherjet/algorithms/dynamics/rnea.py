"""Inverse dynamics by the recursive Newton-Euler algorithm; [RBDA] ch. 5, [RSS18] Alg. 1."""

from __future__ import annotations

from collections.abc import Sequence

from ...math.spatial import Force
from ...model.tree import Node
from ..motion import Moving, moving, net_force
from ..scan import Array, Scan


def inverse_dynamics(scan: Scan, q: Array, v: Array | None, a: Array | None, fext: Sequence | None = None) -> Array:
    """tau (nv,) = M(q) a + C(q, v) v + g(q) - J^T fext; v and a are None where zero."""
    fq = scan.coordinates(q)
    fv = scan.no_rates() if v is None else scan.rates(v)
    fa = scan.no_rates() if a is None else scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), fq, fv, fa)
    forces = scan.each(force, bodies, fext if fext is not None else scan.constant(None))
    return scan.vector(scan.inward(project, forces, bodies, fa))


def bias(scan: Scan, q: Array, v: Array, fext: Sequence | None = None) -> Array:
    """C(q, v) v + g(q) - J^T fext."""
    return inverse_dynamics(scan, q, v, None, fext)


def gravity(scan: Scan, q: Array) -> Array:
    """g(q)."""
    return inverse_dynamics(scan, q, None, None)


def force(node: Node, body: Moving, fext) -> Force:
    """The net force on a body."""
    return net_force(node, body, node.body.placed(body.X), fext)


def project(node: Node, f: Force, body: Moving, a) -> tuple[Force, list]:
    """tau = S^T fC plus armature; the whole force goes on to the parent."""
    tau = [s.dot(f) + arm * ai for s, arm, ai in zip(body.S, node.armature, a, strict=True)]
    return f, tau
