"""The projected Newton-Euler equations: each body's momentum balance, projected on its Jacobians; [KINDR] 'Dynamics'.

    M du + g = f + tau,   M = sum J_C^T m J_C + J_R^T Th J_R
                          g = sum J_C^T m dJ_C u + J_R^T (Th dJ_R u + w x Th w)
                          f = sum J_Q^T F_Q + J_R^T T

with a body's centre of mass C, its inertia Th about it, and the external forces F_Q at points Q and moments T, weight
included; in world axes. Only the kinematics are recursive. It costs O(n^3) and serves as an oracle for the fast
algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...display import compact
from ...math.spatial import Force, Motion
from ...math.vec3 import Scalar, Vec3
from ..frames.jacobians import coasting
from ..frames.kinematics import bodies, shifted
from ..motion import REST, external
from ..scan import Array, Scan


@compact
class ProjectedNewtonEuler(NamedTuple):
    """M (..., nv, nv), g and f (..., nv): M a + g = f + tau."""

    M: Array
    g: Array
    f: Array


def projected_newton_euler(scan: Scan, q: Array, v: Array, fext: Sequence | None = None) -> ProjectedNewtonEuler:
    """M with armature, gyroscopic and Coriolis forces g, and weight and external forces f."""
    everywhere = bodies(scan, q, v)
    coasted = scan.outward(coasting, everywhere, scan.rates(v))
    columns = [S for body in everywhere for S in body.S]
    n = scan.nv
    M: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    g: list[Scalar] = [0.0] * n
    f: list[Scalar] = [0.0] * n
    for node, body, a in zip(scan.tree.nodes, everywhere, coasted, strict=True):
        m, Th = node.body.m, node.body.Ic.rotated(body.X.R)
        C = body.X.p + body.X.R @ node.body.c
        w, v_C = body.v.ang, at_point(body.v, C).lin
        dJu = at_point(a, C) + Motion(REST.ang, w.cross(v_C))
        balance = Force(Th @ dJu.ang + w.cross(Th @ w), m * dJu.lin)
        load = Force(REST.ang, m * scan.tree.gravity)
        outside = external(node, body.X, fext[node.index] if fext is not None else None)
        if outside:
            load = load + shifted(outside, C)
        J = [(k, at_point(columns[k], C)) for k in scan.tree.dof_path(node.index)]
        for k, Jk in J:
            g[k] = g[k] + Jk.dot(balance)
            f[k] = f[k] + Jk.dot(load)
            momentum = Force(Th @ Jk.ang, m * Jk.lin)
            for i, Ji in J:
                M[i][k] = M[i][k] + Ji.dot(momentum)
    for node in scan.tree.nodes:
        for k, armature in zip(node.dofs, node.armature, strict=True):
            M[k][k] = M[k][k] + armature
    return ProjectedNewtonEuler(scan.matrix_of(M), scan.vector([g]), scan.vector([f]))


def at_point(m: Motion, r: Vec3) -> Motion:
    """A motion with the velocity of the body's point r as its linear part: columns of J_R and J_Q."""
    return Motion(m.ang, m.lin + m.ang.cross(r))
