"""Symmetric matrices that are as sparse as a tree, in the loop language (`math.loops`): M = L^T D L without fill-in.

Row k of L has entries only at the ancestors of k; [RBDA] sec. 6.5, tables 6.3 and 6.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

VECTORS = 8  # of columns that are solved for together: as many sums in registers


class TreePaths(NamedTuple):
    """Tables: the ancestors of k are those from place start[k] to start[k + 1] of `ancestors`, nearest first."""

    start: Any
    ancestors: Any

    def above(self, t: Any, k: Any) -> Iterator[Any]:
        """A loop over the ancestors of k."""
        for at in t.loop(self.start[k + 1], start=self.start[k]):
            yield self.ancestors[at]


def factorise(t: Any, M: Any, H: Any, paths: TreePaths, n: Any) -> None:
    """H (n, n) becomes D on its diagonal and L below it."""
    for k in t.loop(n):
        for c in t.columns(k + 1):
            H[k, c] = M[k, c]
    for k in t.loop(n, down=True):
        inverse = 1.0 / H[k, k]
        for i in paths.above(t, k):
            l = H[k, i] * inverse
            H[i, i] = H[i, i] - l * H[k, i]
            for j in paths.above(t, i):
                H[i, j] = H[i, j] - l * H[k, j]
            H[k, i] = l


def solve(t: Any, H: Any, B: Any, X: Any, panel: Any, paths: TreePaths, n: Any, lanes: int, plus: bool = True) -> None:
    """X = M^-1 B, or minus that, with H from `factorise`; all (n, n) with n >= lanes. B None is the identity.

    panel: memory (n, VECTORS lanes), for as many columns as are solved for together; lanes: how many fill a vector. The
    last columns overlap those before them.
    """
    many = VECTORS * lanes
    for vectors, fits in ((VECTORS, t.when(many - 1, n)), (1, t.when(n, many))):
        width = vectors * lanes
        whole = n // width * width
        for _ in fits:
            for first in t.loop(whole, step=width):
                _solve(t, H, B, X, panel, paths, n, first, vectors, lanes, plus)
            for _ in t.when(whole, n):
                _solve(t, H, B, X, panel, paths, n, n - width, vectors, lanes, plus)


def _solve(
    t: Any,
    H: Any,
    B: Any,
    X: Any,
    panel: Any,
    paths: TreePaths,
    n: Any,
    first: Any,
    vectors: int,
    lanes: int,
    plus: bool,
) -> None:
    """Some vectors of columns from `first` on; of the identity's, rows beyond them are zero."""
    below = n if B is not None else first + vectors * lanes
    parts = [panel.beyond(0, k * lanes) for k in range(vectors)]
    given = [B.beyond(0, first + k * lanes) if B is not None else None for k in range(vectors)]
    found = [X.beyond(0, first + k * lanes) for k in range(vectors)]
    for c in t.columns(lanes):
        for k in t.loop(n):
            for part, b in zip(parts, given, strict=True):
                part[k, c] = b[k, c] if b is not None else t.number(0.0)
    for k in t.loop(below, start=first) if B is None else ():
        panel[k, k - first] = t.number(1.0)
    for c in t.columns(lanes):
        for k in t.loop(below, down=True):
            own = [part[k, c] for part in parts]
            for i in paths.above(t, k):
                l = H[k, i]
                for part, x in zip(parts, own, strict=True):
                    part[i, c] = part[i, c] - l * x
        for k in t.loop(n):
            inverse = 1.0 / H[k, k]
            totals = [t.cell(inverse * part[k, c]) for part in parts]
            for i in paths.above(t, k):
                l = H[k, i]
                for part, total in zip(parts, totals, strict=True):
                    total[0] = total[0] - l * part[i, c]
            for part, target, total in zip(parts, found, totals, strict=True):
                x = part[k, c] = total[0]
                target[k, c] = x if plus else -x
