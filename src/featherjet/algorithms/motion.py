"""How bodies move: the outward step that every dynamics algorithm begins with.

Dynamics do not depend on where the inertial frame stands, so each root's tree is computed in the inertial frame that
coincides, at this instant, with the root body's frame. Its placement is then the identity, its subspace is constant,
only gravity has to be turned, and a robot far from the world's origin loses no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..math.spatial import Force, Inertia, Motion, Subspace, Transform, span
from ..math.vec3 import Scalar, Vec3
from ..model.tree import Node

REST = Motion(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))


@dataclass(slots=True, eq=False)
class Moving:
    """A body's placement X, subspace S, spatial velocity v and acceleration a (gravity included: a0 = -g)."""

    X: Transform
    S: Subspace
    v: Motion
    a: Motion
    v_parent: Motion
    a_parent: Motion


def place(node: Node, parent: Transform | None, q: Sequence[Scalar]) -> Transform:
    """A body's placement in the frame of its root body; see this module's head."""
    if parent is None:
        return Transform.identity()
    return node.kind.move(parent.compose(node.X), q, node.pitch)


def upward(node: Node, q: Sequence[Scalar], gravity: Vec3) -> Motion:
    """The acceleration a0 = -g of the ground, seen from a root body's frame; [IDSVA] above eq. 9."""
    R = node.kind.move(node.X, q, node.pitch).R
    return Motion(REST.ang, -R.transposed_times(gravity))


def moving(gravity: Vec3) -> Callable[..., Moving]:
    """The outward step (node, parent, q, v, a) -> Moving; [IDSVA] Alg. 1, lines 1-4."""

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        X = place(node, parent.X if parent else None, q)
        return carried(node, parent, X, REST if parent else upward(node, q, gravity), v, a)

    return step


def carried(node: Node, parent: Moving | None, X: Transform, a0: Motion, v, a) -> Moving:
    """A body placed at X whose joint moves with rates v and a; a0 is the ground's acceleration, for a root."""
    v_parent, a_parent = (parent.v, parent.a) if parent else (REST, a0)
    S = node.kind.subspace(X, node.pitch)
    vJ = span(S, v)
    a_i = a_parent + span(S, a)
    if parent:
        a_i = a_i + v_parent.cross(vJ)  # = v x vJ, since vJ x vJ = 0
    return Moving(X, S, v_parent + vJ if parent else vJ, a_i, v_parent, a_parent)


def external(node: Node, X: Transform, fext: Sequence[Scalar] | None) -> Force | None:
    """An external force given as (linear, angular) in the joint's own frame, in the common frame."""
    if fext is None:
        return None
    into = node.align.transposed_times
    return X.force(Force(into(Vec3(*fext[3:])), into(Vec3(*fext[:3]))))


def net_force(node: Node, body: Moving, I: Inertia, fext: Sequence[Scalar] | None) -> Force:
    """The force that moves a body, less what acts from outside; [IDSVA] eq. 8."""
    f = I @ body.a + body.v.cross_force(I @ body.v)
    outside = external(node, body.X, fext)
    return f - outside if outside else f
