"""LLVM for the loop over samples: inputs into lanes, checks, the program's loops, results into the user's arrays.

What NumPy calls is `entry`, the inner loop of a gufunc: (char **args, intp *dims, intp *steps, void *data).
The first operand is an integer: the address of a word in which kernels set flags, each caller bringing its own.
Lanes beyond the last sample repeat it; they write the same numbers to the same place, so no lane needs a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ir

from .columns import Columns
from .lanes import DOUBLE, I8, I32, I64, PTR, VOID, Value, external
from .matrices import MARGIN, MatrixOutput
from .program import Pairs, Program, Responses, Walk
from .responses import Response
from .walks import Walks

NONFINITE, NOT_UNIT, SINGULAR = 1, 2, 4  # flags
UNIT_TOLERANCE = 2e-6  # of the squared norm
SUSPICIOUS = 1e-11  # margin of the mass matrix below which the caller must look closer
STREAM = 4 << 20  # bytes of matrices from which a call writes past the caches
BLOCK = 64  # numbers of a matrix that are made before they are streamed


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
        k: columns.pairs(k, loop) if isinstance(loop, Pairs) else Response(columns, loop).emit(k)
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


class Samples(MatrixOutput):
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
                state, left, handed = Response(self.c, loop).sizes()
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
        """Flag samples whose mass matrix may be singular."""
        b, w = self.b, self.w
        assert self.program.watched is not None
        offset = I64(w.offset[self.program.watched])
        with w.loop(b, I64(0), self.nv) as k:
            margin = w.load(b, w.vector(b, self.D, b.add(b.mul(k, I64(w.ND)), offset)))
            self.flag(b.fcmp_unordered("<=", margin, w.const(SUSPICIOUS)), SINGULAR)

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
