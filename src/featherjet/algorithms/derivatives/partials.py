"""Sets of partial derivatives carried along a walk ("motion sets" and "force sets" in [RSS18] Sec. III-B).

The chain-rule methods keep, with each body's quantity, its derivatives by the degrees of freedom it depends on: those
between the body and the root on the way out, and those of its subtree on the way in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...math.spatial import Force, Inertia, Motion, Transform, span
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import REST, Moving, net_force, upward
from ..scan import Entries as Entries
from ..scan import Scan

T = TypeVar("T")
R = TypeVar("R")


class Partials(dict[int, T]):
    """Derivatives of one quantity, {degree of freedom: derivative}; missing ones are zero."""

    def __add__(self, other: Mapping[int, Any]) -> Partials[T]:
        out = Partials(self)
        for k, x in other.items():
            out[k] = out[k] + x if k in out else x
        return out

    def map(self, f: Callable[[T], R]) -> Partials[R]:
        """f of every derivative; f must be linear."""
        return Partials({k: f(x) for k, x in self.items()})


class Sets(tuple[Partials[T], ...]):
    """Derivatives of one quantity by several variables, such as q, v and tau; added one by one."""

    __slots__ = ()

    def __add__(self, other: Sets[T]) -> Sets[T]:  # type: ignore[override]
        return Sets(x + y for x, y in zip(self, other, strict=True))

    def map(self, f: Callable[[T], R]) -> Sets[R]:
        """f of every derivative; f must be linear."""
        return Sets(x.map(f) for x in self)


def own(node: Node, columns: Sequence[T]) -> Partials[T]:
    """One entry for each degree of freedom of a joint."""
    return Partials(zip(node.dofs, columns, strict=True))


IDENTITY = Transform.identity()


@dataclass(slots=True, eq=False)
class Local(Moving):
    """A body in body coordinates: X is its placement in its parent's frame, motions are in its own frame."""

    vJ: Motion  # S qd


def local(scan: Scan) -> Callable[..., Local]:
    """The outward step (node, parent, q, v, a) -> Local; [RSS18] Alg. 1, lines 5-9."""
    gravity = scan.tree.gravity

    def step(node: Node, parent: Local | None, q, v, a) -> Local:
        X = node.kind.move(node.X, q, node.pitch)
        S = node.kind.subspace(IDENTITY, node.pitch)
        vJ = span(S, v)
        if parent:
            v_parent, a_parent = X.motion_inverse(parent.v), X.motion_inverse(parent.a)
            return Local(X, S, v_parent + vJ, a_parent + span(S, a) + v_parent.cross(vJ), v_parent, a_parent, vJ)
        a_parent = upward(node, q, gravity)
        return Local(X, S, vJ, a_parent + span(S, a), REST, a_parent, vJ)

    return step


def local_force(node: Node, body: Local, I: Inertia, fext: Sequence[Scalar] | None) -> Force:
    """I a + v x* I v - fext in the body's own frame; [RSS18] Alg. 1, line 11."""
    return net_force(node, body, I, fext, IDENTITY)
