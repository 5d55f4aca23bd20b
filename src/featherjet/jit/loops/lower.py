"""Machine code of loop programs: one LLVM function for each function, whatever lies in its lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir

from ..emit.lanes import I32, I64, PTR, Lanes, Value
from ..flags import Flag
from ..graph import OPERATIONS, Graph
from .index import Index, parts, unchanging, variables
from .products import ProductCode
from .program import (
    Array,
    ArrayPart,
    Cases,
    EntryRef,
    FunctionCall,
    LaneRole,
    Let,
    LetIndex,
    LocalArray,
    Loop,
    LoopFunction,
    Put,
    ScheduledProduct,
    Statements,
    Until,
    Watch,
    When,
    bodies,
)

Sizes = Callable[[ir.IRBuilder, str], Value]  # the value of a size, or the address of a table


@dataclass(frozen=True)
class ColumnRange:
    """A loop over columns that takes `width` at a time."""

    variable: int
    width: int


class Lowering:
    """Emits the functions of a program into one module, each once.

    Functions take (data, report, arrays..., integers...). sizes: finds a size, or the address of a table, in `data`.
    """

    def __init__(self, w: Lanes, sizes: Callable[[ir.IRBuilder, Value, str], Value]) -> None:
        self.w, self.sizes = w, sizes
        self._emitted: dict[int, tuple[LoopFunction, ir.Function]] = {}

    def emit(self, function: LoopFunction, inline: bool = False) -> ir.Function:
        """The LLVM function of a function, and of those that it calls."""
        known = self._emitted.get(id(function))
        if known:
            return known[1]
        for callee in function.callees():
            self.emit(callee)
        name = self.w.module.get_unique_name(function.name)
        kinds = [PTR, PTR, *[PTR] * function.arguments, *[I64] * function.integers]
        f = self.w.function(name, kinds, inline=inline)
        self._emitted[id(function)] = function, f
        FunctionCode(self, function, f).emit()
        return f

    def emitted(self, function: LoopFunction) -> ir.Function:
        return self._emitted[id(function)][1]


class FunctionCode:
    """Emits one function."""

    def __init__(self, lowering: Lowering, function: LoopFunction, f: ir.Function) -> None:
        self.lowering, self.function, self.f = lowering, function, f
        self.by_width: dict[int, Lanes] = {lowering.w.L: lowering.w}
        self.samples = any(a.lanes is LaneRole.SAMPLES for a in function.arrays)
        self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.columns: ColumnRange | None = None
        self.integers: dict[int, Value] = {}
        self.bases: dict[int, Value] = {}
        self.kinds: dict[int, ir.Type] = {}  # of an entry of each local array
        self.values: list[dict[int, Value]] = [{}]
        self.indices: list[dict[Index, Value]] = [{}]

    def emit(self) -> None:
        function, (self.data, self.report, *rest) = self.function, self.f.args
        arguments = [a for a in function.arrays if not a.local and not a.table]
        for array, pointer in zip(arguments, rest, strict=False):
            self.bases[array.number] = pointer
        for k, x in enumerate(rest[function.arguments :]):
            self.integers[k] = x
        for array in function.arrays:
            if array.table:
                self.bases[array.number] = self.lowering.sizes(self.b, self.data, array.table)
        self.run(function.body)
        self.b.ret_void()

    def run(self, block: Statements) -> None:
        for statement in block.statements:
            getattr(self, f"on_{type(statement).__name__}")(statement)

    def inside(self, block: Statements) -> None:
        """A block whose values are not known after it."""
        with ExitStack() as stack:
            self.scope(stack)
            self.run(block)

    def scope(self, stack: ExitStack) -> None:
        for scopes in (self.values, self.indices):
            scopes.append({})
            stack.callback(scopes.pop)

    # Integers

    def integer(self, x: Index) -> Value:
        """An index, computed once in each block."""
        if x.op == "const":
            return I64(x.args[0])
        if x.op == "variable":
            return self.integers[x.args[0]]
        for scope in self.indices:
            if x in scope:
                return scope[x]
        found = self.indices[-1][x] = self._integer(x)
        return found

    def _integer(self, x: Index) -> Value:
        b = self.b
        if x.op == "size":
            return self.lowering.sizes(b, self.data, x.args[0])
        if x.op == "entry":
            return self.lowering.w.integer(b, self.bases[x.args[0]], self.integer(x.args[1]))
        a, c = (self.integer(y) for y in x.args)
        if x.op == "min":
            return b.select(b.icmp_signed("<", a, c), a, c)
        return {"add": b.add, "sub": b.sub, "mul": b.mul, "div": b.udiv, "mod": b.urem}[x.op](a, c)

    def prepare(self, loop: Loop) -> None:
        """Compute what the places of an innermost loop's statements share."""
        places = [place for s in loop.body.statements if (place := self.place(s)) is not None]
        if any(bodies(s) for s in loop.body.statements):
            return
        for place in places:
            for x in unchanging(place, loop.variable):
                if not any(y.op in ("div", "mod") for y in parts(x)):
                    self.integer(x)

    def place(self, s: Any) -> Index | None:
        """Where a statement loads or stores."""
        if isinstance(s, Put):
            return s.at
        data = self.function.graph.ops[s.operation].data if isinstance(s, Let) else None
        return data.at if isinstance(data, EntryRef) else None

    # Memory

    def wide(self, width: int) -> Lanes:
        """Vectors of so many numbers."""
        if width not in self.by_width:
            w = self.lowering.w
            self.by_width[width] = Lanes(w.module, Graph(), width, w.kind, whole=False)
        return self.by_width[width]

    def runs_along(self, at: Index) -> bool:
        """Whether entries of a place are columns."""
        return self.columns is not None and ("variable", (self.columns.variable,)) in variables(at)

    def kind(self, array: Array, at: Index) -> tuple[ir.Type, int]:
        """The type of a value in memory, and the numbers it has."""
        w = self.lowering.w
        if array.number in self.kinds:
            kind = self.kinds[array.number]
            return kind, width_of(kind)
        if array.lanes is LaneRole.SAMPLES:
            return w.V, w.L
        width = self.columns.width if self.columns and self.runs_along(at) else 1
        return w.kind.vector(width), width

    def address(self, array: Array, at: Index) -> Value:
        kind = self.kinds.get(array.number)
        if kind is None:
            kind = self.lowering.w.V if array.lanes is LaneRole.SAMPLES else self.lowering.w.N
        return self.b.gep(self.bases[array.number], [self.integer(at)], source_etype=kind)

    def align(self, array: Array) -> int:
        w = self.lowering.w
        if array.number in self.kinds:
            return w.bytes * width_of(self.kinds[array.number])
        return w.align if array.lanes is LaneRole.SAMPLES else w.bytes

    def load(self, ref: EntryRef) -> Value:
        array = self.function.arrays[ref.array]
        return self.b.load(self.address(array, ref.at), typ=self.kind(array, ref.at)[0], align=self.align(array))

    def store(self, array: Array, at: Index, x: Value) -> None:
        x = self.spread(x, self.kind(array, at)[1])
        self.b.store(x, self.address(array, at), align=self.align(array))

    # Numbers

    def spread(self, x: Value, width: int) -> Value:
        """A value as a vector: a number in all lanes."""
        if width_of(x.type) == width:
            return x
        if isinstance(x, ir.Constant):
            return self.wide(width).const(x.constant)
        return self.wide(width).splat(self.b, x)

    def value(self, i: int) -> Value:
        op = self.function.graph.ops[i]
        if op.name == "const":
            return ir.Constant(self.lowering.w.N, op.data[0])  # type: ignore[index]
        return next(scope[i] for scope in reversed(self.values) if i in scope)

    def computed(self, i: int) -> Value:
        op = self.function.graph.ops[i]
        if op.name == "load":
            return self.load(op.data)  # type: ignore[arg-type]
        operands = [self.value(a) for a in op.args]
        width = max(width_of(x.type) for x in operands)
        operands = [self.spread(x, width) for x in operands]
        w, b = self.wide(width), self.b
        if op.name in ("sin", "cos"):
            return self.trigonometric(i, w, operands[0])
        if op.name == "where_less":
            return b.select(b.fcmp_ordered("<", *operands[:2]), *operands[2:])
        return w.apply(b, OPERATIONS[op.name], operands)

    def trigonometric(self, i: int, w: Lanes, angle: Value) -> Value:
        """A sine or cosine; both are computed together."""
        sine, cosine = w.sincos(self.b, angle)
        name, partner = self.function.graph.ops[i].name, self.function.graph.partner(i)
        if partner >= 0:
            self.values[-1].setdefault(partner, cosine if name == "sin" else sine)
        return sine if name == "sin" else cosine

    def any_less(self, low: int, high: int, nan: bool) -> Value:
        """Whether one operation is less than another in any lane."""
        x, y = self.value(low), self.value(high)
        width = max(width_of(x.type), width_of(y.type))
        x, y = self.spread(x, width), self.spread(y, width)
        less = (self.b.fcmp_unordered if nan else self.b.fcmp_ordered)("<", x, y)
        return self.wide(width).any_lane(self.b, less)

    # Statements

    def on_Let(self, s: Let) -> None:
        if s.operation not in self.values[-1]:
            self.values[-1][s.operation] = self.computed(s.operation)

    def on_LetIndex(self, s: LetIndex) -> None:
        self.integer(s.index)

    def on_Put(self, s: Put) -> None:
        self.store(self.function.arrays[s.array], s.at, self.value(s.operation))

    def on_LocalArray(self, s: LocalArray) -> None:
        w, array = self.lowering.w, self.function.arrays[s.array]
        width = w.L if self.samples and array.lanes is LaneRole.SAMPLES else 1
        if array.lanes is LaneRole.NUMBERS and self.columns:
            width = self.columns.width
        kind = w.kind.vector(width)
        with self.b.goto_entry_block():
            memory = self.b.alloca(kind, I32(array.local))
        memory.align = w.bytes * width  # type: ignore[attr-defined]
        self.bases[s.array], self.kinds[s.array] = memory, kind

    def on_Loop(self, s: Loop) -> None:
        if s.columns:
            self.over_columns(s)
            return
        self.prepare(s)
        start, stop = self.integer(s.start), self.integer(s.stop)
        if s.down:
            b, step = self.b, I64(s.step)
            if s.step > 1:
                count = b.sdiv(b.sub(b.add(stop, b.sub(step, I64(1))), start), step)
                stop = b.add(start, b.mul(count, step))
            first = b.sub(stop, step)
            with self.lowering.w.loop(b, first, start, -s.step) as k:
                self.at(s.variable, k, s.body)
            return
        with self.lowering.w.loop(self.b, start, stop, s.step) as k:
            self.at(s.variable, k, s.body)

    @contextmanager
    def looping(self, start: Value, stop: Value, step: int = 1) -> Iterator[Index]:
        """A loop that no statement spells, and its index."""
        with self.lowering.w.loop(self.b, start, stop, step) as k, ExitStack() as stack:
            self.scope(stack)
            yield self.named(k)

    def named(self, k: Value) -> Index:
        """An integer as an index."""
        number = -1 - len(self.integers)
        self.integers[number] = k
        return Index("variable", (number,))

    def at(self, variable: int, k: Value, block: Statements) -> None:
        self.integers[variable] = k
        self.inside(block)

    def over_columns(self, s: Loop) -> None:
        """Vectors as wide as there are, then narrower ones, each at most once: nothing is padded, nothing masked."""
        self.prepare(s)
        w, b, stop = self.lowering.w, self.b, self.integer(s.stop)
        outer = self.columns

        def part(width: int, k: Value) -> None:
            self.columns = ColumnRange(s.variable, width)
            self.at(s.variable, k, s.body)
            self.columns = outer

        if s.stop.value is not None:
            start, width = 0, w.L
            while start < s.stop.value:
                while width > s.stop.value - start:
                    width //= 2
                count = (s.stop.value - start) // width * width
                with w.loop(b, I64(start), I64(start + count), width) as k:
                    part(width, k)
                start += count
            return
        begun = b.and_(stop, I64(-w.L))
        with w.loop(b, I64(0), begun, w.L) as k:
            part(w.L, k)
        width = w.L // 2
        while width:
            done = b.and_(stop, I64(-width))
            with b.if_then(b.icmp_signed("<", begun, done)):
                part(width, begun)
            begun, width = done, width // 2

    def on_Until(self, s: Until) -> None:
        b = self.b
        most = self.integer(s.most)
        before, head, end = b.block, b.append_basic_block("again"), b.append_basic_block("settled")
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(I64)
        k.add_incoming(I64(0), before)
        self.integers[s.variable] = k
        with ExitStack() as stack:
            self.scope(stack)
            self.run(s.body)
            on, more = self.any_less(s.low, s.high, nan=True), b.add(k, I64(1))
        k.add_incoming(more, b.block)
        b.cbranch(b.and_(on, b.icmp_signed("<", more, most)), head, end)
        b.position_at_end(end)

    def on_When(self, s: When) -> None:
        if isinstance(s.low, Index) and isinstance(s.high, Index):
            holds = self.b.icmp_signed("<", self.integer(s.low), self.integer(s.high))
        else:
            assert isinstance(s.low, int)
            assert isinstance(s.high, int)
            holds = self.any_less(s.low, s.high, nan=False)
        with self.b.if_then(holds):
            self.inside(s.body)

    def on_Cases(self, s: Cases) -> None:
        cases = [(number, lambda block=block: self.inside(block)) for number, block in s.bodies.items()]
        self.lowering.w.switch(self.b, self.integer(s.index), cases)

    def on_FunctionCall(self, s: FunctionCall) -> None:
        pointers = [self.pointer(part) for part in s.parts]
        integers = [self.integer(x) for x in s.integers]
        self.b.call(self.lowering.emitted(s.function), [self.data, self.report, *pointers, *integers])

    def pointer(self, part: ArrayPart) -> Value:
        """Where a part of an array begins."""
        return self.address(self.function.arrays[part.array], part.offset)

    def on_Watch(self, s: Watch) -> None:
        x, b = self.value(s.operation), self.b
        w = self.wide(width_of(x.type))
        small = b.fcmp_unordered("<=", x, w.const(w.kind.margin))
        with b.if_then(w.any_lane(b, small), likely=False):
            flags = b.load(self.report, typ=I64, align=8)
            b.store(b.or_(flags, I64(int(Flag.SMALL_MARGIN))), self.report, align=8)

    def on_ScheduledProduct(self, s: ScheduledProduct) -> None:
        ProductCode(self, s).emit()


def width_of(kind: Any) -> int:
    """How many numbers a value has."""
    return kind.count if isinstance(kind, ir.VectorType) else 1
