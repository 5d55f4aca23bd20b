"""Values of a loop function's machine code: its integers, its arrays' entries, its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ..emit.lanes import I64, Builder, Constant, Function, Lanes, Type, Value, VectorType, begun
from ..graph import OPERATIONS, Graph
from .index import Index, parts, unchanging, variables
from .program import Array, EntryRef, LaneRole, Let, Loop, LoopFunction, Put, bodies, operations

Sizes = Callable[[Builder, Value, str], Value]  # the value of a size, or the address of a table, in `data`


@dataclass(frozen=True)
class ColumnRange:
    """A loop over columns that takes `width` at a time."""

    variable: int
    width: int


class FunctionValues:
    """What a function has computed, by blocks: what a block computes is not known after it."""

    def __init__(self, w: Lanes, sizes: Sizes, function: LoopFunction, f: Function) -> None:
        self.w, self.sizes, self.function = w, sizes, function
        self.by_width: dict[int, Lanes] = {w.L: w}
        self.samples = any(a.lanes is LaneRole.SAMPLES for a in function.arrays)
        self.data, self.report, *self.rest = f.args
        self.b = begun(f)
        self.columns: ColumnRange | None = None
        self.integers: dict[int, Value] = {}
        self.bases: dict[int, Value] = {}
        self.kinds: dict[int, Type] = {}  # of an entry of each local array
        self.values: list[dict[int, Value]] = [{}]
        self.indices: list[dict[Index, Value]] = [{}]
        self.pointers: list[dict[tuple[int, Index], Value]] = [{}]
        self.vectors: list[dict[tuple[int, int], Value]] = [{}]
        self.fused = fused_products(function)

    def scope(self, stack: ExitStack) -> None:
        for scopes in (self.values, self.indices, self.pointers, self.vectors):
            scopes.append({})
            stack.callback(scopes.pop)

    # Integers

    def integer(self, x: Index) -> Value:
        """An index, computed once in each block."""
        if x.op == "const":
            return I64(x.args[0])
        if x.op == "variable":
            return self.integers[x.args[0]]
        return self.remembered(self.indices, x, lambda: self._integer(x))

    def remembered(self, scopes: list[dict[Any, Value]], key: Any, make: Callable[[], Value]) -> Value:
        """What has been made in this block or one around it, or else is made now."""
        for scope in scopes:
            if key in scope:
                return scope[key]
        found = scopes[-1][key] = make()
        return found

    def _integer(self, x: Index) -> Value:
        b = self.b
        if x.op == "size":
            return self.sizes(b, self.data, x.args[0])
        if x.op == "entry":
            return self.w.integer(b, self.bases[x.args[0]], self.integer(x.args[1]))
        a, c = (self.integer(y) for y in x.args)
        if x.op == "min":
            return b.select(b.icmp_signed("<", a, c), a, c)
        return {"add": b.add, "sub": b.sub, "mul": b.mul, "div": b.udiv, "mod": b.urem}[x.op](a, c)

    def prepare(self, loop: Loop) -> None:
        """Compute what the places of an innermost loop's statements share."""
        places = [place.at for place in map(self.place, loop.body.statements) if place]
        if any(bodies(s) for s in loop.body.statements):
            return
        for place in places:
            for x in unchanging(place, loop.variable):
                if not any(y.op in ("div", "mod") for y in parts(x)):
                    self.integer(x)

    def place(self, s: Any) -> Put | EntryRef | None:
        """Where a statement loads or stores."""
        found = self.function.graph.ops[s.operation].data if isinstance(s, Let) else s
        return found if isinstance(found, Put | EntryRef) else None

    # Memory

    def wide(self, width: int) -> Lanes:
        """Vectors of so many numbers."""
        if width not in self.by_width:
            w = self.w
            self.by_width[width] = Lanes(w.module, Graph(), width, w.kind, whole=False)
        return self.by_width[width]

    def runs_along(self, at: Index) -> bool:
        """Whether entries of a place are columns."""
        return self.columns is not None and ("variable", (self.columns.variable,)) in variables(at)

    def kind(self, array: Array, at: Index) -> tuple[Type, int]:
        """The type of a value in memory, and the numbers it has."""
        w = self.w
        if array.number in self.kinds:
            kind = self.kinds[array.number]
            return kind, width_of(kind)
        if array.lanes is LaneRole.SAMPLES:
            return w.V, w.L
        width = self.columns.width if self.columns and self.runs_along(at) else 1
        return w.kind.vector(width), width

    def address(self, array: Array, at: Index) -> Value:
        base, (_, rest) = self.beginning(array, at), parted(at)
        return self.b.gep(base, [I64(rest)], source_etype=self.element(array)) if rest else base

    def element(self, array: Array) -> Type:
        """The type of an array's entries."""
        w = self.w
        return self.kinds.get(array.number) or (w.V if array.lanes is LaneRole.SAMPLES else w.N)

    def beginning(self, array: Array, at: Index) -> Value:
        """Where the entries begin that are as far from each other as is known, this one among them."""
        first, _ = parted(at)
        return self.remembered(
            self.pointers,
            (array.number, first),
            lambda: self.b.gep(self.bases[array.number], [self.integer(first)], source_etype=self.element(array)),
        )

    def align(self, array: Array) -> int:
        w = self.w
        if array.number in self.kinds:
            return w.bytes * width_of(self.kinds[array.number])
        return w.align if array.lanes is LaneRole.SAMPLES else w.bytes

    def load(self, ref: EntryRef) -> Value:
        array = self.function.arrays[ref.array]
        found = self.b.load(self.address(array, ref.at), typ=self.kind(array, ref.at)[0], align=self.align(array))
        # broadcast as it is loaded, a number takes no shuffle, unlike what is computed from it
        return self.spread(found, self.w.L) if self.samples else found

    def store(self, array: Array, at: Index, x: Value) -> None:
        x = self.spread(x, self.kind(array, at)[1])
        self.b.store(x, self.address(array, at), align=self.align(array))

    # Numbers

    def spread(self, x: Value, width: int) -> Value:
        """A value as a vector: a number in all lanes."""
        if width_of(x.type) == width:
            return x
        if isinstance(x, Constant):
            return self.wide(width).const(x.constant)
        return self.remembered(self.vectors, (id(x), width), lambda: self.wide(width).splat(self.b, x))

    def value(self, i: int) -> Value:
        op = self.function.graph.ops[i]
        if op.name == "const":
            return Constant(self.w.N, op.data[0])  # type: ignore[index]
        for scope in reversed(self.values):
            if i in scope:
                return scope[i]
        raise KeyError(i)

    def computed(self, i: int) -> Value:
        op = self.function.graph.ops[i]
        if op.name == "load":
            return self.load(op.data)  # type: ignore[arg-type]
        if i in self.fused:
            return self.sum_with_product(i)
        operands, w = self.together([self.value(a) for a in op.args])
        if op.name in ("sin", "cos"):
            return self.trigonometric(i, w, operands[0])
        if op.name == "where_less":
            return self.b.select(self.b.fcmp_ordered("<", *operands[:2]), *operands[2:])
        return w.apply(self.b, OPERATIONS[op.name], operands)

    def together(self, operands: list[Value]) -> tuple[list[Value], Lanes]:
        """Values as vectors of the same width."""
        width = max(width_of(x.type) for x in operands)
        return [self.spread(x, width) for x in operands], self.wide(width)

    def sum_with_product(self, i: int) -> Value:
        """x + y z, x - y z or y z - x, rounded once."""
        ops, b, product = self.function.graph.ops, self.b, self.fused[i]
        (other,) = (a for a in ops[i].args if a != product)
        (x, y, z), w = self.together([self.value(a) for a in (other, *ops[product].args)])
        if ops[i].name == "sub":
            if product == ops[i].args[1]:
                return w.minus_product(b, x, y, z)
            x = b.fneg(x)
        return w.plus_product(b, x, y, z)

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


def fused_products(function: LoopFunction) -> dict[int, int]:
    """Sums with a product that nothing else uses and that is computed in the same blocks: sum -> product."""
    ops = function.graph.ops
    blocks = [{s.operation for s in block.statements if isinstance(s, Let)} for block in function.blocks]
    made = set().union(*blocks)
    uses = Counter(a for i in made for a in ops[i].args)
    uses.update(a for block in function.blocks for s in block.statements for a in operations(s))
    found: dict[int, int] = {}
    for i in made:
        for a in reversed(ops[i].args if ops[i].name in ("add", "sub") else ()):
            if ops[a].name == "mul" and uses[a] == 1 and all((a in block) == (i in block) for block in blocks):
                found[i] = a
                break
    return found


def parted(at: Index) -> tuple[Index, int]:
    """An index as a sum of one that is known when code runs, and of a number."""
    return (at.args[0], at.args[1].value) if at.op == "add" and at.args[1].value is not None else (at, 0)


def width_of(kind: Any) -> int:
    """How many numbers a value has."""
    return kind.count if isinstance(kind, VectorType) else 1
