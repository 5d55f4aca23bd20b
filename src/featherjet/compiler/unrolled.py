"""Tracing an algorithm for one robot: every body and every pair written out, constants folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algorithms.scan import Scan
from ..model.tree import Tree
from .graph import Expr, Graph


@dataclass
class Straight:
    """Straight-line code: what comes in by name and length, what goes out entry by entry."""

    graph: Graph
    nv: int
    inputs: dict[str, int]
    outputs: list[list[Expr]]  # of each result, its entries row by row
    watched: list[Expr]  # margins of the mass matrix, flagged where they are close to zero

    @property
    def roots(self) -> list[int]:
        return [x.index for entries in (*self.outputs, self.watched) for x in entries]


def trace(tree: Tree, algorithm: Callable[..., Sequence[Any]], inputs: Sequence[str], margins: bool) -> Straight:
    """Run an algorithm on expressions; with `margins`, the last of its results are those of the mass matrix."""
    graph = Graph()
    sizes = {"q": tree.nq, "fext": 6 * len(tree.nodes)}
    given = {name: sizes.get(name, tree.nv) for name in inputs}
    arrays: list[Any] = []
    for name, size in given.items():
        x = np.array([graph.load((name, k)) for k in range(size)], object)
        arrays.append([tuple(f) for f in x.reshape(-1, 6)] if name == "fext" else x)
    results = [[graph.lift(x) for x in np.asarray(r, object).flat] for r in algorithm(Scan(tree, (), object), *arrays)]
    return Straight(graph, tree.nv, given, results[:-1] if margins else results, results[-1] if margins else [])
