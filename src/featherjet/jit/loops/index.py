"""Integers of a loop program: sizes, loop variables, entries of tables, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MEANINGS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "min": min,
}


@dataclass(frozen=True)
class Index:
    """An integer that a program computes.

    op: "const" and its value; "size" and its name, known when code runs; "variable" and its number, that of a loop or
    an argument; "entry", the number of a table and a place in it; or one of MEANINGS and two operands, not negative.
    """

    op: str
    args: tuple[Any, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.args))

    def __hash__(self) -> int:
        return self._hash

    @property
    def value(self) -> int | None:
        """Its value if it is constant."""
        return self.args[0] if self.op == "const" else None

    def __index__(self) -> int:
        if self.op != "const":
            raise TypeError(f"{self} is known only when code runs: loop over it with t.loop")
        return self.args[0]

    def __str__(self) -> str:
        if self.op == "const":
            return str(self.args[0])
        if self.op == "entry":
            return f"table{self.args[0]}[{self.args[1]}]"
        if self.op in ("size", "variable"):
            return self.args[0] if self.op == "size" else f"i{self.args[0]}"
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "//", "mod": "%"}.get(self.op)
        x, y = map(str, self.args)
        return f"({x} {sign} {y})" if sign else f"{self.op}({x}, {y})"

    def __add__(self, other: Any) -> Index:
        return combined("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Index:
        return combined("sub", self, other)

    def __rsub__(self, other: Any) -> Index:
        return combined("sub", other, self)

    def __mul__(self, other: Any) -> Index:
        return combined("mul", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Index:
        return combined("div", self, other)

    def __mod__(self, other: Any) -> Index:
        return combined("mod", self, other)

    def _refuse(self, *_: Any) -> Any:
        raise TypeError("an index has no value while it is traced: use t.when or t.cases, not an if")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


def constant(value: int) -> Index:
    return Index("const", (int(value),))


def size(name: str) -> Index:
    """A size that is known when code runs."""
    return Index("size", (name,))


def lifted(x: Any) -> Index:
    """An integer as an Index."""
    return x if isinstance(x, Index) else constant(x.__index__())


def contiguous(axes: Sequence[Any]) -> list[Index]:
    """How far apart the entries of an array are along each axis."""
    strides, step = [], lifted(1)
    for axis in reversed(axes):
        strides.insert(0, step)
        step = step * (size(axis) if isinstance(axis, str) else axis)
    return strides


def least(x: Any, y: Any) -> Index:
    """The smaller of two integers."""
    return combined("min", x, y)


def combined(op: str, x: Any, y: Any) -> Index:
    """One operation, folded where operands are constant."""
    x, y = lifted(x), lifted(y)
    if x.value is not None and y.value is not None:
        return constant(MEANINGS[op](x.value, y.value))
    if op in ("add", "mul") and x.value is not None:
        x, y = y, x
    if (op in ("add", "sub") and y.value == 0) or (op in ("mul", "div") and y.value == 1):
        return x
    if op == "mul" and y.value == 0:
        return y
    if op == "add" and y.value is not None and (more := constant_term(x)):
        return combined("add", x.args[0], more + y.value)
    if op == "add" and y.value is None and (constant_term(x) or constant_term(y)):  # constants go last
        (x, c), (y, d) = ((z.args[0], constant_term(z)) if constant_term(z) else (z, 0) for z in (x, y))
        return combined("add", combined("add", x, y), c + d)
    if op == "mul" and y.value is not None and (more := constant_term(x)):
        return combined("add", combined("mul", x.args[0], y), more * y.value)
    return Index(op, (x, y))


def constant_term(x: Index) -> int:
    """The constant that a sum ends with."""
    return (x.args[1].value or 0) if x.op == "add" else 0


def parts(x: Index) -> Iterator[Index]:
    """An index and all that it is made of."""
    yield x
    for y in x.args:
        if isinstance(y, Index):
            yield from parts(y)


def variables(x: Index) -> set[tuple[str, Any]]:
    """The loop variables that an index depends on."""
    if x.op == "variable":
        return {(x.op, x.args)}
    return {v for y in x.args if isinstance(y, Index) for v in variables(y)}


def unchanging(x: Index, variable: int) -> Iterator[Index]:
    """The largest parts of an index that do not depend on a loop's variable."""
    if ("variable", (variable,)) not in variables(x):
        yield x
        return
    for y in x.args:
        if isinstance(y, Index):
            yield from unchanging(y, variable)
