"""LLVM for small quadratic programs with bounds, inside the Riccati recursion.

    minimise 1/2 d^T Quu d + Qu^T d  subject to  low <= d <= high

by projected Newton steps (D. Bertsekas, 1982; Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic
programming, ICRA 2014): variables at a bound that the gradient holds there are fixed, the others take a Newton step,
clipped and shortened until it gains enough. It ends with a full step that meets no bound and leaves the set of fixed
variables as it was, which is the minimum up to rounding.
"""

from __future__ import annotations

import llvmlite.ir as ir

from ..number import DOUBLE
from .lanes import I64, PTR, Value, external
from .panels import Matrix, Panels

ROUNDS, HALVINGS = 60, 30  # the most of either
ENOUGH = 0.1  # of the gain that the slope promises
NOWHERE, SHORT, WHOLE = range(3)
NUMBER = DOUBLE.type


def work(m: int, wide: int) -> dict[str, int]:
    """Temporary arrays for m variables: [Quu Qux Qu], the point, the next one, gradients there, which are free."""
    return {"given": m * wide, "d": m, "next": m, "slope": m, "next_slope": m, "free": m}


class Box(Panels):
    """Code for programs of m variables, whose matrices [Quu Qux Qu] have `wide` columns."""

    def __init__(self, module: ir.Module, lanes: int, m: int, wide: int) -> None:
        super().__init__(module, lanes)
        self.m, self.wide = m, wide

    def emit(self, eliminate: ir.Function, back: ir.Function) -> ir.Function:
        """(given, G, pivots, low, high, d, next, slope, next slope, free, K, k) -> whether Quu is positive definite.

        d: the minimum; slope: the gradient there; G: the eliminated rows of free variables; K: their gains.
        """
        f = self.function("box", [PTR] * 12, I64)
        given, G, pivots, low, high, d, following, slope, next_slope, free, K, k = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        gradient, masked = self._emit_gradient(), self._emit_masked()
        search = self._emit_search(gradient)
        settled, cost = b.alloca(I64), b.alloca(NUMBER)
        with self.loop(b, I64(0), I64(self.m)) as i:
            self.put(b, self.clipped(b, NUMBER(0.0), low, high, i), d, i)
            self.put(b, NUMBER(-1.0), free, i)
        b.store(I64(0), settled)
        b.store(b.call(gradient, [given, d, slope]), cost)
        with self.loop(b, I64(0), I64(ROUNDS)):
            with self.loop(b, I64(0), I64(self.m)) as i:
                now = self.is_free(b, self.item(b, d, i), self.item(b, slope, i), low, high, i)
                with b.if_then(b.fcmp_ordered("!=", now, self.item(b, free, i))):
                    b.store(I64(0), settled)
                self.put(b, now, free, i)
            with b.if_then(b.icmp_signed("!=", b.load(settled, typ=I64), I64(0))):
                b.ret(I64(1))
            b.call(masked, [given, slope, free, G])
            with b.if_then(b.icmp_signed("==", b.call(eliminate, [G, pivots]), I64(0)), likely=False):
                b.ret(I64(0))
            b.call(back, [G, pivots, K, k])
            step = b.call(search, [given, low, high, d, following, slope, next_slope, k, cost])
            with b.if_then(b.icmp_signed("==", step, I64(NOWHERE))):
                b.ret(I64(1))
            b.store(b.zext(b.icmp_signed("==", step, I64(WHOLE)), I64), settled)
        b.ret(I64(1))
        return f

    def _emit_search(self, gradient: ir.Function) -> ir.Function:
        """(given, low, high, d, next, slope, next slope, k, cost) -> NOWHERE, SHORT or WHOLE.

        Moves d by -k, clipped, or half as far and so on until that gains enough; WHOLE: all the way, nothing clipped.
        """
        f = self.function("search", [PTR] * 9, I64)
        given, low, high, d, following, slope, next_slope, k, cost = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        length, kind, promised = b.alloca(NUMBER), b.alloca(I64), b.alloca(NUMBER)
        b.store(NUMBER(1.0), length)
        b.store(I64(WHOLE), kind)
        with self.loop(b, I64(0), I64(HALVINGS)):
            b.store(NUMBER(0.0), promised)
            with self.loop(b, I64(0), I64(self.m)) as i:
                x = self.item(b, d, i)
                aim = b.fsub(x, b.fmul(b.load(length, typ=NUMBER), self.item(b, k, i)))
                reached = self.clipped(b, aim, low, high, i)
                with b.if_then(b.fcmp_ordered("!=", aim, reached)):
                    b.store(I64(SHORT), kind)
                self.put(b, reached, following, i)
                way = b.fsub(x, reached)
                b.store(self.plus_product(b, b.load(promised, typ=NUMBER), self.item(b, slope, i), way), promised)
            after = b.call(gradient, [given, following, next_slope])
            gain, hoped = b.fsub(b.load(cost, typ=NUMBER), after), b.load(promised, typ=NUMBER)
            with b.if_then(b.fcmp_ordered(">=", gain, b.fmul(NUMBER(ENOUGH), hoped))):
                b.store(after, cost)
                with self.loop(b, I64(0), I64(self.m)) as i:
                    self.put(b, self.item(b, following, i), d, i)
                    self.put(b, self.item(b, next_slope, i), slope, i)
                b.ret(b.load(kind, typ=I64))
            b.store(b.fmul(NUMBER(0.5), b.load(length, typ=NUMBER)), length)
            b.store(I64(SHORT), kind)
        b.ret(I64(NOWHERE))
        return f

    def clipped(self, b: ir.IRBuilder, x: Value, low: Value, high: Value, i: Value) -> Value:
        least, most = (external(self.module, f"llvm.{x}num.f64", NUMBER, NUMBER, NUMBER) for x in ("min", "max"))
        return b.call(most, [b.call(least, [x, self.item(b, high, i)]), self.item(b, low, i)])

    def is_free(self, b: ir.IRBuilder, x: Value, slope: Value, low: Value, high: Value, i: Value) -> Value:
        """One, or zero if the gradient holds a variable at a bound."""
        zero = NUMBER(0.0)
        under = b.and_(b.fcmp_ordered("<=", x, self.item(b, low, i)), b.fcmp_ordered(">", slope, zero))
        over = b.and_(b.fcmp_ordered(">=", x, self.item(b, high, i)), b.fcmp_ordered("<", slope, zero))
        return b.select(b.or_(under, over), zero, NUMBER(1.0))

    def _emit_gradient(self) -> ir.Function:
        """(given, d, slope) -> 1/2 d^T Quu d + Qu^T d; slope: Qu + Quu d."""
        f = self.function("gradient", [PTR] * 3, NUMBER)
        given, d, slope = Matrix(f.args[0], self.wide), f.args[1], f.args[2]
        b = ir.IRBuilder(f.append_basic_block("entry"))

        def row(i: Value, sums: list[Value]) -> list[Value]:
            Qu = self.entry(b, given, i, self.wide - 1)

            def step(j: Value, totals: list[Value]) -> list[Value]:
                return [self.plus_product(b, totals[0], self.entry(b, given, i, j), self.item(b, d, j))]

            g = self.sums(b, I64(0), I64(self.m), [Qu], step)[0]
            self.put(b, g, slope, i)
            return [self.plus_product(b, sums[0], self.item(b, d, i), b.fmul(NUMBER(0.5), b.fadd(g, Qu)))]

        b.ret(self.sums(b, I64(0), I64(self.m), [NUMBER(0.0)], row)[0])
        return f

    def _emit_masked(self) -> ir.Function:
        """(given, slope, free, G): [Quu Qux slope] with rows and columns of fixed variables as in a unit matrix."""
        m, wide = self.m, self.wide
        f = self.function("masked", [PTR] * 4)
        given, slope, free, G = Matrix(f.args[0], wide), f.args[1], f.args[2], Matrix(f.args[3], wide)
        b = ir.IRBuilder(f.append_basic_block("entry"))
        with self.loop(b, I64(0), I64(m)) as i:
            own = self.item(b, free, i)
            with self.loop(b, I64(0), I64(wide)) as j:
                b.store(b.fmul(own, self.entry(b, given, i, j)), self.at(b, G, i, j), align=8)
            with self.loop(b, I64(0), I64(m)) as j:
                b.store(b.fmul(self.item(b, free, j), self.entry(b, G, i, j)), self.at(b, G, i, j), align=8)
            b.store(b.fadd(self.entry(b, G, i, i), b.fsub(NUMBER(1.0), own)), self.at(b, G, i, i), align=8)
            b.store(b.fmul(own, self.item(b, slope, i)), self.at(b, G, i, wide - 1), align=8)
        b.ret_void()
        return f

    def item(self, b: ir.IRBuilder, base: Value, i: Value) -> Value:
        return self.load_number(b, self.number(b, base, i))

    def put(self, b: ir.IRBuilder, x: Value, base: Value, i: Value) -> None:
        self.store_unaligned(b, x, self.number(b, base, i))
