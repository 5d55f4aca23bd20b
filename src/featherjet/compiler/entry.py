"""LLVM for the loop over samples: inputs into lanes, checks, the program's loops, results into the user's arrays.

Lanes beyond the last sample repeat it; they write the same numbers to the same place, so no lane needs a mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ir

from .columns import emit_responses
from .emit import (
    BUFFER, DOUBLE, I32, I64, NONFINITE, NOT_UNIT, PTR, SINGULAR, VOID, Emitter, Operand,
)  # fmt: skip
from .program import Pairs, Program, Responses, Walk

I8 = ir.IntType(8)
UNIT_TOLERANCE = 2e-6  # of the squared norm


def emit_kernel(program: Program, operands: Sequence[Operand], lanes: Sequence[int]) -> ir.Module:
    """A module with `entry`; lanes are tried from the widest, single samples take the narrowest."""
    module = ir.Module("kernel")
    loops = {L: emit_samples(Emitter(module, program, L, operands)) for L in sorted(set(lanes))}
    f = ir.Function(module, ir.FunctionType(VOID, [PTR] * 4), "entry")
    f.attributes.add("nounwind")
    b = ir.IRBuilder(f.append_basic_block("entry"))
    samples = b.load(f.args[1], typ=I64, align=8)
    for L in sorted(loops, reverse=True)[:-1]:
        with b.if_then(b.icmp_signed(">=", samples, I64(max(2, L // 2)))):
            b.call(loops[L], f.args)
            b.ret_void()
    b.call(loops[min(loops)], f.args)
    b.ret_void()
    return module


def external(module: ir.Module, name: str, result: ir.Type, *args: ir.Type) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, list(args)), name)  # type: ignore


def emit_samples(e: Emitter) -> ir.Function:
    program, L = e.program, e.L
    calls = []
    for number, loop in enumerate(program.loops):
        if isinstance(loop, Walk):
            calls.append((loop, e.walk(number, loop)))
        elif isinstance(loop, Pairs):
            calls.append((loop, e.pairs(number, loop)))
        else:
            calls.append((loop, emit_responses(e, number, loop)))
    flush = emit_flush(e)
    f = e.function("samples", [PTR] * 4)
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    samples = b.load(dims, typ=I64, align=8)
    joints, nq, nv = (e.slot(b, data, s) for s in ("joints", "nq", "nv"))
    sizes = {"q": nq, "fext": b.mul(joints, I64(6))}

    # Scratch: one allocation, cut into J, D, inputs, H and the matrix buffer, all of vectors.
    matrices = max((len(p.matrices) for p in program.loops if not isinstance(p, Walk)), default=0)
    least = I64(max(1, BUFFER // (e.bytes * max(matrices, 1))))
    rows = b.udiv(least, nv)
    rows = b.select(b.icmp_signed("<", rows, I64(1)), I64(1), rows)
    rows = b.select(b.icmp_signed("<", nv, rows), nv, rows)
    group = b.select(b.icmp_signed("<", nv, I64(L)), nv, I64(L))
    wide = b.select(b.icmp_signed("<", rows, group), group, rows)
    counts = [
        b.mul(joints, I64(e.NJ)),
        b.mul(nv, I64(e.ND)),
        *(sizes.get(name, nv) for name in program.inputs),
        I64(max(len(e.held), 1)),
        b.mul(b.mul(wide, nv), I64(max(matrices, 1))),
    ]
    total = I64(0)
    for count in counts:
        total = b.add(total, count)
    memory = b.call(external(e.module, "malloc", PTR, I64), [b.add(b.mul(total, I64(e.bytes)), I64(64))])
    address = b.and_(b.add(b.ptrtoint(memory, I64), I64(63)), I64(-64))
    pieces, at = [], b.inttoptr(address, PTR)
    for count in counts:
        pieces.append(at)
        at = e.vector_at(b, at, count)
    J, D, inputs, H, buffer = pieces[0], pieces[1], pieces[2:-2], pieces[-2], pieces[-1]

    strides = core_strides(e, b, steps)
    lane_pointers = b.alloca(PTR, I32(L * len(e.operands)))
    doubt = e.cell(b)
    with e.loop(b, I64(0), samples, L) as s:
        last = b.sub(samples, I64(1))
        for o in range(len(e.operands)):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            step = e.at(b, steps, I64(o))
            for l in range(L):
                sample = b.add(s, I64(l))
                sample = b.select(b.icmp_signed("<", sample, last), sample, last)
                pointer = b.gep(base, [b.mul(sample, step)], source_etype=I8)
                b.store(pointer, b.gep(lane_pointers, [I64(o * L + l)], source_etype=PTR), align=8)

        def lane(o: int) -> ir.Value:
            return b.gep(lane_pointers, [I64(o * L)], source_etype=PTR)

        e.store(b, e.const(0.0), doubt)
        for o, operand in enumerate(e.operands):
            if operand.name in program.inputs:
                target = inputs[program.inputs.index(operand.name)]
                gather(e, b, lane(o), strides[o], operand, target, sizes.get(operand.name, nv), joints, doubt)
        raise_flag(e, b, data, b.fcmp_unordered("!=", e.load(b, doubt), e.const(0.0)), NONFINITE)
        if "q" in program.inputs:
            check_units(e, b, data, inputs[program.inputs.index("q")])
        for loop, g in calls:
            if isinstance(loop, Walk):
                b.call(g, [data, J, D, *inputs])
        if program.watched:
            watch(e, b, data, D, nv)
        results = [o for o, operand in enumerate(e.operands) if operand.name not in program.inputs]
        by_matrix = {
            out.matrix: o for o, out in zip(results, program.outputs, strict=True) if out.kind == "matrix"
        }
        for loop, g in calls:
            if isinstance(loop, Pairs):
                with e.loop_by(b, I64(0), nv, rows) as r:
                    end = b.add(r, rows)
                    end = b.select(b.icmp_signed("<", end, nv), end, nv)
                    count = b.sub(end, r)
                    plane = b.mul(count, nv)
                    b.call(g, [data, D, buffer, r, end, plane])
                    for k, m in enumerate(loop.matrices):
                        if m in by_matrix:
                            o = by_matrix[m]
                            source = e.vector_at(b, buffer, b.mul(plane, I64(k)))
                            b.call(flush, [source, count, nv, lane(o), r, I64(0), *strides[o]])
            elif isinstance(loop, Responses):
                with e.loop_by(b, I64(0), nv, group) as c0:
                    beyond = b.icmp_signed(">", b.add(c0, group), nv)
                    c = b.select(beyond, b.sub(nv, group), c0)
                    b.call(g, [data, J, D, H, buffer, c, b.add(c, group)])
                    for k, m in enumerate(loop.matrices):
                        if m in by_matrix:
                            o = by_matrix[m]
                            source = e.vector_at(b, buffer, b.mul(b.mul(nv, group), I64(k)))
                            b.call(flush, [source, nv, group, lane(o), I64(0), c, *strides[o]])
        for o, out in zip(results, program.outputs, strict=True):
            if out.kind != "matrix":
                base, stride, count = (D, e.ND, nv) if out.kind == "dofs" else (J, e.NJ, joints)
                with e.loop(b, I64(0), count) as i:
                    row = b.mul(i, I64(stride))
                    for k, key in enumerate(out.keys):
                        x = e.load(b, e.vector_at(b, base, b.add(row, I64(e.offset[key]))))
                        shift = b.mul(i, strides[o][0])
                        if len(strides[o]) > 1:
                            shift = b.add(shift, b.mul(I64(k), strides[o][1]))
                        scatter(e, b, x, lane(o), shift)
    b.call(external(e.module, "free", VOID, PTR), [memory])
    b.ret_void()
    return f


def core_strides(e: Emitter, b: ir.IRBuilder, steps: ir.Value) -> list[list[ir.Value]]:
    """Byte strides of each operand's core dimensions: NumPy lists them after the outer ones."""
    found, at = [], len(e.operands)
    for operand in e.operands:
        found.append([e.at(b, steps, I64(at + k)) for k in range(len(operand.core))])
        at += len(operand.core)
    return found


