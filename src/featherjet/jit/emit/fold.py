"""LLVM for folding an axis of arrays: its entries are summed in groups, each times a factor."""

from __future__ import annotations

from typing import ClassVar

import llvmlite.ir as ir

from ..data import HEADER
from ..graph import Graph
from ..number import Number
from .lanes import I8, I64, PTR, VOID, Lanes, Value
from .platform import Platform

OPERANDS = ("report", "x", "result")
COUNTS = ("first", "middle", "given", "kept", "inner")
TABLES = ("group", "factor")


class FoldLanes(Lanes):
    """Neighbouring numbers of one sample anywhere.

    `data` has the lengths of axes: the first and those between it and the axis (one, if it is the first itself), the
    axis before and after, and those that follow it; then for each entry of the axis its group and its factor.
    """

    slots: ClassVar = {
        name: (k, PTR if name in TABLES else I64) for k, name in enumerate([*HEADER, *COUNTS, *TABLES])
    }


def emit_fold(lanes: int, axes: int, axis: int, platform: Platform, kind: Number) -> ir.Module:
    """A module whose `entry` folds one of so many axes, sample by sample; all but the first are contiguous."""
    module = platform.module("fold")
    w, one = (FoldLanes(module, Graph(), n, kind, whole=False) for n in (lanes, 1))
    f = ir.Function(module, ir.FunctionType(VOID, [PTR] * 4), "entry")
    f.attributes.add("nounwind")
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    first, middle, given, kept, inner = (w.slot(b, data, name) for name in COUNTS)
    groups, factors = (w.slot(b, data, name) for name in TABLES)
    whole = b.mul(b.sdiv(inner, I64(lanes)), I64(lanes))
    size = b.mul(inner, I64(w.bytes))
    by_first = [w.integer(b, steps, I64(len(OPERANDS) + k)) for k in (0, axes)]

    def place(base: Value, operand: int, count: Value, a: Value, m: Value, i: Value) -> Value:
        """Entry i of the axis, which has `count`, at entry a of the first axis and m of those between."""
        if axis == 0:
            return b.gep(base, [b.mul(i, by_first[operand])], source_etype=I8)
        start = b.gep(base, [b.mul(a, by_first[operand])], source_etype=I8)
        return b.gep(start, [b.mul(b.add(b.mul(m, count), i), size)], source_etype=I8)

    def numbers(run: object) -> None:
        for v, start, stop in ((w, I64(0), whole), (one, whole, inner)):
            with v.loop(b, start, stop, v.L) as c:
                run(v, c)  # type: ignore[operator]

    with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
        x, result = (
            b.gep(
                b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8),
                [b.mul(s, w.integer(b, steps, I64(o)))],
                source_etype=I8,
            )
            for o in (1, 2)
        )
        with w.loop(b, I64(0), first) as a, w.loop(b, I64(0), middle) as m:
            with w.loop(b, I64(0), kept) as j:
                to = place(result, 1, kept, a, m, j)
                numbers(lambda v, c, to=to: v.store(b, v.const(0.0), v.number(b, to, c)))
            with w.loop(b, I64(0), given) as i:
                to = place(result, 1, kept, a, m, w.integer(b, groups, i))
                source = place(x, 0, given, a, m, i)
                factor = w.load_number(b, w.number(b, factors, i))

                def add(v: Lanes, c: Value, to: Value = to, source: Value = source, factor: Value = factor) -> None:
                    at = v.number(b, to, c)
                    y = v.load(b, v.number(b, source, c))
                    v.store(b, v.plus_product(b, v.load(b, at), v.splat(b, factor), y), at)

                numbers(add)
    b.ret_void()
    return module
