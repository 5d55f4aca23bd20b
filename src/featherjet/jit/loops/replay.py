"""Straight-line code that was recorded before, inside a function of the loop language."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..graph import OPERATIONS, Expr, Graph, Op
from ..schedule import SUMS, Schedule
from .trace import Tracer

Load = Callable[[Any], Any]  # the value at a reference of a recorded load


def replayed(t: Any, graph: Graph, roots: Iterable[int], load: Load) -> Iterator[tuple[int, Any]]:
    """The operations behind some roots, one after the other, and their values: on arrays, or in a program.

    A program has each of them with the operands in the order in which they were recorded.
    """
    values: dict[int, Any] = {}
    for i in graph.reachable(roots):
        op = graph.ops[i]
        if op.name == "const":
            values[i] = t.number(op.data[0])  # type: ignore[index]
        elif op.name == "load":
            values[i] = load(op.data)
        else:
            values[i] = applied(t, op.name, [values[a] for a in op.args])
        yield i, values[i]


def applied(t: Any, name: str, operands: list[Any]) -> Any:
    """One operation, not simplified."""
    if isinstance(t, Tracer):
        return t.graph.add(Op(name, tuple(x.index for x in operands)))
    meaning = OPERATIONS[name].meaning
    assert meaning is not None
    return meaning(*operands)


def evaluated(t: Any, of: Sequence[Expr], load: Load) -> list[Any]:
    """The values of recorded expressions, whose sums become chains of products that fuse with their additions."""
    if not of:
        return []
    graph, values = of[0].graph, dict[int, Any]()
    plan = Schedule(graph, [x.index for x in of], piece=sys.maxsize)

    def value(i: int) -> Any:
        op = graph.ops[i]
        if i not in values:
            if op.name in ("const", "load"):
                values[i] = load(op.data) if op.name == "load" else t.number(op.data[0])  # type: ignore[index]
            else:
                values[i] = chain(i) if op.name in SUMS else applied(t, op.name, [value(a) for a in op.args])
        return values[i]

    def term(i: int) -> Any:
        return applied(t, "mul", [value(a) for a in graph.ops[i].args]) if i in plan.inlined else value(i)

    def chain(i: int) -> Any:
        (_, first), rest, flip = plan.chain(i)
        total = term(first)
        for minus, k in rest:
            total = applied(t, "sub" if minus else "add", [total, term(k)])
        return applied(t, "neg", [total]) if flip else total

    for i in plan.pieces[0].ops:
        value(i)
    return [value(x.index) for x in of]
