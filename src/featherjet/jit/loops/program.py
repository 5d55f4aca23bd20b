"""Loop programs: a handful of statements around straight-line code.

A `LoopFunction` has arrays, integers and blocks of statements. Numbers are operations of a graph (`jit.graph`), whose
loads are `EntryRef`s; a `Let` says where an operation is computed. A reference has a version: loads of one array
between two stores are one operation, and no load is shared across a store.

Forward and reverse differentiation need nothing more: every loop but `Until` has a known trip count, so a function can
be run backwards loop by loop, with the values that stores overwrite kept in an array beside; the fixed point of an
`Until` is differentiated implicitly, from one linear solve with the derivative of its body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from ..graph import Graph
from .index import Index


class LaneRole(Enum):
    """What lies in the lanes of an array's entry: the same entry of several samples, or nothing, it is one number; an
    entry of a table is an integer. Numbers that follow each other fill the lanes inside a loop over columns."""

    SAMPLES = "samples"
    NUMBERS = "numbers"
    INTEGERS = "integers"


@dataclass(frozen=True)
class Array:
    """Memory that a function works on. fixed: it is only read. local: the number of its entries if it is the
    function's own. table: the name by which code finds it beside its arguments."""

    number: int
    name: str
    lanes: LaneRole
    fixed: bool = False
    local: int = 0
    table: str = ""


class EntryRef(NamedTuple):
    """An entry of an array, `at` entries after its beginning, as it is after some number of stores."""

    array: int
    at: Index
    version: int


class ArrayPart(NamedTuple):
    """Entries of an array: the first, and how far apart they are along each axis."""

    array: int
    offset: Index
    strides: tuple[Index, ...]


@dataclass
class Statements:
    """A block: statements in order."""

    statements: list[Any] = field(default_factory=list)


@dataclass
class Let:
    """Compute an operation."""

    operation: int


@dataclass
class LetIndex:
    """Compute an integer: an entry of a table, where it is asked for."""

    index: Index


@dataclass
class LocalArray:
    """Begin to use a local array."""

    array: int


@dataclass
class Put:
    """array[at] = operation."""

    array: int
    at: Index
    operation: int


@dataclass
class Loop:
    """The body for variable = start, start + step, ... below stop, or downwards from the last of these.

    columns: the values of the variable are columns, which may be treated several at a time.
    """

    variable: int
    start: Index
    stop: Index
    step: int
    down: bool
    body: Statements
    columns: bool = False


@dataclass
class Until:
    """The body, then again while `low` < `high`, or either is NaN, in any lane, at most `most` times."""

    variable: int
    most: Index
    body: Statements
    low: int
    high: int


@dataclass
class When:
    """The body if low < high: indices, or operations in any lane."""

    low: Index | int
    high: Index | int
    body: Statements


@dataclass
class Cases:
    """The body of the number that an index is."""

    index: Index
    bodies: dict[int, Statements]


@dataclass
class ScheduledProduct:
    """target = start + left^T right, or minus; see `math.loops.ArrayLoops.product`."""

    target: ArrayPart
    left: ArrayPart
    right: ArrayPart
    start: ArrayPart | None
    sizes: tuple[Index, Index, Index]
    plus: bool
    upper: bool


@dataclass
class ScheduledTranspose:
    """target = source^T; sizes: of the target."""

    target: ArrayPart
    source: ArrayPart
    sizes: tuple[Index, Index]


@dataclass
class FunctionCall:
    """A function of parts of arrays and of integers."""

    function: LoopFunction
    parts: list[ArrayPart]
    integers: list[Index]


@dataclass
class Watch:
    """Set a flag unless an operation is clearly positive."""

    operation: int


@dataclass
class LoopFunction:
    """A traced function: its arguments are arrays, then integers, which are the first variables."""

    name: str
    graph: Graph
    arrays: list[Array] = field(default_factory=list)
    arguments: int = 0  # how many of the arrays are arguments: the first ones
    integers: int = 0
    body: Statements = field(default_factory=Statements)

    @cached_property
    def blocks(self) -> list[Statements]:
        """All blocks of a function that has been traced, outer ones first."""
        return list(nested(self.body))

    def callees(self) -> Iterator[LoopFunction]:
        """The functions that this one calls, each once, those they call first."""
        seen: set[int] = set()
        for block in self.blocks:
            for s in block.statements:
                if isinstance(s, FunctionCall):
                    for f in (*s.function.callees(), s.function):
                        if id(f) not in seen:
                            seen.add(id(f))
                            yield f

    @property
    def watches(self) -> bool:
        """Whether it, or what it calls, sets a flag."""
        return any(
            isinstance(s, Watch) or (isinstance(s, FunctionCall) and s.function.watches)
            for block in self.blocks
            for s in block.statements
        )


def nested(block: Statements) -> Iterator[Statements]:
    """A block and those within."""
    yield block
    for s in block.statements:
        for inner in bodies(s):
            yield from nested(inner)


def bodies(statement: Any) -> list[Statements]:
    """The blocks of a statement."""
    if type(statement) in (Let, Put):  # most of them
        return []
    if isinstance(statement, Cases):
        return list(statement.bodies.values())
    return [statement.body] if isinstance(statement, (Loop, Until, When)) else []


def operations(statement: Any) -> list[int]:
    """The operations that a statement itself uses."""
    if isinstance(statement, (Put, Watch)):
        return [statement.operation]
    if isinstance(statement, Until):
        return [statement.low, statement.high]
    if isinstance(statement, When) and isinstance(statement.low, int) and isinstance(statement.high, int):
        return [statement.low, statement.high]
    return []


def pruned(function: LoopFunction) -> LoopFunction:
    """Without what no statement uses."""
    roots = [i for block in function.blocks for s in block.statements for i in operations(s)]
    needed = set(function.graph.reachable(roots))
    for block in function.blocks:
        block.statements = [s for s in block.statements if not isinstance(s, Let) or s.operation in needed]
    return function
