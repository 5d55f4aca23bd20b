"""Automatic differentiation of traced expressions: any output by any input, as expressions of the same graph.

Forward mode carries each operation's derivatives along the directions it depends on. Reverse mode carries each output's
derivatives by the operations it depends on. Both use the table `PARTIALS`. Results are built in the graph of their
inputs, so common subexpressions are shared, constants fold, and zeros are never emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .graph import OPERATIONS, Expr, Graph

Array = np.ndarray
Rates = dict[int, Expr]  # derivatives along directions; missing ones are zero

MODES = ("forward", "reverse", "auto")

# operation -> its derivatives by its operands, as functions of its value y and its operands
PARTIALS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "const": lambda y: (),
    "load": lambda y: (),
    "neg": lambda y, a: (-1.0,),
    "sin": lambda y, a: (a.sincos()[1],),
    "cos": lambda y, a: (-a.sincos()[0],),
    "sqrt": lambda y, a: (0.5 / y,),
    "add": lambda y, a, b: (1.0, 1.0),
    "sub": lambda y, a, b: (1.0, -1.0),
    "mul": lambda y, a, b: (b, a),
    "div": lambda y, a, b: (1.0 / b, -y * (1.0 / b)),
    "where_less": lambda z, a, b, x, y: (0.0, 0.0, z.where_less(a, b, 1.0, 0.0), z.where_less(a, b, 0.0, 1.0)),
}


def jacobian(
    outputs: Sequence[Expr], inputs: Sequence[Expr], mode: str = "auto", directions: Array | None = None
) -> Array:
    """d outputs[i] / d inputs[j] (len(outputs), len(inputs)), an array of expressions.

    Inputs may be any expressions, and count as independent of each other. With `directions` (len(inputs), m), numbers
    or expressions, column j of the result is the derivative along d inputs[k] = directions[k, j].
    mode: "forward", "reverse", or "auto", the one that needs fewer products.
    """
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; choose from {', '.join(MODES)}")
    if not outputs or not inputs:
        return np.empty((len(outputs), len(inputs) if directions is None else directions.shape[1]), object)
    graph = outputs[0].graph
    if any(x.graph is not graph for x in (*outputs, *inputs)):
        raise ValueError("outputs and inputs belong to different graphs")
    if len({x.index for x in inputs}) < len(inputs):
        raise ValueError("an input is given twice")
    moves = np.eye(len(inputs)) if directions is None else directions
    seeds = [rates_of(graph, row) for row in moves]
    if mode == "auto":
        mode = cheaper(outputs, inputs, seeds)
    if mode == "forward":
        found = tangents(outputs, {x.index: rates for x, rates in zip(inputs, seeds, strict=True)})
    else:
        found = [along(gradient, seeds) for gradient in adjoints(outputs, inputs)]
    out = np.full((len(outputs), moves.shape[1]), graph.const(0.0), object)
    for i, rates in enumerate(found):
        for j, rate in rates.items():
            out[i, j] = rate
    return out


def rates_of(graph: Graph, row: Iterable[Any]) -> Rates:
    """The nonzero entries of a row."""
    return {j: x for j, x in enumerate(map(graph.lift, row)) if x.value != 0}


def tangents(outputs: Sequence[Expr], seeds: Mapping[int, Rates]) -> list[Rates]:
    """Forward mode: each output's derivatives along all directions, from those of the seeded operations (by index)."""
    graph = outputs[0].graph
    found: dict[int, Rates] = {}
    for i in graph.reachable(x.index for x in outputs):
        if i in seeds:
            found[i] = seeds[i]
            continue
        active = [k for k, a in enumerate(graph.ops[i].args) if found[a]]
        rates: Rates = {}
        if active:
            partials = partials_of(graph, i)
            for k in active:
                accumulate(rates, partials[k], found[graph.ops[i].args[k]])
        found[i] = rates
    return [found[x.index] for x in outputs]


def adjoints(outputs: Sequence[Expr], inputs: Sequence[Expr]) -> list[Rates]:
    """Reverse mode: each output's derivatives by all inputs, one output at a time."""
    graph = outputs[0].graph
    number = {x.index: k for k, x in enumerate(inputs)}
    depends = dependence(graph, [x.index for x in outputs], {i: 1 for i in number})
    found: list[Rates] = []
    for y in outputs:
        bars: Rates = {y.index: graph.const(1.0)} if depends[y.index] else {}
        gradient: Rates = {}
        for i in reversed(graph.reachable([y.index])):
            bar = bars.pop(i, None)
            if bar is None:
                continue
            if i in number:
                gradient[number[i]] = bar
                continue
            args = graph.ops[i].args
            for a, partial in zip(args, partials_of(graph, i), strict=True):
                if depends[a]:
                    accumulate(bars, partial, {a: bar})
        found.append(gradient)
    return found


