"""Adds G^T g and G^T C G of signals to the derivatives of costs, by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...jit.engine import target
from ...jit.loops.kernel import LoopKernel
from ...jit.loops.spec import Fill, LoopSpec
from ...jit.sequence import AtOnce, InRows
from ...math.scalars import where_less
from ..residuals.signals import SignalSlopes

SAMPLE = {"C": 2, "g": 1, "Lx": 1, "Lxx": 2, "Lu": 1, "Lxu": 2, "Luu": 2}  # how many axes a sample has
NUMBER = 8  # bytes
REMEMBERED = 64  # kernels


class SlopeBlock(NamedTuple):
    """Where an array lies within G."""

    row: int
    column: int
    rows: int
    columns: int


class GaussNewtonSum:
    """Lx += G^T g, Lxx += G^T C G, likewise Lu, Lxu, Luu, on arrays that stay; G are slopes below each other.

    given: arrays (..., knots, .) by their names in SAMPLE, those of controls only if G has columns for them;
    widths: columns of q, v and u, as many of them as G has; x: those of states.
    """

    def __init__(
        self, given: Mapping[str, Array], slopes: Sequence[SignalSlopes], widths: Sequence[int], x: int
    ) -> None:
        self.batch = given["Lx"].shape[:-1]
        self._copies: list[tuple[Array, Array]] = []  # of slopes whose rows are not contiguous, and these
        blocks, parts, row = [], list[Array](), 0
        starts = np.cumsum([0, *widths]).tolist()
        for of_signal in slopes:
            for part, column, width in zip(of_signal, starts, widths, strict=False):
                if part is not None:
                    parts.append(self._wide(self._rows(part), 2))
                    blocks.append(SlopeBlock(row, column, part.shape[-2], width))
            row += of_signal.q.shape[-2]
        self.kernel = sums_kernel(target().name, row, x, sum(widths) - x, tuple(blocks))
        C, g, *self._results = (self._wide(given[name], SAMPLE[name]) for name in ("C", "g", *self.kernel.spec.results))
        self._inputs = [C, g, *parts]

    @cached_property
    def _runs(self) -> list[Callable[[], None]]:
        """The code, on these arrays."""
        if len(self.batch) == 1:
            return [AtOnce(self.kernel, self._inputs, self._results)]
        arrays, problems = [*self._inputs, *self._results], np.ndindex(self.batch[:-2])
        return [InRows(self.kernel, [x[p].swapaxes(0, 1) for x in arrays]) for p in problems]

    def _rows(self, x: Array) -> Array:
        """x with contiguous rows; a copy is made again at each call."""
        if x.strides[-1] == NUMBER:
            return x
        copy = np.ascontiguousarray(x)
        self._copies.append((copy, x))
        return copy

    def _wide(self, x: Array, core: int) -> Array:
        """x with all axes of problems."""
        return x if x.ndim == len(self.batch) + core else np.broadcast_to(x, (*self.batch, *x.shape[-core:]))

    def __call__(self) -> None:
        for copy, x in self._copies:
            copy[...] = x
        for run in self._runs:
            run()


@lru_cache(REMEMBERED)
def sums_kernel(cpu_name: str, rows: int, x: int, u: int, blocks: tuple[SlopeBlock, ...]) -> LoopKernel:
    """The kernel of `add_gauss_newton` for the CPU of that name; G has so many rows, and x + u columns."""
    inputs = {f"G{k}": (block.rows, block.columns) for k, block in enumerate(blocks)}
    results: dict[str, tuple[int, ...]] = {"Lx": (x,), "Lxx": (x, x)}
    if u:
        results |= {"Lu": (u,), "Lxu": (x, u), "Luu": (u, u)}
    work = {"G": (rows, x + u), "CG": (rows, x + u)}
    constants = (("rows", rows), ("x", x), ("u", u), ("blocks", tuple(map(tuple, blocks))))
    spec = LoopSpec(
        "gauss_newton", add_gauss_newton, {"C": (rows, rows), "g": (rows,), **inputs}, results, Fill.COLUMNS, work,
        constants=constants,
    )  # fmt: skip
    return LoopKernel(spec)


def add_gauss_newton(
    t: Any, C: Any, g: Any, *arrays: Any, rows: int, x: int, u: int, blocks: tuple[tuple[int, ...], ...]
) -> None:
    """Lx += G^T g, Lxx += G^T C G, likewise Lu, Lxu, Luu if there are controls, of one sample; C is symmetric.

    arrays: the blocks of G, the results that are added to, memory for G and C G. Where g and C are zero, nothing is
    done: cones and limits cost nothing at most knots.
    """
    parts, (Lx, Lxx, *of_controls), (G, CG) = arrays[: len(blocks)], arrays[len(blocks) : -2], arrays[-2:]
    n = x + u
    for _ in t.when(0.0, count_nonzero(t, C, g, CG, rows)):
        if sum(r * c for _, _, r, c in blocks) < rows * n:
            for i in t.loop(rows):
                for c in t.columns(n):
                    G[i, c] = 0.0
        for part, (row, column, height, width) in zip(parts, blocks, strict=True):
            to = G.beyond(row, column)
            for i in t.loop(height):
                for c in t.columns(width):
                    to[i, c] = part[i, c]
        t.product(CG, C, G, (rows, n, rows))
        t.product(Lx.row, g.rows, G, (1, x, rows), start=Lx.row)
        t.product(Lxx, G, CG, (x, x, rows), start=Lxx)
        if of_controls:
            (Lu, Lxu, Luu), Gu, CGu = of_controls, G.beyond(0, x), CG.beyond(0, x)
            t.product(Lu.row, g.rows, Gu, (1, u, rows), start=Lu.row)
            t.product(Lxu, G, CGu, (x, u, rows), start=Lxu)
            t.product(Luu, Gu, CGu, (u, u, rows), start=Luu)


def count_nonzero(t: Any, C: Any, g: Any, sums: Any, rows: int) -> Any:
    """How many columns of [C; g] are not zero; sums: memory."""
    for c in t.columns(rows):
        total = t.cell(absolute(g[c]))
        for i in t.loop(rows):
            total[0] = total[0] + absolute(C[i, c])
        sums[0, c] = total[0]
    count = t.cell(0.0)
    for i in t.loop(rows):
        total = sums[0, i]
        count[0] = count[0] + where_less(0.0, total, 1.0, where_less(total, 1.0, 0.0, 1.0))  # 1 if it is not a number
    return count[0]


def absolute(x: Any) -> Any:
    """The absolute value."""
    return where_less(x, 0.0, -x, x)
