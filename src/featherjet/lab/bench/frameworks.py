"""featherjet within other frameworks: duels, each with a bar, in turns on one core.

Frameworks compute on threads of their own, so the processor time of the whole process counts. A module of the package
for each framework, named in MODULES, has DUELS: titles, and functions that make the duel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

import numpy as np

from ...errors import MissingExtra
from .checking import Disagreement
from .peers import NotAvailable
from .timing import Spread, TimingSettings, one_core

MODULES = {"JAX": "in_jax", "PyTorch": "in_torch", "CasADi": "in_casadi"}
TOLERANCE = 1e-8  # of the largest entry, where both compute the same


@dataclass(frozen=True)
class Duel:
    """Two functions without arguments, ours and another, and the bar that their ratio must reach.

    faster: the bar is how many times faster ours must be; otherwise it is the most that ours may take of the other's
    time, or, where there is no other, of a microsecond. each: how many steps a call does, to which times refer.
    difference(): how far apart the results are, relative to the largest entry.
    """

    title: str
    ours: Callable[[], object]
    other: Callable[[], object] | None
    bar: float
    beside: str
    faster: bool = False
    each: int = 1
    difference: Callable[[], float] | None = None

    def ratio(self, ours: float, other: float) -> float:
        """The figure that the bar limits, from the seconds of both functions."""
        return ours * 1e6 if self.other is None else other / ours if self.faster else ours / other

    def reached(self, ratio: float) -> bool:
        return ratio >= self.bar if self.faster else ratio <= self.bar


class DuelResult(NamedTuple):
    """A duel's figures: seconds per step of both, and the ratio of the medians."""

    framework: str
    title: str
    beside: str
    ours: Spread
    other: Spread | None
    ratio: float
    bar: float
    faster: bool
    reached: bool


class Absent(NamedTuple):
    """A duel that did not take place, or all of a framework, and why."""

    framework: str
    title: str
    reason: str


Make = Callable[[], Duel]


def outcomes(settings: TimingSettings, tick: Callable[[], object] = lambda: None) -> Iterator[DuelResult | Absent]:
    """All duels of all frameworks, one after the other; `tick` is called after each."""
    for framework, module in MODULES.items():
        try:
            duels: Sequence[tuple[str, Make]] = import_module(f".{module}", __package__).DUELS
        except (ImportError, MissingExtra) as reason:
            yield Absent(framework, "all", str(reason))
            continue
        for title, make in duels:
            try:
                yield fought(framework, make(), settings)
            except NotAvailable as reason:
                yield Absent(framework, title, str(reason))
            tick()


def fought(framework: str, duel: Duel, settings: TimingSettings) -> DuelResult:
    if duel.difference is not None and not duel.difference() <= TOLERANCE:
        raise Disagreement(f"{framework}, {duel.title}: results differ by {duel.difference():.2g} of the largest entry")
    both = [f for f in (duel.ours, duel.other) if f is not None]
    with one_core():
        times = [np.array(x) / duel.each for x in in_turns(both, settings)]
    ours = Spread.of(times[0])
    other = Spread.of(times[1]) if duel.other is not None else None
    ratio = duel.ratio(ours.median, other.median if other else 1.0)
    shown = duel.title, duel.beside, ours, other, ratio, duel.bar, duel.faster
    return DuelResult(framework, *shown, duel.reached(ratio))


def in_turns(functions: Sequence[Callable[[], object]], settings: TimingSettings) -> list[list[float]]:
    """Processor seconds of a call of each function, in each round; slow ones sit out some rounds."""
    plans = []
    for f in functions:
        f()  # compiles
        each = max(seconds(f, 1), 1e-7)
        repeats = max(1, int(settings.turn / each))
        plans.append((repeats, max(2, min(settings.rounds, int(settings.patience / (repeats * each))))))
    found: list[list[float]] = [[] for _ in functions]
    for r in range(settings.rounds):
        for f, (repeats, rounds), times in zip(functions, plans, found, strict=True):
            if r < rounds:
                f()  # what the other has left in the caches is not this one's matter
                times.append(seconds(f, repeats))
    return [times[1:] for times in found]


def seconds(f: Callable[[], object], repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        f()
    return (time.process_time() - started) / repeats
