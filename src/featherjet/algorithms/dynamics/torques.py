"""Responses to torques, and with them the inverse of the mass matrix; after Carpentier ([RSS18] Sec. IV-C).

Row k of M^-1 is the response of the robot at rest to a unit torque at dof k. Going up from k, a force is handed on:
p + K_i (S_i^T p) beyond dof i. A body that feels p accelerates by a = -Omega p, where Omega is its compliance, which an
outward pass finds for all bodies. Where the way branches, and beyond k, a goes outward: r_i = K_i^T a is the entry of
dof i, and S_i r_i is added to a. The matrix is symmetric: no row needs its entries above k.
`direct` finds the derivatives of forward dynamics on the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...math.spatial import Compliance, Force, Motion
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import NO_FORCE
from ..scan import Array, Scan
from . import aba

H = TypeVar("H", bound="Handed")


@dataclass(slots=True, eq=False)
class Compliant:
    """The compliance Omega of a body, and that of its parent."""

    Omega: Compliance
    parent: Compliance


@dataclass(slots=True, eq=False)
class TorqueDof:
    """What a response needs of a dof: its pivot (see `aba.Pivot`), and the compliance of its body and of the parent."""

    S: Motion
    K: Force
    dinv: Scalar
    body: Compliant


@dataclass(slots=True, eq=False)
class Handed:
    """The force that a joint hands to its parent."""

    p: Force

    def through(self: H, dof: Any, felt: Scalar) -> H:
        """Beyond a dof that felt S^T p: p + U u = p + K S^T p."""
        return type(self)(self.p + felt * dof.K)


def by_rows(scan: Scan, joints: Sequence[aba.Articulated]) -> Array:
    """M^-1 from articulated bodies, row by row."""
    dofs = scan.each(torque_dofs, joints, scan.outward(comply, joints))
    return scan.torques(start, up, above, turn, out, dofs)[0]


def comply(node: Node, parent: Compliant | None, joint: aba.Articulated) -> Compliant:
    """Omega = (1 + S K^T) Omega_parent (1 + K S^T) + S S^T / d, for each dof."""
    before = Omega = parent.Omega if parent else Compliance.none()
    for k, pivot in enumerate(joint.pivots):
        if parent is None and k == 0:
            Omega = Omega.minus_outer(pivot.S, -pivot.dinv * pivot.S)
            continue
        w = Omega @ pivot.K
        c = pivot.K.dot(w) + pivot.dinv
        Omega = Omega.minus_pair(pivot.S, -1.0 * w - (0.5 * c) * pivot.S)
    return Compliant(Omega, before)


def torque_dofs(node: Node, joint: aba.Articulated, body: Compliant) -> list[TorqueDof]:
    return [TorqueDof(pivot.S, pivot.K, pivot.dinv, body) for pivot in joint.pivots]


def start(node: Node, k: int, dofs: Sequence[TorqueDof]) -> tuple:
    return unit_torque(Handed(NO_FORCE), node, k, dofs)


def unit_torque(nothing: Handed, node: Node, k: int, dofs: Sequence[TorqueDof]) -> tuple:
    """A unit torque at dof k of a joint: what it hands on, its body's acceleration, and r of all its dofs."""
    handed, u = nothing, [0.0] * len(dofs)
    for i in reversed(range(k + 1)):
        felt = -1.0 if i == k else dofs[i].S.dot(handed.p)
        u[i] = -dofs[i].dinv * felt
        handed = handed.through(dofs[i], felt)
    a, entries = -1.0 * (dofs[k].body.parent @ handed.p), []
    for dof, left in zip(dofs, u, strict=True):
        r = left + dof.K.dot(a)
        a = a + r * dof.S
        entries.append(r)
    return handed, a, entries


def up(node: Node, handed: H, dofs: Sequence[TorqueDof]) -> H:
    """Through an ancestor."""
    for dof in reversed(dofs):
        handed = handed.through(dof, dof.S.dot(handed.p))
    return handed


def above(node: Node, handed: Handed, dofs: Sequence[TorqueDof]) -> list[tuple]:
    """No entries: M^-1 is symmetric."""
    return [() for _ in dofs]


def turn(node: Node, handed: Handed, dofs: Sequence[TorqueDof]) -> Motion:
    """The acceleration -Omega p of an ancestor's body."""
    return -1.0 * (dofs[-1].body.Omega @ handed.p)


def out(node: Node, a: Motion, dofs: Sequence[TorqueDof]) -> tuple[Motion, list[tuple]]:
    """r = K^T a for each dof."""
    entries = []
    for dof in dofs:
        r = dof.K.dot(a)
        a = a + r * dof.S
        entries.append((r,))
    return a, entries
