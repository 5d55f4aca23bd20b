"""Derivatives by external forces and by inertial parameters: inverse dynamics is linear in both.

tau_i = S_i^T sum (I_k a_k + v_k x* I_k v_k - fext_k) over the bodies k beyond dof i. So a unit force or parameter of
body k acts, as a force, on the dofs between k and the root alone: a block of columns for each body, O(Nd) entries in
all. The derivatives of forward dynamics are -M^-1 times the same columns, sent through the articulated bodies (AZA,
[IDSVA] eq. 34).
The ten parameters of a body are Pinocchio's (m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz), in its joint's frame,
with I about that frame's origin.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...math.spatial import Force, Inertia
from ...math.vec3 import Scalar, Sym3, Vec3
from ...model.tree import Node
from ..dynamics import aba, coupled, ltl
from ..frames.kinematics import joint_frame
from ..motion import Moving, moving
from ..scan import Array, Scan

PARAMETERS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def inertia(m: Scalar, x: Scalar, y: Scalar, z: Scalar, *I: Scalar) -> Inertia:
    """The inertia with these parameters."""
    xx, xy, yy, xz, yz, zz = I
    return Inertia(m, Vec3(x, y, z), Sym3(xx, xy, xz, yy, yz, zz))


UNIT_INERTIAS = [inertia(*row) for row in np.eye(10).tolist()]


def torque_regressor(scan: Scan, q: Array, v: Array, a: Array) -> Array:
    """Y (nv, 10 njoints): tau = Y parameters + armature a, without external forces."""

    def forces(node: Node, body: Moving) -> tuple[Force, ...]:
        X = joint_frame(node, body.X)
        v, a = X.motion_inverse(body.v), X.motion_inverse(body.a)
        return tuple(X.force(I @ a + v.cross_force(I @ v)) for I in UNIT_INERTIAS)

    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    return torques(scan, bodies, scan.each(forces, bodies))


def force_derivatives(scan: Scan, q: Array) -> Array:
    """dtau/dfext (nv, 6 njoints) = -J^T, for forces (force, moment) in the joints' own frames."""

    def forces(node: Node, body: Moving) -> tuple[Force, ...]:
        X = joint_frame(node, body.X)
        zero, axes = Vec3(0.0, 0.0, 0.0), (X.R.x, X.R.y, X.R.z)
        pushes = [Force(X.p.cross(axis), axis) for axis in axes]
        return tuple(-1.0 * f for f in (*pushes, *(Force(axis, zero) for axis in axes)))

    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.no_rates(), scan.no_rates())
    return torques(scan, bodies, scan.each(forces, bodies))


def torques(scan: Scan, bodies: Sequence[Moving], forces: Sequence[tuple[Force, ...]]) -> Array:
    """Torques (nv, columns) due to forces on bodies: a block of columns for each body, one for each of its forces."""
    return scan.blocks(lambda S, f: S.dot(f), scan.each(lambda node, body: body.S, bodies), forces)


def forward_force_derivatives(scan: Scan, q: Array) -> tuple[Array, Array]:
    """da/dfext (nv, 6 njoints) = M^-1 J^T, and the margins of M."""
    return accelerations(scan, q, force_derivatives(scan, q))


def forward_parameter_derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """da/dparameters (nv, 10 njoints) = -M^-1 Y(q, v, a) at a = forward_dynamics(q, v, tau), and the margins of M."""
    coupling = scan.tree.coupling
    if coupling is None:
        a = aba.forward_dynamics(scan, q, v, tau, fext).a
    else:
        a = np.tensordot(coupling.G, coupled.forward_dynamics(scan, coupling.G, q, v, tau, fext).a, 1)
    return accelerations(scan, q, torque_regressor(scan, q, v, a))


def accelerations(scan: Scan, q: Array, tau: Array) -> tuple[Array, Array]:
    """-M^-1 tau for columns (nv, columns, lanes), in the independent coordinates, and the margins of M."""
    coupling = scan.tree.coupling
    if coupling is not None:
        M, margins = coupled.factor(scan, coupling.G, q)
        return -ltl.solve(M, coupled.reduce_vector(coupling.G, tau)), margins
    inertias, S = aba.at_rest(scan, q)
    joints = aba.articulated(scan, inertias, S)
    return -aba.solve(scan, joints, tau), aba.margins(scan, joints, inertias, S)
