"""Tracing an algorithm for one robot: every body and every pair written out, constants folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..algorithms.dynamics import coupled
from ..algorithms.scan import Scan
from ..model.tree import Tree
from ..treejit.kernels import COMPARED, Kernel, effort
from ..treejit.tables import sizes
from .graph import Expr, Graph
from .schedule import Schedule

Shape = tuple[int, ...]


@dataclass
class Straight:
    """Straight-line code: what comes in by name and shape, what goes out by shape, entry by entry."""

    graph: Graph
    inputs: dict[str, Shape]
    outputs: list[tuple[Shape, list[Expr]]]  # of each result, its entries row by row
    watched: list[Expr]  # margins of the mass matrix, flagged where they are close to zero

    @property
    def roots(self) -> list[int]:
        return [x.index for entries in (*(e for _, e in self.outputs), self.watched) for x in entries]


def trace(function: Callable[..., Sequence[Any]], inputs: dict[str, Shape], limit: int | None = None) -> Straight:
    """Run a function of arrays on arrays of expressions."""
    graph = Graph(limit)
    given = {}
    for name, shape in inputs.items():
        entries = np.empty(prod(shape), object)
        entries[:] = [graph.load((name, k)) for k in range(len(entries))]
        given[name] = entries.reshape(shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # of constants that are known to be zero
        results = [np.asarray(r, object) for r in function(**given)]
    return Straight(graph, inputs, [(r.shape, [graph.lift(x) for x in r.flat]) for r in results], [])


def trace_kernel(tree: Tree, kernel: Kernel, fext: bool) -> Straight:
    """The same for a kernel, whose margins are watched."""
    known = sizes(tree)
    inputs: dict[str, Shape] = {name: (known["q" if name == "q" else "v"],) for name in kernel.inputs}
    if fext:
        inputs["fext"] = (known["joints"], 6)

    def run(algorithm: Callable[..., Sequence[Any]], **given: Any) -> Sequence[Any]:
        scan = Scan(tree, (), object)
        if "fext" in given:
            given["fext"] = [tuple(f) for f in given["fext"]]
        if tree.coupling is None:
            return algorithm(scan, *given.values())
        c = tree.coupling
        expanded = [coupled.expand(c, name, x) for name, x in given.items()]
        if kernel.coupled:
            return kernel.coupled(scan, c.G, *expanded)
        results = kernel.trace(scan, *expanded)
        return [coupled.reduce(c.G, core, r) for core, r in zip(kernel.outputs, results, strict=True)]

    ways = [kernel.trace]
    if tree.coupling is None and effort(kernel, tree) <= COMPARED:
        ways += kernel.others
    traced = [trace(partial(run, way), inputs) for way in ways]
    straight = min(traced, key=lambda s: Schedule(s.graph, s.roots).instructions) if len(traced) > 1 else traced[0]
    if kernel.margins:
        straight.watched = straight.outputs.pop()[1]
    return straight
