"""LLVM for M = L^T D L along the tree, and for solves with it; [RBDA] sec. 6.5, tables 6.3 and 6.5.

L's strict lower triangle and D on its diagonal share one matrix. `parents` has the parent of each dof, or -1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ...jit.emit.lanes import I64, PTR, Lanes, Value

VECTORS = 8  # of columns that are solved for together: as many sums in registers


def solve_panel_size(n: int, lanes: int) -> int:
    """Doubles of a packed panel of columns."""
    return n * VECTORS * lanes


def emit_factor(w: Lanes, name: str) -> ir.Function:
    """A function of (n, M, factor, parents), for one lane."""
    f = w.function(name, [I64, PTR, PTR, PTR])
    n, M, H, parents = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))

    def at(row: Value, column: Value) -> Value:
        return w.number(b, H, b.add(b.mul(row, n), column))

    with w.loop(b, I64(0), b.mul(n, n)) as k:
        w.store(b, w.load(b, w.number(b, M, k)), w.number(b, H, k))
    with w.loop(b, b.sub(n, I64(1)), I64(0), -1) as k:
        inverse = b.fdiv(w.const(1.0), w.load(b, at(k, k)))

        def ancestor(i: Value, _: list[Value], k: Value = k, inverse: Value = inverse) -> list[Value]:
            left = b.fmul(w.load(b, at(k, i)), inverse)

            def further(j: Value, _: list[Value]) -> list[Value]:
                w.store(b, w.minus_product(b, w.load(b, at(i, j)), left, w.load(b, at(k, j))), at(i, j))
                return []

            _upward(w, b, parents, i, [], further)
            w.store(b, left, at(k, i))
            return []

        _upward(w, b, parents, w.integer(b, parents, k), [], ancestor)
    b.ret_void()
    return f


def emit_solve(w: Lanes, name: str, negative: bool, identity: bool) -> ir.Function:
    """A function of (n, factor, right, result, panel, parents) for n >= lanes; `identity`: right is not read."""
    f = w.function(name, [I64, PTR, PTR, PTR, PTR, PTR])
    n = f.args[0]
    b = ir.IRBuilder(f.append_basic_block("entry"))
    with b.if_else(b.icmp_signed(">=", n, I64(VECTORS * w.L))) as (large, small):
        for case, vectors in ((large, VECTORS), (small, 1)):
            with case, w.loop(b, I64(0), n, vectors * w.L) as c:
                last = b.sub(n, I64(vectors * w.L))
                column = b.select(b.icmp_signed("<", c, last), c, last)
                _Panel(w, b, f.args, column, vectors).solve(negative, identity)
    b.ret_void()
    return f


class _Panel:
    """Some vectors of columns: row k of all of them in registers, the others packed."""

    def __init__(self, w: Lanes, b: ir.IRBuilder, args: tuple[Value, ...], column: Value, vectors: int) -> None:
        self.w, self.b, self.column, self.width = w, b, column, vectors * w.L
        self.n, self.factor, self.right, self.result, self.panel, self.parents = args

    def solve(self, negative: bool, identity: bool) -> None:
        w, b, n = self.w, self.b, self.n
        last = b.sub(b.add(self.column, I64(self.width)) if identity else n, I64(1))  # row that is not zero
        with w.loop(b, I64(0), n) as k:
            zero = w.const(0.0)
            self.put(k, [zero if identity else w.load(b, x) for x in self.places(self.right, k)])
        if identity:
            with w.loop(b, I64(0), I64(self.width)) as j:
                one = b.add(b.mul(b.add(self.column, j), I64(self.width)), j)
                w.store_unaligned(b, ir.Constant(w.N, 1.0), w.number(b, self.panel, one))
        with w.loop(b, last, I64(0), -1) as k:
            own = self.row(k)

            def reduce(i: Value, _: list[Value], k: Value = k, own: list[Value] = own) -> list[Value]:
                self.put(i, self.minus(self.row(i), k, i, own))
                return []

            self.upward(k, [], reduce)
        with w.loop(b, I64(0), n) as k:
            inverse = w.splat(b, b.fdiv(ir.Constant(w.N, 1.0), w.load_number(b, self.entry(k, k))))
            scaled = [b.fmul(inverse, x) for x in self.row(k)]
            found = self.upward(k, scaled, lambda i, own, k=k: self.minus(own, k, i, self.row(i)))
            self.put(k, found)
            for x, place in zip(found, self.places(self.result, k), strict=True):
                w.store(b, b.fneg(x) if negative else x, place)

    def upward(self, k: Value, values: Sequence[Value], body: Callable[[Value, list[Value]], list[Value]]):
        """Over the ancestors of dof k."""
        return _upward(self.w, self.b, self.parents, self.w.integer(self.b, self.parents, k), values, body)

    def minus(self, x: list[Value], k: Value, i: Value, y: list[Value]) -> list[Value]:
        """x - L_ki y."""
        left = self.w.splat(self.b, self.w.load_number(self.b, self.entry(k, i)))
        return [self.w.minus_product(self.b, p, left, q) for p, q in zip(x, y, strict=True)]

    def entry(self, row: Value, column: Value) -> Value:
        return self.w.number(self.b, self.factor, self.b.add(self.b.mul(row, self.n), column))

    def places(self, matrix: Value, k: Value) -> list[Value]:
        """Pointers to the vectors of row k of a matrix."""
        b, start = self.b, self.b.add(self.b.mul(k, self.n), self.column)
        return [self.w.number(b, matrix, b.add(start, I64(j))) for j in range(0, self.width, self.w.L)]

    def packed(self, k: Value) -> list[Value]:
        """The same of the panel."""
        b, start = self.b, self.b.mul(k, I64(self.width))
        return [self.w.number(b, self.panel, b.add(start, I64(j))) for j in range(0, self.width, self.w.L)]

    def row(self, k: Value) -> list[Value]:
        return [self.w.load(self.b, x) for x in self.packed(k)]

    def put(self, k: Value, values: list[Value]) -> None:
        for x, place in zip(values, self.packed(k), strict=True):
            self.w.store(self.b, x, place)


def _upward(
    w: Lanes,
    b: ir.IRBuilder,
    parents: Value,
    start: Value,
    values: Sequence[Value],
    body: Callable[[Value, list[Value]], list[Value]],
) -> list[Value]:
    """values = body(i, values) for a dof and its ancestors, none if it is -1; returns the last values."""
    before, head, inside, end = b.block, *(b.append_basic_block(x) for x in ("up", "ancestor", "top"))
    b.branch(head)
    b.position_at_end(head)
    at, carried = b.phi(I64), [b.phi(x.type) for x in values]
    for phi, x in zip((at, *carried), (start, *values), strict=True):
        phi.add_incoming(x, before)
    b.cbranch(b.icmp_signed(">=", at, I64(0)), inside, end)
    b.position_at_end(inside)
    found = body(at, carried)
    for phi, x in zip((at, *carried), (w.integer(b, parents, at), *found), strict=True):
        phi.add_incoming(x, b.block)
    b.branch(head)
    b.position_at_end(end)
    return carried