def each_lane(e: Emitter, b: ir.IRBuilder, pointers: ir.Value, shift: ir.Value) -> list[ir.Value]:
    return [
        b.gep(b.load(b.gep(pointers, [I64(l)], source_etype=PTR), typ=PTR, align=8), [shift], source_etype=I8)
        for l in range(e.L)
    ]


def scatter(e: Emitter, b: ir.IRBuilder, x: ir.Value, pointers: ir.Value, shift: ir.Value) -> None:
    for l, pointer in enumerate(each_lane(e, b, pointers, shift)):
        b.store(b.extract_element(x, I32(l)) if e.L > 1 else x, pointer, align=8)


def gather(
    e: Emitter,
    b: ir.IRBuilder,
    pointers: ir.Value,
    strides: list[ir.Value],
    operand: Operand,
    target: ir.Value,
    size: ir.Value,
    joints: ir.Value,
    doubt: ir.Value,
) -> None:
    """An input's numbers into lanes; x * 0 is summed, which is zero unless a number is not finite."""

    def one(index: ir.Value, shift: ir.Value) -> None:
        x: ir.Value = ir.Constant(e.V, ir.Undefined)
        for l, pointer in enumerate(each_lane(e, b, pointers, shift)):
            number = b.load(pointer, typ=DOUBLE, align=8)
            x = b.insert_element(x, number, I32(l)) if e.L > 1 else number
        e.store(b, x, e.vector_at(b, target, index))
        e.store(b, b.fadd(e.load(b, doubt), b.fmul(x, e.const(0.0))), doubt)

    if len(operand.core) == 1:
        with e.loop(b, I64(0), size) as k:
            one(k, b.mul(k, strides[0]))
    else:
        with e.loop(b, I64(0), joints) as i, e.loop(b, I64(0), I64(6)) as k:
            one(b.add(b.mul(i, I64(6)), k), b.add(b.mul(i, strides[0]), b.mul(k, strides[1])))


