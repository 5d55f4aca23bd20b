"""LLVM for small dense matrices whose sizes are known: rows in vectors of several widths, blocks of them in registers.

Matrices are row by row and contiguous but for the distance between rows. A row of 14 numbers is a vector of 8, one of 4
and one of 2: nothing is padded, nothing masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import llvmlite.ir as ir

from ..graph import Graph
from ..number import DOUBLE
from .lanes import I32, I64, PTR, Lanes, Value

REGISTERS = {8: 24, 4: 12, 2: 12}  # by lanes: how many hold sums, so that the operands find room beside them


class Piece(NamedTuple):
    """Neighbouring columns in one vector."""

    start: int
    width: int


class Matrix(NamedTuple):
    """Where a matrix is, and how many numbers lie between the starts of its rows."""

    base: Value
    stride: int


class Panels(Lanes):
    """Code on rows of matrices of doubles, in vectors of at most `lanes`."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        super().__init__(module, Graph(), lanes, DOUBLE, whole=False)

    def pieces(self, columns: int) -> list[Piece]:
        """The vectors that make up a row."""
        found, start, width = [], 0, self.L
        while start < columns:
            while width > columns - start:
                width //= 2
            found.append(Piece(start, width))
            start += width
        return found

    def groups(self, columns: int, most: int) -> Iterator[list[Piece]]:
        """The vectors of a row, at most so many at a time."""
        pieces = self.pieces(columns)
        for k in range(0, len(pieces), most):
            yield pieces[k : k + most]

    def at(self, b: ir.IRBuilder, x: Matrix, row: Value, column: Value | int) -> Value:
        """Where an entry is."""
        shift = I64(column) if isinstance(column, int) else column
        return self.number(b, x.base, b.add(b.mul(row, I64(x.stride)), shift))

    def read(self, b: ir.IRBuilder, x: Matrix, row: Value, piece: Piece) -> Value:
        kind = DOUBLE.vector(piece.width) if piece.width > 1 else DOUBLE.type
        return b.load(self.at(b, x, row, piece.start), typ=kind, align=8)

    def write(self, b: ir.IRBuilder, value: Value, x: Matrix, row: Value, piece: Piece) -> None:
        b.store(value, self.at(b, x, row, piece.start), align=8)

    def entry(self, b: ir.IRBuilder, x: Matrix, row: Value, column: Value | int) -> Value:
        return b.load(self.at(b, x, row, column), typ=DOUBLE.type, align=8)

    def spread(self, b: ir.IRBuilder, x: Value, piece: Piece) -> Value:
        """A number in all lanes of a piece."""
        if piece.width == 1:
            return x
        undef = ir.Constant(DOUBLE.vector(piece.width), ir.Undefined)
        first = b.insert_element(undef, x, I32(0))
        return b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, piece.width), [0] * piece.width))

    def zero(self, piece: Piece) -> Value:
        if piece.width == 1:
            return ir.Constant(DOUBLE.type, 0.0)
        return ir.Constant(DOUBLE.vector(piece.width), [0.0] * piece.width)

    def sums(self, b: ir.IRBuilder, start: Value, stop: Value, values: Sequence[Value], body: Any) -> list[Value]:
        """values = body(i, values) for i = start, ..., stop - 1, which may be none."""
        before, head, end = b.block, b.append_basic_block("head"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed("<", start, stop), head, end)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(start, before)
        carried = [b.phi(x.type) for x in values]
        for phi, x in zip(carried, values, strict=True):
            phi.add_incoming(x, before)
        found = list(body(i, carried))
        following, last = b.add(i, I64(1)), b.block
        i.add_incoming(following, last)
        for phi, x in zip(carried, found, strict=True):
            phi.add_incoming(x, last)
        b.cbranch(b.icmp_signed("<", following, stop), head, end)
        b.position_at_end(end)
        results = [b.phi(x.type) for x in values]
        for phi, x, y in zip(results, values, found, strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, last)
        return cast(list[Value], results)

    def scaled(self, b: ir.IRBuilder, x: Value, y: Value) -> Value:
        return b.fmul(x, y)

    def emit_product(
        self,
        name: str,
        sizes: tuple[int, int, int],
        strides: tuple[int, int, int, int],
        plus: bool = True,
        fresh: bool = False,
        upper: bool = False,
    ) -> ir.Function:
        """(A, B, C0, C): C = C0 + A^T B, with A (k, m), B (k, n), C (m, n), sizes (m, n, k) and strides of the four.

        plus: or C0 - A^T B; fresh: C0 is zero; upper: entries below the diagonal may stay unset.
        """
        m, n, depth = sizes
        f = self.function(name, [PTR] * 4)
        A, B, C0, C = (Matrix(x, stride) for x, stride in zip(f.args, strides, strict=True))
        b = ir.IRBuilder(f.append_basic_block("entry"))
        room = REGISTERS[self.L]
        for group in self.groups(n, 2 if upper else 4 if self.L == 8 else 3):
            rows = min(m, group[-1].start + group[-1].width) if upper else m
            tall = min(rows, room // len(group))
            last = rows // tall * tall

            def block(row: Value, height: int, group: list[Piece] = group) -> None:
                lines = [b.add(row, I64(i)) for i in range(height)]
                first = [self.zero(p) if fresh else self.read(b, C0, i, p) for i in lines for p in group]

                def step(k: Value, totals: list[Value]) -> list[Value]:
                    ys = [self.read(b, B, k, p) for p in group]
                    xs = [self.entry(b, A, k, i) for i in lines]
                    pairs = [(self.spread(b, x, p), y) for x in xs for p, y in zip(group, ys, strict=True)]
                    join = self.plus_product if plus else self.minus_product
                    return [join(b, total, x, y) for total, (x, y) in zip(totals, pairs, strict=True)]

                totals = self.sums(b, I64(0), I64(depth), first, step)
                for k, total in enumerate(totals):
                    i, j = divmod(k, len(group))
                    self.write(b, total, C, lines[i], group[j])

            with self.loop(b, I64(0), I64(last), tall) as row:
                block(row, tall)
            if rows > last:
                block(I64(last), rows - last)
        b.ret_void()
        return f
