"""The algorithms' view of a model: its tree with constants in canonical frames, ready to be scanned.

A joint with an axis moves along z of its canonical frame, whatever its axis is in the model: its frame is turned
by `align` (z goes to the axis), and its body, its children's placements and its external force turn along. The physics
does not change, and one piece of code serves every axis.
Joints that mimic are independent here; `Coupling` maps the user's coordinates to the tree's and forces back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..math.spatial import BodyInertia, Transform
from ..math.vec3 import Mat3, Scalar, Sym3, Vec3
from .joints import JointKind
from .model import WORLD, Array, Model


@dataclass(frozen=True, eq=False)
class Node:
    """One joint with its body, in canonical frames; scalars are constants of the model."""

    index: int
    parent: int
    kind: JointKind
    X: Transform  # of the joint's canonical frame in its parent's
    body: BodyInertia
    pitch: Scalar
    armature: tuple[Scalar, ...]
    align: Mat3  # canonical axes in the joint's own frame
    q: slice  # its coordinates among the tree's
    v: slice

    @property
    def is_root(self) -> bool:
        return self.parent == WORLD


@dataclass(frozen=True, eq=False)
class Coupling:
    """The linear map of mimicking joints: q_tree = q[qi] * qs + q0 and v_tree = v[vi] * vs."""

    qi: Array
    qs: Array
    q0: Array
    vi: Array
    vs: Array

    @cached_property
    def G(self) -> Array:
        """v_tree = G v, (tree nv, model nv)."""
        G = np.zeros((len(self.vi), self.vi.max() + 1))
        G[np.arange(len(self.vi)), self.vi] = self.vs
        return G


class Tree:
    """Nodes in depth-first order, and index tables over joints and degrees of freedom."""

    def __init__(self, model: Model) -> None:
        self.gravity = Vec3(*model.gravity.tolist())
        self.nodes: list[Node] = []
        self.ends = model.subtree_end
        aligns: list[Array] = []
        nq = nv = 0
        for i, joint in enumerate(model.joints):
            A = axis_alignment(joint.axis) if joint.kind.has_axis else np.eye(3)
            Ap = np.eye(3) if joint.parent == WORLD else aligns[joint.parent]
            aligns.append(A)
            body = joint.body
            self.nodes.append(
                Node(
                    index=i,
                    parent=joint.parent,
                    kind=joint.kind,
                    X=Transform(
                        Mat3.from_array(cleaned(Ap.T @ joint.placement[:3, :3] @ A)),
                        Vec3(*(Ap.T @ joint.placement[:3, 3]).tolist()),
                    ),
                    body=BodyInertia(
                        body.mass, Vec3(*(A.T @ body.com).tolist()), Sym3.from_array(A.T @ body.inertia @ A)
                    ),
                    pitch=joint.pitch,
                    armature=tuple(joint.armature),  # NumPy's floats: a pivot of zero then gives inf, not an exception
                    align=Mat3.from_array(A),
                    q=slice(nq, nq + joint.kind.nq),
                    v=slice(nv, nv + joint.kind.nv),
                )
            )
            nq, nv = nq + joint.kind.nq, nv + joint.kind.nv
        self.nq, self.nv = nq, nv
        self.coupling = coupling(model) if model.has_mimic else None

    def subtree(self, node: Node) -> slice:
        """The degrees of freedom of the node's subtree, its own included."""
        return slice(node.v.start, self.nodes[self.ends[node.index] - 1].v.stop)

    @cached_property
    def dof_parents(self) -> list[int]:
        """For each degree of freedom the one before it on the way to the root, or WORLD ([RBDA] sec. 6.5)."""
        parents: list[int] = []
        for node in self.nodes:
            above = WORLD if node.is_root else self.nodes[node.parent].v.stop - 1
            parents += [above, *range(node.v.start, node.v.stop - 1)]
        return parents


def cleaned(R: Array) -> Array:
    """A rotation whose entries are 0, 1 or -1 where they are so but for rounding: compiled code leaves these out."""
    whole = np.round(R)
    return np.where(np.abs(R - whole) < 1e-15, whole, R)


def axis_alignment(axis: Array) -> Array:
    """A rotation whose third column is the unit vector `axis`; a mere permutation for the coordinate axes."""
    k = int(np.argmax(np.abs(axis)))
    if axis[k] == 1.0:
        return np.roll(np.eye(3), k - 2, axis=1).T if k != 2 else np.eye(3)
    x = np.cross(np.eye(3)[(k + 1) % 3], axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def coupling(model: Model) -> Coupling:
    """The map from a model's coordinates to those of its tree, in which every joint is independent."""
    qi, qs, q0, vi, vs = [], [], [], [], []
    for joint, iq, iv in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        qi += range(iq, iq + joint.kind.nq)
        vi += range(iv, iv + joint.kind.nv)
        qs += [m] * joint.kind.nq
        q0 += [offset] * joint.kind.nq
        vs += [m] * joint.kind.nv
    return Coupling(np.array(qi), np.array(qs), np.array(q0), np.array(vi), np.array(vs))
