"""Writes pieces of straight-line code as LLVM text, directly because it is long and simple."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..graph import OPERATIONS
from ..number import Number
from ..schedule import PIECE, SUMS, Piece, Schedule
from .sincos import sincos_name

TRIG = ("sin", "cos")
TOGETHER = 4  # pieces in a module
WIDEST = 64  # bytes of AVX-512's registers


@dataclass
class Memory:
    """Where values lie in memory, counted in vectors of `lanes` numbers."""

    lanes: int
    kind: Number
    input_at: Callable[[int], int]  # place of an input, a load
    sinks: dict[int, list[int]]  # places that an operation's value goes to as a result
    slots: int  # place of the first slot
    trig: int  # place of the first sine
    angles: Sequence[int]  # inputs whose sines and cosines are at `trig`, in pairs

    @property
    def registers(self) -> int:
        """How many vectors the processor has registers for, or fewer: AVX-512 has 32, others have 16 or 32."""
        return 32 if self.lanes * self.kind.bytes == WIDEST else 16


def texts(schedule: Schedule, memory: Memory) -> Iterator[tuple[int, str]]:
    """Modules with functions piece0, piece1, ... of a pointer to the memory, and how many instructions precede each."""
    kind = memory.kind
    V = f"<{memory.lanes} x {kind.name}>" if memory.lanes > 1 else kind.name
    suffix = kind.suffix(memory.lanes)
    intrinsics = [op for op in OPERATIONS.values() if op.intrinsic]
    head = [
        *(f"declare {V} @llvm.{op.intrinsic}.{suffix}({', '.join([V] * op.arity)})" for op in intrinsics),
        f"declare {V} @llvm.fmuladd.{suffix}({V}, {V}, {V})",
        f"declare void @{sincos_name(memory.lanes, kind)}({V}, ptr, ptr)",
    ]
    for first in range(0, len(schedule.pieces), TOGETHER):
        some = enumerate(schedule.pieces[first : first + TOGETHER], first)
        functions = [Text(schedule, memory, V, suffix, piece).function(k) for k, piece in some]
        yield first * PIECE, "\n".join(head + functions)


class Text:
    """The text of one piece.

    A value that is in memory anyway, and has not been used for as many instructions as there are registers, is read
    again. Otherwise LLVM keeps it by storing it once more: a third of all stores, with 16 registers half of them.
    """

    def __init__(self, schedule: Schedule, memory: Memory, V: str, suffix: str, piece: Piece) -> None:
        self.schedule, self.memory, self.V, self.suffix, self.piece = schedule, memory, V, suffix, piece
        self.ops = schedule.graph.ops
        self.bytes = memory.kind.bytes * memory.lanes
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self.places: dict[int, int] = {}  # of values that are in memory
        self.used: dict[int, int] = {}  # when each of these was used last: after so many operations
        self.count = self.time = 0
        self.rest = 2 * memory.registers  # operations; most instructions are two, a product and a sum

    def function(self, number: int) -> str:
        for i in self.piece.ops:
            x = self.values[i] = self.operation(i)
            sinks = self.memory.sinks.get(i, ())
            slots = [self.memory.slots + self.piece.stores[i]] if i in self.piece.stores else []
            for k in (*sinks, *slots):
                self.store(x, k)
                self.places[i], self.used[i] = k, self.time
        body = "\n".join(self.lines)
        return f"define void @piece{number}(ptr noalias %m) nounwind alignstack(64) {{\n{body}\nret void\n}}"

    def new(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"%{self.count} = {instruction}")
        return f"%{self.count}"

    def pointer(self, k: int) -> str:
        return self.new(f"getelementptr i8, ptr %m, i64 {self.bytes * k}")

    def load(self, k: int) -> str:
        return self.new(f"load {self.V}, ptr {self.pointer(k)}, align {self.bytes}")

    def store(self, x: str, k: int) -> None:
        self.lines.append(f"store {self.V} {x}, ptr {self.pointer(k)}, align {self.bytes}")

    def value(self, i: int) -> str:
        """An operand: a constant, an input, or a value of this piece or an earlier one."""
        op = self.ops[i]
        if op.name == "const":
            return self.constant(op.data[0])  # type: ignore[index]
        if i not in self.values:
            here = self.memory.input_at(i) if op.name == "load" else self.memory.slots + self.piece.loads[i]
            self.places[i], self.values[i] = here, self.load(here)
        elif i in self.places and self.time - self.used[i] > self.rest:
            self.values[i] = self.load(self.places[i])
        self.used[i] = self.time
        return self.values[i]

    def constant(self, c: float) -> str:
        kind = self.memory.kind
        scalar = f"0x{struct.pack('>d', kind.nearest(c)).hex()}"  # LLVM writes all its constants as doubles
        if self.memory.lanes == 1:
            return scalar
        return "<" + ", ".join([f"{kind.name} {scalar}"] * self.memory.lanes) + ">"

    def operation(self, i: int) -> str:
        op = self.ops[i]
        if op.name in SUMS:
            return self.sum(i)
        if op.name in TRIG:
            return self.trig(op.name, op.args[0])
        if op.name == "where_less":
            return self.where_less(*(self.value(a) for a in op.args))
        return self.apply(op.name, *(self.value(a) for a in op.args))

    def apply(self, name: str, *operands: str) -> str:
        """Write an instruction or a call of an LLVM intrinsic."""
        operation = OPERATIONS[name]
        self.time += 1
        if operation.intrinsic:
            return self.intrinsic(operation.intrinsic, *operands)
        return self.new(f"{operation.instruction} {self.V} {', '.join(operands)}")

    def intrinsic(self, name: str, *operands: str) -> str:
        typed = ", ".join(f"{self.V} {x}" for x in operands)
        return self.new(f"call {self.V} @llvm.{name}.{self.suffix}({typed})")

    def where_less(self, a: str, b: str, x: str, y: str) -> str:
        bits = f"<{self.memory.lanes} x i1>" if self.memory.lanes > 1 else "i1"
        less = self.new(f"fcmp olt {self.V} {a}, {b}")
        return self.new(f"select {bits} {less}, {self.V} {x}, {self.V} {y}")

    def sum(self, i: int) -> str:
        (_, first), rest, flip = self.schedule.chain(i)
        total = self.product(first) if first in self.schedule.inlined else self.value(first)
        for minus, k in rest:
            if k in self.schedule.inlined:
                total = self.plus_product(total, minus, *(self.value(a) for a in self.ops[k].args))
            else:
                total = self.apply("sub" if minus else "add", total, self.value(k))
        return self.apply("neg", total) if flip else total

    def product(self, i: int) -> str:
        return self.apply("mul", *(self.value(a) for a in self.ops[i].args))

    def plus_product(self, total: str, minus: bool, x: str, y: str) -> str:
        self.time += 2
        return self.intrinsic("fmuladd", self.new(f"fneg {self.V} {x}") if minus else x, y, total)

    def trig(self, name: str, angle: int) -> str:
        if angle in self.memory.angles:
            return self.load(self.memory.trig + 2 * self.memory.angles.index(angle) + (name == "cos"))
        cells = [self.new(f"alloca {self.V}, align 64") for _ in TRIG]
        sincos = sincos_name(self.memory.lanes, self.memory.kind)
        self.lines.append(f"call void @{sincos}({self.V} {self.value(angle)}, ptr {cells[0]}, ptr {cells[1]})")
        return self.new(f"load {self.V}, ptr {cells[name == 'cos']}, align {self.memory.kind.bytes}")
