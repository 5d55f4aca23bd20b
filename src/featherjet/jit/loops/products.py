"""The schedule of products C = start +- A^T B: blocks of rows and columns in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate, pairwise
from math import isqrt
from typing import Any, NamedTuple

from ..emit.lanes import I1, I64, Constant, Lanes, Value, VectorType
from ..emit.transfers import store_first
from .index import Index, lifted
from .program import ArrayPart, LaneRole, ScheduledProduct
from .values import parted

REGISTERS = {64: 24, 32: 12, 16: 12}  # by bytes: how many hold sums, so that the operands find room beside them
FEW = 12  # likewise of numbers, one by one
AT_ONCE = 8  # vectors of a row
VECTORS = 2  # of a block, where the number of columns is known only when code runs


class ColumnVector(NamedTuple):
    """Columns in one vector; a mask where some lanes are none; how many lanes are filled, if that is known."""

    first: Index
    w: Lanes
    mask: Value | None = None
    filled: int = 0

    @property
    def end(self) -> int:
        return int(self.first) + self.filled


class ProductCode:
    """Emits one product at a place of a function's code (`lower.FunctionCode`)."""

    def __init__(self, code: Any, s: ScheduledProduct) -> None:
        self.code, self.s, self.b, self.w = code, s, code.b, code.w
        self.m, self.n, self.depth = s.sizes
        self.room = REGISTERS.get(self.w.L * self.w.bytes, FEW)

    def emit(self) -> None:
        with ExitStack() as stack:
            self.code.scope(stack)
            parts = [part for part in (self.s.target, self.s.left, self.s.right, self.s.start) if part]
            self.bases = {part: self.code.pointer(part) for part in parts}
            if self.code.function.arrays[self.s.target.array].lanes is LaneRole.SAMPLES:
                self.sample_by_sample()
            elif self.n.value is not None:
                self.known_columns(self.n.value)
            else:
                self.any_columns()

    # Columns in lanes

    def known_columns(self, n: int) -> None:
        """Groups of columns, as equal as can be."""
        s, columns = self.s, self.cut(n)
        together = 2 if s.upper else 4 if self.room > 12 else 3
        if self.m.value:  # few rows leave registers, and need many sums at once, since each waits for its last term
            together = max(together, min(AT_ONCE, self.room // self.m.value))
        for start, stop in even_parts(len(columns), together):
            group = columns[start:stop]
            rows = self.m if not s.upper else lifted(min(int(self.m), group[-1].end))
            self.all_rows(rows, group)

    def cut(self, n: int) -> list[ColumnVector]:
        """A row of 14 columns is a vector of 8, one of 4 and one of 2, or a vector of 8 and one of 8 that is masked."""
        L, found, start = self.w.L, list[ColumnVector](), 0
        masks = L * self.w.bytes > 16 and self.m.value != 1  # one row after another would wait for what is stored so
        while start < n:
            count = 1 << (min(L, n - start).bit_length() - 1)
            width = 2 * count if masks and n - start > count < L else count
            w = self.code.wide(width)
            count = min(width, n - start)
            mask = Constant(VectorType(I1, width), [k < count for k in range(width)]) if count < width else None
            found.append(ColumnVector(lifted(start), w, mask, count))
            start += count
        return found

    def any_columns(self) -> None:
        w, b, n = self.w, self.b, self.code.integer(self.n)
        if w.L == 1:
            with self.code.looping(I64(0), n) as c:
                self.all_rows(self.m, [ColumnVector(c, w)])
            return
        wide = b.mul(b.udiv(n, I64(VECTORS * w.L)), I64(VECTORS * w.L))
        with self.code.looping(I64(0), wide, VECTORS * w.L) as c:
            self.all_rows(self.m, [ColumnVector(c + k * w.L, w) for k in range(VECTORS)])
        whole = b.and_(n, I64(-w.L))
        with self.code.looping(wide, whole, w.L) as c:
            self.all_rows(self.m, [ColumnVector(c, w)])
        with b.if_then(b.icmp_signed("<", whole, n)), ExitStack() as stack:
            self.code.scope(stack)
            mask = w.first_lanes(b, b.sub(n, whole))
            self.all_rows(self.m, [ColumnVector(self.code.named(whole), w, mask)])

    def all_rows(self, rows: Index, vectors: Sequence[ColumnVector]) -> None:
        """Some columns of all rows, as many rows at a time as there are registers for."""
        code, tall = self.code, max(1, self.room // len(vectors))
        if rows.value is not None:
            for start, stop, height in even_runs(rows.value, tall):
                with code.running(start, stop, height) as row:
                    self.block([row + i for i in range(height)], vectors)
            return
        tall = min(4, tall)
        count = code.integer(rows)
        whole = self.b.mul(self.b.udiv(count, I64(tall)), I64(tall))
        with code.looping(I64(0), whole, tall) as row:
            self.block([row + i for i in range(tall)], vectors)
        with code.looping(whole, count) as row:
            self.block([row], vectors)

    def block(self, rows: Sequence[Index], vectors: Sequence[ColumnVector]) -> None:
        s, b = self.s, self.b
        if s.start is None:
            first: list[Value] = [v.w.const(0.0) for _ in rows for v in vectors]
        else:
            first = [self.read(s.start, i, v) for i in rows for v in vectors]

        def step(k: Index, totals: list[Value]) -> list[Value]:
            ys = [self.read(s.right, k, v) for v in vectors]
            xs = [b.load(self.pointer(s.left, k, i), typ=self.w.N, align=self.w.bytes) for i in rows]
            pairs = [(v.w.splat(b, x), y, v.w) for x in xs for v, y in zip(vectors, ys, strict=True)]
            return [self.joined(w, total, x, y) for total, (x, y, w) in zip(totals, pairs, strict=True)]

        totals = iter(self.sums(first, step))
        for i in rows:
            for v in vectors:
                self.write(next(totals), i, v)

    def joined(self, w: Lanes, total: Value, x: Value, y: Value) -> Value:
        return (w.plus_product if self.s.plus else w.minus_product)(self.b, total, x, y)

    def pointer(self, part: ArrayPart, row: Index, column: Index) -> Value:
        array, (at, rest) = (
            self.code.function.arrays[part.array],
            parted(part.strides[0] * row + part.strides[1] * column),
        )
        kind = self.code.element(array)
        shifted = self.b.gep(self.bases[part], [self.code.integer(at)], source_etype=kind)
        return self.b.gep(shifted, [I64(rest)], source_etype=kind) if rest else shifted

    def read(self, part: ArrayPart, row: Index, v: ColumnVector) -> Value:
        pointer = self.pointer(part, row, v.first)
        if v.mask is None:
            return self.b.load(pointer, typ=v.w.V, align=v.w.bytes)
        return v.w.load_masked(self.b, pointer, v.mask)

    def write(self, x: Value, row: Index, v: ColumnVector) -> None:
        pointer = self.pointer(self.s.target, row, v.first)
        if v.mask is None:
            v.w.store_unaligned(self.b, x, pointer)
        elif v.filled:
            store_first(self.b, x, v.filled, pointer, v.w)
        else:
            v.w.store_masked(self.b, x, pointer, v.mask)

    def sums(self, first: Sequence[Value], step: Callable[[Index, list[Value]], list[Value]]) -> list[Value]:
        """totals = step(k, totals) for all terms of the sums, of which there may be none."""
        b, stop = self.b, self.code.integer(self.depth)
        before, head, end = b.block, b.append_basic_block("term"), b.append_basic_block("summed")
        b.cbranch(b.icmp_signed("<", I64(0), stop), head, end)
        b.position_at_end(head)
        k = b.phi(I64)
        carried: list[Any] = [b.phi(x.type) for x in first]
        with ExitStack() as stack:
            self.code.scope(stack)
            found = step(self.code.named(k), carried)
        following = b.add(k, I64(1))
        last = b.block
        for phi, x, y in zip((k, *carried), (I64(0), *first), (following, *found), strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, last)
        b.cbranch(b.icmp_signed("<", following, stop), head, end)
        b.position_at_end(end)
        results: list[Any] = [b.phi(x.type) for x in first]
        for phi, x, y in zip(results, first, found, strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, last)
        return results

    # Samples in lanes

    def sample_by_sample(self) -> None:
        """Blocks of entries; of upper triangles those that have entries of them."""
        code, m, n = self.code, self.m.value, self.n.value
        if m is not None and n is not None:
            tall, wide = self.block_size(m, n)
            for first, last, height in even_runs(m, tall):
                with code.running(first, last, height) as i:
                    for start, stop, width in even_runs(n, wide):
                        with code.running(self.begin(i, start, width), stop, width) as j:
                            self.entries([i + k for k in range(height)], [j + k for k in range(width)])
            return
        with code.looping(I64(0), code.integer(self.m)) as i:
            with code.looping(code.integer(i) if self.s.upper else I64(0), code.integer(self.n)) as j:
                self.entries([i], [j])

    def block_size(self, m: int, n: int) -> tuple[int, int]:
        """Rows and columns of a block whose sums fit into registers, and whose operands are few."""
        tall = min(m, max(1, isqrt(self.room)))
        wide = max(1, min(n, self.room // max(tall, 1)))
        return max(1, min(m, self.room // wide)), wide

    def begin(self, row: Index, start: int, width: int) -> int | Value:
        """The first column of a run that a row needs."""
        if not self.s.upper:
            return start
        b, beyond = self.b, self.code.integer(row - start)
        beyond = b.select(b.icmp_signed("<", beyond, I64(0)), I64(0), beyond)
        return b.add(I64(start), b.mul(b.udiv(beyond, I64(width)), I64(width)))

    def entries(self, rows: Sequence[Index], columns: Sequence[Index]) -> None:
        """Some entries of the target, all at once."""
        w, b, s = self.w, self.b, self.s
        places = [(i, j) for i in rows for j in columns]
        if s.start is None:
            first: list[Value] = [w.const(0.0)] * len(places)
        else:
            first = [w.load(b, self.pointer(s.start, i, j)) for i, j in places]

        def step(k: Index, totals: list[Value]) -> list[Value]:
            xs = {i: w.load(b, self.pointer(s.left, k, i)) for i in rows}
            ys = {j: w.load(b, self.pointer(s.right, k, j)) for j in columns}
            return [self.joined(w, total, xs[i], ys[j]) for total, (i, j) in zip(totals, places, strict=True)]

        for (i, j), total in zip(places, self.sums(first, step), strict=True):
            w.store(b, total, self.pointer(s.target, i, j))


def even_runs(count: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Parts of `even_parts` of the same length: where they begin and end, and that length."""
    lengths = [stop - start for start, stop in even_parts(count, most)]
    start = 0
    for length in sorted(set(lengths), reverse=True):
        stop = start + length * lengths.count(length)
        yield start, stop, length
        start = stop


def even_parts(count: int, most: int) -> Iterator[tuple[int, int]]:
    """As few runs of up to `most` as there can be, longer ones first, their lengths as equal as can be."""
    parts = -(-count // most)
    ends = [count * k // max(parts, 1) for k in range(parts + 1)]
    lengths = sorted((stop - start for start, stop in pairwise(ends)), reverse=True)
    yield from pairwise(accumulate(lengths, initial=0))
