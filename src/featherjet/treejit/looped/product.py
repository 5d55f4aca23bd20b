"""LLVM for the product of two square matrices: blocks of rows and columns in registers, panels of columns packed."""

from __future__ import annotations

import llvmlite.ir as ir

from ...jit.emit.lanes import I64, PTR, Lanes, Value

ROWS, VECTORS = 4, 3  # of a block: twelve sums in registers, and seven loads for twelve fused multiply-adds


def panel_size(n: int, lanes: int) -> int:
    """Doubles of a packed panel of columns."""
    return n * VECTORS * lanes


def emit_product(w: Lanes, name: str, negative: bool) -> ir.Function:
    """A function of (n, left, right, result, panel) for n >= lanes."""
    f = w.function(name, [I64, PTR, PTR, PTR, PTR])
    n = f.args[0]
    b = ir.IRBuilder(f.append_basic_block("entry"))
    with b.if_else(b.icmp_signed(">=", n, I64(max(ROWS, VECTORS * w.L)))) as (large, small):
        for case, rows, vectors in ((large, ROWS, VECTORS), (small, 1, 1)):
            with case:
                _blocks(w, b, f.args, rows, vectors, negative)
    b.ret_void()
    return f


def _blocks(w: Lanes, b: ir.IRBuilder, args: tuple[Value, ...], rows: int, vectors: int, negative: bool) -> None:
    """All blocks of `rows` rows and `vectors` vectors of columns; the last ones overlap those before."""
    n, left, right, result, panel = args

    def at(matrix: Value, row: Value, column: Value) -> Value:
        return w.number(b, matrix, b.add(b.mul(row, n), column))

    def clipped(i: Value, size: int) -> Value:
        last = b.sub(n, I64(size))
        return b.select(b.icmp_signed("<", i, last), i, last)

    def packed(k: Value, j: int) -> Value:
        return w.number(b, panel, b.add(b.mul(k, I64(vectors * w.L)), I64(j * w.L)))

    width = vectors * w.L
    with w.loop(b, I64(0), n, width) as c:
        column = clipped(c, width)
        with w.loop(b, I64(0), n) as k:
            for j in range(vectors):
                w.store(b, w.load(b, at(right, k, b.add(column, I64(j * w.L)))), packed(k, j))
        with w.loop(b, I64(0), n, rows) as r:
            row = clipped(r, rows)
            lines = [at(left, b.add(row, I64(i)), I64(0)) for i in range(rows)]

            def step(k: Value, sums: list[Value], lines: list[Value] = lines) -> list[Value]:
                xs = [w.splat(b, w.load_number(b, w.number(b, line, k))) for line in lines]
                ys = [w.load(b, packed(k, j)) for j in range(vectors)]
                factors = [(x, y) for x in xs for y in ys]
                return [w.plus_product(b, total, x, y) for total, (x, y) in zip(sums, factors, strict=True)]

            sums = w.carrying(b, I64(0), n, [w.const(0.0)] * (rows * vectors), step)
            for q, x in enumerate(sums):
                i, j = divmod(q, vectors)
                place = at(result, b.add(row, I64(i)), b.add(column, I64(j * w.L)))
                w.store(b, b.fneg(x) if negative else x, place)
