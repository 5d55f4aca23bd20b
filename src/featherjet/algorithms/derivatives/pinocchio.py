"""Derivatives of inverse dynamics as Pinocchio computed them before [IDSVA]; [IDSVA] Secs. I and V-C, its ref. [6].

Never published as an algorithm; known from its code (up to version 2.6) and from [IDSVA]'s description, and written
anew here. Ground coordinates. A forward pass in O(N): columns J = S, dVdq = v_parent x J, dAdq = a_parent x J +
v_parent x dVdq, dAdv = v x J + dVdq. A backward pass in O(Nd): each body i forms the forces dF = YC dA + dYC dV of its
own columns, multiplies the columns of its whole subtree by J_i^T for the entries beside and right of the diagonal, and
for those on its left runs a second loop over its ancestors j: J_i^T YC dA_j + J_i^T dYC dV_j. [IDSVA] turns that
inner loop into products of matrices, and uses that dYC = 2 BC is half empty; here it is a full 6x6 matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import UNITS, Force, Inertia, Motion
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..motion import Moving, moving, net_force
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import Entries, Partials, matrices, own


@dataclass(slots=True, eq=False)
class Full:
    """A 6x6 matrix from motions to forces, by its columns."""

    columns: list[Force]

    def __add__(self, other: Full) -> Full:
        return Full([a + b for a, b in zip(self.columns, other.columns, strict=True)])

    def __matmul__(self, m: Motion) -> Force:
        parts = (m.ang.x, m.ang.y, m.ang.z, m.lin.x, m.lin.y, m.lin.z)
        total = parts[0] * self.columns[0]
        for x, column in zip(parts[1:], self.columns[1:], strict=True):
            total = total + x * column
        return total

    def transposed_times(self, m: Motion) -> Force:
        x = [m.dot(column) for column in self.columns]
        return Force(Vec3(*x[:3]), Vec3(*x[3:]))


@dataclass(slots=True, eq=False)
class Column:
    """What one degree of freedom does to the bodies beyond it."""

    J: Motion
    dVdq: Motion
    dAdq: Motion
    dAdv: Motion


@dataclass(slots=True, eq=False)
class Subtree:
    """A subtree's inertia, its variation, its force, and the forces (dFdq, dFdv, dFda) of its dofs."""

    Y: Inertia
    dY: Full
    f: Force
    dF: Partials[tuple[Force, Force, Force]]

    def __add__(self, other: Subtree) -> Subtree:
        return Subtree(self.Y + other.Y, self.dY + other.dY, self.f + other.f, self.dF + other.dF)


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    columns = scan.each(column_sets, bodies)
    paths = scan.outward(path, columns)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*matrices(scan, scan.inward(backward, seeds, columns, paths)))


def column_sets(node: Node, body: Moving) -> Partials[Column]:
    out = []
    for S in body.S:
        dVdq = body.v_parent.cross(S)
        dAdq = body.a_parent.cross(S) + body.v_parent.cross(dVdq)
        out.append(Column(S, dVdq, dAdq, body.v.cross(S) + dVdq))
    return own(node, out)


def path(node: Node, above: Partials[Column] | None, here: Partials[Column]) -> Partials[Column]:
    """The columns from the root to this joint."""
    return Partials({**(above or {}), **here})


def seed(node: Node, body: Moving, fext) -> Subtree:
    """dY = v x* I - I v x + (I v) xbar*, for all six unit motions."""
    I, v = node.body.placed(body.X), body.v
    h = I @ v
    dY = [v.cross_force(I @ e) - I @ v.cross(e) + h.cross_bar(e) for e in UNITS]
    return Subtree(I, Full(dY), net_force(node, body, I, fext), Partials())


def backward(node: Node, sub: Subtree, here: Partials[Column], upto: Partials[Column]) -> tuple[Subtree, Entries]:
    """Rows of this joint's dofs: their subtree by one product, their ancestors by an inner loop."""
    dF = here.map(lambda c: (sub.Y @ c.dAdq + sub.dY @ c.dVdq, sub.Y @ c.dAdv + sub.dY @ c.J, sub.Y @ c.J))
    entries: dict[tuple[int, int], tuple] = {}
    for i, c in here.items():
        for k, forces in [*dF.items(), *sub.dF.items()]:
            entries[i, k] = tuple(c.J.dot(f) for f in forces)
        YJ, JdY = sub.Y @ c.J, sub.dY.transposed_times(c.J)
        for j, above in upto.items():
            if j not in here:
                by_q = above.dAdq.dot(YJ) + above.dVdq.dot(JdY)
                by_v = above.dAdv.dot(YJ) + above.J.dot(JdY)
                entries[i, j] = by_q, by_v, above.J.dot(YJ)
        by_q, by_v, M = entries[i, i]
        entries[i, i] = by_q, by_v, M + node.armature[i - node.v.start]
    handed = {k: (dFdq + sub.f.cross_bar(here[k].J), dFdv, dFda) for k, (dFdq, dFdv, dFda) in dF.items()}
    return Subtree(sub.Y, sub.dY, sub.f, Partials({**sub.dF, **handed})), entries
