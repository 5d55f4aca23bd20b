"""Straight-line code that was recorded before, inside a function of the loop language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..graph import OPERATIONS, Graph, Op
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
