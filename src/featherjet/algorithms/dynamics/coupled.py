"""Forward dynamics of robots with mimicking joints, whose tree coordinates are v_tree = G v.

The tree's joints are then not free to move one by one, so articulated bodies do not apply. Instead the tree's mass
matrix, bias and derivatives are reduced with G, and the small mass matrix is factorised without assuming sparsity.
(M v' + h with constant G: M = G^T M_tree G, h = G^T h_tree, and likewise for every derivative.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...model.tree import Coupling
from ..derivatives.idsva import inverse_dynamics_derivatives
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan
from . import ltl
from .aba import Forward
from .crba import mass_matrix
from .minv import Inverse
from .rnea import inverse_dynamics


def expand(c: Coupling, given: Any, x: Any) -> Any:
    """The tree's input from the independent joints': coordinates, rates or neither, as `given.expands` says."""
    if not given.expands:
        return x
    lane = (slice(None),) + (None,) * (x.ndim - 1)
    return x[c.qi] * c.qs[lane] + c.q0[lane] if given.expands == "q" else x[c.vi] * c.vs[lane]


def reduce(G: Array, core: Sequence[str | int], x: Array) -> Array:
    """A result in the independent coordinates; `core` tells its leading axes, of which "v" are the tree's dofs."""
    for axis, dimension in enumerate(core):
        if dimension == "v":
            x = np.moveaxis(np.tensordot(G.T, x, (1, axis)), 0, axis)
    return x


def reduce_vector(G: Array, x: Array) -> Array:
    return np.tensordot(G.T, x, 1)


def reduce_matrix(G: Array, M: Array) -> Array:
    return np.einsum("ia,ij...,jb->ab...", G, M, G, optimize=True)


def factor(scan: Scan, G: Array, q: Array) -> tuple[ltl.Factor, Array]:
    """The factor of M, and its margins (see `aba.margins`)."""
    M = reduce_matrix(G, mass_matrix(scan, q))
    found = ltl.factorise(M, ltl.dense_parents(G.shape[1]))
    return found, found.D / np.einsum("ii...->i...", M)


def forward_dynamics(scan: Scan, G: Array, q: Array, v: Array, tau: Array, fext: Sequence | None = None) -> Forward:
    """a from the tree's q and v (nv_tree, ...), and tau (nv, ...) of the independent joints."""
    M, margins = factor(scan, G, q)
    bias = reduce_vector(G, inverse_dynamics(scan, q, v, None, fext))
    return Forward(ltl.solve(M, tau - bias), margins)


def inverse_mass_matrix(scan: Scan, G: Array, q: Array) -> Inverse:
    M, margins = factor(scan, G, q)
    return Inverse(ltl.inverse(M), margins)


def forward_dynamics_derivatives(scan: Scan, G: Array, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """[IDSVA] eq. 5 in the independent coordinates; returns the derivatives and the margins of M."""
    a, margins = forward_dynamics(scan, G, q, v, tau, fext)
    M, _ = factor(scan, G, q)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, np.tensordot(G, a, 1), fext)
    solved = [-ltl.solve(M, reduce_matrix(G, by)) for by in (by_q, by_v)]
    return ForwardDynamicsDerivatives(solved[0], solved[1], ltl.inverse(M)), margins
