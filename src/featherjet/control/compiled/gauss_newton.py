"""Adds G^T g and G^T C G of signals to the derivatives of costs, by compiled code (`jit/emit/congruence.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np

from ...arrays import Array
from ...jit.emit.congruence import COUNTS, Block, Congruence, emit_congruence
from ...jit.engine import Library, target
from ...jit.library import library
from ...jit.objects import ModuleText, sources
from ..residuals.signals import SignalSlopes

ADDRESSES, STRIDES = slice(len(COUNTS), None, 2), slice(len(COUNTS) + 1, None, 2)  # words of a job
SAMPLE = {"C": 2, "g": 1, "Lx": 1, "Lxx": 2, "Lu": 1, "Lxu": 2, "Luu": 2}  # how many axes a sample has
NUMBER = 8  # bytes


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
                    rows = self._rows(part)
                    parts.append(self._wide(rows, 2))
                    blocks.append(Block(row, column, part.shape[-2], width, rows.strides[-2] // NUMBER))
            row += of_signal.q.shape[-2]
        size = Congruence(row, x, sum(widths) - x, given["Lxx"].strides[-2] // NUMBER, tuple(blocks))
        self._size = size
        arrays = [self._wide(given[name], core) for name, core in SAMPLE.items() if name in size.arrays] + parts
        self._arrays, self._work = arrays, np.zeros(size.work)
        self._jobs = [self._job(size, shift) for shift in self._shifts(arrays)]
        self._addresses = [job.ctypes.data for job in self._jobs]

    def load(self) -> Library:
        """The code."""
        return sums_code(target().name, self._size)

    @cached_property
    def _code(self) -> tuple[Callable[[int], None], Library]:
        """A function of the address of a job, and what it is in."""
        library = self.load()
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("entry")), library

    def _job(self, size: Congruence, shift: Array) -> Array:
        """What the code reads for one problem, which begins at `shift` in each array."""
        job, axis = np.zeros(size.words, np.int64), len(self.batch) - 1
        job[: len(COUNTS)] = self.batch[-1], self._work.ctypes.data
        job[STRIDES] = [x.strides[axis] // NUMBER for x in self._arrays]
        job[ADDRESSES] = shift + [x.ctypes.data for x in self._arrays]
        return job

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
        run, _ = self._code
        for address in self._addresses:
            run(address)

    def _shifts(self, arrays: Sequence[Array]) -> Array:
        """Where each problem begins in each array, in bytes: (problems, arrays)."""
        axis = len(self.batch) - 1
        if not axis:
            return np.zeros((1, len(arrays)), int)
        problems = np.indices(self.batch[:-1]).reshape(axis, -1)
        return (np.array([x.strides[:axis] for x in arrays]) @ problems).T


@cache
def sums_code(cpu_name: str, size: Congruence) -> Library:
    """Compiled sums of one size, for the CPU of that name."""
    cpu = target()

    def make() -> Iterator[ModuleText]:
        return sources(emit_congruence(size, cpu.lanes, cpu.platform))

    return library(cpu, ("congruence", *size), f"the sums of {size.rows} signals' slopes", make)
