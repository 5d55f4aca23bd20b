"""The inverse of the mass matrix by way of the matrix: CRBA, a factorisation, and a solve for each column.

This is what [RSS18] Sec. IV-C compares its direct algorithm (`minv`) with. M = L^T D L costs O(n d^2) along the tree,
and O(n^3) when its zeros are not made use of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..scan import Array, Scan
from . import aba, coupled, ltl, minv
from .crba import mass_matrix
from .minv import Inverse


def by_ltl(scan: Scan, q: Array) -> Inverse:
    """With L as sparse as the tree; where joints mimic there is no such sparsity."""
    return inverse(scan, q, scan.tree.dof_parents)


def dense(scan: Scan, q: Array) -> Inverse:
    """As if every entry of M could be other than zero."""
    return inverse(scan, q, ltl.dense_parents(scan.nv))


def inverse(scan: Scan, q: Array, parents: Sequence[int]) -> Inverse:
    if scan.tree.coupling is not None:
        return coupled.inverse_mass_matrix(scan, scan.tree.coupling.G, q)
    M = mass_matrix(scan, q)
    factor = ltl.factorise(M, parents)
    return Inverse(ltl.inverse(factor), factor.D / np.einsum("ii...->i...", M))


def auto(scan: Scan, q: Array) -> Inverse:
    """What suits NumPy: all columns of the direct algorithm at once, and a factorisation where joints mimic."""
    if scan.tree.coupling is not None:
        return by_ltl(scan, q)
    inertias, S = aba.still(scan, q)
    joints = aba.articulated(scan, inertias, S)
    return Inverse(minv.by_lanes(scan, joints), aba.margins(scan, joints, inertias, S))
