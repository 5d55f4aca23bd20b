"""LLVM for the derivatives of dynamics with contacts, from those without: each lane is a column of one sample.

With A = da/dx while the contact forces stay as they are in their bodies' frames (forward dynamics' own derivatives with
external forces), K the derivatives of the contacts' residuals and Y = J M^-1,

    G dlambda/dx = -(K + J A),    da/dx = A + Y^T dlambda/dx    for x = q, v, tau;  A = M^-1 and K = 0 for tau.

The rows of J and K have entries only at the dofs that move their contact's bodies. Where bodies hold bodies, A_q lacks
the reaction's turning with the first body (`derivatives.reaction_by_q`): A_q -= (S M^-1)^T C, S and C being entries too.
Everything changes in place: A_q, A_v and M^-1 become da/dq, da/dv and da/dtau.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ...jit.emit.lanes import I8, I32, I64, PTR, VOID, Value, external
from ...jit.graph import Graph
from ...jit.number import Number
from .lanes import TreeLanes

OPERANDS = ("report", "A_q", "A_v", "M^-1", "entries", "factor", "lambda_q", "lambda_v", "lambda_tau")
BY_Q, BY_V, BY_TAU = range(3)  # blocks of columns
ROWS = 4  # rows of A that are updated together
# Where an entry has its numbers, three each.
J, K_Q, K_V, TURN, S, REACTION = 0, 3, 6, 9, 12, 18


def emit_correction(lanes: int, size: int, triple: str, kind: Number) -> ir.Module:
    """A module whose `entry` corrects samples one by one; size: the numbers of an entry, 24 if bodies hold bodies."""
    module = ir.Module("correction")
    module.triple = triple
    w = ColumnLanes(module, Graph(), lanes, kind, whole=False)
    Correction(w, size).emit()
    return module


class ColumnLanes(TreeLanes):
    """Rows of matrices, a vector of columns at a time; the last may be narrower."""

    def intrinsic(self, b: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[Value]) -> Value:
        suffix = self.kind.suffix(self.L)
        return b.call(external(self.module, f"llvm.masked.{name}.{suffix}.p0", result, *(a.type for a in args)), args)

    def load_part(self, b: ir.IRBuilder, pointer: Value, mask: Value | None) -> Value:
        """A vector of which only the columns in `mask` exist; the others are zero."""
        if mask is None:
            return self.load(b, pointer)
        return self.intrinsic(b, "load", self.V, [pointer, I32(self.bytes), mask, self.const(0.0)])

    def store_part(self, b: ir.IRBuilder, x: Value, pointer: Value, mask: Value | None) -> None:
        if mask is None:
            self.store(b, x, pointer)
        else:
            self.intrinsic(b, "store", VOID, [x, pointer, I32(self.bytes), mask])

    def scalar(self, b: ir.IRBuilder, base: Value, index: Value) -> Value:
        """One number in all lanes."""
        return self.splat(b, self.load_number(b, self.number(b, base, index)))


class Correction:
    """The loop over samples. X holds three blocks of `width` columns for each row; Y, V and C hold one."""

    def __init__(self, w: ColumnLanes, size: int) -> None:
        self.w, self.size = w, size

    def emit(self) -> None:
        w = self.w
        product, update, solve = self.emit_product(), self.emit_update(), self.emit_solve()
        f = ir.Function(w.module, ir.FunctionType(VOID, [PTR] * 4), "entry")
        f.attributes.add("nounwind")
        args, dims, steps, data = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.data = data
        self.grips, self.rows, self.nv, groups = (w.slot(b, data, s) for s in ("grips", "rows", "nv", "groups"))
        self.width = b.mul(groups, I64(w.L))
        wide = b.mul(self.width, I64(3))
        counts = [b.mul(self.rows, wide), b.mul(self.rows, self.width), wide, wide]
        memory, (self.X, self.Y, self.V, self.C) = self.allocate(counts)
        by_sample = [w.integer(b, steps, I64(o)) for o in range(len(OPERANDS))]
        by_row = {o: w.integer(b, steps, I64(len(OPERANDS) + at)) for o, at in zip((1, 2, 3, 6, 7, 8), (0, 2, 4, 9, 11, 13))}
        with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
            at = []
            for o in range(1, len(OPERANDS)):
                base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
                at.append(b.gep(base, [b.mul(s, by_sample[o])], source_etype=I8))
            A, (self.E, factor), L = at[:3], at[3:5], at[5:]

            def times(k: int, m: int, target: Value, stride: Value) -> None:
                """target -= (the numbers k of all entries) A_m, for all grips."""
                with w.loop(b, I64(0), self.grips) as g:
                    to = w.number(b, target, b.mul(b.mul(g, I64(3)), stride))
                    b.call(product, [data, self.E, A[m], by_row[m + 1], to, stride, g, I64(k)])

            self.clear(self.Y, counts[1])
            times(J, BY_TAU, self.Y, self.width)
            if self.size > TURN + 3:
                self.react(product, update, A, by_row)
            self.clear(self.X, counts[0])
            self.scatter(self.X, wide, BY_Q, K_Q, -1.0)
            self.scatter(self.X, wide, BY_V, K_V, -1.0)
            for m in (BY_Q, BY_V):
                times(J, m, w.number(b, self.X, b.mul(self.width, I64(m))), wide)
            with w.loop(b, I64(0), self.rows) as r:
                self.copy(b.mul(r, self.width), b.add(b.mul(r, wide), b.mul(self.width, I64(BY_TAU))))
            b.call(solve, [factor, self.X, self.rows, wide])
            for m in (BY_Q, BY_V, BY_TAU):
                X = w.number(b, self.X, b.mul(self.width, I64(m)))
                b.call(update, [A[m], by_row[m + 1], self.Y, self.width, X, wide, self.rows, self.nv])
            self.scatter(self.X, wide, BY_Q, TURN, 1.0)
            for m in (BY_Q, BY_V, BY_TAU):
                self.write(m, L[m], by_row[m + 6], wide)
        b.call(external(w.module, "free", VOID, PTR), [memory])
        b.ret_void()

    def allocate(self, counts: Sequence[Value]) -> tuple[Value, list[Value]]:
        b, w = self.b, self.w
        total: Value = I64(0)
        begins = []
        for count in counts:
            begins.append(total)
            total = b.add(total, count)
        memory = b.call(external(w.module, "malloc", PTR, I64), [b.mul(total, I64(w.bytes))])
        return memory, [w.number(b, memory, at) for at in begins]

    # Pieces of one sample

    def clear(self, target: Value, count: Value) -> None:
        b, w = self.b, self.w
        with w.loop(b, I64(0), count, w.L) as k:
            w.store(b, w.const(0.0), w.number(b, target, k))

    def copy(self, source: Value, target: Value) -> None:
        """A row of Y, from the number `source`, to X, from the number `target`."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.width, w.L) as k:
            x = w.load(b, w.number(b, self.Y, b.add(source, k)))
            w.store(b, x, w.number(b, self.X, b.add(target, k)))

    def scatter(self, target: Value, stride: Value, block: int, k: int, sign: float, only: Value | None = None) -> None:
        """Add three numbers of each entry, from the k-th on, to its rows and column; of one grip if `only` is given."""
        b, w = self.b, self.w
        start, end = (I64(0), w.slot(b, self.data, "entries")) if only is None else self.entries_of(b, self.data, only)
        table = w.slot(b, self.data, "entry")
        with w.loop(b, start, end) as e:
            dof, grip = (w.integer(b, table, b.add(b.mul(e, I64(3)), I64(j))) for j in range(2))
            first = b.mul(grip, I64(3)) if only is None else I64(0)
            for i in range(3):
                x = w.load_number(b, w.number(b, self.E, b.add(b.mul(e, I64(self.size)), I64(k + i))))
                row = b.mul(b.add(first, I64(i)), stride)
                at = w.number(b, target, b.add(row, b.add(b.mul(self.width, I64(block)), dof)))
                x = x if sign > 0 else b.fneg(x)
                w.store_unaligned(b, b.fadd(w.load_number(b, at), x), at)

    def entries_of(self, b: ir.IRBuilder, data: Value, g: Value) -> tuple[Value, Value]:
        """The first entry of a grip, and the one after its last."""
        climbs = self.w.slot(b, data, "climbs")
        first, end = (self.w.integer(b, climbs, b.add(b.mul(g, I64(4)), I64(k))) for k in (0, 3))
        return first, end

    def react(self, product: ir.Function, update: ir.Function, A: Sequence[Value], by_row: dict[int, Value]) -> None:
        """A_q -= (S M^-1)^T C, three rows at a time."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.grips) as g:
            for half in (0, 3):
                for memory in (self.V, self.C):
                    self.clear(memory, b.mul(self.width, I64(3)))
                stride = self.width
                b.call(product, [self.data, self.E, A[BY_TAU], by_row[3], self.V, stride, g, I64(S + half)])
                self.scatter(self.C, stride, 0, REACTION + half, -1.0, only=g)
                b.call(update, [A[BY_Q], by_row[1], self.V, stride, self.C, stride, I64(3), self.nv])

    def write(self, block: int, target: Value, by_row: Value, wide: Value) -> None:
        """Write a block of X to a result."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.rows) as r:
            row = w.number(b, self.X, b.add(b.mul(r, wide), b.mul(self.width, I64(block))))
            to = b.gep(target, [b.mul(r, by_row)], source_etype=I8)

            def put(c: Value, mask: Value | None) -> None:
                w.store_part(b, w.load(b, w.number(b, row, c)), w.number(b, to, c), mask)

            self.columns(b, self.nv, put)

    def columns(self, b: ir.IRBuilder, n: Value, body: Callable[[Value, Value | None], None]) -> None:
        """body(first column, mask) for each vector of n columns."""
        w = self.w
        full = b.and_(n, I64(-w.L))
        with w.loop(b, I64(0), full, w.L) as c:
            body(c, None)
        with b.if_then(b.icmp_signed("<", full, n)):
            body(full, w.first_lanes(b, b.sub(n, full)))

    # Functions

    def emit_product(self) -> ir.Function:
        """(data, E, A, by row, X, stride, grip, k): three rows X -= the grip's numbers from k on, times rows of A."""
        w = self.w
        f = w.function("product", [PTR, PTR, PTR, I64, PTR, I64, I64, I64])
        data, E, A, by_row, X, stride, g, k = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        start, end = self.entries_of(b, data, g)
        table = w.slot(b, data, "entry")

        def body(c: Value, mask: Value | None) -> None:
            at = [w.number(b, X, b.add(b.mul(I64(i), stride), c)) for i in range(3)]

            def step(e: Value, x: list[Value]) -> list[Value]:
                dof = w.integer(b, table, b.mul(e, I64(3)))
                row = b.gep(A, [b.mul(dof, by_row)], source_etype=I8)
                a = w.load_part(b, w.number(b, row, c), mask)
                first = b.add(b.mul(e, I64(self.size)), k)
                return [w.minus_product(b, y, w.scalar(b, E, b.add(first, I64(i))), a) for i, y in enumerate(x)]

            for y, pointer in zip(w.carrying(b, start, end, [w.load(b, x) for x in at], step), at, strict=True):
                w.store(b, y, pointer)

        self.columns(b, w.slot(b, data, "nv"), body)
        b.ret_void()
        return f

    def emit_update(self) -> ir.Function:
        """(A, by row, Y, its stride, X, its stride, rows, n): A (n, n) -= Y^T X; rows is a multiple of three."""
        w = self.w
        f = w.function("update", [PTR, I64, PTR, I64, PTR, I64, I64, I64])
        A, by_row, Y, by_y, X, by_x, rows, n = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        triples = b.sdiv(rows, I64(3))

        def block(k: Value, count: int) -> None:
            lines = [b.gep(A, [b.mul(b.add(k, I64(j)), by_row)], source_etype=I8) for j in range(count)]

            def body(c: Value, mask: Value | None) -> None:
                at = [w.number(b, line, c) for line in lines]

                def step(t: Value, a: list[Value]) -> list[Value]:
                    for i in range(3):
                        row = b.add(b.mul(t, I64(3)), I64(i))
                        x = w.load(b, w.number(b, X, b.add(b.mul(row, by_x), c)))
                        y = w.number(b, Y, b.add(b.mul(row, by_y), k))
                        a = [w.minus_product(b, z, w.scalar(b, y, I64(j)), x) for j, z in enumerate(a)]
                    return a

                found = w.carrying(b, I64(0), triples, [w.load_part(b, p, mask) for p in at], step)
                for z, pointer in zip(found, at, strict=True):
                    w.store_part(b, z, pointer, mask)

            self.columns(b, n, body)

        full = b.and_(n, I64(-ROWS))
        with w.loop(b, I64(0), full, ROWS) as k:
            block(k, ROWS)
        with w.loop(b, full, n) as k:
            block(k, 1)
        b.ret_void()
        return f

    def emit_solve(self) -> ir.Function:
        """(factor, X, rows, columns): X = (L^T D L)^-1 X, three rows at a time; see `jit.emit.dense`."""
        w = self.w
        f = w.function("solve_columns", [PTR, PTR, I64, I64])
        L, X, n, width = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        last = b.sub(b.sdiv(n, I64(3)), I64(1))
        dinv = w.number(b, L, b.mul(n, n))

        def entry(t: Value, i: int, s: Value, j: int) -> Value:
            row, column = b.add(b.mul(t, I64(3)), I64(i)), b.add(b.mul(s, I64(3)), I64(j))
            return w.scalar(b, L, b.add(b.mul(row, n), column))

        def rows(t: Value, c: Value) -> list[Value]:
            return [w.number(b, X, b.add(b.mul(b.add(b.mul(t, I64(3)), I64(i)), width), c)) for i in range(3)]

        def minus(x: list[Value], y: Sequence[Value], of: Callable[[int, int], Value]) -> list[Value]:
            for j in range(3):
                x = [w.minus_product(b, x[i], of(i, j), y[j]) for i in range(3)]
            return x

        def sweep(start: Value, stop: Value, x: list[Value], c: Value, of: Callable[..., Value]) -> list[Value]:
            """x minus the blocks `of` times the rows of X from block start to stop, if there are any."""
            cells = [w.cell(b) for _ in x]
            for cell, y in zip(cells, x, strict=True):
                b.store(y, cell)
            with b.if_then(b.icmp_signed("<", start, stop)):
                found = w.carrying(
                    b, start, stop, x,
                    lambda s, z: minus(z, [w.load(b, p) for p in rows(s, c)], lambda i, j: of(s, i, j)),
                )  # fmt: skip
                for cell, y in zip(cells, found, strict=True):
                    b.store(y, cell)
            return [b.load(cell, typ=w.V, align=w.bytes) for cell in cells]

        with w.loop(b, I64(0), width, w.L) as c:
            with w.loop(b, last, I64(0), -1) as t:
                at = rows(t, c)
                above, end = b.add(t, I64(1)), b.add(last, I64(1))
                x = sweep(above, end, [w.load(b, p) for p in at], c, lambda s, i, j, t=t: entry(s, j, t, i))
                x[1] = w.minus_product(b, x[1], entry(t, 2, t, 1), x[2])
                for k in (1, 2):
                    x[0] = w.minus_product(b, x[0], entry(t, k, t, 0), x[k])
                for y, p in zip(x, at, strict=True):
                    w.store(b, y, p)
            with w.loop(b, I64(0), b.add(last, I64(1))) as t:
                at = rows(t, c)
                scale = [w.scalar(b, dinv, b.add(b.mul(t, I64(3)), I64(i))) for i in range(3)]
                x = [b.fmul(w.load(b, p), d) for p, d in zip(at, scale, strict=True)]
                x = sweep(I64(0), t, x, c, lambda s, i, j, t=t: entry(t, i, s, j))
                x[1] = w.minus_product(b, x[1], entry(t, 1, t, 0), x[0])
                for k in (0, 1):
                    x[2] = w.minus_product(b, x[2], entry(t, 2, t, k), x[k])
                for y, p in zip(x, at, strict=True):
                    w.store(b, y, p)
        b.ret_void()
        return f
