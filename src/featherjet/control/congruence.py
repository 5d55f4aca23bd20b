"""Adds G^T g and G^T C G of signals to the derivatives of costs, by compiled code (`jit/emit/congruence.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ..arrays import Array
from ..jit.emit.congruence import COUNTS, Block, Congruence, emit_congruence
from ..jit.engine import Library, target
from ..jit.library import library
from ..jit.objects import ModuleText, sources
from .signals import Slopes

ADDRESSES, STRIDES = slice(len(COUNTS), None, 2), slice(len(COUNTS) + 1, None, 2)  # words of a job
SAMPLE = {"C": 2, "g": 1, "Lx": 1, "Lxx": 2, "Lu": 1, "Lxu": 2, "Luu": 2}  # how many axes a sample has
NUMBER = 8  # bytes


class Adder:
    """Lx += G^T g, Lxx += G^T C G, likewise Lu, Lxu, Luu, on arrays that stay; G are slopes below each other.

    given: arrays (..., knots, .) by their names in SAMPLE, those of controls only if G has columns for them;
    slopes: like those that it will add; widths: columns of q, v and u, as many of them as G has; x: those of states.
    """

    def __init__(self, given: Mapping[str, Array], slopes: Sequence[Slopes], widths: Sequence[int], x: int) -> None:
        self.batch, self.widths = given["Lx"].shape[:-1], tuple(widths)
        blocks, row = [], 0
        for parts in slopes:
            starts = np.cumsum([0, *widths]).tolist()
            for part, column, width in zip(parts, starts, widths, strict=False):
                if part is not None:
                    blocks.append(Block(row, column, part.shape[-2], width, self._rows(part).strides[-2] // NUMBER))
            row += parts.q.shape[-2]
        size = Congruence(row, x, sum(widths) - x, given["Lxx"].strides[-2] // NUMBER, tuple(blocks))
        self._code = code(target().name, size)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("entry"))
        self._given = [self._wide(given[name], core) for name, core in SAMPLE.items() if name in size.arrays]
        self._work, self._job = np.zeros(size.work), np.zeros(size.words, np.int64)
        self._job[: len(COUNTS)] = self.batch[-1], self._work.ctypes.data
        self._address = self._job.ctypes.data
        self._fixed = [place(x) for x in self._given]

    @staticmethod
    def _rows(x: Array) -> Array:
        """x with contiguous rows."""
        return x if x.strides[-1] == NUMBER else np.ascontiguousarray(x)

    def _wide(self, x: Array, core: int) -> Array:
        """x with all axes of problems."""
        return x if x.ndim == len(self.batch) + core else np.broadcast_to(x, (*self.batch, *x.shape[-core:]))

    def __call__(self, slopes: Sequence[Slopes]) -> None:
        parts = [part for s in slopes for part in s[: len(self.widths)] if part is not None]
        parts = [self._wide(self._rows(part), 2) for part in parts]
        axis, job, arrays = len(self.batch) - 1, self._job, [*self._given, *parts]
        first = [*self._fixed, *map(place, parts)]
        job[STRIDES] = [x.strides[axis] // NUMBER for x in arrays]
        for shift in self._shifts(arrays):
            job[ADDRESSES] = first if shift is None else shift + first
            self._run(self._address)

    def _shifts(self, arrays: Sequence[Array]) -> list[Array | None]:
        """Where each problem begins in each array, in bytes; None for one problem."""
        axis = len(self.batch) - 1
        if not axis:
            return [None]
        problems = np.indices(self.batch[:-1]).reshape(axis, -1)
        return list((np.array([x.strides[:axis] for x in arrays]) @ problems).T)


def place(x: Array) -> int:
    """The address of an array; takes half the time of x.ctypes.data."""
    return x.__array_interface__["data"][0]


@cache
def code(cpu_name: str, size: Congruence) -> Library:
    """The sums for a size, on the CPU of that name."""
    cpu = target()

    def make() -> Iterator[ModuleText]:
        return sources(emit_congruence(size, cpu.lanes, cpu.platform))

    return library(cpu, ("congruence", *size), f"the sums of {size.rows} signals' slopes", make)
