"""LLVM of kernels of the loop language: the loop over samples around a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import llvmlite.ir as ir

from ..emit.border import ENTRY, Border, emit_apart, emit_entry
from ..emit.lanes import I8, I32, I64, LINE, PTR, Lanes, Value, transposed
from ..emit.platform import Platform
from ..emit.workspace import forget_exceptions, release, report_of, reserve
from ..graph import Graph
from ..number import Number
from ..objects import ModuleText, sources
from .index import Index, lifted, size
from .lower import Lowering
from .program import LaneRole, LoopFunction
from .spec import Fill, LoopSpec
from .trace import Tracer
from .verify import verify


def trace(spec: LoopSpec) -> LoopFunction:
    """The program of a function; integers that come last say how far apart the entries of some first axes are."""
    t = Tracer(spec.name, spec.fill is Fill.SAMPLES)
    role = LaneRole.SAMPLES if spec.fill is Fill.SAMPLES else LaneRole.NUMBERS
    arrays = []
    far = {name: t.integer() for name in spec.apart}
    for side in (spec.inputs, spec.results, spec.work):
        for name, axes in side.items():
            strides = contiguous(axes)
            if name in far:
                strides[0] = far[name]
            arrays.append(t.argument(name, strides, role, fixed=side is spec.inputs))
    kinds = ((LaneRole.INTEGERS, spec.tables), (LaneRole.NUMBERS, spec.factors))
    tables = {name: t.table(name, [1], role) for role, names in kinds for name in names}
    spec.function(t, *arrays, *map(size, spec.sizes), **tables, **dict(spec.constants))
    found = t.finished()
    verify(found)
    return found


def contiguous(axes: Sequence[int | str]) -> list[Index]:
    """How far apart the entries of an array are along each axis."""
    strides, step = [], lifted(1)
    for axis in reversed(axes):
        strides.insert(0, step)
        step = step * (size(axis) if isinstance(axis, str) else axis)
    return strides


def emit_loops(spec: LoopSpec, lanes: int, platform: Platform, kind: Number) -> Iterator[ModuleText]:
    """Modules with an `entry` that runs a function for a batch of samples."""
    module = platform.module("loops")
    program = trace(spec)
    if spec.fill is Fill.COLUMNS:
        emit_columns(spec, program, SizedLanes(module, lanes, kind, spec, whole=False))
    else:
        several = SampleLoops(SizedLanes(module, lanes, kind, spec), spec, program).emit("several")
        one = SampleLoops(SizedLanes(module, 1, kind, spec), spec, program).emit("one")
        emit_entry(module, several, one, lanes, apart=program.watches)
    return sources(module)


class SizedLanes(Lanes):
    """Lanes whose `data` has the sizes and tables of a function."""

    def __init__(self, module: ir.Module, lanes: int, kind: Number, spec: LoopSpec, whole: bool = True) -> None:
        super().__init__(module, Graph(), lanes, kind, whole)
        kinds: list[tuple[str, ir.Type]] = [(x, I64) for x in spec.sizes]
        kinds += [(x, PTR) for x in (*spec.tables, *spec.factors)]
        self.places = {name: (k, typ) for k, (name, typ) in enumerate(kinds)}

    def slot(self, b: ir.IRBuilder, data: Value, name: str) -> Value:
        k, typ = self.places[name]
        return b.load(b.gep(data, [I64(k)], source_etype=I64), typ=typ, align=8)

    def length(self, b: ir.IRBuilder, data: Value, axis: int | str) -> Value:
        return I64(axis) if isinstance(axis, int) else self.slot(b, data, axis)

    def count(self, b: ir.IRBuilder, data: Value, axes: Sequence[int | str]) -> Value:
        """The entries of an array."""
        total: Value = I64(1)
        for axis in axes:
            total = b.mul(total, self.length(b, data, axis))
        return total


def emit_columns(spec: LoopSpec, program: LoopFunction, w: SizedLanes) -> None:
    """`entry`: samples one by one."""
    function = Lowering(w, w.slot).emit(program)
    f = ir.Function(w.module, ENTRY, "entry")
    f.attributes.add("nounwind")
    args, dims, steps, data = f.args
    b = ir.IRBuilder(f.append_basic_block("entry"))
    operands = spec.operands()
    begins, total = [], I64(LINE)
    for axes in spec.work.values():
        begins.append(total)
        size_of = b.mul(w.count(b, data, axes), I64(w.bytes))
        total = b.add(total, b.and_(b.add(size_of, I64(LINE - 1)), I64(-LINE)))
    memory = reserve(w.module, b, args, total) if begins else None
    work = []
    if memory is not None:
        first = b.and_(b.ptrtoint(memory, I64), I64(-LINE))
        work = [b.inttoptr(b.add(first, at), PTR) for at in begins]
    report, far, at = report_of(b, args), [], len(operands)
    for operand in operands[1:]:
        if spec.is_apart(operand.name, operand.core):
            far.append(b.sdiv(w.integer(b, steps, I64(at)), I64(w.bytes)))
        at += len(operand.core)
    with w.loop(b, I64(0), b.load(dims, typ=I64, align=8)) as s:
        given = []
        for o in range(1, len(operands)):
            base = b.load(b.gep(args, [I64(o)], source_etype=PTR), typ=PTR, align=8)
            given.append(b.gep(base, [b.mul(s, w.integer(b, steps, I64(o)))], source_etype=I8))
        b.call(function, [data, report, *given, *work, *far])
    if memory is not None:
        release(w.module, b, args, memory)
    forget_exceptions(w.module, b)
    b.ret_void()
    emit_apart(w.module, True)


class SampleLoops(Border):
    """The loop over samples, some of them in lanes."""

    w: SizedLanes

    def __init__(self, w: SizedLanes, spec: LoopSpec, program: LoopFunction) -> None:
        super().__init__(w, spec.operands(), list(spec.inputs))
        self.spec, self.function = spec, Lowering(w, w.slot).emit(program)

    def scratch(self, samples: Value) -> Value:
        w, b, spec = self.w, self.b, self.spec
        axes = [*spec.inputs.values(), *spec.results.values(), *spec.work.values()]
        counts = [w.count(b, self.data, x) for x in axes]
        memory, self.arrays = self.allocate([self.product(n, I64(w.L)) for n in counts])
        self.inputs, self.sizes = self.arrays[: len(spec.inputs)], counts[: len(spec.inputs)]
        return memory

    def dimension(self, name: int | str) -> Value:
        return self.w.length(self.b, self.data, name)

    def compute(self, samples: Value, s: Value) -> None:
        self.b.call(self.function, [self.data, self.report, *self.arrays])
        for source, o in zip(self.arrays[len(self.spec.inputs) :], self.outputs(), strict=False):
            self.write(source, o)

    def write(self, source: Value, o: int) -> None:
        """Write one result of all lanes: transposed where it is contiguous, else entry by entry."""
        b, w = self.b, self.w
        core = self.operands[o].core
        count = w.count(b, self.data, core)
        flat = self.flat(o)
        whole = b.select(flat, b.and_(count, I64(-w.L)), I64(0))
        with w.loop(b, I64(0), whole, w.L) as k:
            x = [w.load(b, w.vector(b, source, b.add(k, I64(j)))) for j in range(w.L)]
            for l, y in enumerate(transposed(b, x) if w.L > 1 else x):
                w.store_unaligned(b, y, w.number(b, self.lane_pointer(o, I64(l)), k))
        lengths = [self.dimension(axis) for axis in core]
        with w.loop(b, whole, count) as k:
            shift, rest = I64(0), k
            for length, stride in zip(reversed(lengths), reversed(self.strides[o]), strict=True):
                shift = b.add(shift, b.mul(b.urem(rest, length), stride))
                rest = b.udiv(rest, length)
            x = w.load(b, w.vector(b, source, k))
            for l, pointer in enumerate(self.each_lane(o, shift)):
                w.store_unaligned(b, b.extract_element(x, I32(l)) if w.L > 1 else x, pointer)