def raise_flag(e: Emitter, b: ir.IRBuilder, data: ir.Value, bad: ir.Value, flag: int) -> None:
    if e.L > 1:
        bad = b.icmp_unsigned("!=", b.bitcast(bad, ir.IntType(e.L)), ir.Constant(ir.IntType(e.L), 0))
    with b.if_then(bad, likely=False):
        flags = e.slot(b, data, "flags")
        b.store(b.or_(b.load(flags, typ=I64, align=8), I64(flag)), flags, align=8)


def check_units(e: Emitter, b: ir.IRBuilder, data: ir.Value, q: ir.Value) -> None:
    """Quaternions and cosine-sine pairs: flag what is far from norm one, scale the rest to it."""
    units = e.slot(b, data, "units")
    with e.loop(b, I64(0), e.slot(b, data, "n_units")) as u:
        start = e.at(b, units, b.mul(u, I64(2)))
        end = b.add(start, e.at(b, units, b.add(b.mul(u, I64(2)), I64(1))))
        square = e.cell(b)
        e.store(b, e.const(0.0), square)
        with e.loop(b, start, end) as k:
            x = e.load(b, e.vector_at(b, q, k))
            e.store(b, b.fadd(e.load(b, square), b.fmul(x, x)), square)
        s = e.load(b, square)
        off = b.or_(
            b.fcmp_unordered(">", s, e.const(1 + UNIT_TOLERANCE)),
            b.fcmp_unordered("<", s, e.const(1 - UNIT_TOLERANCE)),
        )
        raise_flag(e, b, data, off, NOT_UNIT)
        scale = b.fdiv(e.const(1.0), e.sqrt(b, s))
        with e.loop(b, start, end) as k:
            pointer = e.vector_at(b, q, k)
            e.store(b, b.fmul(e.load(b, pointer), scale), pointer)


