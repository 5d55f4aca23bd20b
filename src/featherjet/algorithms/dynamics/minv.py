"""The inverse of the mass matrix without forming the matrix; Carpentier's direct algorithm ([RSS18] Sec. IV, [25]).

In loops, `torques` computes it row by row. The steps here are those of columns: going up from dof j, a column leaves
u_i = (e_i - S_i^T p) / d_i at each dof and hands on p + U_i u_i; coming back outward, r_i = u_i + K_i^T a is the entry
of dof i, and S_i r_i is added to a. `direct` sends columns of derivatives through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ...math.spatial import Force, Motion
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import NO_FORCE
from ..scan import Array, Scan
from . import aba, torques


class Inverse(NamedTuple):
    """M^-1 and the margins of M."""

    Minv: Array
    margins: Array


class EliminatedDof(Protocol):
    """What the steps of a column need of a dof; see `aba.Pivot`."""

    S: Motion
    K: Force
    dinv: Scalar


def inverse_mass_matrix(scan: Scan, q: Array) -> Inverse:
    """M(q)^-1 (nv, nv), armature included."""
    inertias, S = aba.at_rest(scan, q)
    joints = aba.articulated(scan, inertias, S)
    margins = aba.margins(scan, joints, inertias, S)
    return Inverse((by_lanes if isinstance(scan, Scan) else torques.by_rows)(scan, joints), margins)


def unit_torque(dofs: Sequence[EliminatedDof], j: int) -> tuple[Force, list[Scalar]]:
    """A unit torque at dof j of a joint: the force handed to the parent, and u of each dof."""
    p, left = NO_FORCE, []
    for k in reversed(range(len(dofs))):
        dof = dofs[k]
        felt = dof.S.dot(p)
        left.append(0.0 if k > j else dof.dinv if k == j else -dof.dinv * felt)
        p = p if k > j else -1.0 * dof.K if k == j else p + felt * dof.K
    return p, left[::-1]


def up(node: Node, handed: tuple, dofs: Sequence[EliminatedDof]) -> tuple:
    """Through an ancestor: u = -S^T p / d for each dof, and p + U u = p + K S^T p goes on."""
    left = []
    for dof in reversed(dofs):
        felt = tuple(dof.S.dot(p) for p in handed)
        handed = tuple(p + x * dof.K for p, x in zip(handed, felt, strict=True))
        left.append(tuple(-dof.dinv * x for x in felt))
    return handed, left[::-1]


def response(dof: EliminatedDof, a: Motion, u: Scalar | None, load: Scalar | None = None) -> Scalar:
    """r = u + K^T a + load, where None stands for zero."""
    r = dof.K.dot(a)
    if load is not None:
        r = r + load
    return r if u is None else u + r


def by_lanes(scan: Scan, joints: Sequence[aba.Articulated]) -> Array:
    """M^-1 with all columns at once, as lanes of the scan: the faster way on NumPy, and the shorter one written out."""
    n = scan.nv
    identity = np.eye(n).reshape(n, n, *(1 for _ in scan.lanes))
    Minv = aba.solve(scan, joints, np.broadcast_to(identity, (n, n, *scan.lanes)).astype(scan.dtype))
    lower = np.tril_indices(n, -1)
    Minv[lower] = Minv[lower[::-1]]  # symmetric to the last bit
    return Minv
