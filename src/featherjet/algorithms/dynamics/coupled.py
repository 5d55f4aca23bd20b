"""Forward dynamics of robots with mimicking joints, where v_tree = G v.

Joints of the tree then cannot move independently, so articulated bodies do not apply. Instead G reduces the tree's mass
matrix and bias, and the small mass matrix is factorised as a dense one.
(G is constant: M = G^T M_tree G, h = G^T h_tree, and likewise for every derivative.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...model.tree import Coupling
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
    """A result in the independent coordinates; `core` names its leading axes, "v" being the tree's dofs."""
    for axis, dimension in enumerate(core):
        if dimension == "v":
            x = np.moveaxis(reduce_vector(G, np.moveaxis(x, axis, 0)), 0, axis)
    return x


def reduce_vector(G: Array, x: Array) -> Array:
    """G^T x for x (tree nv, ...)."""
    if x.dtype != object:
        return np.tensordot(G.T, x, 1)
    found = np.zeros((G.shape[1], *x.shape[1:]), object)  # NumPy's products of objects go on after an exception
    for i, j in np.argwhere(G):
        found[j] = found[j] + G[i, j] * x[i]
    return found


def reduce_matrix(G: Array, M: Array) -> Array:
    """G^T M G for M (tree nv, tree nv, ...)."""
    return reduce(G, ("v", "v"), M)


def factor(scan: Scan, G: Array, q: Array) -> tuple[ltl.Factor, Array]:
    """The factor of M, and the margins of M (see `aba.margins`)."""
    M = reduce_matrix(G, mass_matrix(scan, q))
    found = ltl.factorise(M, ltl.dense_parents(G.shape[1]))
    return found, found.D / np.einsum("ii...->i...", M)


def forward_dynamics(scan: Scan, G: Array, q: Array, v: Array, tau: Array, fext: Sequence | None = None) -> Forward:
    """a (nv, ...) from the tree's q and v (tree nv, ...) and tau (nv, ...) of the independent joints."""
    M, margins = factor(scan, G, q)
    bias = reduce_vector(G, inverse_dynamics(scan, q, v, None, fext))
    return Forward(ltl.solve(M, tau - bias), margins)


def inverse_mass_matrix(scan: Scan, G: Array, q: Array) -> Inverse:
    """M^-1 (nv, nv, ...) of the independent joints, and the margins of M."""
    M, margins = factor(scan, G, q)
    return Inverse(ltl.inverse(M), margins)
