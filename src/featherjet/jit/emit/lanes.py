"""Emits code on vectors of lanes: loops, branches and straight-line code, whatever the lanes stand for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import llvmlite.ir as ir

from ..graph import OPERATIONS, Expr, Graph, Operation
from ..number import Number
from ..schedule import SUMS, Schedule
from .sincos import Value, sincos_function

# All that the other modules need of llvmlite.
ArrayType: TypeAlias = ir.ArrayType
Builder: TypeAlias = ir.IRBuilder
Constant: TypeAlias = ir.Constant
Function: TypeAlias = ir.Function
FunctionType: TypeAlias = ir.FunctionType
IntType: TypeAlias = ir.IntType
Module: TypeAlias = ir.Module
PointerType: TypeAlias = ir.PointerType
StructType: TypeAlias = ir.LiteralStructType
Type: TypeAlias = ir.Type
Undefined = ir.Undefined
VectorType: TypeAlias = ir.VectorType
PTR, I1, I8, I32, I64 = ir.PointerType(), *map(ir.IntType, (1, 8, 32, 64))
VOID = ir.VoidType()
LINE = 64  # bytes in a cache line


class MultiplyAdd(ir.Instruction):
    """A call of `llvm.fmuladd`. These are half of all instructions, and calls by llvmlite take three times as long."""

    name_of_function = ""

    def descr(self, buf: list[str]) -> None:
        operands = ", ".join(f"{x.type} {x.get_reference()}" for x in self.operands)
        buf.append(f"call {self.type} @{self.name_of_function}({operands})\n")


class Lanes:
    """Code on vectors of `lanes` numbers of one kind, aligned in memory as vectors or, if not `whole`, as numbers.

    slots: the names of the entries (eight bytes each) of `data`, the block that a kernel reads. Those in `counts` are
    integers, the others addresses.
    """

    def __init__(
        self, module: ir.Module, graph: Graph, lanes: int, kind: Number, whole: bool = True,
        slots: Sequence[str] = (), counts: Container[str] = (),
    ) -> None:  # fmt: skip
        self.slots = {name: (k, I64 if name in counts else PTR) for k, name in enumerate(slots)}
        self.module, self.graph, self.L, self.kind = module, graph, lanes, kind
        self.N, self.V, self.bytes = kind.type, kind.vector(lanes), kind.bytes
        self.align = self.bytes * lanes if whole else self.bytes

    def function(self, name: str, args: Sequence[ir.Type], result: ir.Type = VOID, inline: bool = False) -> ir.Function:
        """A new internal function, whose pointers do not alias; inline: it becomes part of its callers."""
        f = ir.Function(self.module, ir.FunctionType(result, list(args)), f"{name}_{self.L}")
        f.linkage = "internal"
        f.attributes.add("nounwind")
        f.attributes.add("alwaysinline" if inline else "noinline")
        if not inline:
            f.attributes.alignstack = LINE  # registers are spilled to whole cache lines
        for a in f.args:
            if isinstance(a.type, ir.PointerType):
                a.add_attribute("noalias")
        return f

    # Memory

    def slot(self, b: ir.IRBuilder, data: Value, name: str) -> Value:
        """A count or a pointer from `data`."""
        index, typ = self.slots[name]
        return b.load(b.gep(data, [I64(index)], source_etype=I64), typ=typ, align=8)

    def integer(self, b: ir.IRBuilder, table: Value, index: Value) -> Value:
        return b.load(b.gep(table, [index], source_etype=I64), typ=I64, align=8)

    def vector(self, b: ir.IRBuilder, base: Value, index: Value) -> Value:
        """Pointer to vector number `index`."""
        return b.gep(base, [index], source_etype=self.V)

    def number(self, b: ir.IRBuilder, base: Value, index: Value) -> Value:
        """Pointer to number `index`."""
        return b.gep(base, [index], source_etype=self.N)

    def load_number(self, b: ir.IRBuilder, pointer: Value) -> Value:
        return b.load(pointer, typ=self.N, align=self.bytes)

    def store_unaligned(self, b: ir.IRBuilder, x: Value, pointer: Value) -> None:
        """Store a number, or a vector anywhere."""
        b.store(x, pointer, align=self.bytes)

    def load(self, b: ir.IRBuilder, pointer: Value) -> Value:
        return b.load(pointer, typ=self.V, align=self.align)

    def store(self, b: ir.IRBuilder, x: Value, pointer: Value) -> None:
        b.store(x, pointer, align=self.align)

    def load_masked(self, b: ir.IRBuilder, pointer: Value, mask: Value) -> Value:
        """Numbers in the lanes of a mask, zeros in the others."""
        name = f"llvm.masked.load.{self.kind.suffix(self.L)}.p0"
        masked = external(self.module, name, self.V, PTR, I32, mask.type, self.V)
        return b.call(masked, [pointer, I32(self.bytes), mask, self.const(0.0)])

    def store_masked(self, b: ir.IRBuilder, x: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes of a mask."""
        name = f"llvm.masked.store.{self.kind.suffix(mask.type.count)}.p0"
        masked = external(self.module, name, VOID, x.type, PTR, I32, mask.type)
        b.call(masked, [x, pointer, I32(self.bytes), mask])

    def prefetch(self, b: ir.IRBuilder, pointer: Value, ahead: Value) -> None:
        """Fetch the cache line `ahead` bytes further, which is about to be written, into the second-level cache.

        Results of large batches are in no cache, and stores that wait for memory delay the computation.
        """
        fetch = external(self.module, "llvm.prefetch.p0", VOID, PTR, I32, I32, I32)
        b.call(fetch, [b.gep(pointer, [ahead], source_etype=I8), I32(0), I32(1), I32(1)])

    def cell(self, b: ir.IRBuilder) -> Value:
        """Memory for one vector on the stack."""
        with b.goto_entry_block():
            cell = b.alloca(self.V)
        cell.align = self.bytes * self.L  # type: ignore[attr-defined]
        return cell

    # Values

    def const(self, c: float) -> ir.Constant:
        return ir.Constant(self.V, [c] * self.L) if self.L > 1 else ir.Constant(self.N, c)

    def splat(self, b: ir.IRBuilder, x: Value) -> Value:
        """A number in all lanes."""
        if self.L == 1:
            return x
        undef = ir.Constant(self.V, ir.Undefined)
        first = b.insert_element(undef, x, I32(0))
        return b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, self.L), [0] * self.L))

    def plus_product(self, b: ir.IRBuilder, x: Value, y: Value, z: Value) -> Value:
        """x + y z, rounded once where the processor can."""
        return self.fused(b, y, z, x)

    def minus_product(self, b: ir.IRBuilder, x: Value, y: Value, z: Value) -> Value:
        """x - y z, rounded once where the processor can."""
        return self.fused(b, b.fneg(y), z, x)

    def fused(self, b: ir.IRBuilder, y: Value, z: Value, x: Value) -> Value:
        """x + y z, at the end of a block."""
        found = MultiplyAdd(b.block, x.type, "call", [y, z, x])
        found.name_of_function = self.intrinsic_of("fmuladd", x.type, 3).name
        found.parent.instructions.append(found)
        b.position_at_end(b.block)
        return found

    def any_lane(self, b: ir.IRBuilder, mask: Value) -> Value:
        if self.L == 1:
            return mask
        bits = ir.IntType(self.L)
        return b.icmp_unsigned("!=", b.bitcast(mask, bits), ir.Constant(bits, 0))

    def first_lanes(self, b: ir.IRBuilder, count: Value, lanes: int | None = None) -> Value:
        """A mask of the first `count` lanes, of `lanes` in all if given."""
        L = lanes or self.L
        integer = self.kind.integer
        lane = ir.Constant(ir.VectorType(integer, L), list(range(L)))
        undef = ir.Constant(lane.type, ir.Undefined)
        first = b.insert_element(undef, b.trunc(count, integer) if integer.width < 64 else count, I32(0))
        every = b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, L), [0] * L))
        return b.icmp_signed("<", lane, every)

    def sincos(self, b: ir.IRBuilder, x: Value) -> tuple[Value, Value]:
        cells = [self.cell(b) for _ in range(2)]
        b.call(sincos_function(self.module, self.L, self.kind, inline=True), [x, *cells])
        sine, cosine = (b.load(cell, typ=self.V, align=self.bytes) for cell in cells)
        return sine, cosine

    def sqrt(self, b: ir.IRBuilder, x: Value) -> Value:
        return self.apply(b, OPERATIONS["sqrt"], [x])

    # Control

    @contextmanager
    def loop(self, b: ir.IRBuilder, start: Value, stop: Value, step: Value | int = 1) -> Iterator[Value]:
        """for (i = start; i < stop; i += step); with a negative step: for (i = start; i >= stop; i += step)."""
        go = ">=" if isinstance(step, int) and step < 0 else "<"
        before, head, end = b.block, b.append_basic_block("head"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed(go, start, stop), head, end)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(start, before)
        yield i
        following = b.add(i, I64(step) if isinstance(step, int) else step)
        i.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed(go, following, stop), head, end)
        b.position_at_end(end)

    def carrying(
        self,
        b: ir.IRBuilder,
        start: Value,
        stop: Value,
        values: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """do values = body(i, values) for i = start, ..., stop - 1, at least once; returns the last values."""
        before, head = b.block, b.append_basic_block("head")
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(I64)
        i.add_incoming(start, before)
        carried: list[Value] = [b.phi(self.V) for _ in values]
        for phi, x in zip(carried, values, strict=True):
            phi.add_incoming(x, before)
        found = list(body(i, carried))
        following = b.add(i, I64(1))
        i.add_incoming(following, b.block)
        for phi, x in zip(carried, found, strict=True):
            phi.add_incoming(x, b.block)
        end = b.append_basic_block("end")
        b.cbranch(b.icmp_signed("<", following, stop), head, end)
        b.position_at_end(end)
        return found

    def entries(
        self, b: ir.IRBuilder, lengths: Sequence[Value], strides: Sequence[Value], body: Callable[[Value, Value], None]
    ) -> None:
        """body(number of an entry, its shift in bytes) for all entries of an array."""

        def axis(k: int, index: Value, shift: Value) -> None:
            if k == len(lengths):
                body(index, shift)
                return
            with self.loop(b, I64(0), lengths[k]) as i:
                axis(k + 1, b.add(b.mul(index, lengths[k]), i), b.add(shift, b.mul(i, strides[k])))

        axis(0, I64(0), I64(0))

    def switch(self, b: ir.IRBuilder, value: Value, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Branch to the case whose number is `value`; with a single case, no branch."""
        if len(cases) == 1:
            cases[0][1]()
            return
        other, end = b.append_basic_block("other"), b.append_basic_block("join")
        choice = b.switch(value, other)
        for number, body in cases:
            block = b.append_basic_block("case")
            choice.add_case(I64(number), block)
            b.position_at_end(block)
            body()
            b.branch(end)
        b.position_at_end(other)
        b.unreachable()
        b.position_at_end(end)

    # Straight-line code

    def values(
        self, b: ir.IRBuilder, of: Sequence[Expr], *loads: Callable[[Any], Value], split_sums: bool = False
    ) -> list[list[Value]]:
        """The values of expressions, once for each loader, interleaved operation by operation so that they share loads.

        Sums become chains of fused multiply-adds; if `split_sums`, long sums that others wait for become two.
        """
        plan = Schedule(self.graph, [x.index for x in of], piece=sys.maxsize)
        found: list[dict[int, Value]] = [{} for _ in loads]
        awaited = {a for i in plan.pieces[0].ops for a in plan.operands(i)} if split_sums else set()

        def value(k: int, i: int) -> Value:
            if i not in found[k]:
                found[k][i] = self.operation(b, i, found[k], loads[k])
            return found[k][i]

        def first_term(k: int, i: int) -> Value:
            return b.fmul(*(value(k, a) for a in self.graph.ops[i].args)) if i in plan.inlined else value(k, i)

        def with_term(total: Value, k: int, minus: bool, i: int) -> Value:
            if i not in plan.inlined:
                return (b.fsub if minus else b.fadd)(total, value(k, i))
            y, z = (value(k, a) for a in self.graph.ops[i].args)
            return (self.minus_product if minus else self.plus_product)(b, total, y, z)

        def chain(k: int, first: int, rest: Sequence[tuple[bool, int]]) -> Value:
            total = first_term(k, first)
            for minus, t in rest:
                total = with_term(total, k, minus, t)
            return total

        versions = range(len(loads))
        for i in plan.pieces[0].ops:
            if self.graph.ops[i].name not in SUMS:
                for k in versions:
                    for a in self.graph.ops[i].args:
                        value(k, a)
                    value(k, i)
                continue
            (_, first), rest, flip = plan.chain(i)
            half = next((h for h in range(len(rest) // 2, len(rest)) if not rest[h][0]), 0)
            if i in awaited and half > 1:
                totals = [
                    b.fadd(chain(k, first, rest[:half]), chain(k, rest[half][1], rest[half + 1 :])) for k in versions
                ]
            else:
                totals = [first_term(k, first) for k in versions]
                for minus, t in rest:
                    totals = [with_term(total, k, minus, t) for k, total in enumerate(totals)]
            for k, total in enumerate(totals):
                found[k][i] = b.fneg(total) if flip else total
        return [[value(k, x.index) for x in of] for k in versions]

    def values_apart(self, b: ir.IRBuilder, of: Sequence[Expr], *loads: Callable[[Any], Value]) -> list[list[Value]]:
        """The same, where each value has the bits that it has when it is computed alone."""
        found = [self.values(b, [x], *loads) for x in of]
        return [[version[k][0] for version in found] for k in range(len(loads))]

    def operation(self, b: ir.IRBuilder, i: int, values: dict[int, Value], load: Callable[[Any], Value]) -> Value:
        """Emit one operation; the values of its operands are known."""
        op = self.graph.ops[i]
        if op.name == "const":
            return self.const(op.data[0])  # type: ignore[index]
        if op.name == "load":
            return load(op.data)  # type: ignore[arg-type]
        if op.name in ("sin", "cos"):
            other = self.graph.partner(i)
            if other in values:
                return values[-1 - other]
            both = self.sincos(b, values[op.args[0]])
            values[-1 - i] = both[op.name == "sin"]  # for the partner, which may come later
            return both[op.name == "cos"]
        operands = [values[a] for a in op.args]
        if op.name == "where_less":
            return b.select(b.fcmp_ordered("<", *operands[:2]), *operands[2:])
        return self.apply(b, OPERATIONS[op.name], operands)

    def apply(self, b: ir.IRBuilder, operation: Operation, operands: Sequence[Value]) -> Value:
        """Emit an instruction or a call of an LLVM intrinsic; LLVM must not fuse: its text says each rounding."""
        if operation.intrinsic:
            return self.call_intrinsic(b, operation.intrinsic, *operands)
        return getattr(b, operation.instruction)(*operands)

    def call_intrinsic(self, b: ir.IRBuilder, name: str, *operands: Value) -> Value:
        """Call one of LLVM's functions of numbers or vectors, all of the same type."""
        return b.call(self.intrinsic_of(name, operands[0].type, len(operands)), operands)

    def intrinsic_of(self, name: str, V: Any, arity: int) -> ir.Function:
        full = f"llvm.{name}.{self.kind.suffix(V.count if isinstance(V, VectorType) else 1)}"
        return external(self.module, full, V, *[V] * arity)

    def loads(self, of: Iterable[Expr]) -> list[Any]:
        """The references that expressions load."""
        ops = self.graph.ops
        return [ops[i].data for i in self.graph.reachable(x.index for x in of) if ops[i].name == "load"]  # type: ignore[misc]


def begun(f: ir.Function) -> ir.IRBuilder:
    """What writes the body of a function."""
    return ir.IRBuilder(f.append_basic_block("entry"))


def external(module: ir.Module, name: str, result: ir.Type, *args: ir.Type) -> ir.Function:
    """An external function, declared once per module."""
    found = module.globals.get(name)
    return found or ir.Function(module, ir.FunctionType(result, list(args)), name)  # type: ignore[return-value]


def transposed(b: ir.IRBuilder, x: list[Value], first: bool = False) -> list[Value]:
    """The transpose of L vectors of L lanes, by butterflies; overwrites x.

    Vectors of a multiple of L lanes become one vector of L lanes for each of these.

    first: only the first of the results are used. Otherwise the last of x may be undefined. Either way saves shuffles.
    """
    L, lanes = len(x), x[0].type.count
    if lanes > L:
        blocks = [[shuffled(b, y, y, range(k, k + L)) for y in x] for k in range(0, lanes, L)]
        return [y for block in blocks for y in transposed(b, block, first)]
    bits = [1 << k for k in range(L.bit_length() - 1)]
    single = x[0].type.element == ir.FloatType()
    stages = [bits[:2], *([bit] for bit in bits[2:])] if single else [[bit] for bit in bits]
    for stage in reversed(stages) if first else stages:
        if len(stage) == 2:
            transpose_blocks(b, x)
            continue
        (bit,) = stage
        for i in range(L):
            if not i & bit:
                a, c = x[i], x[i | bit]
                low = [t if not t & bit else L + (t ^ bit) for t in range(L)]
                high = [t | bit if not t & bit else L + t for t in range(L)]
                x[i], x[i | bit] = shuffled(b, a, c, low), shuffled(b, a, c, high)
    return x


def transpose_blocks(b: ir.IRBuilder, x: list[Value]) -> None:
    """Transpose all blocks of 4 by 4, by the shuffles within quarters that every CPU has; overwrites x."""
    L = len(x)

    def both(a: Value, c: Value, width: int) -> tuple[Value, Value]:
        """The first halves of all quarters of a and c, then the second halves, interleaved `width` lanes at a time."""
        halves = []
        for start in (0, 2):
            lanes = []
            for quarter in range(start, L, 4):
                for k in range(quarter, quarter + 2, width):
                    lanes += [*range(k, k + width), *range(L + k, L + k + width)]
            halves.append(shuffled(b, a, c, lanes))
        return halves[0], halves[1]

    for i in range(0, L, 4):
        (r0, r1), (r2, r3) = both(x[i], x[i + 1], 1), both(x[i + 2], x[i + 3], 1)
        x[i], x[i + 1] = both(r0, r2, 2)
        x[i + 2], x[i + 3] = both(r1, r3, 2)


def shuffled(b: ir.IRBuilder, x: Value, y: Value, lanes: Sequence[int]) -> Value:
    """Lanes of x, then of y, by number."""
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))
