"""LLVM for getting matrices out: from lanes of samples to lanes of columns, and from there to the user's arrays."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from ..program import Output, Responses, Walk
from .border import Border
from .columns import Columns
from .lanes import DOUBLE, I8, I32, I64, PTR, Value, transposed
from .walks import Walks

MARGIN = 8  # numbers of room before and after a block of a stream


class MatrixOutput(Border):
    """The part of `Rolled` that writes matrices; what it uses of it is declared here."""

    w: Walks
    c: Columns
    nv: Value
    area: Value
    rows: Value
    block: Value
    streams: Value
    P: Value
    own: Value
    spare: Value
    stream: Value
    matrices: dict[int, ir.Function]

    def results(self) -> list[tuple[int, Output]]:
        raise NotImplementedError

    def dense(self, o: int) -> Value:
        raise NotImplementedError

    def emit_arrange(self) -> ir.Function:
        """(data, D, P, area): what was kept for each dof, from lanes of samples to lanes of dofs, for each sample."""
        w, C = self.w, self.c.L
        f = w.function("arrange", [PTR, PTR, PTR, I64])
        data, D, P, area = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        last = b.sub(w.slot(b, data, "nv"), I64(1))
        count = len(self.c.kept)
        with w.loop(b, I64(0), w.slot(b, data, "groups")) as g:
            records = []
            for j in range(C):
                dof = b.add(b.mul(g, I64(C)), I64(j))
                dof = b.select(b.icmp_signed("<", dof, last), dof, last)
                records.append(w.vector(b, D, b.mul(dof, I64(w.ND))))
            with w.loop(b, I64(0), I64(count)) as k:
                x = [w.load(b, w.vector(b, record, k)) for record in records]
                target = w.number(b, P, b.mul(b.add(b.mul(g, I64(count)), k), I64(C)))
                if w.L == 1:
                    for j in range(C):
                        b.store(x[j], w.number(b, target, I64(j)), align=8)
                else:
                    for l, y in enumerate(transposed(b, x)):
                        b.store(y, w.number(b, target, b.mul(area, I64(l))), align=8)
        b.ret_void()
        return f

    def write_matrices(self, lane: Value) -> None:
        """All matrices of one sample: directly, through spare memory where columns are apart, or as a stream."""
        b, w = self.b, self.w
        P = w.number(b, self.P, b.mul(self.area, lane))
        by_matrix = {out.matrix: o for o, out in self.results() if out.kind == "matrix"}
        with b.goto_entry_block():
            outs, rows = b.alloca(PTR, I32(len(by_matrix))), b.alloca(I64, I32(len(by_matrix)))
        for k, f in self.matrices.items():
            loop = self.w.program.loops[k]
            assert not isinstance(loop, Walk)
            operands = [by_matrix[number] for number in loop.matrices]
            targets = [self.lane_pointer(o, lane) for o in operands]

            def fill(places: list[tuple[Value, Value]], first: Value, end: Value, f=f, loop=loop) -> None:
                """Rows first to end, matrix m beginning at places[m][0] with rows places[m][1] bytes apart."""
                for m, (place, by_row) in enumerate(places):
                    b.store(place, b.gep(outs, [I64(m)], source_etype=PTR), align=8)
                    b.store(by_row, b.gep(rows, [I64(m)], source_etype=I64), align=8)
                last = [self.own] if isinstance(loop, Responses) else [first, end]
                b.call(f, [self.data, P, outs, rows, *last])

            with b.if_else(self.streams) as (yes, no):
                with yes:
                    self.write_stream(targets, fill)
                with no:
                    self.write_plainly(operands, targets, fill)

    def write_plainly(self, operands: list[int], targets: list[Value], fill: Callable) -> None:
        b, w = self.b, self.w
        square = b.mul(self.nv, self.nv)
        spares = [w.number(b, self.spare, b.mul(square, I64(m))) for m in range(len(operands))]
        places = []
        for o, target, spare in zip(operands, targets, spares, strict=True):
            dense = self.dense(o)
            by_row = b.select(dense, self.strides[o][0], b.mul(self.nv, I64(8)))
            places.append((b.select(dense, target, spare), by_row))
        fill(places, I64(0), self.nv)
        for o, target, spare in zip(operands, targets, spares, strict=True):
            with b.if_then(b.not_(self.dense(o)), likely=False):
                with w.loop(b, I64(0), self.nv) as r, w.loop(b, I64(0), self.nv) as c:
                    x = b.load(w.number(b, spare, b.add(b.mul(r, self.nv), c)), typ=DOUBLE, align=8)
                    shift = b.add(b.mul(r, self.strides[o][0]), b.mul(c, self.strides[o][1]))
                    self.give(x, b.gep(target, [shift], source_etype=I8))

    def write_stream(self, targets: list[Value], fill: Callable) -> None:
        """Block by block into spare memory, and from there past the caches, in whole cache lines."""
        b, w = self.b, self.w
        by_row = b.mul(self.nv, I64(8))
        starts = [w.number(b, self.spare, b.add(b.mul(self.block, I64(m)), I64(MARGIN))) for m in range(len(targets))]
        with b.goto_entry_block():
            carried = [b.alloca(I64) for _ in targets]
        for cell in carried:
            b.store(I64(0), cell)
        with w.loop(b, I64(0), self.nv, self.rows) as r0:
            r1 = b.add(r0, self.rows)
            r1 = b.select(b.icmp_signed("<", r1, self.nv), r1, self.nv)
            back = b.sub(I64(0), b.mul(r0, by_row))
            fill([(b.gep(start, [back], source_etype=I8), by_row) for start in starts], r0, r1)
            final = b.icmp_signed("==", r1, self.nv)
            for start, target, cell in zip(starts, targets, carried, strict=True):
                before = b.load(cell, typ=I64)
                source = w.number(b, start, b.sub(I64(0), before))
                to = w.number(b, target, b.sub(b.mul(r0, self.nv), before))
                count = b.add(before, b.mul(b.sub(r1, r0), self.nv))
                rest = b.call(self.stream, [to, source, count, final])
                b.store(rest, cell)
                end, again = w.number(b, source, b.sub(count, rest)), w.number(b, start, b.sub(I64(0), rest))
                with w.loop(b, I64(0), rest) as j:
                    b.store(b.load(w.number(b, end, j), typ=DOUBLE, align=8), w.number(b, again, j), align=8)
