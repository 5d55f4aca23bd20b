"""Small dense systems of linear equations, in the loop language (`math.loops`)."""

from __future__ import annotations

from typing import Any


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
