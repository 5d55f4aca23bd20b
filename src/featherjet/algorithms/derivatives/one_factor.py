"""Derivatives of forward dynamics from one factor of M, which gives the accelerations as well.

    M = L^T D L,   a = M^-1 (tau - b),   da/du = -M^-1 dtau/du,   u = q or v,   da/dtau = M^-1

M and dtau/dv come with [IDSVA] and do not depend on a. Nor does the bias b need a recursion of its own: the torques
that velocities cause are homogeneous of degree two in v, so that by Euler's theorem

    b = g + (dtau/dv) v / 2 - J^T fext,   g_j = IC_j S_j . a0,   a0 the acceleration of the ground, gravity included

No articulated body appears: for robots of up to a dozen dofs, this takes the fewest operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...math.spatial import Force, Motion
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..dynamics import crba, ltl
from ..dynamics.crba import DofMomentum
from ..motion import external, place, upward
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan
from .idsva import inverse_dynamics_derivatives


def forward_dynamics_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """The derivatives, and the margins of M (`aba.margins`)."""
    _, by_v, M = inverse_dynamics_derivatives(scan, q, v, np.zeros_like(v))
    factor = ltl.factorise(M, scan.tree.dof_parents)
    turning = scan.product(by_v, v[:, None])[:, 0]
    a = ltl.solve(factor, tau - (static_torque(scan, q, fext) + 0.5 * turning))
    by_q, _, _ = inverse_dynamics_derivatives(scan, q, v, a, fext)
    a_q, a_v = (scan.negative(ltl.solve(factor, by)) for by in (by_q, by_v))
    return ForwardDynamicsDerivatives(a_q, a_v, ltl.symmetric_inverse(factor)), factor.D / np.einsum("ii...->i...", M)


def static_torque(scan: Scan, q: Array, fext: Sequence | None) -> Array:
    """g - J^T fext (nv,)."""
    a0 = scan.outward(ground(scan), scan.coordinates(q))
    g = scan.vector(scan.each(weigh, crba.columns(scan, q), a0))
    if fext is None:
        return g
    X = scan.outward(place, scan.coordinates(q))
    return g - scan.vector(scan.inward(feel, scan.each(external, X, fext), X))


def ground(scan: Scan):
    """An outward step that hands a root's `upward` to all bodies of its tree."""

    def step(node: Node, parent: Motion | None, q: Sequence[Scalar]) -> Motion:
        return upward(node, q, scan.tree.gravity) if parent is None else parent

    return step


def weigh(node: Node, columns: list[DofMomentum], a0: Motion) -> list[Scalar]:
    return [x.F.dot(a0) for x in columns]


def feel(node: Node, f: Force, X) -> tuple[Force, list[Scalar]]:
    """S^T f of a subtree's external forces; the whole force goes on to the parent."""
    return f, [s.dot(f) for s in node.kind.subspace(X, node.pitch)]
