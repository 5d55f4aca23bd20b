"""The inverse of the mass matrix from the matrix itself: CRBA, a factorisation, and a solve for each column.

[RSS18] Sec. IV-C compares its direct algorithm (`minv`) with this one. M = L^T D L costs O(n d^2) along the tree, and
O(n^3) if its zeros are not exploited.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..scan import Array, Scan
from . import coupled, ltl, minv
from .crba import mass_matrix
from .minv import Inverse


def by_ltl(scan: Scan, q: Array) -> Inverse:
    """With L as sparse as the tree; robots with mimicking joints have no such sparsity."""
    return inverse(scan, q, scan.tree.dof_parents)


def dense(scan: Scan, q: Array) -> Inverse:
    """Ignoring the zeros of M."""
    return inverse(scan, q, ltl.dense_parents(scan.nv))


def inverse(scan: Scan, q: Array, parents: Sequence[int]) -> Inverse:
    """By a factor of the sparsity that `parents` describe, unless joints mimic."""
    if scan.tree.coupling is not None:
        return coupled.inverse_mass_matrix(scan, scan.tree.coupling.G, q)
    M = mass_matrix(scan, q)
    factor = ltl.factorise(M, parents)
    return Inverse(ltl.inverse(factor), factor.D / np.einsum("ii...->i...", M))


def auto(scan: Scan, q: Array) -> Inverse:
    """The direct algorithm, or a factorisation if joints mimic."""
    return (by_ltl if scan.tree.coupling is not None else minv.inverse_mass_matrix)(scan, q)
