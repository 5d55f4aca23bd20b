"""Traces a function of the loop language (`math.loops`) into a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from ..graph import Expr, Graph, Op
from . import program
from .index import Index, constant, lifted, parts
from .program import Array, ArrayPart, EntryRef, LaneRole, LoopFunction, Statements, pruned


class OrderedGraph(Graph):
    """A graph that says when an operation is asked for."""

    def __init__(self, asked: Callable[[int], None]) -> None:
        super().__init__()
        self.asked = asked

    def add(self, op: Op) -> Expr:
        found = super().add(op)
        if op.name != "const":
            self.asked(found.index)
        return found


class TracedArray:
    """A part of an array while it is traced; `lengths` of its axes, if they are known."""

    def __init__(self, tracer: Tracer, array: Array, offset: Index, strides: tuple[Index, ...]) -> None:
        self.tracer, self.array, self.offset, self.strides = tracer, array, offset, strides

    def place(self, index: tuple[Any, ...]) -> Index:
        """Where an entry, or a part, begins."""
        if len(index) > len(self.strides):
            raise IndexError(f"{self.array.name}: {len(index)} indices for {len(self.strides)} axes")
        at = self.offset
        for i, stride in zip(index, self.strides, strict=False):
            at = at + lifted(i) * stride
        return at

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        at, rest = self.place(index), self.strides[len(index) :]
        return TracedArray(self.tracer, self.array, at, rest) if rest else self.tracer.load(self.array, at)

    def __setitem__(self, index: Any, value: Any) -> None:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) < len(self.strides):
            raise IndexError(f"{self.array.name}: only entries can be set, one by one")
        self.tracer.store(self.array, self.place(index), value)

    def beyond(self, *first: Any) -> TracedArray:
        """The part that begins at `first`."""
        return TracedArray(self.tracer, self.array, self.place(first), self.strides)

    @property
    def T(self) -> TracedArray:
        """The transpose of a matrix."""
        return TracedArray(self.tracer, self.array, self.offset, self.strides[::-1])

    def matrix(self, width: Any) -> TracedArray:
        """A vector as a matrix: rows of `width` entries that follow each other."""
        (step,) = self.strides
        return TracedArray(self.tracer, self.array, self.offset, (step * width, step))

    @property
    def rows(self) -> TracedArray:
        """As a matrix: the first axis, and all others as one, whose entries follow each other."""
        return TracedArray(self.tracer, self.array, self.offset, (self.strides[0], constant(1)))

    @property
    def row(self) -> TracedArray:
        """A vector as a matrix of one row."""
        return TracedArray(self.tracer, self.array, self.offset, (constant(0), *self.strides))

    @property
    def part(self) -> ArrayPart:
        return ArrayPart(self.array.number, self.offset, self.strides)


class Scope:
    """A block that is being traced: the operations known in it, and the arrays stored to."""

    def __init__(self) -> None:
        self.block, self.known, self.stored = Statements(), list[int](), set[int]()


class Tracer:
    """The handle t of the loop language that records a program, for `samples` in lanes or for columns.

    callees: the functions that have been traced for calls, by what was traced and for which arguments; callers and
    callees share them, with the objects that keys name by their identity.
    """

    def __init__(self, name: str, samples: bool, callees: dict[Any, tuple[LoopFunction, Any]] | None = None) -> None:
        self.samples = samples
        self.callees = {} if callees is None else callees
        self.graph = OrderedGraph(self._asked)
        self.function = LoopFunction(name, self.graph)
        self._scopes = [Scope()]
        self._known: set[int] = set()  # operations that are computed here, or before a block around it
        self._versions: dict[int, int] = {}
        self._new_version = count(1)
        self._variables = count()

    # Arguments

    def argument(self, name: str, strides: Sequence[Any], role: LaneRole | None = None, fixed: bool = False) -> Any:
        """An array that the function is called with; its entries are `strides` apart along each axis."""
        array = self._array(name, role, fixed=fixed)
        self.function.arguments += 1
        return TracedArray(self, array, constant(0), tuple(map(lifted, strides)))

    def table(self, name: str, strides: Sequence[Any], role: LaneRole) -> TracedArray:
        """An array that is only read, and that code finds by its name."""
        known = next((x for x in self.function.arrays if x.table == name), None)
        array = known or self._array(name, role, fixed=True, table=name)
        return TracedArray(self, array, constant(0), tuple(map(lifted, strides)))

    def received(self, array: Array, layout: Sequence[Index]) -> TracedArray:
        """An array of a caller, as `layout_of` describes it."""
        if not array.table:
            return self.argument(array.name, layout, array.lanes, array.fixed)
        found = self.table(array.table, layout[1:], array.lanes)
        return TracedArray(self, found.array, layout[0], found.strides)

    def integer(self) -> Index:
        """An integer that the function is called with; all come before any loop."""
        self.function.integers += 1
        return self._variable()

    def finished(self) -> LoopFunction:
        """The function, when its body has been traced."""
        if len(self._scopes) > 1:
            raise ValueError(f"{self.function.name}: a loop was left by break or return; its body must run to the end")
        self.function.body = self._scopes[0].block
        return pruned(self.function)

    # Control

    def loop(self, n: Any, start: Any = 0, step: int = 1, down: bool = False) -> Iterator[Any]:
        """The integers from `start` on and below n; downwards from the last of them."""
        yield from self._loop(lifted(n), lifted(start), step, down, False)

    def columns(self, n: Any) -> Iterator[Any]:
        """The columns of a row, which do not depend on each other."""
        yield from self._loop(lifted(n), constant(0), 1, False, not self.samples)

    def _loop(self, n: Index, start: Index, step: int, down: bool, columns: bool) -> Iterator[Any]:
        if n.value is not None and start.value is not None and n.value <= start.value:
            return
        variable = self._variable()
        with self._scope(again=True) as block:
            yield variable
        self._add(program.Loop(variable.args[0], start, n, step, down, block, columns))

    def until(self, unsettled: Callable[[], tuple[Any, Any]], most: Any) -> Iterator[Any]:
        """Again while unsettled() gives a < b, or NaN, in any lane."""
        variable = self._variable()
        with self._scope(again=True) as block:
            yield variable
            low, high = (self._let(x) for x in unsettled())
        self._add(program.Until(variable.args[0], lifted(most), block, low, high))

    def when(self, a: Any, b: Any) -> Iterator[None]:
        """Once if a < b: integers, or numbers in any lane."""
        integers = all(isinstance(x, (int, Index)) for x in (a, b))
        low, high = (lifted(x) if integers else self._let(x) for x in (a, b))
        with self._scope() as block:
            yield None
        self._add(program.When(low, high, block))

    def cases(self, index: Any, numbers: int | Sequence[int]) -> Iterator[int]:
        """Each of some numbers, one of which an integer is."""
        found: dict[int, Statements] = {}
        stored: set[int] = set()
        for number in range(numbers) if isinstance(numbers, int) else numbers:
            with self._scope() as block:
                yield number
                stored |= self._scopes[-1].stored
            found[number] = block
        self._add(program.Cases(lifted(index), found))

    # Values

    def number(self, x: float) -> Expr:
        """A number, in all lanes."""
        return self.graph.const(x)

    def cell(self, x: Any) -> TracedArray:
        """A variable, which begins as x: read and write it as cell[0]."""
        return self.cells(1, x)

    def cells(self, count: int, x: Any = 0.0) -> TracedArray:
        """Some variables."""
        array = self._array("cells", LaneRole.SAMPLES if self.samples else LaneRole.NUMBERS, local=count)
        self._add(program.LocalArray(array.number))
        found = TracedArray(self, array, constant(0), (constant(1),))
        for k in range(count):
            found[k] = x
        return found

    def load(self, array: Array, at: Index) -> Any:
        if array.lanes is LaneRole.INTEGERS:
            found = Index("entry", (array.number, at))
            self._add(program.LetIndex(found))
            return found
        return self.graph.load(EntryRef(array.number, at, self._versions.get(array.number, 0)))

    def store(self, array: Array, at: Index, value: Any) -> None:
        if array.fixed:
            raise ValueError(f"{array.name} is only read")
        self._add(program.Put(array.number, at, self._let(value)))
        self._store_to(array.number)

    # Calls

    def product(
        self,
        C: TracedArray,
        A: TracedArray,
        B: TracedArray,
        sizes: tuple[Any, Any, Any],
        start: TracedArray | None = None,
        plus: bool = True,
        upper: bool = False,
    ) -> None:
        """C = start + A^T B; see `ArrayLoops.product`."""
        m, n, depth = map(lifted, sizes)
        first = None if start is None else start.part
        self._add(program.ScheduledProduct(C.part, A.part, B.part, first, (m, n, depth), plus, upper))
        self._store_to(C.array.number)

    def transpose(self, C: TracedArray, A: TracedArray, sizes: tuple[Any, Any]) -> None:
        """C = A^T; see `ArrayLoops.transpose`."""
        m, n = map(lifted, sizes)
        self._add(program.ScheduledTranspose(C.part, A.part, (m, n)))
        self._store_to(C.array.number)

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """function(t, *arguments) as a function of its own, one for all calls that differ only in places and integers.

        Arrays must be apart from each other, unless they are only read.
        """
        arrays = [x for x in arguments if isinstance(x, TracedArray)]
        known = {x.array.number for x in arrays if not x.array.fixed}
        if len(known) < sum(not x.array.fixed for x in arrays):
            raise ValueError(f"call of {named(function)}: two arguments are parts of one array")
        integers = [x for x in arguments if isinstance(x, Index) and x.value is None]
        key, inner = self._signature(function, arguments)
        if key not in self.callees:
            self.callees[key] = inner(), (function, arguments)
        callee, _ = self.callees[key]
        passed = [x.part for x in arrays if not x.array.table]
        layout = [s for x in arrays for s in layout_of(x) if not closed(s)]
        self._add(program.FunctionCall(callee, passed, [*layout, *integers]))
        for x in arrays:
            if not x.array.fixed:
                self._store_to(x.array.number)

    def _signature(self, function: Any, arguments: Sequence[Any]) -> tuple[Any, Callable[[], LoopFunction]]:
        """What determines the code of a call, and what traces it."""
        forms: list[Any] = []
        for x in arguments:
            if isinstance(x, TracedArray):
                layout = tuple(s if closed(s) else None for s in layout_of(x))
                forms.append(("array", x.array.lanes, x.array.fixed, x.array.table, layout))
            elif isinstance(x, Index) and x.value is None:
                forms.append(("integer",))
            elif isinstance(x, Expr):
                raise TypeError(f"call of {named(function)}: hand a number over in a cell")
            else:
                forms.append(("object", x if is_plain(x) else id(x)))

        def trace() -> LoopFunction:
            own = Tracer(named(function), self.samples, self.callees)
            given: list[Any] = list(arguments)
            for k, x in enumerate(arguments):
                if isinstance(x, TracedArray):
                    layout = [s if closed(s) else own.integer() for s in layout_of(x)]
                    given[k] = own.received(x.array, layout)
            for k, x in enumerate(arguments):
                if isinstance(x, Index) and x.value is None:
                    given[k] = own.integer()
            function(own, *given)
            return own.finished()

        kept = function if not hasattr(function, "__self__") else (id(function.__self__), function.__func__)
        return (kept, tuple(forms)), trace

    def watch(self, x: Any) -> None:
        """Flag a number that is not clearly positive."""
        self._add(program.Watch(self._let(x)))

    # Inside

    def _array(self, name: str, role: LaneRole | None, fixed: bool = False, local: int = 0, table: str = "") -> Array:
        role = role or (LaneRole.SAMPLES if self.samples else LaneRole.NUMBERS)
        array = Array(len(self.function.arrays), name, role, fixed, local, table)
        self.function.arrays.append(array)
        return array

    def _variable(self) -> Index:
        return Index("variable", (next(self._variables),))

    def _add(self, statement: Any) -> None:
        self._scopes[-1].block.statements.append(statement)

    def _asked(self, operation: int) -> None:
        """Compute an operation here, if it is not known here."""
        if operation not in self._known:
            self._known.add(operation)
            self._scopes[-1].known.append(operation)
            self._add(program.Let(operation))

    def _let(self, x: Any) -> int:
        return x.index if type(x) is Expr and x.graph is self.graph else self.graph.lift(x).index

    def _store_to(self, array: int) -> None:
        self._versions[array] = next(self._new_version)
        self._scopes[-1].stored.add(array)

    @contextmanager
    def _scope(self, again: bool = False) -> Iterator[Statements]:
        """A block; `again`: it may run again, so that its first loads may see its last stores."""
        if again:
            for array in self.function.arrays:
                if not array.fixed:
                    self._versions[array.number] = next(self._new_version)
        scope = Scope()
        self._scopes.append(scope)
        yield scope.block
        self._scopes.pop()
        self._known.difference_update(scope.known)
        for array in scope.stored:
            self._store_to(array)


def layout_of(x: TracedArray) -> list[Index]:
    """How far apart the entries of a part are; for a table, after where it begins."""
    return [*([x.offset] if x.array.table else []), *x.strides]


def closed(x: Index) -> bool:
    """Whether an index means the same in every function: it has sizes and constants alone."""
    return all(y.op not in ("variable", "entry") for y in parts(x))


def is_plain(x: Any) -> bool:
    """Whether equal objects are the same to a trace."""
    return (
        x is None or isinstance(x, (bool, int, float, str, Index)) or (isinstance(x, tuple) and all(map(is_plain, x)))
    )


def named(function: Any) -> str:
    inner = getattr(function, "func", function)
    return getattr(inner, "__name__", type(inner).__name__)
