"""Whether a loop program is well-formed; a fault says where it is."""

from __future__ import annotations

from typing import Any

from ..graph import Op
from . import program
from .index import Index, parts
from .program import ArrayPart, EntryRef, LoopFunction, Statements, bodies, operations
from .text import described


class MalformedLoops(ValueError):
    """A loop program uses what it has not computed, or what is not there."""


def verify(function: LoopFunction) -> None:
    """Raise MalformedLoops unless numbers and integers are computed before they are used, within their loops."""
    function.graph.verify()
    for callee in function.callees():
        Verifier(callee).block(callee.body, set(), set(range(callee.integers)))
    Verifier(function).block(function.body, set(), set(range(function.integers)))


class Verifier:
    """Checks one function."""

    def __init__(self, function: LoopFunction) -> None:
        self.function = function
        self.arrays = {a.number for a in function.arrays if not a.local}

    def fault(self, statement: Any, what: str) -> MalformedLoops:
        return MalformedLoops(f"{self.function.name}, at `{described(self.function, statement)[0]}`: {what}")

    def block(self, block: Statements, known: set[int], variables: set[int]) -> set[int]:
        """Check a block; returns what is known at its end."""
        known, arrays = set(known), set(self.arrays)
        for s in block.statements:
            inner = variables
            if isinstance(s, program.Let):
                self.let(s, known, variables)
                known.add(s.operation)
            if isinstance(s, program.LocalArray):
                self.arrays.add(s.array)
            if isinstance(s, (program.Loop, program.Until)):
                if s.variable in variables:
                    raise self.fault(s, f"i{s.variable} is the variable of two loops")
                inner = variables | {s.variable}
            if isinstance(s, program.FunctionCall) and len(s.parts) != s.function.arguments:
                raise self.fault(s, f"{s.function.arguments} arrays expected")
            for x in integers_of(s):
                self.integer(s, x, variables)
            for p in parts_of(s):
                self.array(s, p.array)
            ends = [self.block(body, known, inner) for body in bodies(s)]
            for i in operations(s):
                self.operation(s, i, ends[0] if isinstance(s, program.Until) else known)
            if isinstance(s, program.Put):
                self.array(s, s.array)
                if self.function.arrays[s.array].fixed:
                    raise self.fault(s, "the array is only read")
        self.arrays = arrays
        return known

    def let(self, s: program.Let, known: set[int], variables: set[int]) -> None:
        op: Op = self.function.graph.ops[s.operation]
        for a in op.args:
            self.operation(s, a, known)
        if isinstance(op.data, EntryRef):
            self.array(s, op.data.array)
            self.integer(s, op.data.at, variables)

    def operation(self, s: Any, i: int, known: set[int]) -> None:
        if i not in known and self.function.graph.ops[i].name != "const":
            raise self.fault(
                s, f"%{i} is not known here; a number that a loop computes reaches what follows in a cell or an array"
            )

    def array(self, s: Any, number: int) -> None:
        if number not in self.arrays:
            raise self.fault(s, f"array {number} does not exist here")

    def integer(self, s: Any, x: Index, variables: set[int]) -> None:
        for y in parts(x):
            if y.op == "variable" and y.args[0] not in variables:
                raise self.fault(s, f"i{y.args[0]} is used outside its loop")


def integers_of(s: Any) -> list[Index]:
    """The integers that a statement itself uses."""
    if isinstance(s, program.Loop):
        return [s.start, s.stop]
    if isinstance(s, program.Put):
        return [s.at]
    found: list[Any] = []
    if isinstance(s, program.When):
        found = [x for x in (s.low, s.high) if isinstance(x, Index)]
    if isinstance(s, (program.ScheduledProduct, program.ScheduledTranspose, program.FunctionCall)):
        found = [*(s.integers if isinstance(s, program.FunctionCall) else s.sizes)]
        found += [x for p in parts_of(s) for x in (p.offset, *p.strides)]
    return [*found, *[getattr(s, name) for name in ("most", "index") if hasattr(s, name)]]


def parts_of(s: Any) -> list[ArrayPart]:
    """The parts of arrays that a statement uses."""
    if isinstance(s, program.FunctionCall):
        return s.parts
    if isinstance(s, program.ScheduledProduct):
        return [p for p in (s.target, s.left, s.right, s.start) if p is not None]
    if isinstance(s, program.ScheduledTranspose):
        return [s.target, s.source]
    return []
