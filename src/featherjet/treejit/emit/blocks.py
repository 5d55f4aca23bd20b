"""LLVM for `Blocks`: a matrix of one sample over dofs and columns of bodies, in which each lane is a column.

The walks' numbers of each column have been arranged, for each sample, as Q[number][column]. The bodies that a dof moves
follow each other, so its row is zeros, then one run of entries, then zeros.
"""

from __future__ import annotations

from collections.abc import Callable

from ...jit.emit.lanes import I8, I64, PTR, Builder, Function, Value, begun, transposed
from ..program import Blocks, Ref
from .columns import Columns
from .lanes import TreeLanes
from .walks import Walks


def padded(w: TreeLanes, b: Builder, data: Value, loop: Blocks, lanes: int) -> Value:
    """The length of a row of Q: its columns in whole vectors, and one vector more, which loads may touch."""
    columns = b.mul(w.slot(b, data, "joints"), I64(loop.width))
    return b.add(b.and_(b.add(columns, I64(lanes - 1)), I64(-lanes)), I64(lanes))


def emit_block_columns(w: Walks, loop: Blocks, lanes: int) -> Function:
    """A function of (data, J, Q, area) that moves each column's numbers from lanes of samples to lanes of columns."""
    f = w.function("block_columns", [PTR, PTR, PTR, I64])
    data, J, Q, area = f.args
    b = begun(f)
    columns = b.mul(w.slot(b, data, "joints"), I64(loop.width))
    pad, last = padded(w, b, data, loop, lanes), b.sub(columns, I64(1))
    count = len(loop.keys[0])
    first = w.offset[loop.keys[0][0]]
    assert all(w.offset[k] == first + c * count + p for c, keys in enumerate(loop.keys) for p, k in enumerate(keys))
    with w.loop(b, I64(0), columns, lanes) as start:
        records = []
        for j in range(lanes):
            column = b.add(start, I64(j))
            column = b.select(b.icmp_signed("<", column, last), column, last)
            joint, c = b.udiv(column, I64(loop.width)), b.urem(column, I64(loop.width))
            at = b.add(b.mul(joint, I64(w.NJ)), b.add(b.mul(c, I64(count)), I64(first)))
            records.append(w.vector(b, J, at))
        with w.loop(b, I64(0), I64(count)) as p:
            x = [w.load(b, w.vector(b, record, p)) for record in records]
            target = w.number(b, Q, b.add(b.mul(p, pad), start))
            if w.L == 1:
                for j in range(lanes):
                    w.store_unaligned(b, x[j], w.number(b, target, I64(j)))
            else:
                for l, y in enumerate(transposed(b, x)):
                    w.store_unaligned(b, y, w.number(b, target, b.mul(area, I64(l))))
    b.ret_void()
    return f


def emit_blocks(e: Columns, loop: Blocks) -> Function:
    """A function of (data, P, Q, matrix, bytes between rows, bytes ahead to prefetch) that writes all entries."""
    f = e.function("blocks", [PTR, PTR, PTR, PTR, I64, I64])
    data, P, Q, matrix, by_row, ahead = f.args
    b = begun(f)
    joints, v_start, ends = (e.slot(b, data, s) for s in ("joints", "v_start", "body_ends"))
    pad, total = padded(e, b, data, loop, e.L), b.mul(joints, I64(loop.width))
    place = {key: k for k, key in enumerate(loop.keys[0])}
    loads: list[Ref] = e.loads(loop.values)

    def run(row: Value, start: Value, end: Value, value: Callable[[Value], Value]) -> None:
        """Store value(c) in the columns from start to end."""
        with e.loop(b, start, end, e.L) as c:
            pointer = e.number(b, row, c)
            e.prefetch(b, pointer, ahead)
            x, left = value(c), b.sub(end, c)
            with b.if_else(b.icmp_signed(">=", left, I64(e.L)), likely=True) as (yes, no):
                with yes:
                    e.store(b, x, pointer)
                with no:
                    e.store_masked(b, x, pointer, e.first_lanes(b, left))

    with e.loop(b, I64(0), joints) as i:
        first, after = (e.integer(b, v_start, b.add(i, I64(k))) for k in range(2))
        start, end = b.mul(i, I64(loop.width)), b.mul(e.integer(b, ends, i), I64(loop.width))
        with e.loop(b, first, after) as dof:
            row = b.gep(matrix, [b.mul(dof, by_row)], source_etype=I8)
            record = e.record(b, P, dof)
            known = {ref: e.splat_from(b, record, ref.key) for ref in loads if ref.role == "row" and ref.key}

            def entry(c: Value, known: dict[Ref, Value] = known) -> Value:
                def load(ref: Ref) -> Value:
                    if ref in known:
                        return known[ref]
                    assert ref.key is not None
                    return e.load(b, e.number(b, Q, b.add(b.mul(I64(place[ref.key]), pad), c)))

                return e.values(b, [loop.entry], load)[0][0]

            run(row, I64(0), start, lambda c: e.const(0.0))
            run(row, start, end, entry)
            run(row, end, total, lambda c: e.const(0.0))
    b.ret_void()
    return f
