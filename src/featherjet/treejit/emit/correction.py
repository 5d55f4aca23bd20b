"""LLVM for the derivatives of dynamics with contacts, from those without: each lane is a column of one sample.

With A = da/dx while the contact forces stay as they are in their bodies' frames (forward dynamics' own derivatives with
external forces), K the derivatives of the contacts' residuals and Y = J M^-1,

    G dlambda/dx = -(K + J A),    da/dx = A + Y^T dlambda/dx    for x = q, v, tau;  A = M^-1 and K = 0 for tau.

The rows of J and K have entries only at the dofs that move their contact's bodies. Where bodies hold bodies, A_q lacks
the reaction's turning with the first body (`derivatives.reaction_by_q`): A_q -= (S M^-1)^T C, both of entries too.
Everything changes in place: A_q, A_v and M^-1 become da/dq, da/dv and da/dtau.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import llvmlite.ir as ir

from ...jit.emit.border import ENTRY
from ...jit.emit.lanes import I8, I32, I64, LINE, PTR, VOID, Value, external
from ...jit.emit.platform import Platform
from ...jit.emit.workspace import forget_exceptions, release, reserve
from ...jit.graph import Graph
from ...jit.number import Number
from .lanes import TreeLanes

OPERANDS = ("report", "A_q", "A_v", "M^-1", "entries", "factor", "lambda_q", "lambda_v", "lambda_tau")
BY_Q, BY_V, BY_TAU = BLOCKS = range(3)  # blocks of columns
# Where an entry has its numbers, three each.
J, K_Q, K_V, TURN, S, REACTION = 0, 3, 6, 9, 12, 18


def emit_correction(lanes: int, rows: int, size: int, platform: Platform, kind: Number) -> ir.Module:
    """A module whose `entry` corrects samples one by one.

    rows: of A that are updated together; size: the numbers of an entry, 24 if bodies hold bodies.
    """
    module = platform.module("correction")
    w = ColumnLanes(module, Graph(), lanes, kind, whole=False)
    Correction(w, rows, size).emit()
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

    def columns(self, b: ir.IRBuilder, n: Value, body: Callable[[Value, Value | None], None]) -> None:
        """body(first column, mask) for each vector of n columns."""
        full = b.and_(n, I64(-self.L))
        with self.loop(b, I64(0), full, self.L) as c:
            body(c, None)
        with b.if_then(b.icmp_signed("<", full, n)):
            body(full, self.first_lanes(b, b.sub(n, full)))

    def row(self, b: ir.IRBuilder, matrix: Value, by_row: Value, k: Value) -> Value:
        """Where row k of a matrix begins, whose rows are `by_row` bytes apart."""
        return b.gep(matrix, [b.mul(k, by_row)], source_etype=I8)


class Correction:
    """The loop over samples. X and Y hold rows of `width` columns: X one for each row and block, Y for each row."""

    def __init__(self, w: ColumnLanes, together: int, size: int) -> None:
        self.w, self.together, self.size = w, together, size

    def emit(self) -> None:
        w = self.w
        blocks = (1, 3) if self.size > S else (3,)
        self.product, self.update = ({n: emit(n) for n in blocks} for emit in (self.emit_product, self.emit_update))
        solve = self.emit_solve()
        f = ir.Function(w.module, ENTRY, "entry")
        f.attributes.add("nounwind")
        args, dims, steps, self.data = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.grips, self.rows, self.nv = (w.slot(b, self.data, s) for s in ("grips", "rows", "nv"))
        self.width = b.and_(b.add(self.nv, I64(w.L - 1)), I64(-w.L))
        self.wide = b.mul(self.width, I64(len(BLOCKS)))
        counts = [b.mul(self.rows, self.wide), b.mul(self.rows, self.width), *[b.mul(self.width, I64(3))] * 2]
        memory, (self.X, self.Y, self.V, self.C) = self.allocate(counts, args)
        by_sample = [w.integer(b, steps, I64(o)) for o in range(len(OPERANDS))]
        strides = [w.integer(b, steps, I64(len(OPERANDS) + k)) for k in (0, 2, 4, 9, 11, 13)]
        self.by_row, by_row = strides[:3], strides[3:]
        with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
            at = []
            for o in range(1, len(OPERANDS)):
                base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR)
                at.append(b.gep(base, [b.mul(s, by_sample[o])], source_etype=I8))
            self.A, (self.E, factor), results = at[:3], at[3:5], at[5:]
            if self.size > S:
                self.react()
            with w.loop(b, I64(0), self.grips) as g:
                to = w.number(b, self.X, b.mul(b.mul(g, I64(3)), self.wide))
                self.times(g, J, BLOCKS, to, self.wide)
                self.scatter(g, to, self.wide, {BY_Q: K_Q, BY_V: K_V}, -1.0)
            with w.loop(b, I64(0), self.rows) as r:
                self.copy(b.add(b.mul(r, self.wide), b.mul(self.width, I64(BY_TAU))), b.mul(r, self.width))
            b.call(solve, [factor, self.X, self.rows, self.width])
            self.correct(BLOCKS, self.Y, self.X, self.wide, self.rows)
            with w.loop(b, I64(0), self.grips) as g:
                to = w.number(b, self.X, b.mul(b.mul(g, I64(3)), self.wide))
                self.scatter(g, to, self.wide, {BY_Q: TURN}, 1.0)
            for m in BLOCKS:
                self.write(m, results[m], by_row[m])
        release(w.module, b, args, memory)
        forget_exceptions(w.module, b)
        b.ret_void()

    def allocate(self, counts: Sequence[Value], args: Value) -> tuple[Value, list[Value]]:
        """Memory for numbers; without any, the caller's word gets a flag."""
        b, w = self.b, self.w
        total: Value = I64(0)
        begins = []
        for count in counts:
            begins.append(total)
            total = b.add(total, count)
        size = b.add(b.mul(total, I64(w.bytes)), I64(LINE))
        memory = reserve(w.module, b, args, size)
        first = b.inttoptr(b.and_(b.add(b.ptrtoint(memory, I64), I64(LINE - 1)), I64(-LINE)), PTR)
        return memory, [w.number(b, first, at) for at in begins]

    # Pieces of one sample

    def clear(self, target: Value, count: Value) -> None:
        b, w = self.b, self.w
        with w.loop(b, I64(0), count, w.L) as k:
            w.store(b, w.const(0.0), w.number(b, target, k))

    def copy(self, source: Value, target: Value) -> None:
        """A row of X, from the number `source` on, to Y, from the number `target` on."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.width, w.L) as k:
            x = w.load(b, w.number(b, self.X, b.add(source, k)))
            w.store(b, x, w.number(b, self.Y, b.add(target, k)))

    def scatter(self, g: Value, target: Value, stride: Value, numbers: Mapping[int, int], sign: float) -> None:
        """Add numbers of a grip's entries to its three rows, each in the entry's column of a block.

        numbers: for each block, where an entry has the first of its three.
        """
        b, w = self.b, self.w
        start, end = self.entries_of(b, self.data, g)
        table = w.slot(b, self.data, "entry")
        firsts = {block: b.mul(self.width, I64(block)) for block in numbers}
        rows = {
            block: [w.number(b, target, b.add(b.mul(I64(i), stride), first)) for i in range(3)]
            for block, first in firsts.items()
        }
        with w.loop(b, start, end) as e:
            dof = w.integer(b, table, b.mul(e, I64(3)))
            entry = w.number(b, self.E, b.mul(e, I64(self.size)))
            for block, k in numbers.items():
                for i, row in enumerate(rows[block]):
                    x, at = w.load_number(b, w.number(b, entry, I64(k + i))), w.number(b, row, dof)
                    change = b.fadd if sign > 0 else b.fsub
                    w.store_unaligned(b, change(w.load_number(b, at), x), at)

    def entries_of(self, b: ir.IRBuilder, data: Value, g: Value) -> tuple[Value, Value]:
        """The first entry of a grip, and the one after its last."""
        climbs = self.w.slot(b, data, "climbs")
        first, end = (self.w.integer(b, climbs, b.add(b.mul(g, I64(4)), I64(k))) for k in (0, 3))
        return first, end

    def times(self, g: Value, k: int, blocks: Sequence[int], target: Value, stride: Value) -> None:
        """Three rows of the target = minus the grip's numbers from the k-th on, times the rows of A, in some blocks."""
        A = [x for m in blocks for x in (self.A[m], self.by_row[m])]
        self.b.call(self.product[len(blocks)], [self.data, self.E, target, stride, g, I64(k), *A])

    def correct(self, blocks: Sequence[int], Y: Value, X: Value, stride: Value, rows: Value) -> None:
        """A -= Y^T X, in some blocks."""
        A = [x for m in blocks for x in (self.A[m], self.by_row[m])]
        self.b.call(self.update[len(blocks)], [Y, X, self.width, stride, rows, self.nv, *A])

    def react(self) -> None:
        """A_q -= (S M^-1)^T C, three rows at a time."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.grips) as g:
            for half in (0, 3):
                self.times(g, S + half, [BY_TAU], self.V, self.width)
                self.clear(self.C, b.mul(self.width, I64(3)))
                self.scatter(g, self.C, self.width, {0: REACTION + half}, -1.0)
                self.correct([BY_Q], self.V, self.C, self.width, I64(3))

    def write(self, block: int, target: Value, by_row: Value) -> None:
        """Write a block of X to a result."""
        b, w = self.b, self.w
        with w.loop(b, I64(0), self.rows) as r:
            row = w.number(b, self.X, b.add(b.mul(r, self.wide), b.mul(self.width, I64(block))))
            to = w.row(b, target, by_row, r)

            def put(c: Value, mask: Value | None) -> None:
                w.store_part(b, w.load(b, w.number(b, row, c)), w.number(b, to, c), mask)

            w.columns(b, self.nv, put)

    # Functions

    def emit_product(self, blocks: int) -> ir.Function:
        """(data, E, X, stride, grip, k, then A and its stride of each block): three rows X = -(numbers k...) A."""
        w = self.w
        f = w.function(f"product{blocks}", [PTR, PTR, PTR, I64, I64, I64, *[PTR, I64] * blocks])
        data, E, X, stride, g, k, *rest = f.args
        A, by_row = rest[::2], rest[1::2]
        b = ir.IRBuilder(f.append_basic_block("entry"))
        start, end = self.entries_of(b, data, g)
        table, nv = w.slot(b, data, "entry"), w.slot(b, data, "nv")
        width = b.and_(b.add(nv, I64(w.L - 1)), I64(-w.L))

        def body(c: Value, mask: Value | None) -> None:
            places = [
                b.add(b.add(b.mul(I64(i), stride), b.mul(width, I64(m))), c) for m in range(blocks) for i in range(3)
            ]
            at = [w.number(b, X, place) for place in places]

            def step(e: Value, x: list[Value]) -> list[Value]:
                dof = w.integer(b, table, b.mul(e, I64(3)))
                first = b.add(b.mul(e, I64(self.size)), k)
                entry = [w.scalar(b, E, b.add(first, I64(i))) for i in range(3)]
                found = []
                for m in range(blocks):
                    a = w.load_part(b, w.number(b, w.row(b, A[m], by_row[m], dof), c), mask)
                    found += [w.minus_product(b, y, z, a) for y, z in zip(x[3 * m : 3 * m + 3], entry, strict=True)]
                return found

            for y, pointer in zip(w.carrying(b, start, end, [w.const(0.0)] * len(at), step), at, strict=True):
                w.store(b, y, pointer)

        w.columns(b, nv, body)
        b.ret_void()
        return f

    def emit_update(self, blocks: int) -> ir.Function:
        """(Y, X, width, X's stride, rows, n, then A and its stride of each block): A (n, n) -= Y^T X.

        Rows of A go some at a time; beyond the last, the last is computed again, to the same result.
        """
        w, count = self.w, self.together
        f = w.function(f"update{blocks}", [PTR, PTR, I64, I64, I64, I64, *[PTR, I64] * blocks])
        Y, X, width, stride, rows, n, *rest = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        last = b.sub(n, I64(1))
        with w.loop(b, I64(0), n, count) as k:
            some = [b.add(k, I64(j)) for j in range(count)]
            some = [b.select(b.icmp_signed("<", j, last), j, last) for j in some]
            lines = [w.row(b, A, by_row, j) for A, by_row in zip(rest[::2], rest[1::2], strict=True) for j in some]

            def body(c: Value, mask: Value | None) -> None:
                at = [w.number(b, line, c) for line in lines]

                def step(r: Value, a: list[Value]) -> list[Value]:
                    ys = [w.scalar(b, Y, b.add(b.mul(r, width), j)) for j in some]
                    found = []
                    for m in range(blocks):
                        x = w.load(b, w.number(b, X, b.add(b.add(b.mul(r, stride), b.mul(width, I64(m))), c)))
                        own = a[count * m : count * (m + 1)]
                        found += [w.minus_product(b, z, y, x) for z, y in zip(own, ys, strict=True)]
                    return found

                found = w.carrying(b, I64(0), rows, [w.load_part(b, p, mask) for p in at], step)
                for z, pointer in zip(found, at, strict=True):
                    w.store_part(b, z, pointer, mask)

            w.columns(b, n, body)
        b.ret_void()
        return f

    def emit_solve(self) -> ir.Function:
        """(factor, X, rows, width): X = (L^T D L)^-1 X in all blocks, three rows at a time; see `math.dense`."""
        w = self.w
        f = w.function("solve_columns", [PTR, PTR, I64, I64])
        code = Substitution(w, ir.IRBuilder(f.append_basic_block("entry")), *f.args)
        code.emit()
        code.b.ret_void()
        return f


class Substitution:
    """Solves with the factor L^T D L of G for a vector of columns of every block at a time."""

    def __init__(self, w: ColumnLanes, b: ir.IRBuilder, L: Value, X: Value, n: Value, width: Value) -> None:
        self.w, self.b, self.L, self.X, self.n, self.width = w, b, L, X, n, width
        self.wide = b.mul(width, I64(len(BLOCKS)))
        self.dinv = w.number(b, L, b.mul(n, n))

    def emit(self) -> None:
        b, w = self.b, self.w
        triples = b.sdiv(self.n, I64(3))
        with w.loop(b, I64(0), self.width, w.L) as c:
            with w.loop(b, b.sub(triples, I64(1)), I64(0), -1) as t:
                x = self.less(
                    b.add(t, I64(1)), triples, self.rows(t, c), c, lambda s, i, j, t=t: self.entry(s, j, t, i)
                )
                for i, k in ((1, 2), (0, 1), (0, 2)):
                    self.eliminate(x, i, k, self.entry(t, k, t, i))
                self.put(t, c, x)
            with w.loop(b, I64(0), triples) as t:
                scale = [w.scalar(b, self.dinv, self.number(t, i)) for i in range(3)]
                x = [[b.fmul(y, d) for y in row] for row, d in zip(self.rows(t, c), scale, strict=True)]
                x = self.less(I64(0), t, x, c, lambda s, i, j, t=t: self.entry(t, i, s, j))
                for i, k in ((1, 0), (2, 0), (2, 1)):
                    self.eliminate(x, i, k, self.entry(t, i, t, k))
                self.put(t, c, x)

    def number(self, t: Value, i: int) -> Value:
        """Row i of a triple."""
        return self.b.add(self.b.mul(t, I64(3)), I64(i))

    def entry(self, t: Value, i: int, s: Value, j: int) -> Value:
        """Entry of the factor, in all lanes."""
        return self.w.scalar(self.b, self.L, self.b.add(self.b.mul(self.number(t, i), self.n), self.number(s, j)))

    def places(self, t: Value, c: Value) -> list[list[Value]]:
        """Where the vectors of a triple's rows are, in each block."""
        b, w = self.b, self.w
        starts = [b.add(b.mul(self.number(t, i), self.wide), c) for i in range(3)]
        return [[w.number(b, self.X, b.add(at, b.mul(self.width, I64(m)))) for m in BLOCKS] for at in starts]

    def rows(self, t: Value, c: Value) -> list[list[Value]]:
        return [[self.w.load(self.b, p) for p in row] for row in self.places(t, c)]

    def put(self, t: Value, c: Value, x: Sequence[Sequence[Value]]) -> None:
        for row, places in zip(x, self.places(t, c), strict=True):
            for y, p in zip(row, places, strict=True):
                self.w.store(self.b, y, p)

    def eliminate(self, x: list[list[Value]], i: int, k: int, l: Value) -> None:
        """Row i -= l times row k."""
        x[i] = [self.w.minus_product(self.b, y, l, z) for y, z in zip(x[i], x[k], strict=True)]

    def less(
        self, start: Value, stop: Value, x: list[list[Value]], c: Value, of: Callable[[Value, int, int], Value]
    ) -> list[list[Value]]:
        """x minus the blocks `of` times the rows of X, from triple start to stop, if there are any."""
        b, w = self.b, self.w
        before, head, end = b.block, b.append_basic_block("head"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed("<", start, stop), head, end)
        b.position_at_end(head)
        s = b.phi(I64)
        s.add_incoming(start, before)
        carried = [[b.phi(w.V) for _ in row] for row in x]
        found: list[list[Value]] = [list(row) for row in carried]
        y = self.rows(s, c)
        for j in range(3):
            for i in range(3):
                l = of(s, i, j)
                found[i] = [w.minus_product(b, a, l, z) for a, z in zip(found[i], y[j], strict=True)]
        following = b.add(s, I64(1))
        s.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, stop), head, end)
        last = b.block
        b.position_at_end(end)
        out: list[list[Value]] = []
        for row, phis, new in zip(x, carried, found, strict=True):
            out.append([])
            for y0, phi, z in zip(row, phis, new, strict=True):
                phi.add_incoming(y0, before)
                phi.add_incoming(z, last)
                result = b.phi(w.V)
                result.add_incoming(y0, before)
                result.add_incoming(z, last)
                out[-1].append(result)
        return out
