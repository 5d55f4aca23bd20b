"""LLVM for small dense systems: factors L^T D L of symmetric matrices, and solves with them.

Sizes are known at run time. Entries are vectors of lanes: samples, each with its own matrix.
"""

from __future__ import annotations

import llvmlite.ir as ir

from .lanes import I64, PTR, Lanes, Value


def entry(w: Lanes, b: ir.IRBuilder, A: Value, n: Value, i: Value, j: Value) -> Value:
    """Where entry [i, j] of a matrix with n columns is."""
    return w.vector(b, A, b.add(b.mul(i, n), j))


def emit_factorise(w: Lanes) -> ir.Function:
    """(G, 1 / D, margins, n): G = L^T D L, from the last row to the first; L replaces G's strict lower triangle.

    margins: D / diag(G), between 0 and 1; a margin of rounding size means a singular matrix.
    """
    f = w.function("factorise", [PTR, PTR, PTR, I64])
    G, dinv, margins, n = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    with w.loop(b, I64(0), n) as k:
        w.store(b, w.load(b, entry(w, b, G, n, k, k)), w.vector(b, margins, k))
    with w.loop(b, b.sub(n, I64(1)), I64(0), -1) as k:
        d = w.load(b, entry(w, b, G, n, k, k))
        inverse = b.fdiv(w.const(1.0), d)
        w.store(b, inverse, w.vector(b, dinv, k))
        margin = w.vector(b, margins, k)
        w.store(b, b.fdiv(d, w.load(b, margin)), margin)
        with w.loop(b, I64(0), k) as i:
            l = b.fmul(w.load(b, entry(w, b, G, n, k, i)), inverse)
            with w.loop(b, I64(0), b.add(i, I64(1))) as j:
                at = entry(w, b, G, n, i, j)
                w.store(b, w.minus_product(b, w.load(b, at), l, w.load(b, entry(w, b, G, n, k, j))), at)
        with w.loop(b, I64(0), k) as i:
            at = entry(w, b, G, n, k, i)
            w.store(b, b.fmul(w.load(b, at), inverse), at)
    b.ret_void()
    return f


def emit_solve(w: Lanes) -> ir.Function:
    """(L, 1 / D, x, n): x becomes (L^T D L)^-1 x."""
    f = w.function("solve", [PTR, PTR, PTR, I64])
    L, dinv, x, n = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    with w.loop(b, b.sub(n, I64(1)), I64(0), -1) as k:
        xk = w.load(b, w.vector(b, x, k))
        with w.loop(b, I64(0), k) as i:
            at = w.vector(b, x, i)
            w.store(b, w.minus_product(b, w.load(b, at), w.load(b, entry(w, b, L, n, k, i)), xk), at)
    with w.loop(b, I64(0), n) as k:
        at = w.vector(b, x, k)
        total = w.cell(b)
        w.store(b, b.fmul(w.load(b, at), w.load(b, w.vector(b, dinv, k))), total)
        with w.loop(b, I64(0), k) as i:
            l, xi = w.load(b, entry(w, b, L, n, k, i)), w.load(b, w.vector(b, x, i))
            w.store(b, w.minus_product(b, w.load(b, total), l, xi), total)
        w.store(b, w.load(b, total), at)
    b.ret_void()
    return f
