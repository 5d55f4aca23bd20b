"""Sparsity of functions of a horizon: one state after the other, each with the same pattern."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..evaluate.entries import Pattern


def compressed(pattern: Pattern, horizon: int) -> tuple[int, int, np.ndarray, np.ndarray]:
    """Rows, columns, where each column's entries begin, and the row of each entry, of a pattern for each state.

    They are along the diagonal, so that the entries of a state follow those of the state before.
    """
    (rows, columns), count = pattern.shape, pattern.count
    state = np.arange(horizon)[:, None]
    starts = np.append((pattern.starts[:-1] + count * state).ravel(), count * horizon)
    return rows * horizon, columns * horizon, starts, (pattern.rows + rows * state).ravel()


def diagonal(pattern: Pattern, horizon: int) -> ca.Sparsity:
    rows, columns, starts, row = compressed(pattern, horizon)
    return ca.Sparsity(rows, columns, starts.tolist(), row.tolist())


def compressed_text(sparsity: ca.Sparsity) -> str:
    """A sparsity as numbers of C: rows, columns, and 1 where it is dense; else its columns' starts and its rows."""
    rows, columns = sparsity.shape
    if sparsity.is_dense():
        return f"{rows}, {columns}, 1"
    return ", ".join(map(str, [rows, columns, *sparsity.colind(), *sparsity.row()]))
