"""Loops that make matrices over dofs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...jit.loops.index import least
from ...math import dense, sparse
from .bodies import LANES, LoopField
from .memory import Group, Key
from .rows import TorqueRows

VECTORS = 3  # of columns that a product takes at a time: with four rows, twelve sums in registers


class Matrix:
    """A matrix over dofs, zero before an algorithm stores anything; name: of its array, "" if nothing reads it."""

    def __init__(self, key: Key, name: str) -> None:
        self.key, self.name = key, name


class Matrices:
    """The matrices of a `LoopScan`, and the loops that make them."""

    def __init__(self, scan: Any) -> None:
        self.scan, self.code, self.memory, self.count = scan, scan.code, scan.memory, 0

    def new(self, *operands: Matrix) -> Matrix:
        """A matrix that is computed from others, unless it is stored entry by entry."""
        self.count += 1
        m, key = self.memory, (-self.count, ())
        m.operands[key] = [x.key for x in operands]
        name = f"result{m.results[key]}" if key in m.results else f"matrix{self.count}"
        return Matrix(key, name if m.read is None or key in m.read else "")

    def named(self, name: str) -> Matrix:
        """A matrix that is an input."""
        return Matrix((0, (name,)), name)

    def array(self, M: Matrix) -> Any:
        return self.code.array(M.name)

    def put(self, M: Matrix, r: Any, c: Any, x: Any) -> None:
        """Store an entry."""
        self.memory.made(M.key, x)
        if M.name:
            self.array(M)[r, c] = -x if M.key in self.memory.negative else x

    def put_all(self, found: Sequence[Matrix], r: Any, c: Any, values: Sequence[Any]) -> None:
        for M, x in zip(found, values, strict=True):
            self.put(M, r, c, x)

    def negative(self, M: Matrix) -> Matrix:
        """Minus a matrix that is used nowhere else."""
        self.memory.negative.add(M.key)
        return M

    # Products and solutions

    def product(self, left: Matrix, right: Matrix) -> Matrix:
        return self._made((left, right), VECTORS, lambda t, A, B, C, panel, n, plus: dense.product(
            t, A, B, C, panel, n, VECTORS * self.scan.lanes, plus))  # fmt: skip

    def factor(self, M: Matrix) -> Matrix:
        """L and D of M = L^T D L, as sparse as the tree."""
        return self._made((M,), 1, lambda t, M, H, panel, n, plus: sparse.factorise(t, M, H, self.scan.paths, n))

    def solve(self, factor: Matrix, right: Matrix | None = None) -> Matrix:
        """The solution for all columns of a matrix, or the inverse."""

        def make(t: Any, H: Any, *rest: Any) -> None:
            B, X, panel, n, plus = rest if right else (None, *rest)
            sparse.solve(t, H, B, X, panel, self.scan.paths, n, self.scan.lanes, plus)

        return self._made((factor, right) if right else (factor,), sparse.VECTORS, make)

    def _made(self, operands: Sequence[Matrix], vectors: int, make: Callable[..., None]) -> Matrix:
        """A matrix by make(t, operands..., itself, panel, n, plus); panel: memory for some vectors of columns."""
        s, found = self.scan, self.new(*operands)

        def part() -> None:
            arrays = [self.array(M) for M in (*operands, found)]
            panel = self.code.array(f"panel{vectors}", ("n", vectors * s.lanes))
            make(s.t, *arrays, panel, s.n, found.key not in self.memory.negative)

        if found.name:
            self.code.part(part)
        return found

    # Pairs of dofs

    def pairs(
        self, within: Callable, across: Callable, dofs: LoopField, diagonal: Any = None, own: Any = None
    ) -> tuple:
        """See `Scan.pairs`: the rows of dofs, entry by entry: its own, those above it, and those below it."""
        s, record = self.scan, self.scan.places.record
        root = record(dofs, 0, "row")
        found = [self.new() for _ in within(root, root)]

        def entries(i: Any, k: Any, row: Any, column: Any) -> None:
            """Of dofs of one joint."""
            same = list((own or within)(column, row)) if i is k else list(within(column, row))
            if i is k and diagonal:
                same = [x + y for x, y in zip(same, diagonal(row), strict=True)]
            self.put_all(found, i, k, same)

        def one_by_one() -> None:
            for i in s.t.loop(s.n):
                dof = record(dofs, i, "row")
                entries(i, i, dof, dof)
                for m in s.over(Group.ABOVE, i):
                    self.put_all(found, i, m, within(record(dofs, m, "above"), dof))
                for m in s.over(Group.BELOW, i):
                    self.put_all(found, i, m, across(dof, record(dofs, m, "below")))

        def in_lanes() -> None:
            """Two rows of a chain at a time."""
            for first in s.t.loop(s.n, step=2):
                i = least(first, s.n - 2)
                rows = [(k, record(dofs, k, "row")) for k in (i, i + 1)]
                for c in s.t.columns(i):
                    column = record(dofs, c, LANES)
                    for k, row in rows:
                        self.put_all(found, k, c, within(column, row))
                for k, row in rows:
                    entries(k, k, row, row)
                (i, upper), (k, lower) = rows
                self.put_all(found, k, i, within(upper, lower))
                self.put_all(found, i, k, across(upper, lower))
                for c in s.t.columns(s.n - i - 2):
                    column = record(dofs, i + 2 + c, LANES)
                    for k, row in rows:
                        self.put_all(found, k, i + 2 + c, across(row, column))

        self.code.part(in_lanes if s.lanes > 1 else one_by_one)
        return tuple(found)

    # Responses to torques

    def torques(self, *steps: Any) -> tuple[Matrix, ...]:
        """See `Scan.torques`."""
        rows = TorqueRows(self, *steps)
        self.code.part(rows.in_lanes if self.scan.lanes > 1 else rows.one_by_one)
        return tuple(rows.found)
