"""The schedule of products C = start +- A^T B: blocks of rows and columns in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..emit.lanes import I64, Lanes, Value
from .index import Index, lifted
from .program import ArrayPart, LaneRole, ScheduledProduct

REGISTERS = {64: 24, 32: 12, 16: 12}  # by bytes: how many hold sums, so that the operands find room beside them
FEW = 8  # likewise of numbers, one by one
VECTORS = 2  # of a block, where the number of columns is known only when code runs


class ProductCode:
    """Emits one product at a place of a function's code (`lower.FunctionCode`)."""

    def __init__(self, code: Any, s: ScheduledProduct) -> None:
        self.code, self.s, self.b, self.w = code, s, code.b, code.w
        self.m, self.n, self.depth = s.sizes
        self.room = REGISTERS.get(self.w.L * self.w.bytes, FEW)

    def emit(self) -> None:
        with ExitStack() as stack:
            self.code.scope(stack)
            if self.code.function.arrays[self.s.target.array].lanes is LaneRole.SAMPLES:
                self.sample_by_sample()
            elif self.n.value is not None:
                self.known_columns(self.n.value)
            else:
                self.any_columns()

    # Columns in lanes

    def known_columns(self, n: int) -> None:
        """A row of 14 columns is a vector of 8, one of 4 and one of 2: nothing is padded, nothing masked."""
        L, s = self.w.L, self.s
        pieces, start, width = [], 0, L
        while start < n:
            while width > n - start:
                width //= 2
            pieces.append((start, width))
            start += width
        together = 2 if s.upper else 4 if self.room > 12 else 3
        for k in range(0, len(pieces), together):
            group = pieces[k : k + together]
            vectors = [(lifted(first), self.code.wide(width), None) for first, width in group]
            rows = self.m if not s.upper else lifted(min(int(self.m), sum(group[-1])))
            self.all_rows(rows, vectors)

    def any_columns(self) -> None:
        w, b, n = self.w, self.b, self.code.integer(self.n)
        if w.L == 1:
            with self.code.looping(I64(0), n) as c:
                self.all_rows(self.m, [(c, w, None)])
            return
        wide = b.mul(b.udiv(n, I64(VECTORS * w.L)), I64(VECTORS * w.L))
        with self.code.looping(I64(0), wide, VECTORS * w.L) as c:
            self.all_rows(self.m, [(c + k * w.L, w, None) for k in range(VECTORS)])
        whole = b.and_(n, I64(-w.L))
        with self.code.looping(wide, whole, w.L) as c:
            self.all_rows(self.m, [(c, w, None)])
        with b.if_then(b.icmp_signed("<", whole, n)), ExitStack() as stack:
            self.code.scope(stack)
            mask = w.first_lanes(b, b.sub(n, whole))
            self.all_rows(self.m, [(self.code.named(whole), w, mask)])

    def all_rows(self, rows: Index, vectors: Sequence[tuple[Index, Lanes, Value | None]]) -> None:
        """Some columns of all rows, as many rows at a time as there are registers for."""
        code, tall = self.code, max(1, self.room // len(vectors))
        if rows.value is not None:
            tall = min(rows.value, tall)
            if not tall:
                return
            last = rows.value // tall * tall
            with code.looping(I64(0), I64(last), tall) as row:
                self.block([row + i for i in range(tall)], vectors)
            if rows.value > last:
                self.block([lifted(i) for i in range(last, rows.value)], vectors)
            return
        tall = min(4, tall)
        count = code.integer(rows)
        whole = self.b.mul(self.b.udiv(count, I64(tall)), I64(tall))
        with code.looping(I64(0), whole, tall) as row:
            self.block([row + i for i in range(tall)], vectors)
        with code.looping(whole, count) as row:
            self.block([row], vectors)

    def block(self, rows: Sequence[Index], vectors: Sequence[tuple[Index, Lanes, Value | None]]) -> None:
        s, b = self.s, self.b
        if s.start is None:
            first: list[Value] = [w.const(0.0) for _ in rows for _, w, _ in vectors]
        else:
            first = [self.read(s.start, i, v) for i in rows for v in vectors]

        def step(k: Index, totals: list[Value]) -> list[Value]:
            ys = [self.read(s.right, k, v) for v in vectors]
            xs = [b.load(self.pointer(s.left, k, i), typ=self.w.N, align=self.w.bytes) for i in rows]
            pairs = [(w.splat(b, x), y, w) for x in xs for (_, w, _), y in zip(vectors, ys, strict=True)]
            return [self.joined(w, total, x, y) for total, (x, y, w) in zip(totals, pairs, strict=True)]

        totals = iter(self.sums(first, step))
        for i in rows:
            for v in vectors:
                self.write(next(totals), i, v)

    def joined(self, w: Lanes, total: Value, x: Value, y: Value) -> Value:
        return (w.plus_product if self.s.plus else w.minus_product)(self.b, total, x, y)

    def pointer(self, part: ArrayPart, row: Index, column: Index) -> Value:
        at = part.offset + part.strides[0] * row + part.strides[1] * column
        return self.code.address(self.code.function.arrays[part.array], at)

    def read(self, part: ArrayPart, row: Index, vector: tuple[Index, Lanes, Value | None]) -> Value:
        column, w, mask = vector
        pointer = self.pointer(part, row, column)
        if mask is None:
            return self.b.load(pointer, typ=w.V, align=w.bytes)
        return w.load_masked(self.b, pointer, mask)

    def write(self, x: Value, row: Index, vector: tuple[Index, Lanes, Value | None]) -> None:
        column, w, mask = vector
        pointer = self.pointer(self.s.target, row, column)
        if mask is None:
            w.store_unaligned(self.b, x, pointer)
        else:
            w.store_masked(self.b, x, pointer, mask)

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
        """Entry by entry; of upper triangles only those."""
        code, w, b, s = self.code, self.w, self.b, self.s
        with code.looping(I64(0), code.integer(self.m)) as i:
            first = code.integer(i) if s.upper else I64(0)
            with code.looping(first, code.integer(self.n)) as j:
                start = w.const(0.0) if s.start is None else w.load(b, self.pointer(s.start, i, j))

                def step(k: Index, totals: list[Value], i: Index = i, j: Index = j) -> list[Value]:
                    x, y = (w.load(b, self.pointer(part, k, at)) for part, at in ((s.left, i), (s.right, j)))
                    return [self.joined(w, totals[0], x, y)]

                w.store(b, self.sums([start], step)[0], self.pointer(s.target, i, j))
