"""Slopes of lambda.tau: the products lambda^T dtau/dq, lambda^T dtau/dv, lambda^T dtau/da without the matrices.

[IDSVA] gives column i of dtau/dq as t4_k.Psid_i + t1_k.Psidd_i in the rows k of i's subtree, and t3_i.S_k in those of
its ancestors. Weighted by lambda_k and summed, the rows below come in as two sums over the subtree, those above as one
along the path to the root, which ends at the parent p of i's joint:

    (lambda^T dtau/dq)_i = L.Psid_i + P.Psidd_i + t3_i.mu_p
    (lambda^T dtau/dv)_i = L.S_i + P.(Sd_i + Psid_i) + t2_i.mu_p
    (lambda^T dtau/da)_i = P.S_i + t1_i.mu_p + armature_i lambda_i
    P = sum of lambda_k t1_k, L = sum of lambda_k t4_k over k in the subtree of i's joint;  mu_p = sum of lambda_k S_k

One more walk inward and one outward than inverse dynamics has: O(n) instead of O(n^2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...math.spatial import Coriolis, Force, Inertia, Motion, span
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..motion import REST, Moving, moving
from ..scan import Array, Scan
from . import idsva

NONE = Force(REST.ang, REST.lin)


@dataclass(slots=True, eq=False)
class Composite:
    """Of a subtree: inertia, (twice) Coriolis matrix, force, and the sums P and L."""

    I: Inertia
    B: Coriolis
    f: Force
    P: Force
    L: Vec3

    def __add__(self, other: Composite) -> Composite:
        return Composite(self.I + other.I, self.B + other.B, self.f + other.f, self.P + other.P, self.L + other.L)


@dataclass(slots=True, eq=False)
class Joint:
    """What the way back out needs of a joint."""

    tau: Sequence[Scalar]
    multipliers: Sequence[Scalar]
    dofs: Sequence[idsva.Dof]
    P: Force
    L: Vec3


def torque_slopes(
    scan: Scan, q: Array, v: Array, a: Array, weights: Array, fext: Sequence | None = None, fixed: bool = False
) -> tuple[Array, ...]:
    """tau and the slopes of lambda.tau by q, v, a: lambda = weights * tau, or the weights themselves if `fixed`."""
    fields = scan.coordinates(q), scan.rates(v), scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), *fields)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    joints = scan.inward(collect(fixed), seeds, bodies, fields[2], scan.rates(weights))
    answers = scan.outward(answer, joints)
    return tuple(scan.vector([entries[k] for _, entries in answers]) for k in range(4))


def seed(node: Node, body: Moving, fext: Any) -> Composite:
    own = idsva.seed(node, body, fext)
    return Composite(own.I, own.B, own.f, NONE, REST.ang)


def collect(fixed: bool) -> Callable[..., tuple[Composite, Joint]]:
    """The inward step: torques, and with them the sums over the subtree."""

    def step(node: Node, C: Composite, body: Moving, a: Sequence[Scalar], weights: Sequence[Scalar]):
        tau = [S.dot(C.f) + arm * x for S, arm, x in zip(body.S, node.armature, a, strict=True)]
        multipliers = list(weights) if fixed else [w * t for w, t in zip(weights, tau, strict=True)]
        whole = idsva.Composite(C.I, C.B, C.f)
        dofs = [idsva.dof(whole, body, S, arm) for S, arm in zip(body.S, node.armature, strict=True)]
        P, L = C.P, C.L
        for x, d in zip(multipliers, dofs, strict=True):
            P, L = P + x * d.t1, L + x * d.t4
        return Composite(C.I, C.B, C.f, P, L), Joint(tau, multipliers, dofs, P, L)

    return step


def answer(node: Node, parent: tuple[Motion, Any] | None, joint: Joint) -> tuple[Motion, tuple[list, ...]]:
    """The outward step: mu, and each dof's torque and slopes."""
    above = parent[0] if parent else REST
    mu = above + span([d.S for d in joint.dofs], joint.multipliers)
    P, L = joint.P, joint.L
    by_q = [L.dot(d.Psid.ang) + P.dot(d.Psidd) + d.t3.dot(above) for d in joint.dofs]
    by_v = [L.dot(d.S.ang) + P.dot(d.SPd) + d.t2.dot(above) for d in joint.dofs]
    by_a = [P.dot(d.S) + d.t1.dot(above) + d.armature * x for d, x in zip(joint.dofs, joint.multipliers, strict=True)]
    return mu, (list(joint.tau), by_q, by_v, by_a)
