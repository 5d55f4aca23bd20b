"""Long batches in slices, on one thread or several, so that Ctrl-C ends them soon and nothing is written afterwards.

Python looks for signals between calls of machine code, so a call must not take long. Slices end between whole vectors
of samples: results do not depend on where a batch is cut.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from math import gcd, prod

import numpy as np

from .workers import LOOK

GRAIN = 64  # a multiple of the lanes of every CPU; batches are cut at multiples of this many samples
FEWEST = 16  # samples in a slice, however long they take: a vector, on every CPU
SLICE = 5e6  # nanoseconds of work between two looks for signals, as kernels estimate them; the truth may be ten times
LEAST = 1e5  # nanoseconds, likewise: the shortest part of a batch that several threads share

Array = np.ndarray
Work = Callable[[slice], int]


def flattened(
    batch: tuple[int, ...], inputs: Sequence[Array], cores: Sequence[int], outs: Sequence[Array]
) -> tuple[Sequence[int], list[Array], tuple[Array, ...]]:
    """Batch, inputs and results with one batch axis if that needs no copies; else with the batch's own."""
    own = [x.shape[: x.ndim - core] for x, core in zip(inputs, cores, strict=True)]
    plain = all(
        (shape == batch and x.flags.c_contiguous) or prod(shape) == 1 for shape, x in zip(own, inputs, strict=True)
    )
    axes = (prod(batch),) if plain and all(o.flags.c_contiguous for o in outs) else batch

    def along(x: Array, core: tuple[int, ...], shape: tuple[int, ...]) -> Array:
        if shape == axes:
            return x
        whole = (*axes, *core)
        return x.reshape(whole) if shape == batch else np.broadcast_to(x.reshape(core) if plain else x, whole)

    wide = [along(x, x.shape[x.ndim - core :], shape) for x, core, shape in zip(inputs, cores, own, strict=True)]
    return axes, wide, tuple(along(o, o.shape[len(batch) :], batch) for o in outs)


def rows_within(batch: Sequence[int], cost: float, time: float) -> int:
    """Rows of the first axis that take about `time` ns, at least one; `cost` is in ns a sample.

    A multiple of GRAIN samples; where rows or samples take too long for that, a power of two. A batch that is cut at
    multiples of it gives the same results.
    """
    row = cost * prod(batch[1:])
    rows = GRAIN // gcd(GRAIN, prod(batch[1:]))  # the fewest that are a multiple of GRAIN samples
    fitting = max(-(-FEWEST // prod(batch[1:])), int(time / row))
    return rows * (fitting // rows) if fitting >= rows else 1 << (fitting.bit_length() - 1)


def in_turn(work: Work, count: int, rows: int) -> int:
    """All flags of a batch of `count` rows, so many at a time, computed on this thread."""
    flags = 0
    for start in range(0, count, rows):
        flags |= work(slice(start, min(start + rows, count)))
    return flags


class Team:
    """The caller and its helpers, who compute a batch of `count` rows.

    The caller begins at once at the first row; helpers take rows from the end as soon as they wake up, which may take
    longer than the batch, or never happen while other programs have their processors. Parts shrink from `most` rows to
    `least` as fewer are left, so that all end together. Once one of the team fails, or the caller is interrupted,
    nobody begins a part.
    """

    def __init__(self, work: Work, count: int, least: int, most: int) -> None:
        self._work, self._least, self._most = work, least, most
        self._start, self._stop = 0, count  # what nobody has begun
        self._busy = self._flags = 0
        self._failure: BaseException | None = None
        self._change = threading.Condition()

    def run(self, pool: Executor, helpers: int) -> int:
        """All flags of all rows. When this returns or raises, nobody is at work."""
        self._share = 1 / (2 * (helpers + 1))
        try:
            for _ in range(helpers):
                pool.submit(self._help)
            self._take_part(first=True)
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure
        return self._flags

    def _help(self) -> None:
        try:
            self._take_part(first=False)
        except BaseException as failure:  # the caller raises it
            self._failure = failure
            self._begin_nothing()

    def _take_part(self, first: bool) -> None:
        """Compute parts until none is left: the first of those that are left, or the last."""
        while (part := self._begun(first)) is not None:
            flags = 0
            try:
                flags = self._work(part)
            finally:
                with self._change:
                    self._flags |= flags
                    self._busy -= 1
                    self._change.notify_all()

    def _begun(self, first: bool) -> slice | None:
        """A part that nobody else will begin; it is cut at a multiple of `least`."""
        with self._change:
            start, stop, least = self._start, self._stop, self._least
            if start >= stop:
                return None
            rows = max(least, min(self._most, int((stop - start) * self._share)) // least * least)
            if first:
                self._start = middle = min(start + rows, stop)
                part = slice(start, middle)
            else:
                self._stop = middle = max(start, -((rows - stop) // least) * least)
                part = slice(middle, stop)
            self._busy += 1
            return part

    def _begin_nothing(self) -> None:
        with self._change:
            self._start = self._stop

    def _end(self) -> None:
        """Wait until nobody works; interruptions wait too, which takes no longer than one part."""
        interrupted: BaseException | None = None
        while True:
            try:
                self._begin_nothing()
                with self._change:
                    while self._busy:
                        self._change.wait(LOOK)
                break
            except KeyboardInterrupt as again:
                interrupted = again
        if interrupted is not None:
            raise interrupted
