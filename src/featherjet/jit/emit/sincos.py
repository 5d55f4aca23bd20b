"""Sine and cosine of a vector, accurate to about one unit in the last place for angles up to `Approximation.reach`.

The argument is reduced by n pi/2, with pi/2 in parts of so few bits that n times each of them but the last is exact.
The remainder, a sum of two numbers, goes into minimax polynomials on [-pi/4, pi/4]; those in double precision
are fdlibm's.
Larger arguments, which no real joint reaches, go to the system's own functions, lane by lane; where there is no system
they give NaN, after a second attempt in double precision for single.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.ir as ir

from ..number import DOUBLE, SINGLE, Number
from .platform import runs_alone

Value = Any  # a value of llvmlite, whose own types say little
I64 = ir.IntType(64)
TWO_OVER_PI = 0.63661977236758134308


class Approximation(NamedTuple):
    """How one kind of number computes sine and cosine.

    parts: of pi/2, in order. reach: the largest argument [rad]. sin, cos: sin y = y + y^3 sin(y^2) and
    cos y = 1 - y^2 / 2 + y^4 cos(y^2).
    """

    parts: tuple[float, ...]
    reach: float
    sin: tuple[float, ...]
    cos: tuple[float, ...]


# Up to 2^19 pi/2, with parts of 33 bits; and up to 2^13 pi/2, with parts of 11 bits.
APPROXIMATIONS = {
    DOUBLE: Approximation(
        (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
        823549.0,
        (
            -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
        ),
        (
            4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
        ),
    ),
    SINGLE: Approximation(
        (1.5703125, 4.837512969970703e-04, 7.543712854385376e-08, 6.07710062827671e-11),
        12867.0,
        (-0.16666655242443085, 0.008332177996635437, -0.0001951729936990887),
        (0.04166664555668831, -0.001388736767694354, 2.4438451873720624e-05),
    ),
}  # fmt: skip


def sincos_name(lanes: int, kind: Number) -> str:
    return f"sincos{lanes}f{8 * kind.bytes}"


def sincos_function(module: ir.Module, lanes: int, kind: Number, inline: bool = False) -> ir.Function:
    """A function of (x, pointer to sine, pointer to cosine) on `lanes` numbers.

    inline: a version that becomes part of its callers. In a loop over bodies that is faster by a tenth.
    """
    name = sincos_name(lanes, kind) + ("inline" if inline else "")
    if name in module.globals:
        return module.globals[name]  # type: ignore[return-value]
    return SinCos(module, lanes, kind).emit(name, inline)


class SinCos:
    """Emits the function for one number of lanes."""

    def __init__(self, module: ir.Module, lanes: int, kind: Number) -> None:
        self.module, self.lanes, self.kind, self.by = module, lanes, kind, APPROXIMATIONS[kind]
        self.V = kind.vector(lanes)
        self.W = ir.VectorType(kind.integer, lanes) if lanes > 1 else kind.integer

    def emit(self, name: str, inline: bool) -> ir.Function:
        slow = self.emit_slow(name + "slow")
        f = self.function(name)
        if inline:
            f.linkage = "internal"
            f.attributes.add("alwaysinline")
        x, to_sine, to_cosine = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("reduce"))
        with b.if_else(self.all_within_reach(x), likely=True) as (yes, no):
            with yes:
                n, y, t = self.reduced(x)
                sine, cosine = self.polynomials(y, t)
                self.store_quadrant(n, sine, cosine, to_sine, to_cosine)
            with no:
                b.call(slow, f.args)
        b.ret_void()
        return f

    def emit_slow(self, name: str) -> ir.Function:
        """The slow path: the system's own functions, lane by lane."""
        if runs_alone(self.module):
            return self.emit_slow_alone(name)
        f = self.function(name)
        f.linkage = "internal"
        f.attributes.add("noinline")
        x, *targets = f.args
        b, N, double = ir.IRBuilder(f.append_basic_block("entry")), self.kind.type, DOUBLE.type
        function = ir.FunctionType(double, [double])
        libm = [self.module.globals.get(n) or ir.Function(self.module, function, n) for n in ("sin", "cos")]
        for k in range(self.lanes):
            xk = b.extract_element(x, ir.IntType(32)(k)) if self.lanes > 1 else x
            xk = xk if N == double else b.fpext(xk, double)
            for called, target in zip(libm, targets, strict=True):
                y = b.call(called, [xk])
                y = y if N == double else b.fptrunc(y, N)
                b.store(y, b.gep(target, [I64(k)], source_etype=N), align=self.kind.bytes)
        b.ret_void()
        return f

    def emit_slow_alone(self, name: str) -> ir.Function:
        """The slow path without a system: single precision goes to double, lane by lane; beyond that, NaN."""
        f = self.function(name)
        f.linkage = "internal"
        f.attributes.add("noinline")
        x, *targets = f.args
        b, double = ir.IRBuilder(f.append_basic_block("entry")), DOUBLE.type
        cells = [b.alloca(double) for _ in targets]
        for k in range(self.lanes):
            xk = b.extract_element(x, ir.IntType(32)(k)) if self.lanes > 1 else x
            if self.kind is not DOUBLE:
                b.call(sincos_function(self.module, 1, DOUBLE), [b.fpext(xk, double), *cells])
            for cell, target in zip(cells, targets, strict=True):
                nan = ir.Constant(self.kind.type, float("nan"))
                y = nan if self.kind is DOUBLE else b.fptrunc(b.load(cell, typ=double), self.kind.type)
                b.store(y, b.gep(target, [I64(k)], source_etype=self.kind.type), align=self.kind.bytes)
        b.ret_void()
        return f

    def function(self, name: str) -> ir.Function:
        pointer = ir.PointerType()
        f = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [self.V, pointer, pointer]), name)
        f.attributes.add("nounwind")
        return f

    def all_within_reach(self, x: Value) -> Value:
        """Whether |x| is within reach in all lanes."""
        b, lanes = self.b, self.lanes
        within = b.fcmp_ordered("<=", self.intrinsic("fabs", x), self.const(self.by.reach))
        if lanes == 1:
            return within
        mask = b.bitcast(within, ir.IntType(lanes))
        return b.icmp_unsigned("==", mask, ir.Constant(ir.IntType(lanes), (1 << lanes) - 1))

    def reduced(self, x: Value) -> tuple[Value, Value, Value]:
        """n, y, t with x = n pi/2 + y + t: n is whole, |y| <= pi/4, and t is the rounding error of y."""
        b = self.b
        n = self.rounded(b.fmul(x, self.const(TWO_OVER_PI)))
        *first, last, rest = self.by.parts
        r = x
        for part in first:
            r = b.fsub(r, b.fmul(n, self.const(part)))  # exact
        w = b.fmul(n, self.const(last))  # exact
        hi = b.fsub(r, w)
        back = b.fsub(hi, r)
        lo = b.fsub(b.fsub(r, b.fsub(hi, back)), b.fadd(w, back))  # the error of hi, by two-sum
        lo = b.fsub(lo, b.fmul(n, self.const(rest)))
        y = b.fadd(hi, lo)
        return n, y, b.fadd(b.fsub(hi, y), lo)

    def polynomials(self, y: Value, t: Value) -> tuple[Value, Value]:
        """sin(y + t) = y + y^3 S(z) + t (1 - z/2) and cos(y + t) = 1 - z/2 + z^2 C(z) - y t, with z = y^2."""
        b, one, half = self.b, self.const(1.0), self.const(0.5)
        z = b.fmul(y, y)
        zy = b.fmul(z, y)
        tail = b.fsub(t, b.fmul(half, b.fmul(z, t)))
        sine = b.fadd(y, self.intrinsic("fmuladd", zy, self.polynomial(self.by.sin, z), tail))
        hz = b.fmul(half, z)
        top = b.fsub(one, hz)
        rest = b.fsub(b.fsub(one, top), hz)  # the rounding error of top
        small = b.fsub(b.fmul(b.fmul(z, z), self.polynomial(self.by.cos, z)), b.fmul(y, t))
        return sine, b.fadd(top, b.fadd(rest, small))

    def store_quadrant(self, n: Value, sine: Value, cosine: Value, to_sine: Value, to_cosine: Value) -> None:
        """Store sine and cosine n quadrants further: exchanged if n is odd, with the signs of the quadrant."""
        b, V, W, align = self.b, self.V, self.W, self.kind.bytes
        to_sign = self.integer(8 * align - 2)
        quadrant = self.whole(n)
        odd = b.icmp_signed("!=", b.and_(quadrant, self.integer(1)), self.integer(0))
        s = b.select(odd, cosine, sine)
        c = b.select(odd, sine, cosine)
        sign_s = b.shl(b.and_(quadrant, self.integer(2)), to_sign)
        sign_c = b.shl(b.and_(b.add(quadrant, self.integer(1)), self.integer(2)), to_sign)
        b.store(b.bitcast(b.xor(b.bitcast(s, W), sign_s), V), to_sine, align=align)
        b.store(b.bitcast(b.xor(b.bitcast(c, W), sign_c), V), to_cosine, align=align)

    # Building blocks

    def rounded(self, x: Value) -> Value:
        """The nearest whole number: where not every processor has an instruction for it, by adding a large one."""
        if not runs_alone(self.module):
            return self.intrinsic("rint", x)
        large = self.large()
        return self.b.fsub(self.b.fadd(x, large), large)

    def whole(self, n: Value) -> Value:
        """A whole number as an integer; for code that runs alone, only its last bits."""
        if runs_alone(self.module):
            return self.b.bitcast(self.b.fadd(n, self.large()), self.W)
        return self.b.fptosi(n, self.W)

    def large(self) -> ir.Constant:
        """A number whose neighbours are whole: the last bits of its sum with a smaller one are that one's."""
        return self.const(1.5 * 2.0 ** (52 if self.kind is DOUBLE else 23))

    def const(self, c: float) -> ir.Constant:
        return ir.Constant(self.V, [c] * self.lanes if self.lanes > 1 else c)

    def integer(self, c: int) -> ir.Constant:
        return ir.Constant(self.W, [c] * self.lanes if self.lanes > 1 else c)

    def intrinsic(self, name: str, *args: Value) -> Value:
        full = f"llvm.{name}.{self.kind.suffix(self.lanes)}"
        function = self.module.globals.get(full)
        function = function or ir.Function(self.module, ir.FunctionType(self.V, [self.V] * len(args)), full)
        return self.b.call(function, list(args))

    def polynomial(self, coefficients: tuple[float, ...], z: Value) -> Value:
        """Horner's rule; the constant coefficient comes first."""
        p: Value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            p = self.intrinsic("fmuladd", p, z, self.const(c))
        return p
