"""Tracing an algorithm for one robot: every body and every pair written out, constants folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import coupled
from ..algorithms.scan import Scan
from ..model.tree import Coupling, Tree
from .graph import Expr, Graph
from .tables import sizes

if TYPE_CHECKING:
    from .kernels import Kernel


@dataclass
class Straight:
    """Straight-line code: what comes in by name and length, what goes out entry by entry."""

    graph: Graph
    sizes: dict[str, int]  # of the core dimensions
    inputs: dict[str, int]
    outputs: list[list[Expr]]  # of each result, its entries row by row
    watched: list[Expr]  # margins of the mass matrix, flagged where they are close to zero

    @property
    def roots(self) -> list[int]:
        return [x.index for entries in (*self.outputs, self.watched) for x in entries]


def trace(tree: Tree, kernel: Kernel, fext: bool) -> Straight:
    """Run a kernel's algorithm on expressions."""
    graph = Graph()
    known = sizes(tree)
    lengths = {"q": known["q"], "fext": 6 * known["joints"]}
    names = (*kernel.inputs, "fext") if fext else kernel.inputs
    given = {name: lengths.get(name, known["v"]) for name in names}
    arrays: list[Any] = []
    for name, size in given.items():
        x = np.array([graph.load((name, k)) for k in range(size)], object)
        arrays.append([tuple(f) for f in x.reshape(-1, 6)] if name == "fext" else x)
    scan = Scan(tree, (), object)
    found = (
        kernel.trace(scan, *arrays) if tree.coupling is None else mimicking(kernel, scan, tree.coupling, names, arrays)
    )
    results = [[graph.lift(x) for x in np.asarray(r, object).flat] for r in found]
    watched = results.pop() if kernel.margins else []
    return Straight(graph, known, given, results, watched)


def mimicking(kernel: Kernel, scan: Scan, c: Coupling, names: Sequence[str], arrays: Sequence[Any]) -> Sequence[Any]:
    """Results in the coordinates of the independent joints."""
    given = [coupled.expand(c, name, x) for name, x in zip(names, arrays, strict=True)]
    if kernel.coupled:
        return kernel.coupled(scan, c.G, *given)
    return [coupled.reduce(c.G, core, r) for core, r in zip(kernel.outputs, kernel.trace(scan, *given), strict=True)]
