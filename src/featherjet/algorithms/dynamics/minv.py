"""The inverse of the mass matrix without forming the matrix; Carpentier's direct algorithm ([RSS18] Sec. IV, [25]).

Column j is the response of the robot at rest to a unit torque at dof j. Going up from j the algorithm leaves
D_i^-1 (e_i - S_i^T F) at each dof and hands on F + U_i times that; coming back outward it takes away D_i^-1 U_i^T P and
carries P + S_i Minv[i]. In `direct` the same columns come along with those of the derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...model.tree import Node
from ..derivatives.direct import response, torque, up
from ..motion import REST
from ..scan import Array, Scan
from . import aba


class Inverse(NamedTuple):
    """M^-1 and the margins of M."""

    Minv: Array
    margins: Array


def inverse_mass_matrix(scan: Scan, q: Array) -> Inverse:
    """M(q)^-1, (nv, nv), armature included."""
    inertias, S = aba.still(scan, q)
    joints = aba.articulated(scan, inertias, S)
    margins = aba.margins(scan, joints, inertias, S)
    return Inverse(by_columns(scan, joints), margins)


def by_columns(scan: Scan, joints: Sequence[aba.Articulated]) -> Array:
    """M^-1 from articulated bodies, column by column."""

    def start(node: Node, j: int, dofs: list[aba.Pivot]) -> tuple:
        handed, left = torque(dofs, j)
        return (handed,), [(u,) for u in left]

    dofs = scan.each(lambda node, joint: joint.pivots, joints)
    return scan.responses(start, up, outward, dofs, dofs)[0]


def outward(node: Node, parent: tuple | None, dofs: list[aba.Pivot], left: Sequence | None, below, here) -> tuple:
    """Where nothing happens but what the parent does: r = u + K^T a."""
    (a,) = parent or (REST,)
    rates = []
    for k, dof in enumerate(dofs):
        r = response(dof, a, left[k][0] if left else None)
        a = a + r * dof.S
        rates.append((r,))
    return (a,), rates


def by_lanes(scan: Scan, joints: Sequence[aba.Articulated]) -> Array:
    """The same with all columns at once, as lanes of the scan: what suits NumPy."""
    n = scan.nv
    one = np.eye(n).reshape(n, n, *(1 for _ in scan.lanes))
    Minv = aba.solve(scan, joints, np.broadcast_to(one, (n, n, *scan.lanes)).astype(scan.dtype))
    lower = np.tril_indices(n, -1)
    Minv[lower] = Minv[lower[::-1]]  # symmetric to the last bit
    return Minv
