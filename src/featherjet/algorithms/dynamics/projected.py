"""The projected Newton-Euler equations: each body's momentum balance, projected on its Jacobians; [KINDR] 'Dynamics'.

    M du + g = f + tau,   M = sum J_C^T m J_C + J_R^T Th J_R
                          g = sum J_C^T m dJ_C u + J_R^T (Th dJ_R u + w x Th w)
                          f = sum J_Q^T F_Q + J_R^T T

with a body's centre of mass C, its inertia Th about it, and the forces F_Q at points Q and moments T from outside,
weight among them; in the world's axes. Nothing here is recursive but the kinematics: it costs O(n^3), and judges the
algorithms that are fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...math.spatial import Force, Motion
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..frames.jacobians import coasting
from ..frames.kinematics import Placed, bodies, shifted
from ..motion import REST, external
from ..scan import Array, Scan


class ProjectedNewtonEuler(NamedTuple):
    """M (..., nv, nv), g and f (..., nv): M a + g = f + tau."""

    M: Array
    g: Array
    f: Array


def projected_newton_euler(scan: Scan, q: Array, v: Array, fext: Sequence | None = None) -> ProjectedNewtonEuler:
    """M, armature included, gyroscopic and Coriolis forces g, and weight and external forces f."""
    everywhere = bodies(scan, q, v)
    coasted = scan.outward(coasting, everywhere, scan.rates(v))
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
        J = [(k, at_point(S, C)) for k, S in path_columns(scan, everywhere, node)]
        for k, Jk in J:
            g[k] = g[k] + Jk.dot(balance)
            f[k] = f[k] + Jk.dot(load)
            momentum = Force(Th @ Jk.ang, m * Jk.lin)
            for i, Ji in J:
                M[i][k] = M[i][k] + Ji.dot(momentum)
    for node in scan.tree.nodes:
        for k, armature in zip(range(node.v.start, node.v.stop), node.armature, strict=True):
            M[k][k] = M[k][k] + armature
    return ProjectedNewtonEuler(scan.matrix_of(M), scan.vector([g]), scan.vector([f]))


def path_columns(scan: Scan, everywhere: Sequence[Placed], node: Node) -> Iterator[tuple[int, Motion]]:
    """The dofs between a body and the root, with their motions at the world's origin."""
    at = node.index
    while at >= 0:
        node = scan.tree.nodes[at]
        yield from zip(range(node.v.start, node.v.stop), everywhere[at].S, strict=True)
        at = node.parent


def at_point(m: Motion, r: Vec3) -> Motion:
    """A motion with its linear part at the body's point r: columns of J_R and J_Q."""
    return Motion(m.ang, m.lin + m.ang.cross(r))
