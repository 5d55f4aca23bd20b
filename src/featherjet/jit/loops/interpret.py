"""What a loop program means: statement by statement on arrays, as slow as it is plain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import OPERATIONS
from . import program
from .index import MEANINGS, Index
from .program import ArrayPart, EntryRef, LaneRole, LoopFunction, Statements

Array = np.ndarray
Watcher = Callable[[Any], None]


def interpret(
    function: LoopFunction,
    arrays: Sequence[Array],
    integers: Sequence[int] = (),
    found: Mapping[str, Any] | None = None,
    watch: Watcher = lambda x: None,
) -> None:
    """Run a function on flat arrays: (entries, samples), or (entries,) for numbers and integers.

    found: sizes and tables by name. watch(x): what to do with watched numbers. Columns are taken one by one.
    """
    Interpreter(function, list(arrays), list(integers), found or {}, watch).run(function.body)


class Interpreter:
    """Runs one function."""

    def __init__(
        self, function: LoopFunction, given: list[Array], integers: list[int], found: Mapping[str, Any], watch: Watcher
    ) -> None:
        self.function, self.found, self.watch = function, found, watch
        arguments = [a for a in function.arrays if not a.local and not a.table]
        self.memory: dict[int, Any] = {a.number: x for a, x in zip(arguments, given, strict=True)}
        self.memory |= {a.number: found[a.table] for a in function.arrays if a.table}
        samples = (self.memory[a.number].shape[1:] for a in arguments if a.lanes is LaneRole.SAMPLES)
        self.lanes: tuple[int, ...] = next(samples, ())
        self.variables = dict(enumerate(integers))
        self.values: dict[int, Any] = {}

    def run(self, block: Statements) -> None:
        for statement in block.statements:
            getattr(self, f"on_{type(statement).__name__}")(statement)

    def integer(self, x: Index) -> int:
        if x.op == "const":
            return x.args[0]
        if x.op == "size":
            return int(self.found[x.args[0]])
        if x.op == "variable":
            return self.variables[x.args[0]]
        if x.op == "entry":
            return int(self.memory[x.args[0]][self.integer(x.args[1])])
        return MEANINGS[x.op](*map(self.integer, x.args))

    def value(self, i: int) -> Any:
        op = self.function.graph.ops[i]
        return np.float64(op.data[0]) if op.name == "const" else self.values[i]  # type: ignore[index]

    def on_Let(self, s: program.Let) -> None:
        op = self.function.graph.ops[s.operation]
        if isinstance(op.data, EntryRef):
            self.values[s.operation] = np.copy(self.memory[op.data.array][self.integer(op.data.at)])
            return
        meaning = OPERATIONS[op.name].meaning
        assert meaning is not None
        with np.errstate(all="ignore"):
            self.values[s.operation] = meaning(*map(self.value, op.args))

    def on_LetIndex(self, s: program.LetIndex) -> None:
        self.integer(s.index)

    def on_Put(self, s: program.Put) -> None:
        self.memory[s.array][self.integer(s.at)] = self.value(s.operation)

    def on_LocalArray(self, s: program.LocalArray) -> None:
        array = self.function.arrays[s.array]
        lanes = self.lanes if array.lanes is LaneRole.SAMPLES else ()
        self.memory[s.array] = np.zeros((array.local, *lanes))

    def on_Loop(self, s: program.Loop) -> None:
        indices = range(self.integer(s.start), self.integer(s.stop), s.step)
        for k in reversed(indices) if s.down else indices:
            self.variables[s.variable] = k
            self.run(s.body)

    def on_Until(self, s: program.Until) -> None:
        for k in range(self.integer(s.most)):
            self.variables[s.variable] = k
            self.run(s.body)
            if np.all(self.value(s.low) >= self.value(s.high)):
                return

    def on_When(self, s: program.When) -> None:
        if isinstance(s.low, Index) and isinstance(s.high, Index):
            holds = self.integer(s.low) < self.integer(s.high)
        else:
            holds = bool(np.any(self.value(s.low) < self.value(s.high)))  # type: ignore[arg-type]
        if holds:
            self.run(s.body)

    def on_Cases(self, s: program.Cases) -> None:
        self.run(s.bodies[self.integer(s.index)])

    def on_FunctionCall(self, s: program.FunctionCall) -> None:
        parts = [self.memory[p.array][self.integer(p.offset) :] for p in s.parts]
        interpret(s.function, parts, [self.integer(x) for x in s.integers], self.found, self.watch)

    def on_Watch(self, s: program.Watch) -> None:
        self.watch(self.value(s.operation))

    def on_ScheduledProduct(self, s: program.ScheduledProduct) -> None:
        m, n, depth = map(self.integer, s.sizes)
        for i in range(m):
            for j in range(i if s.upper else 0, n):
                terms = [self.entry(s.left, k, i) * self.entry(s.right, k, j) for k in range(depth)]
                total = sum(terms) if s.plus else -sum(terms)
                place = self.place(s.target, i, j)
                self.memory[s.target.array][place] = total + (self.entry(s.start, i, j) if s.start else 0.0)

    def on_ScheduledTranspose(self, s: program.ScheduledTranspose) -> None:
        m, n = map(self.integer, s.sizes)
        for i in range(m):
            for j in range(n):
                self.memory[s.target.array][self.place(s.target, i, j)] = self.entry(s.source, j, i)

    def place(self, part: ArrayPart, row: int, column: int) -> int:
        by_row, by_column = map(self.integer, part.strides)
        return self.integer(part.offset) + row * by_row + column * by_column

    def entry(self, part: ArrayPart, row: int, column: int) -> Any:
        return self.memory[part.array][self.place(part, row, column)]
