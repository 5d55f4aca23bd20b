"""LLVM of kernels of the loop language: the loop over samples around a function."""

from __future__ import annotations

from collections.abc import Iterator

from ..emit.border import Border, emit_entry, operands_of
from ..emit.lanes import I64, Lanes, Value
from ..emit.platform import Platform
from ..graph import Graph
from ..number import Number
from ..objects import ModuleText, sources
from .index import contiguous, size
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


def emit_loops(spec: LoopSpec, lanes: int, platform: Platform, kind: Number) -> Iterator[ModuleText]:
    """Modules with an `entry` that runs a function for a batch of samples."""
    module, program = platform.module("loops"), trace(spec)
    names = [*spec.sizes, *spec.tables, *spec.factors]

    def wide(count: int, whole: bool = True) -> Lanes:
        return Lanes(module, Graph(), count, kind, whole, names, spec.sizes)

    if spec.fill is Fill.COLUMNS:
        emit_entry(module, ColumnLoops(wide(lanes, whole=False), spec, program).emit(), apart=True)
    else:
        several, *one = (SampleLoops(wide(n), spec, program).emit() for n in ((lanes,) if spec.many else (lanes, 1)))
        emit_entry(module, several, *one, lanes=lanes, apart=program.watches)
    return sources(module)


class ColumnLoops(Border):
    """The loop over samples, one by one; columns fill the lanes."""

    def __init__(self, w: Lanes, spec: LoopSpec, program: LoopFunction) -> None:
        super().__init__(w, operands_of(spec.inputs, spec.results), [])
        self.spec, self.function = spec, Lowering(w, w.slot).emit(program)

    def scratch(self, samples: Value) -> Value | None:
        b, work = self.b, [self.count(axes) for axes in self.spec.work.values()]
        memory, self.work = self.allocate(work) if work else (None, [])
        far = [o for o, x in enumerate(self.operands) if o and self.spec.is_apart(x.name, x.core)]
        self.far = [b.sdiv(self.strides[o][0], I64(self.w.bytes)) for o in far]
        return memory

    def together(self, samples: Value) -> int:
        return 1

    def begin(self, samples: Value, s: Value) -> None:
        """Inputs are read where they are."""

    def compute(self, samples: Value, s: Value) -> None:
        operands = [self.sample(o, s) for o in range(1, len(self.operands))]
        self.b.call(self.function, [self.data, self.report, *operands, *self.work, *self.far])


class SampleLoops(Border):
    """The loop over samples, some of them in lanes."""

    def __init__(self, w: Lanes, spec: LoopSpec, program: LoopFunction) -> None:
        super().__init__(w, operands_of(spec.inputs, spec.results), list(spec.inputs))
        self.spec, self.function = spec, Lowering(w, w.slot).emit(program)

    def scratch(self, samples: Value) -> Value:
        w, spec = self.w, self.spec
        axes = [*spec.inputs.values(), *spec.results.values(), *spec.work.values()]
        counts = [self.count(x) for x in axes]
        memory, self.arrays = self.allocate([self.product(n, I64(w.L)) for n in counts])
        self.inputs, self.sizes = self.arrays[: len(spec.inputs)], counts[: len(spec.inputs)]
        return memory

    def compute(self, samples: Value, s: Value) -> None:
        self.b.call(self.function, [self.data, self.report, *self.arrays])
        for source, o in zip(self.arrays[len(self.spec.inputs) :], self.outputs(), strict=False):
            self.write_lanes(source, o)
