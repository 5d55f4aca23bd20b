"""Derivatives by geometry: how torques and accelerations change as joints are placed elsewhere on their links.

Moving the placement P of a joint in its parent's frame to P exp(delta), delta = (linear, angular) in the joint's frame
at zero displacement, is what a further joint of six dofs E between the two would do, at rest: [IDSVA] eqs. 25-29 hold
for its columns as for any other. With the joint's composites IC, BC, fC, and Psid = v_parent x E,
Psidd = a_parent x E + v_parent x Psid,

    dtau_k/ddelta = S_k^T (2 BC_k Psid + IC_k Psidd)                   k in the subtree of the joint, itself included
    dtau_j/ddelta = S_j^T (2 BC Psid + IC Psidd + fC xbar* E)          j strictly above the joint

Links of other lengths, masses or shapes follow by the chain rule, with `torque_regressor` for the inertial parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...math.spatial import UNITS, Motion, Transform
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..dynamics import aba, coupled
from ..frames.kinematics import joint_frame
from ..motion import DofMotion, Moving, dof_motion, moving
from ..scan import Array, Scan
from .idsva import DofTerms, ForcedComposite, collect, seed
from .regressor import accelerations

LINEAR_FIRST = (*UNITS[3:], *UNITS[:3])
ORIGIN = Transform(Transform.identity().R, Vec3(0.0, 0.0, 0.0))


@dataclass(slots=True, eq=False)
class Placed:
    """A body's placement, and the columns E of its joint's placement."""

    X: Transform
    E: list[Motion]


def placement_derivatives(scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None) -> Array:
    """dtau/dplacements (nv, njoints, 6)."""
    fields = scan.coordinates(q), scan.rates(v), scan.rates(a)
    bodies = scan.outward(moving(scan.tree.gravity), *fields)
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    found = scan.inward(lambda node, C, body: (C, (C, collect(node, C, body)[1])), seeds, bodies)
    dofs = [terms for _, joint in found for terms in joint]
    placed = scan.outward(columns, bodies, fields[0])
    moved = scan.each(lambda node, body, at: [dof_motion(body, E) for E in at.E], bodies, placed)
    blocks = scan.each(lambda node, C, E: torques(scan, node, C[0], dofs, E), found, moved)
    return np.stack([scan.matrix_of(block) for block in blocks], 1)


def columns(node: Node, parent: Placed | None, body: Moving, q: Sequence[Scalar]) -> Placed:
    """E, the unit motions of the joint's frame at zero displacement; for a root, seen from the body it carries."""
    if parent is None:
        moved, axes = node.kind.move(ORIGIN, q, node.pitch), joint_frame(node, ORIGIN)
        return Placed(body.X, [moved.motion_inverse(axes.motion(unit)) for unit in LINEAR_FIRST])
    frame = joint_frame(node, parent.X.compose(node.X))
    return Placed(body.X, [frame.motion(unit) for unit in LINEAR_FIRST])


def torques(
    scan: Scan, node: Node, C: ForcedComposite, dofs: Sequence[DofTerms], moved: Sequence[DofMotion]
) -> list[list[Scalar]]:
    """The torques (nv, 6) of all dofs as one joint's placement moves."""
    rows: list[list[Scalar]] = [[0.0] * len(moved) for _ in dofs]
    subtree = scan.tree.subtree(node)
    for e, E in enumerate(moved):
        force = C.B2 @ E.Psid + C.I @ E.Psidd + C.f.cross_bar(E.S)
        for k in range(subtree.start, subtree.stop):
            rows[k][e] = dofs[k].t4.dot(E.Psid.ang) + dofs[k].t1.dot(E.Psidd)
        for j in scan.tree.dof_path(node.parent):
            rows[j][e] = force.dot(dofs[j].S)
    return rows


def forward_placement_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """da/dplacements (nv, njoints, 6) = -M^-1 dtau/dplacements at a = forward_dynamics(q, v, tau); M's margins."""
    coupling = scan.tree.coupling
    if coupling is None:
        a = aba.forward_dynamics(scan, q, v, tau, fext).a
    else:
        a = np.tensordot(coupling.G, coupled.forward_dynamics(scan, coupling.G, q, v, tau, fext).a, 1)
    by = placement_derivatives(scan, q, v, a, fext)
    joints = len(scan.tree.nodes)
    found, margins = accelerations(scan, q, by.reshape(len(by), 6 * joints, *scan.lanes))
    return found.reshape(len(found), joints, 6, *scan.lanes), margins
