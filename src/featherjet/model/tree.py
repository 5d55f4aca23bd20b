"""The model as the algorithms see it: a tree whose constants are given in canonical frames.

A joint with an axis moves along z of its canonical frame, whatever its axis in the model. `align` rotates the joint's
frame (z goes to the axis); its body, its children's placements and its external force rotate with it. The physics does
not change, and one piece of code serves every axis.
Mimicking joints are independent here; `Coupling` maps the user's coordinates to the tree's, and forces back.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..math.spatial import BodyInertia, Transform
from ..math.vec3 import Mat3, Scalar, Sym3, Vec3
from .joints import JointKind
from .manifolds import Manifold
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
    v: slice  # its degrees of freedom among the tree's
    end: int  # one more than the last index of its subtree

    @property
    def is_root(self) -> bool:
        return self.parent == WORLD

    @property
    def manifold(self) -> Manifold:
        return self.kind.manifold

    @property
    def dofs(self) -> range:
        """Its degrees of freedom among the tree's."""
        return range(self.v.start, self.v.stop)


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
    """A model's joints as nodes in depth-first order, with tables over joints and degrees of freedom."""

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
                    end=self.ends[i],
                )
            )
            nq, nv = nq + joint.kind.nq, nv + joint.kind.nv
        self.nq, self.nv = nq, nv
        self.coupling = coupling(model) if model.has_mimic else None

    def weightless(self) -> Tree:
        """The same tree without gravity."""
        light = copy.copy(self)
        light.gravity = Vec3(0.0, 0.0, 0.0)
        return light

    def independent(self) -> Tree:
        """The same tree, whose joints mimic no others."""
        free = copy.copy(self)
        free.coupling = None
        return free

    def subtree(self, node: Node) -> slice:
        """The degrees of freedom of the node's subtree, its own included."""
        return slice(node.v.start, self.nodes[self.ends[node.index] - 1].v.stop)

    @cached_property
    def dof_parents(self) -> list[int]:
        """For each degree of freedom the one before it on the path from the root, or WORLD ([RBDA] sec. 6.5)."""
        parents: list[int] = []
        for node in self.nodes:
            above = WORLD if node.is_root else self.nodes[node.parent].v.stop - 1
            parents += [above, *range(node.v.start, node.v.stop - 1)]
        return parents

    def path(self, joint: int) -> list[Node]:
        """The joints from the root to this one, itself included; empty for WORLD."""
        return [self.nodes[i] for i in self._paths[joint]] if joint != WORLD else []

    def dof_path(self, joint: int) -> list[int]:
        """The degrees of freedom that move the joint's body, from the root outward; empty for WORLD."""
        return [i for node in self.path(joint) for i in node.dofs]

    def moves(self, joint: int) -> Array:
        """For each degree of freedom (nv,): one if it moves the joint's body, else zero."""
        found = np.zeros(self.nv)
        found[self.dof_path(joint)] = 1.0
        return found

    @cached_property
    def _paths(self) -> list[list[int]]:
        return paths([node.parent for node in self.nodes])


def paths(parents: Sequence[int]) -> list[list[int]]:
    """For each element of a tree the elements from its root to itself; a parent stands before its children."""
    found: list[list[int]] = []
    for i, parent in enumerate(parents):
        found.append([*found[parent], i] if parent != WORLD else [i])
    return found


def cleaned(R: Array) -> Array:
    """A rotation with entries rounded to 0, 1 or -1 where they differ by rounding only: compiled code folds these."""
    whole = np.round(R)
    return np.where(np.abs(R - whole) < 1e-15, whole, R)


def axis_alignment(axis: Array) -> Array:
    """A rotation whose third column is the unit vector `axis`; a permutation matrix for the coordinate axes."""
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
