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

from .workers import awaited

GRAIN = 64  # a multiple of the lanes of every CPU; batches are cut at multiples of this many samples
FEWEST = 16  # samples in a slice, however long they take: a vector, on every CPU
SLICE = 5e6  # nanoseconds of work between two looks for signals, as kernels estimate them; the truth may be ten times

Array = np.ndarray
Work = Callable[[slice], int]


def flattened(
    batch: tuple[int, ...], inputs: Sequence[Array], cores: Sequence[int], outs: Sequence[Array]
) -> tuple[Sequence[int], list[Array], tuple[Array, ...]]:
    """Batch, inputs and results with one batch axis if that needs no copies; else with the batch's own."""
    flat = (prod(batch),)
    own = [x.shape[: x.ndim - core] for x, core in zip(inputs, cores, strict=True)]
    plain = all(
        prod(shape) == 1 or (shape == batch and x.flags.c_contiguous) for shape, x in zip(own, inputs, strict=True)
    )
    axes = flat if plain and all(o.flags.c_contiguous for o in outs) else batch
    wide = []
    for x, core, shape in zip(inputs, cores, own, strict=True):
        if axes is flat:
            x = x.reshape(prod(shape), *x.shape[x.ndim - core :])
        wide.append(np.broadcast_to(x, (*axes, *x.shape[x.ndim - core :])))
    return axes, wide, tuple(o.reshape(*axes, *o.shape[len(batch) :]) for o in outs)


def slices(batch: Sequence[int], cost: float, start: int = 0) -> list[slice]:
    """Parts of the first axis, from `start` on, each of which takes about SLICE; `cost` is in ns a sample.

    They begin at multiples of GRAIN samples; where rows or samples take too long for that, at rows that are multiples
    of a power of two. Either way a cut does not depend on how threads share the batch.
    """
    row = cost * prod(batch[1:])
    rows = GRAIN // gcd(GRAIN, prod(batch[1:]))  # the fewest that are a multiple of GRAIN samples
    fitting = max(-(-FEWEST // prod(batch[1:])), int(SLICE / row))
    rows = rows * (fitting // rows) if fitting >= rows else 1 << (fitting.bit_length() - 1)
    end = start + batch[0]
    return [slice(k, min(k + rows, end)) for k in range(start, end, rows)]


def in_turn(work: Work, parts: Sequence[slice]) -> int:
    """All flags of all parts, computed on this thread."""
    flags = 0
    for part in parts:
        flags |= work(part)
    return flags


class Team:
    """Workers that stop together: once one of them fails, or the one who waits is interrupted, nobody begins a part."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stopped = False
        self._busy = 0
        self._change = threading.Condition()

    def run(self, pool: Executor, shares: Sequence[Sequence[slice]]) -> int:
        """All flags of all shares, each computed by one worker. When this returns or raises, no worker is at work."""
        flags = 0
        try:
            for future in [pool.submit(self._share, parts) for parts in shares]:
                flags |= awaited(future)
        finally:
            self._stop()
        return flags

    def _share(self, parts: Sequence[slice]) -> int:
        flags = 0
        for part in parts:
            with self._change:
                if self._stopped:
                    break
                self._busy += 1
            try:
                flags |= self._work(part)
            finally:
                with self._change:
                    self._busy -= 1
                    self._change.notify_all()
        return flags

    def _stop(self) -> None:
        """Wait until nobody works; further interruptions wait too, which takes no longer than one part."""
        interrupted: BaseException | None = None
        while True:
            try:
                with self._change:
                    self._stopped = True
                    while self._busy:
                        self._change.wait()
                break
            except KeyboardInterrupt as again:
                interrupted = again
        if interrupted is not None:
            raise interrupted
