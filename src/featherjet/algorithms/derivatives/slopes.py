"""Slopes of lambda.tau: the products lambda^T dtau/dq, lambda^T dtau/dv, lambda^T dtau/da without the matrices.

[IDSVA] gives column i of dtau/dq as t4_k.Psid_i + t1_k.Psidd_i in the rows k of i's subtree, and t3_i.S_k in those of
its ancestors. Weighted by lambda_k and summed, the rows below amount to two sums over the subtree, those above to one
sum along the path from the root to the parent p of i's joint:

    (lambda^T dtau/dq)_i = L.Psid_i + P.Psidd_i + t3_i.mu_p
    (lambda^T dtau/dv)_i = L.S_i + P.(Sd_i + Psid_i) + t2_i.mu_p
    (lambda^T dtau/da)_i = P.S_i + t1_i.mu_p + armature_i lambda_i
    P = sum of lambda_k t1_k, L = sum of lambda_k t4_k over k in the subtree of i's joint;  mu_p = sum of lambda_k S_k

That takes one outward walk more than inverse dynamics: O(n) instead of O(n^2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...math.spatial import Force, Motion, span
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..motion import NO_FORCE, REST, Moving, moving
from ..scan import Array, Scan
from . import idsva


@dataclass(slots=True, eq=False)
class WeightedComposite(idsva.ForcedComposite):
    """Of a subtree: inertia, twice the Coriolis matrix, force, and the sums P and L."""

    P: Force
    L: Vec3


@dataclass(slots=True, eq=False)
class WeightedJoint:
    """A joint's torques, multipliers, terms and sums, for the outward walk."""

    tau: Sequence[Scalar]
    multipliers: Sequence[Scalar]
    dofs: Sequence[idsva.DofTerms]
    P: Force
    L: Vec3


def torque_slopes(
    scan: Scan, q: Array, v: Array, a: Array, weights: Array, fext: Sequence | None = None, *, fixed: bool = False
) -> tuple[Array, ...]:
    """tau and the slopes of lambda.tau by q, v, a, (nv,) each; lambda = weights * tau, or the weights if `fixed`."""
    fields = scan.coordinates(q), scan.rates(v), scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), *fields)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    joints = scan.inward(collect(fixed), seeds, bodies, fields[2], scan.rates(weights))
    answers = scan.outward(answer, joints)
    return tuple(scan.vector([entries[k] for _, entries in answers]) for k in range(4))


def seed(node: Node, body: Moving, fext: Any) -> WeightedComposite:
    """A body's own share."""
    own = idsva.seed(node, body, fext)
    return WeightedComposite(own.I, own.B2, own.f, NO_FORCE, REST.ang)


def collect(fixed: bool) -> Callable[..., tuple[WeightedComposite, WeightedJoint]]:
    """The inward step: torques, and with them the sums over the subtree."""

    def step(node: Node, C: WeightedComposite, body: Moving, a: Sequence[Scalar], weights: Sequence[Scalar]):
        tau = [S.dot(C.f) + arm * x for S, arm, x in zip(body.S, node.armature, a, strict=True)]
        multipliers = list(weights) if fixed else [w * t for w, t in zip(weights, tau, strict=True)]
        dofs = [idsva.dof_terms(C, body, S, arm) for S, arm in zip(body.S, node.armature, strict=True)]
        P, L = C.P, C.L
        for x, d in zip(multipliers, dofs, strict=True):
            P, L = P + x * d.t1, L + x * d.t4
        return WeightedComposite(C.I, C.B2, C.f, P, L), WeightedJoint(tau, multipliers, dofs, P, L)

    return step


def answer(node: Node, parent: tuple[Motion, Any] | None, joint: WeightedJoint) -> tuple[Motion, tuple[list, ...]]:
    """The outward step: mu, and each dof's torque and slopes."""
    above = parent[0] if parent else REST
    mu = above + span([d.S for d in joint.dofs], joint.multipliers)
    P, L = joint.P, joint.L
    by_q = [L.dot(d.Psid.ang) + P.dot(d.Psidd) + d.t3.dot(above) for d in joint.dofs]
    by_v = [L.dot(d.S.ang) + P.dot(d.SPd) + d.t2.dot(above) for d in joint.dofs]
    by_a = [P.dot(d.S) + d.t1.dot(above) + d.armature * x for d, x in zip(joint.dofs, joint.multipliers, strict=True)]
    return mu, (list(joint.tau), by_q, by_v, by_a)
