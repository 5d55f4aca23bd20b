"""Sparse factorisation M = L^T D L along the tree, and solves with it; [RBDA] sec. 6.5, tables 6.3-6.5.

L is unit lower triangular; its row k has entries only at the ancestors of k: no fill-in. For a matrix without such
structure, each degree of freedom is the parent of the next (`dense_parents`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...model.tree import paths
from ..scan import Array


class Factor(NamedTuple):
    """L (its strict lower triangle), D, and for each row the columns of its entries: its ancestors, root first."""

    L: Array
    D: Array
    ancestors: list[list[int]]


def dense_parents(n: int) -> list[int]:
    """The parents of a matrix without sparsity: one long chain."""
    return list(range(-1, n - 1))


def factorise(M: Array, parents: Sequence[int]) -> Factor:
    """M = L^T D L, from the leaves inward; M (n, n, ...) is not modified."""
    H = M.copy()
    n = len(parents)
    above = [path[:-1] for path in paths(parents)]
    L = np.zeros_like(H)
    D = np.zeros_like(H[0])
    for k in reversed(range(n)):
        D[k] = H[k, k]
        inverse = 1.0 / D[k]  # a division costs as much as twenty products
        for i in above[k]:
            L[k, i] = H[k, i] * inverse
        for at, i in enumerate(above[k]):
            upto = above[k][: at + 1]
            H[i, upto] = H[i, upto] - L[k, i] * H[k, upto]
    return Factor(L, D, above)


def solve(factor: Factor, b: Array) -> Array:
    """M^-1 b for b (n, lanes...) or (n, columns, lanes...)."""
    return solve_outward(factor, solve_inward(factor, b))


def solve_inward(factor: Factor, b: Array, rows: Sequence[int] | None = None) -> Array:
    """L^-T b, from the leaves to the root; `rows`, if given, are those where b is not zero, and their ancestors."""
    L, D, above = factor
    lane = _across(b, D)
    x = b.copy()
    for k in reversed(range(len(above)) if rows is None else rows):
        if above[k]:
            x[above[k]] = x[above[k]] - lane(L[k, above[k]]) * x[k]
    return x


def solve_outward(factor: Factor, y: Array) -> Array:
    """L^-1 D^-1 y, from the root to the leaves."""
    L, D, above = factor
    lane = _across(y, D)
    x = y * lane(1.0 / D)
    for k in range(len(above)):
        if above[k]:
            x[k] = x[k] - (lane(L[k, above[k]]) * x[above[k]]).sum(0)
    return x


def inverse(factor: Factor) -> Array:
    """M^-1, one solve for each column."""
    n, lanes = len(factor.D), factor.D.shape[1:]
    identity = np.eye(n).reshape(n, n, *(1 for _ in lanes))
    return solve(factor, np.broadcast_to(identity, (n, n, *lanes)).astype(factor.D.dtype))


def symmetric_inverse(factor: Factor) -> Array:
    """M^-1 = W D^-1 W^T with W = L^-1, which is as sparse as L; exactly symmetric."""
    L, D, above = factor
    W, Minv = np.zeros_like(L), np.zeros_like(L)
    for k, columns in enumerate(above):
        W[k, k] = W[k, k] + 1.0
        for at, i in enumerate(columns):
            between = columns[at + 1 :]
            W[k, i] = -(L[k, i] + (L[k, between] * W[between, i]).sum(0)) if between else -L[k, i]
    Y = W * (1.0 / D)
    for k, columns in enumerate(above):
        path = [*columns, k]
        Minv[k, : k + 1] = Minv[: k + 1, k] = (W[: k + 1, path] * Y[k, path]).sum(1)
    return Minv


def _across(b: Array, D: Array) -> Callable[[Array], Array]:
    """How to broadcast a factor's entries along the columns of b, if it has any."""
    return (lambda x: x[:, None]) if b.ndim > D.ndim else (lambda x: x)
