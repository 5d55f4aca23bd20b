"""Times of contenders that take turns: whatever else the machine does, it does to all of them alike.

A contender on one core is charged the processor time of its thread, so that other programs do not count; one on all
cores is charged the time on the clock.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FINE = time.get_clock_info("thread_time").resolution < 1e-6  # not so everywhere


class Settings(NamedTuple):
    """How long to measure."""

    rounds: int = 12  # in which each contender has a turn; the first is for warming up
    turn: float = 0.02  # seconds that a turn lasts at least
    longest: float = 0.2  # seconds that it lasts at most, if a contender need not do the whole batch at once
    patience: float = 1.5  # seconds for all turns of a contender that is slower than that


QUICK = Settings(rounds=5, turn=0.002, longest=0.01, patience=0.05)


@dataclass
class Contender:
    """One way to compute something: run(n) does it for the first n samples of a batch."""

    name: str
    run: Callable[[int], object]
    batch: int
    whole: bool = False  # whether it takes the batch in one go
    pinned: bool = True  # whether it is to stay on one core


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
    """Seconds per sample of each contender, round by round, NaN in rounds it sat out; and how quiet it was.

    `quiet` is the share of the clock's time that the processor was ours: 1 when nothing else ran.
    """

    seconds: dict[str, np.ndarray]
    quiet: float


class Turn(NamedTuple):
    """What a contender does when it is its turn: so many samples so often, in the first so many rounds."""

    samples: int
    repeats: int
    rounds: int


def plan(contender: Contender, settings: Settings) -> Turn:
    """Long enough to be measured, short enough to be waited for."""
    n = contender.batch if contender.whole else 1
    seconds = _seconds(contender, n, 1)
    if seconds < settings.patience:
        seconds = _seconds(contender, n, 1)  # without whatever happens only once
    while not contender.whole and n < contender.batch and seconds < settings.turn / 4:
        n = min(contender.batch, 4 * n)
        seconds = _seconds(contender, n, 1)
    each = seconds / n
    if not contender.whole:
        n = max(1, min(contender.batch, int(settings.longest / each)))
    repeats = max(1, math.ceil(settings.turn / (n * each)))
    rounds = max(2, min(settings.rounds, int(settings.patience / (n * repeats * each))))
    return Turn(n, repeats, rounds)


def measure(contenders: Sequence[Contender], settings: Settings, tick: Callable[[], object] = lambda: None) -> Times:
    """Let contenders take turns, in an order that alternates."""
    times = {c.name: np.full(settings.rounds, np.nan) for c in contenders}
    ours = clock = 0.0
    with one_core() as let_go:
        turns = []
        for contender in contenders:
            with let_go(not contender.pinned):
                turns.append((contender, plan(contender, settings)))
            tick()
        for r in range(settings.rounds):
            for contender, turn in turns if r % 2 else reversed(turns):
                if r < turn.rounds:
                    started = time.perf_counter()
                    with let_go(not contender.pinned):
                        seconds = _seconds(contender, turn.samples, turn.repeats)
                    if contender.pinned:
                        ours, clock = ours + seconds, clock + time.perf_counter() - started
                    times[contender.name][r] = seconds / (turn.samples * turn.repeats)
            tick()
    return Times({name: x[1:] for name, x in times.items()}, ours / clock if clock else 1.0)


def _seconds(contender: Contender, n: int, repeats: int) -> float:
    run, now = contender.run, time.thread_time if FINE and contender.pinned else time.perf_counter
    started = now()
    for _ in range(repeats):
        run(n)
    return now() - started


@contextmanager
def one_core() -> Iterator[Callable[[bool], AbstractContextManager[None]]]:
    """Keep this thread on one core, where the system can; the value gives it all of them for a while."""
    if not hasattr(os, "sched_setaffinity"):
        yield _as_it_is
        return
    every = os.sched_getaffinity(0)
    one = {max(every)}  # the first one is most often asked to serve the devices

    @contextmanager
    def let_go(really: bool) -> Iterator[None]:
        if really:
            os.sched_setaffinity(0, every)
        try:
            yield
        finally:
            if really:
                os.sched_setaffinity(0, one)

    os.sched_setaffinity(0, one)
    try:
        yield let_go
    finally:
        os.sched_setaffinity(0, every)


@contextmanager
def _as_it_is(really: bool) -> Iterator[None]:
    yield
