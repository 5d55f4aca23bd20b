"""Symmetric matrices that are as sparse as a tree, in the loop language (`math.loops`): M = L^T D L without fill-in.

Row k of L has entries only at the ancestors of k; [RBDA] sec. 6.5, tables 6.3 and 6.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

VECTORS = 8  # of columns that are solved for together: as many sums in registers


class Paths(NamedTuple):
    """Tables: the ancestors of k are in runs start[k] to start[k + 1], nearest first; run r is first[r] to stop[r] - 1.

    A path through consecutive numbers is one run, so that loops over ancestors read what follows each other.
    """

    start: Any
    first: Any
    stop: Any

    def runs(self, t: Any, k: Any) -> Iterator[tuple[Any, Any]]:
        for r in t.loop(self.start[k + 1], start=self.start[k]):
            yield self.first[r], self.stop[r]

    def above(self, t: Any, k: Any) -> Iterator[Any]:
        """A loop over the ancestors of k."""
        for first, stop in self.runs(t, k):
            yield from t.loop(stop, start=first, down=True)


def factorise(t: Any, M: Any, H: Any, paths: Paths, n: Any) -> None:
    """H (n, n) becomes D on its diagonal and L below it."""
    for k in t.loop(n):
        for c in t.columns(k + 1):
            H[k, c] = M[k, c]
    for k in t.loop(n, down=True):
        inverse = 1.0 / H[k, k]
        for i in paths.above(t, k):
            l = H[k, i] * inverse
            H[i, i] = H[i, i] - l * H[k, i]
            for first, stop in paths.runs(t, i):
                row, line = H.beyond(i, first), H.beyond(k, first)
                for c in t.columns(stop - first):
                    row[0, c] = row[0, c] - l * line[0, c]
            H[k, i] = l


def solve(t: Any, H: Any, B: Any, X: Any, panel: Any, paths: Paths, n: Any, lanes: int, plus: bool = True) -> None:
    """X = M^-1 B, or minus that, with H from `factorise`; all (n, n). B None is the identity.

    panel: memory (n, VECTORS lanes), for as many columns as are solved for together; lanes: how many fill a vector.
    """
    done = 0
    for vectors in (VECTORS, 1):
        width = vectors * lanes
        end = n // width * width
        for first in t.loop(end, start=done, step=width):
            starts = [k * lanes for k in range(vectors)]
            _solve(t, H, B, X.beyond(0, first), panel, paths, n, first, starts, lanes, plus, first + width)
        done = end
    if lanes > 1:
        _solve(t, H, B, X.beyond(0, done), panel, paths, n, done, [0], n - done, plus, n)


def _solve(
    t: Any, H: Any, B: Any, X: Any, panel: Any, paths: Paths, n: Any, first: Any, starts: list[int], count: Any,
    plus: bool, below: Any,
) -> None:  # fmt: skip
    """Vectors of columns from `first` on, `count` columns in each; of the identity, rows from `below` on are zero."""
    parts = [panel.beyond(0, k) for k in starts]
    given = B.beyond(0, first) if B is not None else None
    for c in t.columns(count):
        for k in t.loop(n):
            for part, start in zip(parts, starts, strict=True):
                part[k, c] = given.beyond(0, start)[k, c] if given is not None else t.number(0.0)
    if given is None:
        for k in t.loop(below, start=first):
            panel[k, k - first] = 1.0
    for c in t.columns(count):
        for k in t.loop(below if given is None else n, down=True):
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
            for part, start, total in zip(parts, starts, totals, strict=True):
                x = part[k, c] = total[0]
                X.beyond(0, start)[k, c] = x if plus else -x
