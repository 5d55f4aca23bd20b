"""The graph of scalar operations that tracing an algorithm yields.

A `Graph` hash-conses its expressions: equal operations on equal operands are one node, so common subexpressions are
shared by construction. Constants fold, and zeros, ones and signs simplify on creation. The set of operations is closed:
`OPERATIONS` defines each of them, and `interpret` evaluates a graph by these definitions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..math.scalars import sincos, sqrt, where_less


def sine(x: Any) -> Any:
    return sincos(x)[0]


def cosine(x: Any) -> Any:
    return sincos(x)[1]


def quotient(x: Any, y: Any) -> Any:
    return x / y


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.floating, np.integer)) and not isinstance(x, bool)


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


class Operation(NamedTuple):
    """The definition of an operation: its number of operands, its meaning on any scalars, and LLVM's name for it."""

    arity: int
    meaning: Callable[..., Any] | None = None
    instruction: str = ""
    intrinsic: str = ""


# The closed set of operations. "const" carries a float, "load" a reference to memory. The sine and cosine
# of one angle are emitted together, as a call of the function in emit/sincos.py.
OPERATIONS: Mapping[str, Operation] = {
    "const": Operation(0),
    "load": Operation(0),
    "neg": Operation(1, operator.neg, "fneg"),
    "sin": Operation(1, sine),
    "cos": Operation(1, cosine),
    "sqrt": Operation(1, sqrt, intrinsic="sqrt"),
    "add": Operation(2, operator.add, "fadd"),
    "sub": Operation(2, operator.sub, "fsub"),
    "mul": Operation(2, operator.mul, "fmul"),
    "div": Operation(2, quotient, "fdiv"),
    "where_less": Operation(4, where_less),  # a, b, x, y: x where a < b, else y
}


class Op(NamedTuple):
    """One operation: `args` are indices of earlier ones, `data` is a constant's value or a load's reference."""

    name: str
    args: tuple[int, ...] = ()
    data: Hashable = None


def line(op: Op) -> str:
    """An operation as text: `mul %1 %2`."""
    if op.name == "const":
        return f"const {op.data[0]!r}"  # type: ignore[index]
    if op.name == "load":
        return f"load {op.data}"
    return " ".join([op.name, *(f"%{a}" for a in op.args)])


class TooLong(Exception):
    """A graph exceeds its limit of operations."""