def along(gradient: Rates, seeds: Sequence[Rates]) -> Rates:
    """The product of a gradient by the inputs and their rates along all directions."""
    rates: Rates = {}
    for k, bar in sorted(gradient.items()):
        accumulate(rates, bar, seeds[k])
    return rates


def partials_of(graph: Graph, i: int) -> tuple[Any, ...]:
    op = graph.ops[i]
    return PARTIALS[op.name](Expr(graph, i), *(Expr(graph, a) for a in op.args))


def accumulate(total: Rates, factor: Expr | float, rates: Rates) -> None:
    """total += factor * rates; a number as factor is 1, -1 or 0."""
    if not isinstance(factor, Expr) and factor == 0:
        return
    for j, x in rates.items():
        step = factor * x if isinstance(factor, Expr) else x if factor > 0 else -x
        total[j] = total[j] + step if j in total else step


def dependence(graph: Graph, roots: Iterable[int], marks: Mapping[int, int]) -> dict[int, int]:
    """For each operation, the marks (bits) of all marked operations it depends on; the search stops at a mark."""
    found: dict[int, int] = {}
    for i in graph.reachable(roots):
        bits = marks.get(i)
        if bits is None:
            bits = 0
            for a in graph.ops[i].args:
                bits |= found[a]
        found[i] = bits
    return found


def cheaper(outputs: Sequence[Expr], inputs: Sequence[Expr], seeds: Sequence[Rates]) -> str:
    """The mode with fewer products: per operand, forward takes one for each direction, reverse for each output."""
    graph = outputs[0].graph
    marks = {x.index: sum(1 << j for j in rates) for x, rates in zip(inputs, seeds, strict=True)}
    depends = dependence(graph, [x.index for x in outputs], marks)
    wanted: dict[int, int] = {}
    for k, y in enumerate(outputs):
        wanted[y.index] = wanted.get(y.index, 0) | 1 << k
    forward = reverse = 0
    for i in sorted(depends, reverse=True):
        needs = wanted.get(i, 0)
        if i in marks:
            reverse += needs.bit_count() * marks[i].bit_count()
            continue
        for a in graph.ops[i].args:
            if depends[a]:
                forward += depends[a].bit_count()
                reverse += needs.bit_count()
                wanted[a] = wanted.get(a, 0) | needs
    return "forward" if forward <= reverse else "reverse"


class Tape:
    """Expressions as a list of operations, to play on any scalars: numbers, arrays, expressions of another graph.

    A tape does not keep the graph, and frees each value after its last use.
    """

    def __init__(self, results: Sequence[Expr]) -> None:
        graph = results[0].graph
        order = graph.reachable(x.index for x in results)
        last = {a: i for i in order for a in graph.ops[i].args}
        last.update((x.index, len(graph.ops)) for x in results)
        place: dict[int, int] = {}
        free: list[int] = []
        self.size = 0
        self.constants: list[tuple[int, Any]] = []  # (place, value)
        self.loads: list[tuple[int, Any]] = []  # (place, reference)
        self.steps: list[tuple[Callable[..., Any], int, tuple[int, ...]]] = []
        for i in order:
            op = graph.ops[i]
            args = tuple(place[a] for a in op.args)
            free += {place[a] for a in op.args if last[a] == i}
            if op.args and free:
                place[i] = free.pop()
            else:
                place[i], self.size = self.size, self.size + 1
            if op.name == "const":
                # NumPy's float: dividing it by zero gives inf, not an exception
                self.constants.append((place[i], np.float64(op.data[0])))  # type: ignore[index]
            elif op.name == "load":
                self.loads.append((place[i], op.data))
            else:
                meaning = OPERATIONS[op.name].meaning
                assert meaning is not None
                self.steps.append((meaning, place[i], args))
        self.results = [place[x.index] for x in results]

    def play(self, memory: Mapping[Any, Any]) -> list[Any]:
        """The values of the results, from those of all loads."""
        values: list[Any] = [None] * self.size
        for k, value in self.constants:
            values[k] = value
        for k, reference in self.loads:
            values[k] = memory[reference]
        with np.errstate(divide="ignore", invalid="ignore"):
            for apply, k, args in self.steps:
                values[k] = apply(*(values[a] for a in args))
        return [values[k] for k in self.results]
