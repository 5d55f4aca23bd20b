"""LLVM for -A B, with square A: in each lane a column of one sample, blocks of rows and columns in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import llvmlite.ir as ir

from ..graph import Graph
from ..number import Number
from .border import ENTRY
from .lanes import I8, I64, PTR, Lanes, Value
from .platform import Platform

OPERANDS = ("report", "A", "B", "result")
ROWS, VECTORS = 4, 2  # of a block


class ProductLanes(Lanes):
    """Rows of matrices, vectors of columns anywhere; `data` has the numbers of rows and columns."""

    slots: ClassVar = {name: (k, I64) for k, name in enumerate(["rows", "columns"])}


def emit_product(lanes: int, axes: int, platform: Platform, kind: Number) -> ir.Module:
    """A module whose `entry` multiplies samples one by one; B and the result have so many axes, all but the first of
    them contiguous."""
    module = platform.module("product")
    w = ProductLanes(module, Graph(), lanes, kind, whole=False)
    f = ir.Function(module, ENTRY, "entry")
    f.attributes.add("nounwind")
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    n, m = w.slot(b, data, "rows"), w.slot(b, data, "columns")
    first = len(OPERANDS)
    by_row = [w.integer(b, steps, I64(first + k)) for k in (0, 2, 2 + axes)]
    with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
        at = []
        for o in range(1, first):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            at.append(b.gep(base, [b.mul(s, w.integer(b, steps, I64(o)))], source_etype=I8))
        given = [n, m, *at, *by_row]
        tall, wide = (b.icmp_signed(">=", x, I64(least)) for x, least in ((n, ROWS), (m, VECTORS * lanes)))
        with b.if_else(b.and_(tall, wide)) as (then, otherwise):
            with then:
                b.call(_blocks(w, ROWS, VECTORS), given)
            with otherwise:
                b.call(_blocks(ProductLanes(module, Graph(), 1, kind), 1, 1), given)
    b.ret_void()
    return module


def _blocks(w: ProductLanes, rows: int, vectors: int) -> ir.Function:
    """A function of (n, m, A, B, result, bytes from row to row of each) for all blocks; the last ones overlap."""
    f = w.function("blocks", [I64, I64, PTR, PTR, PTR, I64, I64, I64])
    n, m, *matrices = f.args[:5]
    b = ir.IRBuilder(f.append_basic_block("entry"))

    def at(matrix: int, row: Value, column: Value) -> Value:
        line = b.gep(matrices[matrix], [b.mul(row, f.args[5 + matrix])], source_etype=I8)
        return w.number(b, line, column)

    def clipped(i: Value, count: Value, size: int) -> Value:
        last = b.sub(count, I64(size))
        return b.select(b.icmp_signed("<", i, last), i, last)

    with w.loop(b, I64(0), m, vectors * w.L) as c, w.loop(b, I64(0), n, rows) as r:
        column, row = clipped(c, m, vectors * w.L), clipped(r, n, rows)
        lines = [at(0, b.add(row, I64(i)), I64(0)) for i in range(rows)]

        def step(k: Value, sums: list[Value]) -> list[Value]:
            xs: Sequence[Value] = [w.splat(b, w.load_number(b, w.number(b, x, k))) for x in lines]
            ys = [w.load(b, at(1, k, b.add(column, I64(j * w.L)))) for j in range(vectors)]
            factors = [(x, y) for x in xs for y in ys]
            return [w.minus_product(b, total, x, y) for total, (x, y) in zip(sums, factors, strict=True)]

        sums = w.carrying(b, I64(0), n, [w.const(0.0)] * (rows * vectors), step)
        for k, x in enumerate(sums):
            i, j = divmod(k, vectors)
            w.store(b, x, at(2, b.add(row, I64(i)), b.add(column, I64(j * w.L))))
    b.ret_void()
    return f
