"""Traces a function into straight-line code: all loops unrolled, constants folded."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from .graph import Expr, Graph
from .schedule import Schedule

OWN = {__name__.partition(".")[0], "numpy", *sys.stdlib_module_names}  # whose sources keys of code name, or need not
Shape = tuple[int, ...]
Function = Callable[..., Sequence[Any]]  # (**arrays of scalars) -> arrays of scalars


@dataclass
class Straight:
    """Straight-line code: its inputs by name and shape, its outputs entry by entry."""

    graph: Graph
    inputs: dict[str, Shape]
    outputs: list[tuple[Shape, list[Expr]]]  # for each result, its entries row by row
    watched: list[Expr] = field(default_factory=list)  # flagged unless clearly positive
    units: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)  # (start, size) of parts of norm one

    @property
    def roots(self) -> list[int]:
        return [x.index for entries in (*(e for _, e in self.outputs), self.watched) for x in entries]

    @property
    def digest(self) -> str:
        """A hash of everything that code for this trace depends on."""
        shapes = [shape for shape, _ in self.outputs]
        facts = self.inputs, shapes, self.roots, len(self.watched), sorted(self.units.items())
        return hashlib.sha256(f"{facts}\n{self.graph.text()}".encode()).hexdigest()

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.graph, self.roots)

    @property
    def instructions(self) -> int:
        """Arithmetic instructions per sample."""
        return self.schedule.instructions


def loads(graph: Graph, name: str, shape: Shape) -> np.ndarray:
    """An input as an array of loads, one for each entry."""
    entries = np.empty(prod(shape), object)
    entries[:] = [graph.load((name, k)) for k in range(len(entries))]
    return entries.reshape(shape)


def shortest(
    functions: Sequence[Function], inputs: Mapping[str, Shape], limit: int | None = None, watch: int = 0
) -> Straight:
    """The shortest trace among functions with the same results."""
    traced = [trace(f, inputs, limit, watch) for f in functions]
    return traced[0] if len(traced) == 1 else min(traced, key=lambda s: s.instructions)


def trace(function: Function, inputs: Mapping[str, Shape], limit: int | None = None, watch: int = 0) -> Straight:
    """Run a function on arrays of expressions; its last `watch` results are watched, not returned."""
    graph = Graph(limit)
    given = {name: loads(graph, name, shape) for name, shape in inputs.items()}
    with np.errstate(divide="ignore", invalid="ignore"):  # constants may be zero
        results = [np.asarray(r, object) for r in function(**given)]
    outputs = [(r.shape, [graph.lift(x) for x in r.flat]) for r in results]
    returned = len(outputs) - watch
    watched = [x for _, entries in outputs[returned:] for x in entries]
    return Straight(graph, dict(inputs), outputs[:returned], watched)


def is_own(*functions: object) -> bool:
    """Whether functions are this package's (or Python's, NumPy's), and so is all that they call, as far as it is bound
    to them, closed over, a default argument, or within an object that is. What objects do themselves, their class says.
    """
    left, seen = list(functions), set()
    while left:
        x = left.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, partial):
            left += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, MethodType):
            left += [x.__func__, x.__self__]
        elif isinstance(x, (tuple, list, set, frozenset)):
            left += filter(_may_call, x)
        elif isinstance(x, dict):
            left += filter(_may_call, x.values())
        else:
            whose = x if isinstance(x, (FunctionType, type)) else type(x)
            if whose.__module__.partition(".")[0] not in OWN:
                return False
            if isinstance(x, FunctionType):
                left += [cell.cell_contents for cell in x.__closure__ or ()]
                left += [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
            elif whose is not x:
                left += filter(_may_call, getattr(x, "__dict__", {}).values())
    return True


def _may_call(x: object) -> bool:
    """Whether something in an object may be a function, or hold one."""
    return callable(x) or isinstance(x, (tuple, list, set, frozenset, dict))
