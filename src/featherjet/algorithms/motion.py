"""How bodies move: the outward step that every dynamics algorithm begins with.

Dynamics do not depend on where the inertial frame stands, so each root's tree is computed in the inertial frame that
coincides, at this instant, with the root body's frame. The root's placement is then the identity, its subspace is
constant, only gravity has to be rotated, and a robot far from the world's origin loses no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..math.spatial import Force, Inertia, Motion, Subspace, Transform, span
from ..math.vec3 import Scalar, Vec3
from ..model.tree import Node

REST = Motion(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))
NO_FORCE = Force(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))


@dataclass(slots=True, eq=False)
class Moving:
    """A body's placement X, subspace S, spatial velocity v and acceleration a (gravity included: a0 = -g)."""

    X: Transform
    S: Subspace
    v: Motion
    a: Motion
    v_parent: Motion
    a_parent: Motion


@dataclass(slots=True, eq=False)
class DofMotion:
    """A degree of freedom's column S, and how it changes the motion of the bodies beyond it; [IDSVA] eqs. 31-32.

    By position they gain Psid in velocity and Psidd in acceleration; by velocity S and SPd.
    """

    S: Motion
    Psid: Motion  # v_parent x S
    Psidd: Motion  # a_parent x S + v_parent x Psid
    SPd: Motion  # Sd + Psid, Sd = v x S


def dof_motion(body: Moving, S: Motion) -> DofMotion:
    """The motion of one column S of a body's joint."""
    Psid = body.v_parent.cross(S)
    Psidd = body.a_parent.cross(S) + body.v_parent.cross(Psid)
    return DofMotion(S, Psid, Psidd, body.v.cross(S) + Psid)


def dof_motions(node: Node, body: Moving) -> list[DofMotion]:
    """The same for every degree of freedom of a joint, as a step of `Scan.each`."""
    return [dof_motion(body, S) for S in body.S]


def place(node: Node, parent: Transform | None, q: Sequence[Scalar]) -> Transform:
    """A body's placement in the frame of its root body; see this module's docstring."""
    if parent is None:
        return Transform.identity()
    return node.kind.move(parent.compose(node.X), q, node.pitch)


def upward(node: Node, q: Sequence[Scalar], gravity: Vec3) -> Motion:
    """The acceleration a0 = -g of the ground, in a root body's frame; [IDSVA] above eq. 9."""
    R = node.kind.move(node.X, q, node.pitch).R
    return Motion(REST.ang, -R.transposed_times(gravity))


@dataclass(slots=True, eq=False)
class Standing:
    """A body's placement in its root's frame, and its velocity."""

    X: Transform
    u: Motion


def standing(node: Node, parent: Standing | None, q: Sequence[Scalar], v: Sequence[Scalar]) -> Standing:
    """An outward step."""
    X = place(node, parent.X if parent else None, q)
    u = parent.u if parent else REST
    for s, x in zip(node.kind.subspace(X, node.pitch), v, strict=True):
        u = u + x * s
    return Standing(X, u)


def moving(gravity: Vec3) -> Callable[..., Moving]:
    """The outward step (node, parent, q, v, a) -> Moving; [IDSVA] Alg. 1, lines 1-4."""

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        X = place(node, parent.X if parent else None, q)
        return carried(node, parent, X, REST if parent else upward(node, q, gravity), v, a)

    return step


def carried(node: Node, parent: Moving | None, X: Transform, a0: Motion, v, a) -> Moving:
    """A body placed at X whose joint moves with rates v and a; a root's parent accelerates with a0."""
    v_parent, a_parent = (parent.v, parent.a) if parent else (REST, a0)
    S = node.kind.subspace(X, node.pitch)
    vJ = span(S, v)
    a_i = a_parent + span(S, a)
    if parent:
        a_i = a_i + v_parent.cross(vJ)  # = v x vJ, since vJ x vJ = 0
    return Moving(X, S, v_parent + vJ if parent else vJ, a_i, v_parent, a_parent)


def world_placement(node: Node, parent: Transform | None, q: Sequence[Scalar]) -> Transform:
    """A body's placement in the world."""
    return node.kind.move(parent.compose(node.X) if parent else node.X, q, node.pitch)


def external(node: Node, X: Transform, fext: Sequence[Scalar] | None) -> Force | None:
    """An external force, given as (linear, angular) in the joint's own frame, for a body placed at X."""
    if fext is None:
        return None
    to_canonical = node.align.transposed_times
    return X.force(Force(to_canonical(Vec3(*fext[3:])), to_canonical(Vec3(*fext[:3]))))


def net_force(node: Node, body: Moving, I: Inertia, fext: Sequence[Scalar] | None, X: Transform | None = None) -> Force:
    """I a + v x* I v - fext, what the joints must exert on a body; [IDSVA] eq. 8.

    X is the body's placement in the frame that I, v and a are given in: that of `body`, unless given.
    """
    f = I @ body.a + body.v.cross_force(I @ body.v)
    outside = external(node, X or body.X, fext)
    return f - outside if outside else f
