"""The mass matrix by the composite-rigid-body algorithm; [RBDA] ch. 6."""

from __future__ import annotations

from dataclasses import dataclass

from ...math.spatial import Force, Inertia, Motion, Transform
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import place
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class DofMomentum:
    """A degree of freedom's column S, the momentum F = IC S of its subtree at unit rate, and its armature."""

    S: Motion
    F: Force
    armature: Scalar


def mass_matrix(scan: Scan, q: Array) -> Array:
    """M(q) (nv, nv), with armature on its diagonal."""
    return scan.pairs(within, across, columns(scan, q), diagonal)[0]


def columns(scan: Scan, q: Array) -> list[list[DofMomentum]]:
    """The columns of all joints."""
    X = scan.outward(place, scan.coordinates(q))
    inertias = scan.each(lambda node, X: node.body.placed(X), X)
    return scan.inward(composite, inertias, X)


def composite(node: Node, IC: Inertia, X: Transform) -> tuple[Inertia, list[DofMomentum]]:
    S = node.kind.subspace(X, node.pitch)
    return IC, [DofMomentum(s, IC @ s, arm) for s, arm in zip(S, node.armature, strict=True)]


def within(i: DofMomentum, k: DofMomentum) -> tuple:
    return (k.F.dot(i.S),)


across = within  # M is symmetric


def diagonal(i: DofMomentum) -> tuple:
    return (i.armature,)