class Graph:
    """Operations, each after its operands; more than `limit` of them raise TooLong."""

    def __init__(self, limit: int | None = None) -> None:
        self.ops: list[Op] = []
        self._index: dict[Op, int] = {}
        self.limit = limit

    def add(self, op: Op) -> Expr:
        index = self._index.get(op)
        if index is None:
            index = self._index[op] = len(self.ops)
            if self.limit is not None and index >= self.limit:
                raise TooLong(f"more than {self.limit} operations")
            self.ops.append(op)
        return Expr(self, index)

    def __contains__(self, op: Op) -> bool:
        return op in self._index

    def const(self, value: float) -> Expr:
        value = float(value)
        return self.add(Op("const", data=(value, math.copysign(1.0, value))))  # 0.0 and -0.0 are two constants

    def load(self, reference: Hashable) -> Expr:
        return self.add(Op("load", data=reference))

    def lift(self, x: Any) -> Expr:
        """A number as an expression of this graph; an expression stays as it is."""
        if isinstance(x, Expr):
            if x.graph is not self:
                raise ValueError("the expression belongs to another graph")
            return x
        if not is_number(x):
            raise TypeError(f"cannot trace a {type(x).__name__}: scalars are real numbers and expressions")
        return self.const(float(x))

    def partner(self, i: int) -> int:
        """The cosine of a sine's angle, or the sine of a cosine's; -1 if the graph lacks it."""
        op = self.ops[i]
        return self._index.get(Op("cos" if op.name == "sin" else "sin", op.args), -1)

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """The operations that the roots need, in order, without dead code."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                stack.extend(self.ops[i].args)
        return sorted(seen)

    def verify(self) -> None:
        """Raise ValueError unless every operation is known, well-formed, unique and after its operands."""
        if len(set(self.ops)) != len(self.ops):
            raise ValueError("an operation occurs twice")
        for i, op in enumerate(self.ops):
            if op.name not in OPERATIONS:
                raise ValueError(f"%{i}: unknown operation {op.name!r}")
            arity = OPERATIONS[op.name].arity
            if len(op.args) != arity:
                raise ValueError(f"%{i}: {op.name} takes {arity} operands, has {len(op.args)}")
            if any(not 0 <= a < i for a in op.args):
                raise ValueError(f"%{i}: {op.name} uses an operand that does not come before it")
            if (op.data is not None) != (op.name in ("const", "load")):
                raise ValueError(f"%{i}: {op.name} must {'not ' if op.data else ''}carry data")

    def text(self, roots: Iterable[int] | None = None) -> str:
        """One operation per line: `%3 = mul %1 %2`."""
        order = range(len(self.ops)) if roots is None else self.reachable(roots)
        return "\n".join(f"%{i} = {line(self.ops[i])}" for i in order)

    def count(self, roots: Iterable[int]) -> dict[str, int]:
        """How often each operation occurs among those the roots need."""
        counts: dict[str, int] = {}
        for i in self.reachable(roots):
            counts[self.ops[i].name] = counts.get(self.ops[i].name, 0) + 1
        return counts

    def interpret(self, roots: Iterable[int], memory: Callable[[Any], Any] | Mapping[Any, Any]) -> list[Any]:
        """The values of the roots on numbers or arrays, operation by operation."""
        roots = list(roots)
        fetch = memory if callable(memory) else memory.__getitem__
        values: dict[int, Any] = {}
        for i in self.reachable(roots):
            op = self.ops[i]
            if op.name == "const":
                values[i] = op.data[0]  # type: ignore[index]
            elif op.name == "load":
                values[i] = fetch(op.data)
            else:
                meaning = OPERATIONS[op.name].meaning
                assert meaning is not None
                values[i] = meaning(*(values[a] for a in op.args))
        return [values[r] for r in roots]


def _on_scalars(operation: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Any], Any]:
    """Lift the other operand to an expression, arrays entry by entry; leave other types to their own operators."""

    def lifted(self: Expr, other: Any) -> Any:
        if type(other) is Expr and other.graph is self.graph:  # nearly always
            return operation(self, other)
        if isinstance(other, Expr) or is_number(other):
            return operation(self, self.graph.lift(other))
        if is_array(other):
            results: NDArray[Any] = np.empty(int(other.size), object)
            for k, x in enumerate(other.flat):
                results[k] = operation(self, self.graph.lift(x))
            return np.reshape(results, other.shape)
        return NotImplemented

    return lifted


class Expr:
    """A scalar that records the operations on it.

    It has no value, so it cannot be compared, tested for truth, or converted to a float.
    """

    __slots__ = ("graph", "index")
    __array_ufunc__ = None  # a NumPy scalar on the left defers to this class

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph, self.index = graph, index

    @property
    def op(self) -> Op:
        return self.graph.ops[self.index]

    @property
    def value(self) -> float | None:
        """Its number if it is a constant, else None."""
        op = self.graph.ops[self.index]
        return op.data[0] if op.name == "const" else None  # type: ignore[index]

    def __repr__(self) -> str:
        return f"<%{self.index} {line(self.op)}>"

    def negated(self) -> Expr | None:
        """What this is minus of, if it is made as that."""
        op = self.graph.ops[self.index]
        return Expr(self.graph, op.args[0]) if op.name == "neg" else None

    def __neg__(self) -> Expr:
        if self.value is not None:
            return self.graph.const(-self.value)
        minus = self.negated()
        return self.graph.add(Op("neg", (self.index,))) if minus is None else minus

    @_on_scalars
    def __add__(self, b: Expr) -> Expr:
        a = self
        if a.value is not None and b.value is not None:
            return a.graph.const(a.value + b.value)
        if a.value == 0:
            return b
        if b.value == 0:
            return a
        if (minus := b.negated()) is not None:
            return a - minus
        if (minus := a.negated()) is not None:
            return b - minus
        turned = Op("add", (b.index, a.index))  # sums keep the order in which they are written first
        return a.graph.add(turned if turned in a.graph else Op("add", (a.index, b.index)))

    __radd__ = __add__

    @_on_scalars
    def __sub__(self, b: Expr) -> Expr:
        a = self
        if a.value is not None and b.value is not None:
            return a.graph.const(a.value - b.value)
        if b.value == 0:
            return a
        if a.value == 0:
            return -b
        if a.index == b.index:
            return a.graph.const(0.0)
        if (minus := b.negated()) is not None:
            return a + minus
        if (minus := a.negated()) is not None:
            return -(minus + b)
        return a.graph.add(Op("sub", (a.index, b.index)))

    @_on_scalars
    def __rsub__(self, a: Expr) -> Expr:
        return a - self

    @_on_scalars
    def __mul__(self, b: Expr) -> Expr:
        a = self
        first, second = a.value, b.value
        if first is not None and second is not None:
            return a.graph.const(first * second)
        for known, x, y in ((first, a, b), (second, b, a)):
            if known is None:
                if (minus := x.negated()) is not None:
                    return -(minus * y)
            elif known == 0:
                return x.graph.const(0.0)
            elif known == 1:
                return y
            elif known == -1:
                return -y
        return a.graph.add(Op("mul", tuple(sorted((a.index, b.index)))))

    __rmul__ = __mul__

    @_on_scalars
    def __truediv__(self, b: Expr) -> Expr:
        a = self
        if b.value == 1:
            return a
        if a.value is not None and b.value:
            return a.graph.const(a.value / b.value)
        if a.value == 0:
            return a.graph.const(0.0)
        if (minus := a.negated()) is not None:
            return -(minus / b)
        return a.graph.add(Op("div", (a.index, b.index)))

    @_on_scalars
    def __rtruediv__(self, a: Expr) -> Expr:
        return a / self

    def sincos(self) -> tuple[Expr, Expr]:
        if self.value is not None:
            return self.graph.const(math.sin(self.value)), self.graph.const(math.cos(self.value))
        return self.graph.add(Op("sin", (self.index,))), self.graph.add(Op("cos", (self.index,)))

    def sqrt(self) -> Expr:
        if self.value is not None:
            return self.graph.const(math.sqrt(self.value))
        return self.graph.add(Op("sqrt", (self.index,)))

    def where_less(self, a: Any, b: Any, x: Any, y: Any) -> Expr:
        """x where a < b, else y; any of the four may be numbers."""
        a, b, x, y = map(self.graph.lift, (a, b, x, y))
        if x.index == y.index:
            return x
        if a.value is not None and b.value is not None:
            return x if a.value < b.value else y
        return self.graph.add(Op("where_less", (a.index, b.index, x.index, y.index)))

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "an expression has no value while it is traced: algorithms must not branch on values, "
            "compare or convert scalars"
        )

    __bool__ = __float__ = __int__ = __complex__ = __index__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __abs__ = _refuse  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]
