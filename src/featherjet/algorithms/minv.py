"""The inverse of the mass matrix without forming the matrix; Carpentier's direct algorithm ([RSS18] Sec. IV, [25]).

Inward it fills row i with D_i^-1 (e_i - S_i^T F_i) and hands on F = F_i + U_i Minv[i]; outward it takes away
D_i^-1 U_i^T P_parent and carries P = P_parent + S_i Minv[i]. That is the articulated response to unit torques, so it
is the two scans of `aba.respond` with the columns of the identity as lanes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import aba
from .scan import Array, Scan


class Inverse(NamedTuple):
    """M^-1 and the pivots d met on the way."""

    Minv: Array
    pivots: Array


def inverse_mass_matrix(scan: Scan, q: Array) -> Inverse:
    """M(q)^-1, (nv, nv), armature included."""
    pivots = aba.factors(scan, q)
    return Inverse(inverse(scan, pivots), aba.pivot_values(scan, pivots))


def inverse(scan: Scan, pivots: list) -> Array:
    """M^-1 from articulated factors; symmetric to the last bit."""
    n = scan.nv
    one = np.eye(n).reshape(n, n, *(1 for _ in scan.lanes))
    Minv = aba.solve(scan, pivots, np.broadcast_to(one, (n, n, *scan.lanes)).astype(scan.dtype))
    lower = np.tril_indices(n, -1)
    Minv[lower] = Minv[lower[::-1]]
    return Minv
