"""LLVM for the inverse of a symmetric positive definite matrix, in each lane a column of one sample.

Gauss and Jordan's elimination in place, from the last row to the first: its pivots are then D of M = L^T D L, and
D / diag(M) the margins, flagged unless clearly positive.
"""

from __future__ import annotations

from typing import ClassVar

import llvmlite.ir as ir

from ..flags import Flag
from ..graph import Graph
from ..number import Number
from .border import ENTRY
from .lanes import I8, I64, PTR, Lanes, Value
from .platform import Platform
from .workspace import release, report_of, reserve

OPERANDS = ("report", "M", "result")


class InverseLanes(Lanes):
    """Rows of matrices; `data` has their number."""

    slots: ClassVar = {name: (k, I64) for k, name in enumerate(["rows"])}


def emit_invert(lanes: int, platform: Platform, kind: Number) -> ir.Module:
    """A module whose `entry` inverts samples one by one; rows of matrices are contiguous."""
    module = platform.module("invert")
    w, one = (InverseLanes(module, Graph(), n, kind, whole=False) for n in (lanes, 1))
    f = ir.Function(module, ENTRY, "entry")
    f.attributes.add("nounwind")
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    n = w.slot(b, data, "rows")
    row = b.and_(b.add(n, I64(lanes - 1)), I64(-lanes))  # numbers from one row to the next: whole vectors
    memory = reserve(module, b, args, b.mul(b.mul(n, row), I64(w.bytes)), zeroed=True)
    report = report_of(b, args)
    by_row = [w.integer(b, steps, I64(len(OPERANDS) + k)) for k in (0, 2)]

    def at(i: Value, j: Value) -> Value:
        return w.number(b, memory, b.add(b.mul(i, row), j))

    with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
        sample = []
        for o in (1, 2):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            sample.append(b.gep(base, [b.mul(s, w.integer(b, steps, I64(o)))], source_etype=I8))

        def entry(o: int, i: Value, j: Value, sample: list[Value] = sample) -> Value:
            return w.number(b, b.gep(sample[o], [b.mul(i, by_row[o])], source_etype=I8), j)

        with w.loop(b, I64(0), n) as i, w.loop(b, I64(0), n) as j:
            one.store(b, one.load(b, entry(0, i, j)), at(i, j))
        with w.loop(b, b.sub(n, I64(1)), I64(0), -1) as k:
            d = one.load(b, at(k, k))
            p = b.fdiv(one.const(1.0), d)
            margin = b.fdiv(d, one.load(b, entry(0, k, k)))
            with b.if_then(b.fcmp_unordered("<=", margin, one.const(kind.margin)), likely=False):
                b.store(b.or_(b.load(report, typ=I64, align=8), I64(int(Flag.SMALL_MARGIN))), report, align=8)
            for start, stop in ((I64(0), k), (b.add(k, I64(1)), n)):
                with w.loop(b, start, stop) as i:
                    g = b.fmul(one.load(b, at(i, k)), p)
                    with w.loop(b, I64(0), row, lanes) as c:
                        x = w.minus_product(b, w.load(b, at(i, c)), w.splat(b, g), w.load(b, at(k, c)))
                        w.store(b, x, at(i, c))
                    one.store(b, b.fneg(g), at(i, k))
            with w.loop(b, I64(0), row, lanes) as c:
                w.store(b, b.fmul(w.load(b, at(k, c)), w.splat(b, p)), at(k, c))
            one.store(b, p, at(k, k))
        with w.loop(b, I64(0), n) as i, w.loop(b, I64(0), b.add(i, I64(1))) as j:  # exactly symmetric
            x = one.load(b, at(i, j))
            one.store(b, x, entry(1, i, j))
            one.store(b, x, entry(1, j, i))
    release(module, b, args, memory)
    b.ret_void()
    return module
