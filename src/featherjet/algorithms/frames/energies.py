"""The gradient of kinetic energy, by one walk outward and one inward.

With h the momentum of the bodies beyond a dof, dT/dv = h.S + armature v. Moving along the dof carries these bodies, and
with them all but the velocity of the joint's parent, so that dT/dq = h.(v_parent x S); [IDSVA] eq. 30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import Force
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import REST, Moving, carried, place
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class EnergySlopes:
    """Of a joint's dofs: the derivatives of kinetic energy by position and velocity."""

    by_q: list[Scalar]
    by_v: list[Scalar]


def kinetic_energy_derivatives(scan: Scan, q: Array, v: Array) -> tuple[Array, Array]:
    """dT/dq and dT/dv = M v, (nv,) each."""

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        return carried(node, parent, place(node, parent.X if parent else None, q), REST, v, a)

    rates = scan.rates(v)
    bodies = scan.outward(step, scan.coordinates(q), rates, scan.no_rates())
    momenta = scan.each(lambda node, body: node.body.placed(body.X) @ body.v, bodies)
    found = scan.inward(slopes, momenta, bodies, rates)
    return scan.vector(scan.each(lambda _, s: s.by_q, found)), scan.vector(scan.each(lambda _, s: s.by_v, found))


def slopes(node: Node, h: Force, body: Moving, rates: Sequence[Scalar]) -> tuple[Force, EnergySlopes]:
    """The momentum handed on, and the derivatives along a joint's dofs."""
    turn = body.v_parent.cross_force(h)
    by_v = [S.dot(h) + arm * r for S, arm, r in zip(body.S, node.armature, rates, strict=True)]
    return h, EnergySlopes([-(S.dot(turn)) for S in body.S], by_v)
