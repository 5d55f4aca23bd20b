"""Small dense systems of linear equations, in the loop language (`math.loops`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .scalars import where_less


def factorise(t: Any, A: Any, dinv: Any, margins: Any, n: Any) -> None:
    """A = L^T D L of a symmetric A (n, n), from the last row to the first; L replaces A's strict lower triangle.

    dinv (n,): 1 / D. margins (n,): D / diag(A), between 0 and 1; a margin of rounding size means a singular matrix.
    """
    for k in t.loop(n):
        margins[k] = A[k, k]
    for k in t.loop(n, down=True):
        d = A[k, k]
        inverse = 1.0 / d
        dinv[k], margins[k] = inverse, d / margins[k]
        for i in t.loop(k):
            l = A[k, i] * inverse
            for j in t.loop(i + 1):
                A[i, j] = A[i, j] - l * A[k, j]
        for i in t.loop(k):
            A[k, i] = A[k, i] * inverse


def solve(t: Any, L: Any, dinv: Any, x: Any, n: Any) -> None:
    """x becomes (L^T D L)^-1 x, with what `factorise` has found."""
    for k in t.loop(n, down=True):
        xk = x[k]
        for i in t.loop(k):
            x[i] = x[i] - L[k, i] * xk
    for k in t.loop(n):
        total = t.cell(x[k] * dinv[k])
        for i in t.loop(k):
            total[0] = total[0] - L[k, i] * x[i]
        x[k] = total[0]


def invert(t: Any, M: Any, inverse: Any, W: Any, n: Any) -> None:
    """The inverse of a symmetric positive definite matrix (n, n), exactly symmetric; W: memory for another one.

    Gauss and Jordan's elimination in place, from the last row to the first: its pivots are then D of M = L^T D L, and
    D / diag(M) the margins, flagged unless clearly positive.
    """
    for i in t.loop(n):
        for c in t.columns(n):
            W[i, c] = M[i, c]
    for k in t.loop(n, down=True):
        p = 1.0 / W[k, k]
        t.watch(W[k, k] / M[k, k])
        for start, stop in ((0, k), (k + 1, n)):
            for i in t.loop(stop, start=start):
                g = W[i, k] * p
                for c in t.columns(n):
                    W[i, c] = W[i, c] - g * W[k, c]
                W[i, k] = -g
        for c in t.columns(n):
            W[k, c] = W[k, c] * p
        W[k, k] = p
    for i in t.loop(n):
        for j in t.loop(i + 1):
            inverse[i, j] = W[i, j]
            inverse[j, i] = W[i, j]


def eliminate(t: Any, G: Any, Z: Any, failed: Any, m: Any, wide: Any) -> None:
    """G = [A B] (m, wide) becomes [D U, U^-T B], and Z = D^-1 G, where A = U^T D U (m, m) and U has a unit diagonal.

    Below their diagonals U and D U may have any entries. failed[0] becomes 1 where A is not positive definite; the rest
    has no meaning there.
    """
    for i in t.loop(m):
        row = G.beyond(i)
        t.product(row, Z.beyond(0, i), G, (1, wide, i), start=row, plus=False)
        d = G[i, i]
        failed[0] = where_less(0.0, d, failed[0], 1.0)
        inverse = 1.0 / where_less(0.0, d, d, 1.0)
        for c in t.columns(wide):
            Z[i, c] = G[i, c] * inverse


def substitute(t: Any, Z: Any, parts: Sequence[tuple[Any, Any, Any]], m: Any) -> None:
    """X = A^-1 Y with what `eliminate` has made of [A B]; parts: X (m, n), the first column of Y in B, n."""
    for i in t.loop(m, down=True):
        for X, first, n in parts:
            below = X.beyond(i + 1)
            t.product(X.beyond(i), Z.beyond(i, i + 1).T, below, (1, n, m - 1 - i), Z.beyond(i, m + first), plus=False)


def minus_product(t: Any, A: Any, B: Any, C: Any, n: Any, *columns: Any) -> None:
    """C = -A B of A (n, n) and B (n, *columns)."""
    t.product(C.rows, A.T, B.rows, (n, prod(columns), n), plus=False)


def product(t: Any, A: Any, B: Any, C: Any, panel: Any, n: Any, width: int, plus: bool = True) -> None:
    """C = A B, or -A B, of square matrices (n, n) of any size, `width` columns at a time; panel: memory (n, width).

    The columns are copied, so that they follow each other in memory.
    """
    whole = n // width * width
    for c in t.loop(whole, step=width):
        columns = B.beyond(0, c)
        for k in t.loop(n):
            for j in t.columns(width):
                panel[k, j] = columns[k, j]
        t.product(C.beyond(0, c), A.T, panel, (n, width, n), plus=plus)
    rest = n - whole
    t.product(C.beyond(0, whole), A.T, B.beyond(0, whole), (n, rest, n), plus=plus)
