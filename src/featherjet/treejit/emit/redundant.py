"""LLVM for the forces of redundant contacts: the proximal iteration of `algorithms.contacts.redundant`."""

from __future__ import annotations

import llvmlite.ir as ir

from ...algorithms.contacts.redundant import ENOUGH, GOAL, LEAST_INVERSE, LEAST_MARGIN, LEAST_SHARE, RHO, STEPS
from ...jit.emit.dense import entry
from ...jit.emit.lanes import I64, PTR, Lanes, Value

VECTORS = 4  # over rows, that `Proximal` needs besides a matrix


def room(b: ir.IRBuilder, rows: Value) -> Value:
    """How many vectors of lanes `Proximal` works in."""
    return b.mul(rows, b.add(rows, I64(VECTORS)))


def any_redundant(w: Lanes, b: ir.IRBuilder, margins: Value, n: Value) -> Value:
    """One in lanes that have a margin of rounding size, else zero."""
    found = w.cell(b)
    w.store(b, w.const(0.0), found)
    with w.loop(b, I64(0), n) as k:
        margin = w.load(b, w.vector(b, margins, k))
        large = b.fcmp_ordered(">", margin, w.const(LEAST_MARGIN))
        w.store(b, b.select(large, w.load(b, found), w.const(1.0)), found)
    return w.load(b, found)


class Proximal:
    """(G, margins, b, x, memory, n): in lanes with a small margin, x becomes the smallest solution of G x = b.

    Their margins become one for rows that it solves, else zero. G has its lower triangle.
    """

    def __init__(self, w: Lanes, factorise: ir.Function, solve: ir.Function) -> None:
        self.w, self.factorise, self.solve = w, factorise, solve

    def emit(self) -> ir.Function:
        w = self.w
        f = w.function("proximal", [PTR] * 5 + [I64])
        self.G, margins, self.rhs, x, memory, self.n = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        n, self.damped = self.n, memory
        self.dinv, spare, self.rest, self.y = (w.vector(b, memory, b.mul(n, b.add(n, I64(k)))) for k in range(VECTORS))
        redundant = b.fcmp_ordered(">", any_redundant(w, b, margins, n), w.const(0.0))
        self.worst = w.cell(b)
        unit = self.begin()
        w.store(b, b.select(redundant, w.const(float("inf")), w.const(0.0)), self.worst)
        goal = b.fmul(unit, w.const(GOAL))
        for rho in RHO:
            with b.if_then(w.any_lane(b, self.goes_on(goal))):
                self.damp(rho)
                b.call(self.factorise, [self.damped, self.dinv, spare, n])
                with w.loop(b, I64(0), I64(STEPS)):
                    on = self.goes_on(goal)
                    with b.if_then(w.any_lane(b, on)):
                        self.step(on)
        enough = b.fmul(unit, w.const(ENOUGH))
        with w.loop(b, I64(0), n) as i:
            good = b.fcmp_ordered("<=", self.size(w.load(b, w.vector(b, self.rest, i))), enough)
            share = b.select(good, w.const(1.0), w.const(0.0))
            for target, value in ((x, w.load(b, w.vector(b, self.y, i))), (margins, share)):
                at = w.vector(b, target, i)
                w.store(b, b.select(redundant, value, w.load(b, at)), at)
        b.ret_void()
        return f

    def begin(self) -> Value:
        """y = 0 and rest = b; returns one unit and the largest number in b."""
        w, b = self.w, self.b
        unit = w.cell(b)
        w.store(b, w.const(0.0), unit)
        with w.loop(b, I64(0), self.n) as i:
            value = w.load(b, w.vector(b, self.rhs, i))
            w.store(b, value, w.vector(b, self.rest, i))
            w.store(b, w.const(0.0), w.vector(b, self.y, i))
            self.raise_to(unit, self.size(value))
        return b.fadd(w.load(b, unit), w.const(1.0))

    def goes_on(self, goal: Value) -> Value:
        """The lanes that need another step."""
        return self.b.fcmp_unordered(">", self.w.load(self.b, self.worst), goal)

    def size(self, x: Value) -> Value:
        return self.b.select(self.b.fcmp_ordered("<", x, self.w.const(0.0)), self.b.fneg(x), x)

    def larger(self, x: Value, y: Value) -> Value:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def raise_to(self, cell: Value, x: Value) -> None:
        self.w.store(self.b, self.larger(x, self.w.load(self.b, cell)), cell)

    def mean(self, grip: Value) -> Value:
        """The mean inverse inertia of a grip's three rows."""
        w, b = self.w, self.b
        rows = [b.add(b.mul(grip, I64(3)), I64(k)) for k in range(3)]
        x, y, z = (w.load(b, entry(w, b, self.G, self.n, i, i)) for i in rows)
        return b.fmul(b.fadd(b.fadd(x, y), z), w.const(1.0 / 3.0))

    def damp(self, rho: float) -> None:
        """G + rho, with this share of each grip's own inverse inertia."""
        w, b, n = self.w, self.b, self.n
        most = w.cell(b)
        w.store(b, w.const(0.0), most)
        grips = b.sdiv(n, I64(3))
        with w.loop(b, I64(0), grips) as g:
            self.raise_to(most, self.mean(g))
        least = self.larger(b.fmul(w.load(b, most), w.const(LEAST_SHARE)), w.const(LEAST_INVERSE))
        with w.loop(b, I64(0), n) as i, w.loop(b, I64(0), b.add(i, I64(1))) as j:
            w.store(b, w.load(b, entry(w, b, self.G, n, i, j)), entry(w, b, self.damped, n, i, j))
        with w.loop(b, I64(0), grips) as g:
            more = b.fmul(self.larger(self.mean(g), least), w.const(rho))
            for k in range(3):
                i = b.add(b.mul(g, I64(3)), I64(k))
                at = entry(w, b, self.damped, n, i, i)
                w.store(b, b.fadd(w.load(b, at), more), at)

    def step(self, on: Value) -> None:
        """y += (G + rho)^-1 rest in lanes that go on; rest = b - G y."""
        w, b, n = self.w, self.b, self.n
        b.call(self.solve, [self.damped, self.dinv, self.rest, n])
        with w.loop(b, I64(0), n) as i:
            at = w.vector(b, self.y, i)
            more = b.select(on, w.load(b, w.vector(b, self.rest, i)), w.const(0.0))
            w.store(b, b.fadd(w.load(b, at), more), at)
        worst, total = w.cell(b), w.cell(b)
        w.store(b, w.const(0.0), worst)
        with w.loop(b, I64(0), n) as i:
            w.store(b, w.load(b, w.vector(b, self.rhs, i)), total)
            for start, stop, lower in ((I64(0), b.add(i, I64(1)), True), (b.add(i, I64(1)), n, False)):
                with w.loop(b, start, stop) as j:
                    g = w.load(b, entry(w, b, self.G, n, *((i, j) if lower else (j, i))))
                    w.store(b, w.minus_product(b, w.load(b, total), g, w.load(b, w.vector(b, self.y, j))), total)
            rest = w.load(b, total)
            w.store(b, rest, w.vector(b, self.rest, i))
            self.raise_to(worst, self.size(rest))
        w.store(b, b.select(on, w.load(b, worst), w.load(b, self.worst)), self.worst)
