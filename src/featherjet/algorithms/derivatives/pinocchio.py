"""Derivatives of inverse dynamics as Pinocchio computed them before [IDSVA]; [IDSVA] Secs. I and V-C, its ref. [6].

Never published as an algorithm; known from its code (up to version 2.6) and from [IDSVA]'s description, and written
anew here. Ground coordinates. A forward pass in O(N) finds the columns that Pinocchio calls J = S, dVdq = Psid,
dAdq = Psidd and dAdv = Sd + Psid. A backward pass in O(Nd): each body i forms the forces dF = YC dA + dYC dV of its own
columns, multiplies the columns of its whole subtree by S_i^T for the entries beside and right of the diagonal, and runs
a second loop over its ancestors j for those on the left: S_i^T YC dA_j + S_i^T dYC dV_j. [IDSVA] turns that inner loop
into products of matrices, and exploits that dYC = 2 BC is half empty; here it is a full 6x6 matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import UNITS, Force, Inertia, Motion
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..motion import DofMotion, Moving, dof_motions, moving, net_force
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .partials import Entries, Partials, own


@dataclass(slots=True, eq=False)
class Full:
    """A 6x6 matrix from motions to forces, by its columns."""

    columns: tuple[Force, ...]

    def __add__(self, other: Full) -> Full:
        return Full(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    def __matmul__(self, m: Motion) -> Force:
        parts = (m.ang.x, m.ang.y, m.ang.z, m.lin.x, m.lin.y, m.lin.z)
        total = parts[0] * self.columns[0]
        for x, column in zip(parts[1:], self.columns[1:], strict=True):
            total = total + x * column
        return total

    def transposed_times(self, m: Motion) -> Force:
        """self^T m."""
        x = [m.dot(column) for column in self.columns]
        return Force(Vec3(*x[:3]), Vec3(*x[3:]))


@dataclass(slots=True, eq=False)
class VariedComposite(Additive):
    """A subtree's inertia, its variation, its force, and the forces (dFdq, dFdv, dFda) of its dofs."""

    Y: Inertia
    dY: Full
    f: Force
    dF: Partials[tuple[Force, Force, Force]]


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    columns = scan.each(lambda node, body: own(node, dof_motions(node, body)), bodies)
    paths = scan.outward(lambda node, above, here: (Partials() if above is None else above) + here, columns)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.entries(scan.inward(backward, seeds, columns, paths)))


def seed(node: Node, body: Moving, fext) -> VariedComposite:
    """dY = v x* I - I v x + (I v) xbar*, for all six unit motions."""
    I, v = node.body.placed(body.X), body.v
    h = I @ v
    dY = (v.cross_force(I @ e) - I @ v.cross(e) + h.cross_bar(e) for e in UNITS)
    return VariedComposite(I, Full(tuple(dY)), net_force(node, body, I, fext), Partials())


def backward(
    node: Node, sub: VariedComposite, here: Partials[DofMotion], upto: Partials[DofMotion]
) -> tuple[VariedComposite, Entries]:
    """Rows of this joint's dofs: their subtree by one product, their ancestors by an inner loop."""
    dF = here.map(lambda c: (sub.Y @ c.Psidd + sub.dY @ c.Psid, sub.Y @ c.SPd + sub.dY @ c.S, sub.Y @ c.S))
    entries: dict[tuple[int, int], tuple] = {}
    for i, c in here.items():
        for k, forces in [*dF.items(), *sub.dF.items()]:
            entries[i, k] = tuple(c.S.dot(f) for f in forces)
        YS, SdY = sub.Y @ c.S, sub.dY.transposed_times(c.S)
        for j, above in upto.items():
            if j not in here:
                by_q = above.Psidd.dot(YS) + above.Psid.dot(SdY)
                by_v = above.SPd.dot(YS) + above.S.dot(SdY)
                entries[i, j] = by_q, by_v, above.S.dot(YS)
        by_q, by_v, M = entries[i, i]
        entries[i, i] = by_q, by_v, M + node.armature[i - node.v.start]
    handed = {k: (dFdq + sub.f.cross_bar(here[k].S), dFdv, dFda) for k, (dFdq, dFdv, dFda) in dF.items()}
    return VariedComposite(sub.Y, sub.dY, sub.f, Partials({**sub.dF, **handed})), entries
