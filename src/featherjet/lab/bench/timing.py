"""Times of contenders that take turns, so that whatever else the machine does affects all of them alike.

A contender on one core is charged the processor time of its thread, which leaves other programs out; one on all cores
is charged wall-clock time.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FINE = time.get_clock_info("thread_time").resolution < 1e-6  # coarse on some systems


class TimingSettings(NamedTuple):
    """How long to measure."""

    rounds: int = 12  # each contender has a turn in each; the first warms up
    turn: float = 0.02  # shortest turn [s]
    longest: float = 0.2  # longest turn [s] of a contender that need not do the whole batch at once
    patience: float = 1.5  # all turns together [s] of a slow contender, which then sits out some rounds


QUICK = TimingSettings(rounds=5, turn=0.002, longest=0.01, patience=0.05)


@dataclass
class Contender:
    """One way to compute something: run(n) does it for the first n samples of a batch."""

    name: str
    run: Callable[[int], object]
    batch: int
    whole: bool = False  # always runs the whole batch at once
    pinned: bool = True  # stays on one core


class Spread(NamedTuple):
    """Median and quartiles."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(x: Sequence[float] | np.ndarray) -> Spread:
        low, median, high = np.percentile(np.asarray(x), (25, 50, 75))
        return Spread(float(median), float(low), float(high))


class Times(NamedTuple):
    """Seconds per sample of each contender, round by round, NaN in rounds it sat out.

    `quiet` is the share of wall-clock time that this process had the core: 1 when nothing else ran.
    """

    seconds: dict[str, np.ndarray]
    quiet: float


class Turn(NamedTuple):
    """What a contender does in its turn: `samples` samples, `repeats` times, in the first `rounds` rounds."""

    samples: int
    repeats: int
    rounds: int


def plan(contender: Contender, settings: TimingSettings) -> Turn:
    """A turn that is long enough to measure and short enough to wait for."""
    n = contender.batch if contender.whole else 1
    seconds = _seconds(contender, n, 1)
    if seconds < settings.patience:
        seconds = _seconds(contender, n, 1)  # without what happens only once, such as compiling
    while not contender.whole and n < contender.batch and seconds < settings.turn / 4:
        n = min(contender.batch, 4 * n)
        seconds = _seconds(contender, n, 1)
    each = seconds / n
    if not contender.whole:
        n = max(1, min(contender.batch, int(settings.longest / each)))
    repeats = max(1, math.ceil(settings.turn / (n * each)))
    rounds = max(2, min(settings.rounds, int(settings.patience / (n * repeats * each))))
    return Turn(n, repeats, rounds)


def measure(
    contenders: Sequence[Contender], settings: TimingSettings, tick: Callable[[], object] = lambda: None
) -> Times:
    """Time contenders in turns, forwards in one round and backwards in the next; `tick` is called after each step."""
    times = {c.name: np.full(settings.rounds, np.nan) for c in contenders}
    processor = clock = 0.0
    with one_core() as on_all_cores:
        turns = []
        for contender in contenders:
            with on_all_cores(not contender.pinned):
                turns.append((contender, plan(contender, settings)))
            tick()
        for r in range(settings.rounds):
            for contender, turn in turns if r % 2 else reversed(turns):
                if r < turn.rounds:
                    started = time.perf_counter()
                    with on_all_cores(not contender.pinned):
                        seconds = _seconds(contender, turn.samples, turn.repeats)
                    if contender.pinned:
                        processor, clock = processor + seconds, clock + time.perf_counter() - started
                    times[contender.name][r] = seconds / (turn.samples * turn.repeats)
            tick()
    return Times({name: x[1:] for name, x in times.items()}, processor / clock if clock else 1.0)


def _seconds(contender: Contender, n: int, repeats: int) -> float:
    run, now = contender.run, time.thread_time if FINE and contender.pinned else time.perf_counter
    started = now()
    for _ in range(repeats):
        run(n)
    return now() - started


@contextmanager
def one_core() -> Iterator[Callable[[bool], AbstractContextManager[None]]]:
    """Keep this thread on one core, where the system can.

    The value is a context manager that gives the thread all cores again if its argument is true.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield _unchanged
        return
    every = os.sched_getaffinity(0)
    last = {max(every)}  # the first core most often serves the devices

    @contextmanager
    def on_all_cores(wanted: bool) -> Iterator[None]:
        if wanted:
            for thread in threading.enumerate():  # workers that began while this thread had one core have only that
                os.sched_setaffinity(thread.native_id or 0, every)
        try:
            yield
        finally:
            if wanted:
                os.sched_setaffinity(0, last)

    os.sched_setaffinity(0, last)
    try:
        yield on_all_cores
    finally:
        os.sched_setaffinity(0, every)


@contextmanager
def _unchanged(_: bool) -> Iterator[None]:
    yield
