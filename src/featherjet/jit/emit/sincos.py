"""Sine and cosine of a vector: within about one unit in the last place up to a million radians.

Up to 2^19 pi/2 the argument is reduced by n pi/2 with pi/2 in three parts: the first two have 33 bits, so that n times
them is exact, and the remainder is kept as a sum of two doubles. Polynomials on [-pi/4, pi/4] follow (minimax, as known
since fdlibm). Beyond that, which
no joint reaches in earnest, each lane calls the system's own functions, and is as good as they are.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

Value = Any  # a value of llvmlite, whose own types do not tell much

P1, P2, P3 = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
REACH = 823549.0
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
    V = ir.VectorType(DOUBLE, lanes) if lanes > 1 else DOUBLE
    W = ir.VectorType(I64, lanes) if lanes > 1 else I64
    f = ir.Function(module, ir.FunctionType(ir.VoidType(), [V, ir.PointerType(), ir.PointerType()]), name)
    f.attributes.add("nounwind")
    x, to_sin, to_cos = f.args
    b = ir.IRBuilder(f.append_basic_block("reduce"))

    def const(c: float) -> ir.Constant:
        return ir.Constant(V, [c] * lanes) if lanes > 1 else ir.Constant(V, c)

    def integer(c: int) -> ir.Constant:
        return ir.Constant(W, [c] * lanes) if lanes > 1 else ir.Constant(W, c)

    def intrinsic(name: str, *args: Value) -> Value:
        suffix = f"v{lanes}f64" if lanes > 1 else "f64"
        full = f"llvm.{name}.{suffix}"
        g = module.globals.get(full) or ir.Function(module, ir.FunctionType(V, [V] * len(args)), full)
        return b.call(g, list(args))

    def poly(coefficients: tuple[float, ...], z: Value) -> Value:
        p: Value = const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            p = intrinsic("fmuladd", p, z, const(c))
        return p

    fast, slow, done = (f.append_basic_block(n) for n in ("fast", "slow", "done"))
    within = b.fcmp_ordered("<=", intrinsic("fabs", x), const(REACH))
    if lanes > 1:
        mask = b.bitcast(within, ir.IntType(lanes))
        b.cbranch(b.icmp_unsigned("==", mask, ir.Constant(ir.IntType(lanes), (1 << lanes) - 1)), fast, slow)
    else:
        b.cbranch(within, fast, slow)

    b.position_at_end(fast)
    n = intrinsic("rint", b.fmul(x, const(0.63661977236758134308)))
    r1 = b.fsub(x, b.fmul(n, const(P1)))  # exact
    w = b.fmul(n, const(P2))  # exact
    hi = b.fsub(r1, w)
    back = b.fsub(hi, r1)
    lo = b.fsub(b.fsub(r1, b.fsub(hi, back)), b.fadd(w, back))  # two-sum's error
    lo = b.fsub(lo, b.fmul(n, const(P3)))
    y = b.fadd(hi, lo)
    t = b.fadd(b.fsub(hi, y), lo)
    z = b.fmul(y, y)
    zy = b.fmul(z, y)
    half = const(0.5)
    # sin(y + t) = y + y^3 S(z) + t (1 - z/2), cos(y + t) = 1 - z/2 + z^2 C(z) - y t
    tail = b.fsub(t, b.fmul(half, b.fmul(z, t)))
    sine = b.fadd(y, intrinsic("fmuladd", zy, poly(SIN, z), tail))
    hz = b.fmul(half, z)
    top = b.fsub(const(1.0), hz)
    rest = b.fsub(b.fsub(const(1.0), top), hz)
    small = b.fsub(b.fmul(b.fmul(z, z), poly(COS, z)), b.fmul(y, t))
    cosine = b.fadd(top, b.fadd(rest, small))
    quadrant = b.fptosi(n, W)
    odd = b.icmp_signed("!=", b.and_(quadrant, integer(1)), integer(0))
    s = b.select(odd, cosine, sine)
    c = b.select(odd, sine, cosine)
    flip_s = b.shl(b.and_(quadrant, integer(2)), integer(62))
    flip_c = b.shl(b.and_(b.add(quadrant, integer(1)), integer(2)), integer(62))
    b.store(b.bitcast(b.xor(b.bitcast(s, W), flip_s), V), to_sin, align=8)
    b.store(b.bitcast(b.xor(b.bitcast(c, W), flip_c), V), to_cos, align=8)
    b.branch(done)

    b.position_at_end(slow)
    one = ir.FunctionType(DOUBLE, [DOUBLE])
    libm = [module.globals.get(n) or ir.Function(module, one, n) for n in ("sin", "cos")]
    for k in range(lanes):
        xk = b.extract_element(x, ir.IntType(32)(k)) if lanes > 1 else x
        for g, to in zip(libm, (to_sin, to_cos), strict=True):
            b.store(b.call(g, [xk]), b.gep(to, [I64(k)], source_etype=DOUBLE), align=8)
    b.branch(done)
    b.position_at_end(done)
    b.ret_void()
    return f
