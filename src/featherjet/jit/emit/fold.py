"""LLVM for folding arrays: rows, and runs of neighbouring entries within them, are summed in groups, with factors."""

from __future__ import annotations

from typing import ClassVar

import llvmlite.ir as ir

from ..graph import Graph
from ..number import Number
from .border import ENTRY
from .lanes import I8, I64, PTR, Lanes, Value
from .platform import Platform

OPERANDS = ("report", "x", "result")
COUNTS = ("rows", "first_rows", "runs", "first_runs", "middle", "given", "kept", "inner")
TABLES = ("row_places", "row_factors", "run_places", "run_factors")


class FoldLanes(Lanes):
    """Neighbouring numbers of one sample anywhere.

    Arrays have axes (rows, middle, folded, inner). `data` has the lengths of all but the first, the folded one before
    and after; then the rows and the runs: from where to where, how many (rows: one), and the factor. The first of
    either cover the whole result once, and are stored; the others are added.
    """

    slots: ClassVar = {name: (k, PTR if name in TABLES else I64) for k, name in enumerate([*COUNTS, *TABLES])}


def emit_fold(lanes: int, axes: int, platform: Platform, kind: Number) -> ir.Module:
    """A module whose `entry` folds samples one by one; of their so many axes, all but the first are contiguous."""
    module = platform.module("fold")
    w, one = (FoldLanes(module, Graph(), n, kind, whole=False) for n in (lanes, 1))
    f = ir.Function(module, ENTRY, "entry")
    f.attributes.add("nounwind")
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    rows, first_rows, runs, first_runs, middle, given, kept, inner = (w.slot(b, data, name) for name in COUNTS)
    row_places, row_factors, run_places, run_factors = (w.slot(b, data, name) for name in TABLES)
    by_row = [w.integer(b, steps, I64(len(OPERANDS) + k)) for k in (0, axes)]

    def places(table: Value, k: Value, count: int) -> list[Value]:
        return [w.integer(b, table, b.add(b.mul(k, I64(count)), I64(i))) for i in range(count)]

    def entry(base: Value, m: Value, count: Value, k: Value) -> Value:
        return w.number(b, base, b.mul(b.add(b.mul(m, count), k), inner))

    def copy(source: Value, target: Value, length: Value, factor: Value, add: bool) -> None:
        whole = b.and_(length, I64(-lanes))
        for v, start, stop in ((w, I64(0), whole), (one, whole, length)):
            with v.loop(b, start, stop, v.L) as c:
                at, y, z = v.number(b, target, c), v.load(b, v.number(b, source, c)), v.splat(b, factor)
                v.store(b, v.plus_product(b, v.load(b, at), y, z) if add else b.fmul(y, z), at)

    with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
        sample = []
        for o in (1, 2):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            sample.append(b.gep(base, [b.mul(s, w.integer(b, steps, I64(o)))], source_etype=I8))
        with w.loop(b, I64(0), rows) as r:
            pairs = zip(sample, places(row_places, r, 3)[:2], by_row, strict=True)
            x, result = (b.gep(base, [b.mul(i, stride)], source_etype=I8) for base, i, stride in pairs)
            row_factor = w.load_number(b, w.number(b, row_factors, r))
            with w.loop(b, I64(0), middle) as m, w.loop(b, I64(0), runs) as t:
                start, to, count = places(run_places, t, 3)
                source, target, length = entry(x, m, given, start), entry(result, m, kept, to), b.mul(count, inner)
                factor = b.fmul(row_factor, w.load_number(b, w.number(b, run_factors, t)))
                first = b.and_(b.icmp_signed("<", r, first_rows), b.icmp_signed("<", t, first_runs))
                with b.if_else(first) as (then, otherwise):
                    with then:
                        copy(source, target, length, factor, add=False)
                    with otherwise:
                        copy(source, target, length, factor, add=True)
    b.ret_void()
    return module
