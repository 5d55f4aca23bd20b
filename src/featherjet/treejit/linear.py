"""Kernels of dense linear algebra between the quantities of a tree: products, inverses, sums of groups of entries.

Columns lie in lanes. The sizes are known when code runs, so all robots share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..jit.engine import CPU
from ..jit.kernel import Kernel
from ..jit.loops.kernel import LoopKernel
from ..jit.loops.spec import Fill, LoopSpec
from ..math.dense import invert, minus_product

COUNTS = ("rows", "first_rows", "runs", "first_runs", "middle", "given", "kept", "inner")


def product_kernel(shape: Sequence[int], cpu: CPU) -> Kernel:
    """The kernel of -A B, for a square A and B of this shape."""
    axes = ("n", *(f"m{k}" for k in range(1, len(shape))))
    vectors = ("B", "result") if len(shape) == 1 else ()
    spec = LoopSpec(
        "product", minus_product, {"A": ("n", "n"), "B": axes}, {"result": axes}, Fill.COLUMNS, sizes=axes,
        scattered=vectors,
    )  # fmt: skip
    return LoopKernel(spec, dict(zip(axes, shape, strict=True)), cpu=cpu)


def inverse_kernel(n: int, cpu: CPU) -> Kernel:
    """The kernel of the inverse of a symmetric positive definite matrix (n, n)."""
    square = ("n", "n")
    spec = LoopSpec(
        "inverse", invert, {"M": square}, {"result": square}, Fill.COLUMNS, work={"W": square}, sizes=("n",)
    )
    return LoopKernel(spec, {"n": n}, cpu=cpu)


class Runs(NamedTuple):
    """Neighbouring entries of an axis that are folded: places (n, 3), from where to where and how many, and factors.

    The first ones cover all places, each of them once.
    """

    places: np.ndarray
    factors: np.ndarray
    first: int

    @staticmethod
    def of(groups: np.ndarray, factors: np.ndarray) -> Runs:
        """Runs of one entry each, by the group of each entry."""
        _, firsts = np.unique(groups, return_index=True)
        others = np.setdiff1d(np.arange(len(groups)), firsts)
        order = np.concatenate([firsts, others])
        places = np.stack([order, groups[order], np.ones(len(order), int)], 1)
        return Runs(places.astype(np.int64), factors[order], len(firsts))

    def joined(self) -> Runs:
        """The same as few long runs."""
        places: list[list[int]] = []
        factors: list[float] = []
        first = 0
        for k, (place, factor) in enumerate(zip(self.places.tolist(), self.factors.tolist(), strict=True)):
            start, to, _ = place
            if factors and k != self.first and factor == factors[-1]:
                before, onto, count = places[-1]
                if (before + count, onto + count) == (start, to):
                    places[-1][2] += 1
                    continue
            places.append(place)
            factors.append(factor)
            first += k < self.first
        return Runs(np.array(places, np.int64), np.array(factors), first)


def fold_kernel(shape: Sequence[int], folded: Sequence[int], groups: Runs, count: int, cpu: CPU) -> Kernel:
    """The kernel that sums groups of entries of arrays of this shape, along the first axis, another one, or both.

    groups: of those axes, whose length becomes `count`.
    """
    if len(shape) == 1:
        spec = LoopSpec(
            "fold_vector", fold_vector, {"x": ("n",)}, {"result": ("kept",)}, Fill.COLUMNS, sizes=("n", "first"),
            tables=("places",), factors=("factors",), scattered=("x", "result"),
        )  # fmt: skip
        tables = {"places": groups.places.ravel(), "factors": groups.factors}
        return LoopKernel(spec, {"n": shape[0], "kept": count, "first": groups.first}, tables, cpu)
    rows = groups if 0 in folded else Runs.of(np.arange(shape[0]), np.ones(shape[0]))
    runs, widths, middle, inner = Runs.of(np.zeros(1, int), np.ones(1)), (1, 1), 1, prod(shape[1:])
    if axis := folded[-1]:
        runs, widths = groups.joined(), (shape[axis], count)
        middle, inner = prod(shape[1:axis]), prod(shape[axis + 1 :])
    before, after = (tuple(f"{side}{k}" for k in range(len(shape))) for side in ("given", "kept"))
    kept = [count if k in folded else length for k, length in enumerate(shape)]
    counts = [len(rows.factors), rows.first, len(runs.factors), runs.first, middle, *widths, inner]
    tables = {"row_places": rows.places.ravel(), "run_places": runs.places.ravel()}
    tables |= {"row_factors": rows.factors, "run_factors": runs.factors}
    spec = LoopSpec(
        "fold", fold, {"x": before}, {"result": after}, Fill.COLUMNS, sizes=COUNTS,
        tables=("row_places", "run_places"), factors=("row_factors", "run_factors"),
    )  # fmt: skip
    lengths = zip((*before, *after, *COUNTS), (*shape, *kept, *counts), strict=True)
    return LoopKernel(spec, dict(lengths), tables, cpu)


def fold_vector(t: Any, x: Any, result: Any, n: Any, first: Any, places: Any, factors: Any) -> None:
    """Sum entries of a vector in groups, with factors; `places` and `first` as for `fold`."""
    for k in t.loop(first):
        result[places[k * 3 + 1]] = x[places[k * 3]] * factors[k]
    for k in t.loop(n, start=first):
        to = places[k * 3 + 1]
        result[to] = result[to] + x[places[k * 3]] * factors[k]


def fold(
    t: Any, x: Any, result: Any, rows: Any, first_rows: Any, runs: Any, first_runs: Any, middle: Any, given: Any,
    kept: Any, inner: Any, row_places: Any, run_places: Any, row_factors: Any, run_factors: Any,
) -> None:  # fmt: skip
    """Sum rows, and runs of neighbouring entries within them, in groups, with factors.

    Arrays have axes (rows, middle, folded, inner); `given` and `kept`: the lengths of the folded one before and after.
    Tables of places have three numbers a row or run: from where, to where, how many. The first rows and runs cover the
    whole result once, and are stored; the others are added.
    """
    x, result = x.rows, result.rows

    def add(r: Any, start: Any, stop: Any, first: bool) -> None:
        source, target, by = row_places[r * 3], row_places[r * 3 + 1], row_factors[r]
        for m in t.loop(middle):
            for k in t.loop(stop, start=start):
                begin, to, count = (run_places[k * 3 + i] for i in range(3))
                y = x.beyond(source, (m * given + begin) * inner)
                z = result.beyond(target, (m * kept + to) * inner)
                factor = by * run_factors[k]
                for c in t.columns(count * inner):
                    z[0, c] = y[0, c] * factor if first else z[0, c] + y[0, c] * factor

    for r in t.loop(first_rows):
        add(r, 0, first_runs, True)
        add(r, first_runs, runs, False)
    for r in t.loop(rows, start=first_rows):
        add(r, 0, runs, False)
