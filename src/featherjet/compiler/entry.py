"""LLVM for the loop over samples: inputs into lanes, checks, the program's loops, results into the user's arrays.

What NumPy calls is `entry`, the inner loop of a gufunc: (char **args, intp *dims, intp *steps, void *data).
The first operand is an integer: the address of a word in which kernels set flags, each caller bringing its own.
Lanes beyond the last sample repeat it; they write the same numbers to the same place, so no lane needs a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.ir as ir

from .columns import Columns, _Response
from .lanes import DOUBLE, I8, I32, I64, PTR, VOID, Value, external
from .program import Pairs, Program, Responses, Walk
from .walks import Walks

NONFINITE, NOT_UNIT, SINGULAR = 1, 2, 4  # flags
UNIT_TOLERANCE = 2e-6  # of the squared norm
STREAM = 4 << 20  # bytes of matrices from which a call writes past the caches
BLOCK, MARGIN = 64, 8  # numbers of a matrix that are made before they are streamed, and room around them


@dataclass(frozen=True)
class Operand:
    """An operand of the gufunc: an input's name or an output's, and its core dimensions."""

    name: str
    core: tuple[str, ...]


def emit_kernel(program: Program, operands: Sequence[Operand], lanes: int, triple: str) -> ir.Module:
    """A module with `entry`; batches go `lanes` samples at a time, a few samples one by one."""
    module = ir.Module("kernel")
    module.triple = triple
    columns = Columns(module, program, lanes)
    matrices = {
        k: columns.pairs(k, loop) if isinstance(loop, Pairs) else columns.responses(k, loop)
        for k, loop in enumerate(program.loops)
        if not isinstance(loop, Walk)
    }
    loops = [Samples(Walks(module, program, L), columns, matrices, operands).emit() for L in (1, lanes)]
    f = ir.Function(module, ir.FunctionType(VOID, [PTR] * 4), "entry")
    f.attributes.add("nounwind")
    b = ir.IRBuilder(f.append_basic_block("entry"))
    few = b.icmp_signed("<", b.load(f.args[1], typ=I64, align=8), I64(max(2, lanes // 2)))
    none = b.icmp_signed("<", b.load(f.args[1], typ=I64, align=8), I64(1))
    with b.if_then(none, likely=False):
        b.ret_void()
    with b.if_else(few) as (yes, no):
        with yes:
            b.call(loops[0], f.args)
        with no:
            b.call(loops[1], f.args)
    b.ret_void()
    return module


class Samples:
    """The loop over samples for one number of lanes."""

    def __init__(
        self, walks: Walks, columns: Columns, matrices: dict[int, ir.Function], operands: Sequence[Operand]
    ) -> None:
        self.w, self.c, self.matrices, self.operands = walks, columns, matrices, operands
        self.program = walks.program

    def emit(self) -> ir.Function:
        w, program, L = self.w, self.program, self.w.L
        calls = [w.emit(k, loop) for k, loop in enumerate(program.loops) if isinstance(loop, Walk)]
        arrange = self.arrange() if self.matrices else None
        self.stream = self.emit_stream() if self.matrices else None
        f = w.function("samples", [PTR] * 4)
        args, dims, steps, data = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.data = data
        samples = b.load(dims, typ=I64, align=8)
        address = b.load(b.load(args, typ=PTR, align=8), typ=I64, align=8)
        self.report = b.inttoptr(address, PTR)
        self.joints, self.nq, self.nv = (w.slot(b, data, s) for s in ("joints", "nq", "nv"))
        self.strides = self.core_strides(steps)
        memory = self.scratch(samples)
        self.lane_pointers = b.alloca(PTR, I32(L * len(self.operands)))
        with w.loop(b, I64(0), samples, L) as s:
            self.point(args, steps, s, samples)
            self.read_inputs()
            for g in calls:
                b.call(g, [data, self.J, self.D, *self.inputs])
            if program.watched:
                self.watch()
            self.write_vectors()
            if arrange:
                b.call(arrange, [data, self.D, self.P, self.area])
                left = b.sub(samples, s)
                with w.loop(b, I64(0), b.select(b.icmp_signed("<", left, I64(L)), left, I64(L))) as lane:
                    self.write_matrices(lane)
        b.call(external(w.module, "free", VOID, PTR), [memory])
        x86 = w.module.triple.startswith(("x86", "i686", "amd64"))
        if x86:
            b.call(external(w.module, "llvm.x86.sse.sfence", VOID), [])  # streamed stores are seen by others from here
        if "windows" not in w.module.triple:  # bad input is reported by flags: NumPy need not warn of it as well
            clear = external(w.module, "feclearexcept", I32, I32)
            b.call(clear, [I32(0x3F if x86 else 0x1F)])
        b.ret_void()
        return f

    # Memory

    def core_strides(self, steps: Value) -> list[list[Value]]:
        """Byte strides of each operand's core dimensions: NumPy lists them after the outer ones."""
        found, at = [], len(self.operands)
        for operand in self.operands:
            found.append([self.w.integer(self.b, steps, I64(at + k)) for k in range(len(operand.core))])
            at += len(operand.core)
        return found

    def scratch(self, samples: Value) -> Value:
        """One allocation, cut into J, D, the inputs, P, the columns' own, and matrices that do not go out directly."""
        b, w = self.b, self.w
        groups = w.slot(b, self.data, "groups")
        self.area = b.mul(groups, I64(self.c.L * len(self.c.kept)))
        own = I64(0)
        for loop in self.program.loops:
            if isinstance(loop, Responses):
                state, left, handed = _Response(self.c, loop).sizes()
                size = b.add(b.mul(self.joints, I64(state)), b.add(b.mul(self.nv, I64(left)), I64(handed)))
                own = b.mul(size, I64(self.c.L))
        self.sizes = {"q": self.nq, "fext": b.mul(self.joints, I64(6))}
        inputs = [b.mul(self.sizes.get(x, self.nv), I64(w.L)) for x in self.program.inputs]
        matrices = [o for o, out in self.results() if out.kind == "matrix"]
        square = b.mul(self.nv, self.nv)
        size = b.mul(b.mul(square, samples), I64(8 * len(matrices)))
        self.streams = b.icmp_signed(">", size, I64(STREAM))
        spare = I64(0)
        for o in matrices:
            self.streams = b.and_(self.streams, self.flat(o))
            spare = b.select(self.dense(o), spare, b.mul(square, I64(len(matrices))))
        # Rows of a stream: some hundred numbers at a time, with room before them for the end of the last cache line.
        self.rows = b.add(b.udiv(I64(BLOCK), self.nv), I64(1))
        if any(isinstance(loop, Responses) for loop in self.program.loops):
            self.rows = self.nv
        self.block = b.add(b.mul(self.rows, self.nv), I64(2 * MARGIN))
        spare = b.select(self.streams, b.mul(self.block, I64(len(matrices))), spare)
        J, D = b.mul(self.joints, I64(w.NJ * w.L)), b.mul(self.nv, I64(w.ND * w.L))
        counts = [J, D, *inputs, b.mul(self.area, I64(w.L)), own, spare]
        counts = [b.and_(b.add(count, I64(7)), I64(-8)) for count in counts]  # of doubles, in whole cache lines
        total = I64(8)
        for count in counts:
            total = b.add(total, count)
        memory = b.call(external(w.module, "malloc", PTR, I64), [b.mul(total, I64(8))])
        at = b.inttoptr(b.and_(b.add(b.ptrtoint(memory, I64), I64(63)), I64(-64)), PTR)
        pieces = []
        for count in counts:
            pieces.append(at)
            at = w.number(b, at, count)
        self.J, self.D, *self.inputs, self.P, self.own, self.spare = pieces
        return memory

    def results(self):
        """(operand's number, Output) of each result."""
        numbers = [o for o, x in enumerate(self.operands) if x.name.startswith("out")]
        return zip(numbers, self.program.outputs, strict=True)

    def dense(self, o: int) -> Value:
        """Whether a row's entries lie side by side."""
        return self.b.icmp_signed("==", self.strides[o][1], I64(8))

    def flat(self, o: int) -> Value:
        """Whether a whole matrix lies in one piece."""
        b = self.b
        rows = b.icmp_signed("==", self.strides[o][0], b.mul(self.nv, I64(8)))
        return b.and_(self.dense(o), rows)

    def point(self, args: Value, steps: Value, s: Value, samples: Value) -> None:
        """Where each lane's sample begins, in each operand."""
        b, w = self.b, self.w
        last = b.sub(samples, I64(1))
        for o in range(len(self.operands)):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            step = w.integer(b, steps, I64(o))
            for l in range(w.L):
                sample = b.add(s, I64(l))
                sample = b.select(b.icmp_signed("<", sample, last), sample, last)
                pointer = b.gep(base, [b.mul(sample, step)], source_etype=I8)
                b.store(pointer, b.gep(self.lane_pointers, [I64(o * w.L + l)], source_etype=PTR), align=8)

    def each_lane(self, o: int, shift: Value) -> list[Value]:
        b, L = self.b, self.w.L
        starts = [b.gep(self.lane_pointers, [I64(o * L + l)], source_etype=PTR) for l in range(L)]
        return [b.gep(b.load(p, typ=PTR, align=8), [shift], source_etype=I8) for p in starts]

    # Inputs

    def read_inputs(self) -> None:
        """All inputs into lanes; x * 0 is summed, which is zero unless a number is not finite."""
        b, w = self.b, self.w
        doubt = w.cell(b)
        w.store(b, w.const(0.0), doubt)
        for o, operand in enumerate(self.operands):
            if operand.name not in self.program.inputs:
                continue
            target = self.inputs[self.program.inputs.index(operand.name)]

            def one(index: Value, shift: Value, o=o, target=target) -> None:
                x: Value = ir.Constant(w.V, ir.Undefined)
                for l, pointer in enumerate(self.each_lane(o, shift)):
                    number = b.load(pointer, typ=DOUBLE, align=8)
                    x = b.insert_element(x, number, I32(l)) if w.L > 1 else number
                w.store(b, x, w.vector(b, target, index))
                w.store(b, b.fadd(w.load(b, doubt), b.fmul(x, w.const(0.0))), doubt)

            strides = self.strides[o]
            if len(operand.core) == 1:
                with w.loop(b, I64(0), self.sizes.get(operand.name, self.nv)) as k:
                    one(k, b.mul(k, strides[0]))
            else:
                with w.loop(b, I64(0), self.joints) as i, w.loop(b, I64(0), I64(6)) as k:
                    one(b.add(b.mul(i, I64(6)), k), b.add(b.mul(i, strides[0]), b.mul(k, strides[1])))
        self.flag(b.fcmp_unordered("!=", w.load(b, doubt), w.const(0.0)), NONFINITE)
        if "q" in self.program.inputs:
            self.check_units(self.inputs[self.program.inputs.index("q")])

    def check_units(self, q: Value) -> None:
        """Quaternions and cosine-sine pairs: flag what is far from norm one, scale the rest to it."""
        b, w = self.b, self.w
        units = w.slot(b, self.data, "units")
        square = w.cell(b)
        with w.loop(b, I64(0), w.slot(b, self.data, "n_units")) as u:
            start = w.integer(b, units, b.mul(u, I64(2)))
            end = b.add(start, w.integer(b, units, b.add(b.mul(u, I64(2)), I64(1))))
            w.store(b, w.const(0.0), square)
            with w.loop(b, start, end) as k:
                x = w.load(b, w.vector(b, q, k))
                w.store(b, b.fadd(w.load(b, square), b.fmul(x, x)), square)
            s = w.load(b, square)
            high = b.fcmp_unordered(">", s, w.const(1 + UNIT_TOLERANCE))
            self.flag(b.or_(high, b.fcmp_unordered("<", s, w.const(1 - UNIT_TOLERANCE))), NOT_UNIT)
            scale = b.fdiv(w.const(1.0), w.sqrt(b, s))
            with w.loop(b, start, end) as k:
                pointer = w.vector(b, q, k)
                w.store(b, b.fmul(w.load(b, pointer), scale), pointer)

    def flag(self, bad: Value, flag: int) -> None:
        b, w = self.b, self.w
        with b.if_then(w.any_lane(b, bad), likely=False):
            b.store(b.or_(b.load(self.report, typ=I64, align=8), I64(flag)), self.report, align=8)

    def watch(self) -> None:
        """Flag pivots that are not clearly positive."""
        b, w = self.b, self.w
        least = w.slot(b, self.data, "least")
        assert self.program.watched is not None
        offset = I64(w.offset[self.program.watched])
        with w.loop(b, I64(0), self.nv) as k:
            d = w.load(b, w.vector(b, self.D, b.add(b.mul(k, I64(w.ND)), offset)))
            bound = w.spread(b, b.load(w.number(b, least, k), typ=DOUBLE, align=8))
            self.flag(b.fcmp_unordered("<=", d, bound), SINGULAR)

    # Results

    def write_vectors(self) -> None:
        b, w = self.b, self.w
        for o, out in self.results():
            if out.kind == "matrix":
                continue
            base, size, count = (self.D, w.ND, self.nv) if out.kind == "dofs" else (self.J, w.NJ, self.joints)
            with w.loop(b, I64(0), count) as i:
                row = b.mul(i, I64(size))
                for k, key in enumerate(out.keys):
                    x = w.load(b, w.vector(b, base, b.add(row, I64(w.offset[key]))))
                    shift = b.mul(i, self.strides[o][0])
                    if len(self.strides[o]) > 1:
                        shift = b.add(shift, b.mul(I64(k), self.strides[o][1]))
                    for l, pointer in enumerate(self.each_lane(o, shift)):
                        b.store(b.extract_element(x, I32(l)) if w.L > 1 else x, pointer, align=8)

    def arrange(self) -> ir.Function:
        """(data, D, P, area): what was kept for each dof, from lanes of samples to lanes of dofs, for each sample."""
        w, C = self.w, self.c.L
        f = w.function("arrange", [PTR, PTR, PTR, I64])
        data, D, P, area = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        last = b.sub(w.slot(b, data, "nv"), I64(1))
        count = len(self.c.kept)
        with w.loop(b, I64(0), w.slot(b, data, "groups")) as g:
            records = []
            for j in range(C):
                dof = b.add(b.mul(g, I64(C)), I64(j))
                dof = b.select(b.icmp_signed("<", dof, last), dof, last)
                records.append(w.vector(b, D, b.mul(dof, I64(w.ND))))
            with w.loop(b, I64(0), I64(count)) as k:
                x = [w.load(b, w.vector(b, record, k)) for record in records]
                target = w.number(b, P, b.mul(b.add(b.mul(g, I64(count)), k), I64(C)))
                if w.L == 1:
                    for j in range(C):
                        b.store(x[j], w.number(b, target, I64(j)), align=8)
                else:
                    for l, y in enumerate(transposed(b, x)):
                        b.store(y, w.number(b, target, b.mul(area, I64(l))), align=8)
        b.ret_void()
        return f

    def write_matrices(self, lane: Value) -> None:
        """All matrices of one sample: directly, through spare memory where columns are apart, or as a stream."""
        b, w = self.b, self.w
        P = w.number(b, self.P, b.mul(self.area, lane))
        by_matrix = {out.matrix: o for o, out in self.results() if out.kind == "matrix"}
        with b.goto_entry_block():
            outs, rows = b.alloca(PTR, I32(len(by_matrix))), b.alloca(I64, I32(len(by_matrix)))
        for k, f in self.matrices.items():
            loop = self.program.loops[k]
            assert not isinstance(loop, Walk)
            operands = [by_matrix[number] for number in loop.matrices]
            targets = [
                b.load(b.gep(self.lane_pointers, [b.add(I64(o * w.L), lane)], source_etype=PTR), typ=PTR, align=8)
                for o in operands
            ]

            def fill(places: list[tuple[Value, Value]], first: Value, end: Value, f=f, loop=loop) -> None:
                """Rows first to end, matrix m beginning at places[m][0] with rows places[m][1] bytes apart."""
                for m, (place, by_row) in enumerate(places):
                    b.store(place, b.gep(outs, [I64(m)], source_etype=PTR), align=8)
                    b.store(by_row, b.gep(rows, [I64(m)], source_etype=I64), align=8)
                last = [self.own] if isinstance(loop, Responses) else [first, end]
                b.call(f, [self.data, P, outs, rows, *last])

            with b.if_else(self.streams) as (yes, no):
                with yes:
                    self.write_stream(targets, fill)
                with no:
                    self.write_plainly(operands, targets, fill)

    def write_plainly(self, operands: list[int], targets: list[Value], fill: Callable) -> None:
        b, w = self.b, self.w
        square = b.mul(self.nv, self.nv)
        spares = [w.number(b, self.spare, b.mul(square, I64(m))) for m in range(len(operands))]
        places = []
        for o, target, spare in zip(operands, targets, spares, strict=True):
            dense = self.dense(o)
            by_row = b.select(dense, self.strides[o][0], b.mul(self.nv, I64(8)))
            places.append((b.select(dense, target, spare), by_row))
        fill(places, I64(0), self.nv)
        for o, target, spare in zip(operands, targets, spares, strict=True):
            with b.if_then(b.not_(self.dense(o)), likely=False):
                with w.loop(b, I64(0), self.nv) as r, w.loop(b, I64(0), self.nv) as c:
                    x = b.load(w.number(b, spare, b.add(b.mul(r, self.nv), c)), typ=DOUBLE, align=8)
                    shift = b.add(b.mul(r, self.strides[o][0]), b.mul(c, self.strides[o][1]))
                    b.store(x, b.gep(target, [shift], source_etype=I8), align=8)

    def write_stream(self, targets: list[Value], fill: Callable) -> None:
        """Block by block into spare memory, and from there past the caches, in whole cache lines."""
        b, w = self.b, self.w
        by_row = b.mul(self.nv, I64(8))
        starts = [w.number(b, self.spare, b.add(b.mul(self.block, I64(m)), I64(MARGIN))) for m in range(len(targets))]
        with b.goto_entry_block():
            carried = [b.alloca(I64) for _ in targets]
        for cell in carried:
            b.store(I64(0), cell)
        with w.loop(b, I64(0), self.nv, self.rows) as r0:
            r1 = b.add(r0, self.rows)
            r1 = b.select(b.icmp_signed("<", r1, self.nv), r1, self.nv)
            back = b.sub(I64(0), b.mul(r0, by_row))
            fill([(b.gep(start, [back], source_etype=I8), by_row) for start in starts], r0, r1)
            final = b.icmp_signed("==", r1, self.nv)
            for start, target, cell in zip(starts, targets, carried, strict=True):
                before = b.load(cell, typ=I64)
                source = w.number(b, start, b.sub(I64(0), before))
                to = w.number(b, target, b.sub(b.mul(r0, self.nv), before))
                count = b.add(before, b.mul(b.sub(r1, r0), self.nv))
                rest = b.call(self.stream, [to, source, count, final])
                b.store(rest, cell)
                end, again = w.number(b, source, b.sub(count, rest)), w.number(b, start, b.sub(I64(0), rest))
                with w.loop(b, I64(0), rest) as j:
                    b.store(b.load(w.number(b, end, j), typ=DOUBLE, align=8), w.number(b, again, j), align=8)

    def emit_stream(self) -> ir.Function:
        """(to, from, count, final) -> rest: copy whole cache lines past the caches; the rest only if it is final.

        What comes out in such amounts is not read again soon, and lines that are written whole need not be read first.
        """
        w, C = self.w, self.c.L
        line = ir.VectorType(DOUBLE, C)
        f = w.function("stream", [PTR, PTR, I64, ir.IntType(1)], I64)
        target, source, count, final = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        past = w.module.add_metadata([I32(1)])
        off = b.udiv(b.and_(b.ptrtoint(target, I64), I64(8 * C - 1)), I64(8))
        head = b.and_(b.sub(I64(C), off), I64(C - 1))
        head = b.select(b.icmp_signed("<", head, count), head, count)
        body = b.add(head, b.and_(b.sub(count, head), I64(-C)))

        def one(k: Value) -> None:
            b.store(b.load(w.number(b, source, k), typ=DOUBLE, align=8), w.number(b, target, k), align=8)

        with w.loop(b, I64(0), head) as k:
            one(k)
        with w.loop(b, head, body, C) as k:
            x = b.load(w.number(b, source, k), typ=line, align=8)
            b.store(x, w.number(b, target, k), align=8 * C).set_metadata("nontemporal", past)
        with b.if_then(final):
            with w.loop(b, body, count) as k:
                one(k)
            b.ret(I64(0))
        b.ret(b.sub(count, body))
        return f


def transposed(b: ir.IRBuilder, x: list[Value]) -> list[Value]:
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
