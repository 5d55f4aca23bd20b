"""The mass matrix by the composite-rigid-body algorithm; [RBDA] ch. 6."""

from __future__ import annotations

from dataclasses import dataclass

from ..math.spatial import Force, Inertia, Motion, Transform
from ..model.tree import Node
from .motion import place
from .scan import Array, Scan


@dataclass(slots=True, eq=False)
class Column:
    """A degree of freedom's motion S and the momentum IC S it gives to its subtree."""

    S: Motion
    F: Force


def mass_matrix(scan: Scan, q: Array) -> Array:
    """M(q), with armature on its diagonal."""
    return with_armature(scan, scan.pairs(within, across, columns(scan, q))[0])


def mass_diagonal(scan: Scan, q: Array) -> Array:
    """Only the diagonal of M(q): the inertia each degree of freedom would move were all others locked."""
    diagonal = [
        [c.S.dot(c.F) + arm for c, arm in zip(joint, node.armature, strict=True)]
        for node, joint in zip(scan.tree.nodes, columns(scan, q), strict=True)
    ]
    return scan.vector(diagonal)


def columns(scan: Scan, q: Array) -> list[list[Column]]:
    X = scan.outward(place, scan.coordinates(q))
    inertias = scan.each(lambda node, X: node.body.placed(X), X)
    return scan.inward(composite, inertias, X)


def composite(node: Node, IC: Inertia, X: Transform) -> tuple[Inertia, list[Column]]:
    return IC, [Column(S, IC @ S) for S in node.kind.subspace(X, node.pitch)]


def within(i: Column, k: Column) -> tuple:
    return (k.F.dot(i.S),)


across = within  # M is symmetric


def with_armature(scan: Scan, M: Array) -> Array:
    """Add each joint's armature to the diagonal of M."""
    for node in scan.tree.nodes:
        for i, arm in zip(range(node.v.start, node.v.stop), node.armature, strict=True):
            M[i, i] = M[i, i] + arm
    return M
