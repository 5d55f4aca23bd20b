"""Machine code of loop programs: one LLVM function for each function, whatever lies in its lanes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

from ..emit.lanes import I64, PTR, ArrayType, Function, Lanes, Value
from ..flags import Flag
from . import program
from .index import Index, constant
from .products import ProductCode
from .program import ArrayPart, LaneRole, LoopFunction, Statements
from .transposes import TransposeCode
from .values import ColumnRange, FunctionValues, Sizes, width_of


class Lowering:
    """Emits the functions of a program into one module, each once.

    Functions take (data, report, arrays..., integers...). sizes: finds a size, or the address of a table, in `data`.
    """

    def __init__(self, w: Lanes, sizes: Sizes) -> None:
        self.w, self.sizes = w, sizes
        self._emitted: dict[int, tuple[LoopFunction, Function]] = {}

    def emit(self, function: LoopFunction, inline: bool = False) -> Function:
        """The LLVM function of a function, and of those that it calls."""
        known = self._emitted.get(id(function))
        if known:
            return known[1]
        for callee in function.callees():
            self.emit(callee)
        taken, L = self.w.module.globals, self.w.L
        names = (f"{function.name}{k or ''}" for k in count())
        name = next(x for x in names if f"{x}_{L}" not in taken)
        kinds = [PTR, PTR, *[PTR] * function.arguments, *[I64] * function.integers]
        f = self.w.function(name, kinds, inline=inline)
        self._emitted[id(function)] = function, f
        FunctionCode(self, function, f).emit()
        return f

    def emitted(self, function: LoopFunction) -> Function:
        return self._emitted[id(function)][1]


class FunctionCode(FunctionValues):
    """Emits one function."""

    def __init__(self, lowering: Lowering, function: LoopFunction, f: Function) -> None:
        super().__init__(lowering.w, lowering.sizes, function, f)
        self.lowering, self.parts_of_sums = lowering, set(self.fused.values())

    def emit(self) -> None:
        function, rest = self.function, self.rest
        arguments = [a for a in function.arrays if not a.local and not a.table]
        for array, pointer in zip(arguments, rest, strict=False):
            self.bases[array.number] = pointer
        for k, x in enumerate(rest[function.arguments :]):
            self.integers[k] = x
        for array in function.arrays:
            if array.table:
                self.bases[array.number] = self.sizes(self.b, self.data, array.table)
        self.run(function.body)
        self.b.ret_void()

    def run(self, block: Statements) -> None:
        """A block; where its numbers are is computed first, as what depends on tables takes longer than arithmetic."""
        for place in filter(None, map(self.place, block.statements)):
            if not self.function.arrays[place.array].local:
                self.beginning(self.function.arrays[place.array], place.at)
        for statement in block.statements:
            getattr(self, f"on_{type(statement).__name__}")(statement)

    def inside(self, block: Statements) -> None:
        """A block whose values are not known after it."""
        with ExitStack() as stack:
            self.scope(stack)
            self.run(block)

    # Statements

    def on_Let(self, s: program.Let) -> None:
        if s.operation not in self.values[-1] and s.operation not in self.parts_of_sums:
            self.values[-1][s.operation] = self.computed(s.operation)

    def on_LetIndex(self, s: program.LetIndex) -> None:
        self.integer(s.index)

    def on_Put(self, s: program.Put) -> None:
        self.store(self.function.arrays[s.array], s.at, self.value(s.operation))

    def on_LocalArray(self, s: program.LocalArray) -> None:
        w, array = self.w, self.function.arrays[s.array]
        width = w.L if self.samples and array.lanes is LaneRole.SAMPLES else 1
        if array.lanes is LaneRole.NUMBERS and self.columns:
            width = self.columns.width
        kind = w.kind.vector(width)
        with self.b.goto_entry_block():
            memory = self.b.alloca(ArrayType(kind, array.local))  # one value, whose entries become registers
            memory.align = w.bytes * width  # type: ignore[attr-defined]
            self.bases[s.array] = self.b.bitcast(memory, kind.as_pointer())
        self.kinds[s.array] = kind

    def on_Loop(self, s: program.Loop) -> None:
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
            with self.w.loop(b, first, start, -s.step) as k:
                self.at(s.variable, k, s.body)
            return
        with self.w.loop(self.b, start, stop, s.step) as k:
            self.at(s.variable, k, s.body)

    @contextmanager
    def looping(self, start: Value, stop: Value, step: int = 1) -> Iterator[Index]:
        """A loop that no statement spells, and its index."""
        with self.w.loop(self.b, start, stop, step) as k, ExitStack() as stack:
            self.scope(stack)
            yield self.named(k)

    @contextmanager
    def running(self, start: int | Value, stop: int, step: int) -> Iterator[Index]:
        """The same, no loop if it would run once."""
        if isinstance(start, int) and stop - start == step:
            yield constant(start)
            return
        with self.looping(I64(start) if isinstance(start, int) else start, I64(stop), step) as k:
            yield k

    def named(self, k: Value) -> Index:
        """An integer as an index."""
        number = -1 - len(self.integers)
        self.integers[number] = k
        return Index("variable", (number,))

    def at(self, variable: int, k: Value, block: Statements) -> None:
        self.integers[variable] = k
        self.inside(block)

    def over_columns(self, s: program.Loop) -> None:
        """Vectors as wide as there are, then narrower ones, each at most once: nothing is padded, nothing masked."""
        self.prepare(s)
        w, b, stop = self.w, self.b, self.integer(s.stop)
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
                if count == width:
                    part(width, I64(start))
                else:
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

    def on_Until(self, s: program.Until) -> None:
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

    def on_When(self, s: program.When) -> None:
        if isinstance(s.low, Index) and isinstance(s.high, Index):
            holds = self.b.icmp_signed("<", self.integer(s.low), self.integer(s.high))
        else:
            assert isinstance(s.low, int)
            assert isinstance(s.high, int)
            holds = self.any_less(s.low, s.high, nan=False)
        with self.b.if_then(holds):
            self.inside(s.body)

    def on_Cases(self, s: program.Cases) -> None:
        cases = [(number, lambda block=block: self.inside(block)) for number, block in s.bodies.items()]
        self.w.switch(self.b, self.integer(s.index), cases)

    def on_FunctionCall(self, s: program.FunctionCall) -> None:
        pointers = [self.pointer(part) for part in s.parts]
        integers = [self.integer(x) for x in s.integers]
        self.b.call(self.lowering.emitted(s.function), [self.data, self.report, *pointers, *integers])

    def pointer(self, part: ArrayPart) -> Value:
        """Where a part of an array begins."""
        return self.address(self.function.arrays[part.array], part.offset)

    def on_Watch(self, s: program.Watch) -> None:
        x, b = self.value(s.operation), self.b
        w = self.wide(width_of(x.type))
        small = b.fcmp_unordered("<=", x, w.const(w.kind.margin))
        with b.if_then(w.any_lane(b, small), likely=False):
            flags = b.load(self.report, typ=I64, align=8)
            b.store(b.or_(flags, I64(int(Flag.SMALL_MARGIN))), self.report, align=8)

    def on_ScheduledTranspose(self, s: program.ScheduledTranspose) -> None:
        TransposeCode(self, s).emit()

    def on_ScheduledProduct(self, s: program.ScheduledProduct) -> None:
        ProductCode(self, s).emit()