def watch(e: Emitter, b: ir.IRBuilder, data: ir.Value, D: ir.Value, nv: ir.Value) -> None:
    """Flag pivots that are not clearly positive."""
    least = e.slot(b, data, "least")
    key = e.program.watched
    assert key is not None
    with e.loop(b, I64(0), nv) as k:
        d = e.load(b, e.vector_at(b, D, b.add(b.mul(k, I64(e.ND)), I64(e.offset[key]))))
        bound = e.spread(b, b.load(b.gep(least, [k], source_etype=DOUBLE), typ=DOUBLE, align=8))
        raise_flag(e, b, data, b.fcmp_unordered("<=", d, bound), SINGULAR)


def emit_flush(e: Emitter) -> ir.Function:
    """(buffer, rows, width, lane pointers, row0, col0, row stride, column stride): a block of a matrix to its place."""
    f = e.function("flush", [PTR, I64, I64, PTR, I64, I64, I64, I64])
    buffer, rows, width, pointers, row0, col0, by_row, by_col = f.args
    L = e.L
    b = ir.IRBuilder(f.append_basic_block("entry"))
    dense = b.icmp_signed("==", by_col, I64(8))
    count = b.mul(rows, width)
    flat = b.and_(dense, b.icmp_signed("==", by_row, b.mul(width, I64(8))))
    flat = b.and_(flat, b.icmp_signed(">=", count, I64(L)))
    shift0 = b.add(b.mul(row0, by_row), b.mul(col0, by_col))

    def block(source: ir.Value, shift: ir.Value) -> None:
        """L entries of L samples, turned."""
        x = transposed(b, [e.load(b, e.vector_at(b, source, I64(j))) for j in range(L)])
        for l, pointer in enumerate(each_lane(e, b, pointers, shift)):
            b.store(x[l], pointer, align=8)

    with b.if_then(flat):
        with e.loop_by(b, I64(0), count, I64(L)) as k:
            end = b.sub(count, I64(L))
            at = b.select(b.icmp_signed("<", k, end), k, end)
            block(e.vector_at(b, buffer, at), b.add(shift0, b.mul(at, I64(8))))
        b.ret_void()
    with b.if_then(b.and_(dense, b.icmp_signed("==", width, I64(L)))):
        with e.loop(b, I64(0), rows) as r:
            block(e.vector_at(b, buffer, b.mul(r, I64(L))), b.add(shift0, b.mul(r, by_row)))
        b.ret_void()
    with e.loop(b, I64(0), rows) as r, e.loop(b, I64(0), width) as c:
        x = e.load(b, e.vector_at(b, buffer, b.add(b.mul(r, width), c)))
        scatter(e, b, x, pointers, b.add(shift0, b.add(b.mul(r, by_row), b.mul(c, by_col))))
    b.ret_void()
    return f


def transposed(b: ir.IRBuilder, x: list[ir.Value]) -> list[ir.Value]:
    """L vectors of L lanes, rows and columns exchanged, by butterflies."""
    L, bit = len(x), 1
    mask = ir.VectorType(I32, L)
    while bit < L:
        for i in range(L):
            if not i & bit:
                a, c = x[i], x[i | bit]
                low = [t if not t & bit else L + (t ^ bit) for t in range(L)]
                high = [t | bit if not t & bit else L + t for t in range(L)]
                x[i] = b.shuffle_vector(a, c, ir.Constant(mask, low))
                x[i | bit] = b.shuffle_vector(a, c, ir.Constant(mask, high))
        bit *= 2
    return x
