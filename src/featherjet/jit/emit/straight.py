"""LLVM for straight-line code, in which each lane is a sample."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from math import prod

from ..number import Number
from ..objects import ModuleText, sources
from ..schedule import Schedule
from ..straight import Straight
from .border import AHEAD, Border, Operand, emit_entry, operands_of
from .lanes import I1, I32, I64, PTR, VOID, Function, FunctionType, Lanes, Module, Value, external
from .pieces import TRIG, Memory, texts
from .platform import Platform, integers, letters, variable
from .sincos import sincos_function

# Instructions: the first get good code; the rest, and all of a very long kernel, get code that compiles fast.
THOROUGH, LONG = 18_000, 26_000


def emit_straight(
    program: Straight, lanes: int, platform: Platform, kind: Number, fast_compile: bool = False
) -> Iterator[ModuleText]:
    """Modules with an `entry` that treats `lanes` samples at a time, and with the pieces that it calls.

    fast_compile: all but the code that kernels share compiles fast.
    """
    module = platform.module("kernel")
    schedule = program.schedule
    w = Lanes(module, program.graph, lanes, kind)
    operands = operands_of(program.inputs, {f"out{k}": shape for k, (shape, _) in enumerate(program.outputs)})
    code = StraightCode(w, program, schedule, operands, fast_compile)
    samples = code.emit()
    emit_entry(module, samples, apart=bool(program.watched))
    variable(module, "shapes", letters(json.dumps([shape for shape, _ in program.outputs])))
    yield from sources(module, {samples.name, "entry"} if fast_compile else set())
    yield from code.pieces()


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs of consecutive ones: (first, last + 1)."""
    cuts = [k for k in range(1, len(numbers)) if numbers[k] != numbers[k - 1] + 1]
    return [(numbers[a], numbers[b - 1] + 1) for a, b in itertools.pairwise([0, *cuts, len(numbers)])]


def constant_table(module: Module, numbers: Sequence[int]) -> Value:
    """A table of integers in the code; a module has few, so equal ones are not shared."""
    return variable(module, module.get_unique_name("table"), integers(numbers), private=True)


