"""Sine and cosine of a vector, accurate to about one unit in the last place up to 823549 rad.

Up to 2^19 pi/2 the argument is reduced by n pi/2, with pi/2 in three parts: the first two have 33 bits, so that n times
either is exact. The remainder, a sum of two doubles, goes into the minimax polynomials of fdlibm on [-pi/4, pi/4].
Larger arguments, which no real joint reaches, go to the system's own functions, lane by lane.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

Value = Any  # a value of llvmlite, whose own types say little

P1, P2, P3 = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
TWO_OVER_PI = 0.63661977236758134308
REACH = 823549.0  # rad, just below 2^19 pi/2
SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip

DOUBLE, I64 = ir.DoubleType(), ir.IntType(64)


def sincos_name(lanes: int) -> str:
    return f"sincos{lanes}"


def sincos_function(module: ir.Module, lanes: int) -> ir.Function:
    """An internal function of (x, pointer to sine, pointer to cosine) on `lanes` doubles."""
    name = sincos_name(lanes)
    if name in module.globals:
        return module.globals[name]  # type: ignore[return-value]
    return SinCos(module, lanes).emit(name)


class SinCos:
    """Emits the function for one number of lanes."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.module, self.lanes = module, lanes
        self.V = ir.VectorType(DOUBLE, lanes) if lanes > 1 else DOUBLE
        self.W = ir.VectorType(I64, lanes) if lanes > 1 else I64

    def emit(self, name: str) -> ir.Function:
        pointer = ir.PointerType()
        f = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [self.V, pointer, pointer]), name)
        f.attributes.add("nounwind")
        x, to_sine, to_cosine = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("reduce"))
        fast, slow, done = (f.append_basic_block(n) for n in ("fast", "slow", "done"))
        b.cbranch(self.all_within_reach(x), fast, slow)

        b.position_at_end(fast)
        n, y, t = self.reduced(x)
        sine, cosine = self.polynomials(y, t)
        self.store_quadrant(n, sine, cosine, to_sine, to_cosine)
        b.branch(done)

        b.position_at_end(slow)
        self.by_libm(x, to_sine, to_cosine)
        b.branch(done)
        b.position_at_end(done)
        b.ret_void()
        return f

    def all_within_reach(self, x: Value) -> Value:
        """Whether |x| <= REACH in all lanes."""
        b, lanes = self.b, self.lanes
        within = b.fcmp_ordered("<=", self.intrinsic("fabs", x), self.const(REACH))
        if lanes == 1:
            return within
        mask = b.bitcast(within, ir.IntType(lanes))
        return b.icmp_unsigned("==", mask, ir.Constant(ir.IntType(lanes), (1 << lanes) - 1))

    def reduced(self, x: Value) -> tuple[Value, Value, Value]:
        """n, y, t with x = n pi/2 + y + t: n is whole, |y| <= pi/4, and t is the rounding error of y."""
        b = self.b
        n = self.intrinsic("rint", b.fmul(x, self.const(TWO_OVER_PI)))
        r1 = b.fsub(x, b.fmul(n, self.const(P1)))  # exact
        w = b.fmul(n, self.const(P2))  # exact
        hi = b.fsub(r1, w)
        back = b.fsub(hi, r1)
        lo = b.fsub(b.fsub(r1, b.fsub(hi, back)), b.fadd(w, back))  # the error of hi, by two-sum
        lo = b.fsub(lo, b.fmul(n, self.const(P3)))
        y = b.fadd(hi, lo)
        return n, y, b.fadd(b.fsub(hi, y), lo)

    def polynomials(self, y: Value, t: Value) -> tuple[Value, Value]:
        """sin(y + t) = y + y^3 S(z) + t (1 - z/2) and cos(y + t) = 1 - z/2 + z^2 C(z) - y t, with z = y^2."""
        b, one, half = self.b, self.const(1.0), self.const(0.5)
        z = b.fmul(y, y)
        zy = b.fmul(z, y)
        tail = b.fsub(t, b.fmul(half, b.fmul(z, t)))
        sine = b.fadd(y, self.intrinsic("fmuladd", zy, self.polynomial(SIN, z), tail))
        hz = b.fmul(half, z)
        top = b.fsub(one, hz)
        rest = b.fsub(b.fsub(one, top), hz)  # the rounding error of top
        small = b.fsub(b.fmul(b.fmul(z, z), self.polynomial(COS, z)), b.fmul(y, t))
        return sine, b.fadd(top, b.fadd(rest, small))

    def store_quadrant(self, n: Value, sine: Value, cosine: Value, to_sine: Value, to_cosine: Value) -> None:
        """Store sine and cosine n quadrants further: exchanged if n is odd, with the signs of the quadrant."""
        b, V, W = self.b, self.V, self.W
        quadrant = b.fptosi(n, W)
        odd = b.icmp_signed("!=", b.and_(quadrant, self.integer(1)), self.integer(0))
        s = b.select(odd, cosine, sine)
        c = b.select(odd, sine, cosine)
        sign_s = b.shl(b.and_(quadrant, self.integer(2)), self.integer(62))
        sign_c = b.shl(b.and_(b.add(quadrant, self.integer(1)), self.integer(2)), self.integer(62))
        b.store(b.bitcast(b.xor(b.bitcast(s, W), sign_s), V), to_sine, align=8)
        b.store(b.bitcast(b.xor(b.bitcast(c, W), sign_c), V), to_cosine, align=8)

    def by_libm(self, x: Value, to_sine: Value, to_cosine: Value) -> None:
        """The slow path: the system's own functions, lane by lane."""
        b = self.b
        kind = ir.FunctionType(DOUBLE, [DOUBLE])
        libm = [self.module.globals.get(n) or ir.Function(self.module, kind, n) for n in ("sin", "cos")]
        for k in range(self.lanes):
            xk = b.extract_element(x, ir.IntType(32)(k)) if self.lanes > 1 else x
            for function, target in zip(libm, (to_sine, to_cosine), strict=True):
                b.store(b.call(function, [xk]), b.gep(target, [I64(k)], source_etype=DOUBLE), align=8)

    # Building blocks

    def const(self, c: float) -> ir.Constant:
        return ir.Constant(self.V, [c] * self.lanes if self.lanes > 1 else c)

    def integer(self, c: int) -> ir.Constant:
        return ir.Constant(self.W, [c] * self.lanes if self.lanes > 1 else c)

    def intrinsic(self, name: str, *args: Value) -> Value:
        suffix = f"v{self.lanes}f64" if self.lanes > 1 else "f64"
        full = f"llvm.{name}.{suffix}"
        function = self.module.globals.get(full)
        function = function or ir.Function(self.module, ir.FunctionType(self.V, [self.V] * len(args)), full)
        return self.b.call(function, list(args))

    def polynomial(self, coefficients: tuple[float, ...], z: Value) -> Value:
        """Horner's rule; the constant coefficient comes first."""
        p: Value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            p = self.intrinsic("fmuladd", p, z, self.const(c))
        return p
