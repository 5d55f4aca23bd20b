"""Derivatives of inverse dynamics by the chain rule on the recursive Newton-Euler algorithm; [RSS18] Algs. 2 and 3.

[IDSVA] calls it RNEACR. Body coordinates; every line of RNEA is differentiated and carries sets of partials: O(Nd)
forward and O(Nd) backward. dtau/da is the mass matrix, which [RSS18] eq. 10b leaves to CRBA.
The simplifications of Sec. III-C hold, with one exception, found by complex step: "v_i x S_i = 0, hence the last term
always vanishes" (Sec. III-C5) is wrong whenever the parent moves. da_i/dqd_i = S_i x vJ + v_i x S_i, and both terms are
zero only for a one-dof joint on a parent at rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Force, Motion
from ...model.tree import Node
from ..dynamics import crba
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import IDENTITY, Entries, Local, Partials, local, local_force, own


@dataclass(slots=True, eq=False)
class Motions:
    """Partials of a body's v and a by q and by v."""

    v_q: Partials[Motion]
    v_v: Partials[Motion]
    a_q: Partials[Motion]
    a_v: Partials[Motion]


@dataclass(slots=True, eq=False)
class Forces(Additive):
    """The force through a joint and its partials by q and by v."""

    f: Force
    f_q: Partials[Force]
    f_v: Partials[Force]


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq and dtau/dv by the chain rule, dtau/da = M by composite bodies."""
    bodies = scan.outward(local(scan), scan.coordinates(q), scan.rates(v), scan.rates(a))
    motions = scan.outward(motion_sets, bodies)
    forces = scan.each(force_sets, bodies, motions, fext if fext is not None else scan.constant(None))
    by_q, by_v = scan.entries(scan.inward(backward, forces, bodies))
    return InverseDynamicsDerivatives(by_q, by_v, crba.mass_matrix(scan, q))


def motion_sets(node: Node, parent: Motions | None, body: Local) -> Motions:
    """Alg. 2, lines 3 and 5; dX/dq_k m = (X m) x S_k (eq. 13)."""
    to_body, vJ, S = body.X.motion_inverse, body.vJ, body.S
    above = parent or Motions(Partials(), Partials(), Partials(), Partials())
    v_q = above.v_q.map(to_body) + own(node, [body.v_parent.cross(s) for s in S])
    v_v = above.v_v.map(to_body) + own(node, S)
    a_q = above.a_q.map(to_body) + own(node, [body.a_parent.cross(s) for s in S])
    a_v = above.a_v.map(to_body) + own(node, [body.v.cross(s) for s in S])
    return Motions(v_q, v_v, a_q + v_q.map(lambda dv: dv.cross(vJ)), a_v + v_v.map(lambda dv: dv.cross(vJ)))


def force_sets(node: Node, body: Local, m: Motions, fext) -> Forces:
    """Alg. 2, lines 4 and 6: df = I da + dv x* h + v x* dh. External forces are constant in their bodies' frames."""
    I, v = node.body.placed(IDENTITY), body.v
    h = I @ v

    def df(dv: Partials[Motion], da: Partials[Motion]) -> Partials[Force]:
        return Partials({k: I @ da[k] + dv[k].cross_force(h) + v.cross_force(I @ dv[k]) for k in dv})

    return Forces(local_force(node, body, I, fext), df(m.v_q, m.a_q), df(m.v_v, m.a_v))


def backward(node: Node, F: Forces, body: Local) -> tuple[Forces, Entries]:
    """Alg. 3: dtau = S^T df, and the parent feels X* df, with X* (S_k x* f) added for the joint's own q (eq. 14)."""
    entries = {(i, k): (s.dot(F.f_q[k]), s.dot(F.f_v[k])) for i, s in enumerate(body.S, node.v.start) for k in F.f_q}
    if node.is_root:
        return F, entries
    up = body.X.force
    f_q = F.f_q + own(node, [s.cross_force(F.f) for s in body.S])
    return Forces(up(F.f), f_q.map(up), F.f_v.map(up)), entries