class StraightCode(Border):
    """Straight-line code for one number of lanes; results are staged in lanes, then written transposed."""

    def __init__(
        self, w: Lanes, program: Straight, schedule: Schedule, operands: Sequence[Operand], fast_compile: bool = False
    ) -> None:
        super().__init__(w, operands, list(program.inputs), fast_compile)
        self.fast_compile = fast_compile
        self.program, self.schedule = program, schedule
        ops = program.graph.ops
        self.angles = sorted({ops[i].args[0] for piece in schedule.pieces for i in piece.ops if ops[i].name in TRIG})
        self.angles = [i for i in self.angles if ops[i].name == "load"]
        # Memory, in vectors: inputs, sines and cosines, slots, results, watched.
        at = 0
        self.start: dict[str, int] = {}
        for name, shape in program.inputs.items():
            self.start[name], at = at, at + prod(shape)
        self.trig, at = at, at + 2 * len(self.angles)
        self.slots, at = at, at + schedule.slots
        self.results = []
        self.entries = [entries for _, entries in program.outputs]
        for entries in self.entries:
            self.results.append(at)
            at += -(-len(entries) // w.L) * w.L
        self.watched, at = at, at + len(program.watched)
        self.size = at
        self.sinks: dict[int, list[int]] = {}
        for start, entries in zip((*self.results, self.watched), (*self.entries, program.watched), strict=True):
            for k, x in enumerate(entries):
                self.sinks.setdefault(x.index, []).append(start + k)

    def emit(self, name: str = "samples") -> Function:
        w = self.w
        kind = FunctionType(VOID, [PTR])
        self.functions = [Function(w.module, kind, f"piece{k}") for k in range(len(self.schedule.pieces))]
        return super().emit(name)

    def pieces(self) -> Iterator[ModuleText]:
        """Modules of all pieces."""
        memory = Memory(self.w.L, self.w.kind, self.input_at, self.sinks, self.slots, self.trig, self.angles)
        thorough = THOROUGH if self.schedule.instructions <= LONG and not self.fast_compile else 0
        return (ModuleText(text, False, int(start < thorough)) for start, text in texts(self.schedule, memory))

    def input_at(self, i: int) -> int:
        """The place of an input, a load."""
        name, k = self.program.graph.ops[i].data  # type: ignore[misc]
        return self.start[name] + k

    # The loop over samples

    def scratch(self, samples: Value) -> Value:
        b, w = self.b, self.w
        outs = self.outputs()
        lengths = [len(entries) for entries in self.entries]
        self.staged = [b.not_(self.flat(o)) for o in outs]  # whether a result goes through staging memory
        rounded = [-(-n // w.L) * w.L for n in lengths]
        memory, (base, *stages) = self.allocate([I64(self.size * w.L), *(I64(n * w.L) for n in rounded)])
        self.targets = b.alloca(PTR, I32(w.L))  # where each lane's sample of a result goes
        self.base, self.stages = base, list(zip(stages, rounded, strict=True))
        self.inputs = [w.vector(b, base, I64(self.start[name])) for name in self.names]
        self.sizes = [I64(prod(shape)) for shape in self.program.inputs.values()]
        for i, places in self.sinks.items():
            op = self.program.graph.ops[i]
            if op.name == "const":
                self.fill(op.data[0] + 0.0, runs(places))  # type: ignore[index]  # zeros are positive, also groups of them
        return memory

    def fill(self, value: float, places: Sequence[tuple[int, int]]) -> None:
        """Store a constant at runs of places: (first, last + 1) of each, in a table."""
        b, w = self.b, self.w
        table = constant_table(w.module, [k for run in places for k in run])
        with w.loop(b, I64(0), I64(2 * len(places)), 2) as r:
            start, stop = (w.integer(b, table, b.add(r, I64(j))) for j in range(2))
            with w.loop(b, start, stop) as k:
                w.store(b, w.const(value), w.vector(b, self.base, k))

    def normalise(self) -> None:
        for name, parts in self.program.units.items():
            for start, size in parts:
                self.normalise_part(self.inputs[self.names.index(name)], I64(start), I64(start + size))

    def compute(self, samples: Value, s: Value) -> None:
        b, w = self.b, self.w
        ops = self.program.graph.ops
        sincos = sincos_function(w.module, w.L, w.kind)
        for k, i in enumerate(self.angles):
            x = w.load(b, w.vector(b, self.base, I64(self.input_at(i))))
            b.call(sincos, [x, *(w.vector(b, self.base, I64(self.trig + 2 * k + j)) for j in range(2))])
        for f in self.functions:
            b.call(f, [self.base])
        for i, places in self.sinks.items():  # results that are inputs
            if ops[i].name == "load":
                for k in places:
                    w.store(b, w.load(b, w.vector(b, self.base, I64(self.input_at(i)))), w.vector(b, self.base, I64(k)))
        if self.program.watched:
            with w.loop(b, I64(self.watched), I64(self.watched + len(self.program.watched))) as k:
                self.watch(w.load(b, w.vector(b, self.base, k)))
        for number, o in enumerate(self.outputs()):
            self.write(number, o, samples, s)

    def write(self, number: int, o: int, samples: Value, s: Value) -> None:
        """Write one result of all lanes: transposed, directly or through staging memory."""
        b, w, L = self.b, self.w, self.w.L
        entries = self.entries[number]
        n = len(entries)
        stage, size = self.stages[number]
        staged = self.staged[number]
        source = w.vector(b, self.base, I64(self.results[number]))
        for l in range(L):
            target = b.select(staged, w.number(b, stage, I64(l * size)), self.lane_pointer(o, I64(l)))
            b.store(target, b.gep(self.targets, [I64(l)], source_etype=PTR))
        if L == 1:
            memcpy = external(w.module, "llvm.memcpy.p0.p0.i64", VOID, PTR, PTR, I64, I1)
            b.call(memcpy, [self.transfers.lane(b, self.targets, 0), source, I64(w.bytes * n), I1(0)])
        else:
            ahead = b.select(staged, I64(0), b.mul(self.steps[o], I64(AHEAD * L)))
            self.transpose_out(entries, source, ahead)
        with b.if_then(staged, likely=False):
            left, core = b.sub(samples, s), self.operands[o].core
            count = b.select(b.icmp_signed("<", left, I64(L)), left, I64(L))
            layout = [*map(self.dimension, core), *self.strides[o]]
            b.call(self.transfers.scatter(len(core)), [stage, I64(size), self.lanes_of(o), count, *layout])

    def transpose_out(self, entries: Sequence, source: Value, ahead: Value) -> None:
        """Write L entries of L samples at a time to `targets`; constant zeros need no transposing."""
        b, w, L = self.b, self.w, self.w.L
        n = len(entries)
        groups = n // L
        if groups:
            zero = [all(x.value == 0 for x in entries[g * L : (g + 1) * L]) for g in range(groups)]
            ends = [g for g in range(1, groups) if zero[g] != zero[g - 1]] + [groups]
            runs = [0, *([0] if zero[0] else []), *ends]  # where runs of numbers, zeros, numbers, ... begin
            runs += [groups] * (1 - len(runs) % 2)
            table = constant_table(w.module, [L * end for end in runs])
            b.call(self.transfers.write(), [source, self.targets, ahead, table, I64(len(runs))])
        if n % L:
            b.call(self.transfers.write_rest(n % L), [source, self.targets, I64(groups * L)])
