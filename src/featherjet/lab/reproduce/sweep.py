"""A family of robots of growing size, and some ways on each: the tables and curves that the papers' figures have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .lab import Entries, Entry, Lab, count_ratio, ratio
from .plots import Lines
from .report import Column, Table
from .straight import Way

LARGE = (50, 100, 200, 500)
COUNTED = "operations only"
NOISE = 0.95  # a ratio of times above this is not held against a method


@dataclass
class Sweep:
    """Entries by size and way. Beyond the sizes that were raced there are operations alone."""

    family: str
    ways: Sequence[Way]
    entries: dict[int, Entries]

    @staticmethod
    def run(lab: Lab, family: str, sizes: Sequence[int], ways: Sequence[Way], limit: int | None = None) -> Sweep:
        """family.format(n) names a robot; of chains, operations are known for large sizes too."""
        entries: dict[int, Entries] = {}
        long: set[Way] = set()  # what is too long for one robot is so for all larger ones
        for n in sizes:
            name = family.format(n)
            entries[n] = lab.race(name, [way for way in ways if way not in long], limit)
            entries[n] |= {way.name: Entry(lab.operations(way, name)) for way in long}
            long |= {way for way in ways if entries[n][way.name].rounds is None}
        if family == "chain{}":
            for n in LARGE:
                entries[n] = {way.name: Entry(lab.growth(way).at(n)) for way in ways}
        return Sweep(family, ways, entries)

    @property
    def timed(self) -> list[int]:
        return [n for n, e in self.entries.items() if any(x.rounds is not None for x in e.values())]

    def best(self, name: str, of: Sequence[str]) -> None:
        """Add a way that is the best of some, size by size: by time where all were timed, else by operations."""
        for entries in self.entries.values():
            known = [entries[k] for k in of if entries[k].operations is not None]
            timed = [e for e in known if e.seconds is not None]
            if timed and len(timed) == len(of):
                entries[name] = min(timed, key=lambda e: e.seconds or 0.0)
            elif known:
                entries[name] = min(known, key=lambda e: e.operations or 0)

    def ratios(self, slow: str, fast: str) -> dict[int, float]:
        """Of times, where both were timed."""
        found = {n: ratio(e[slow], e[fast]) for n, e in self.entries.items()}
        return {n: x for n, x in found.items() if x is not None}

    def count_ratios(self, slow: str, fast: str) -> dict[int, float]:
        found = {n: count_ratio(e[slow], e[fast]) for n, e in self.entries.items()}
        return {n: x for n, x in found.items() if x is not None}

    # What is shown

    def times(self, title: str) -> Table:
        names = [way.name for way in self.ways]
        rows = [
            [n, *(self.entries[n][k].seconds if self.entries[n][k].rounds is not None else COUNTED for k in names)]
            for n in self.timed
        ]
        return Table(title, [Column("N", "count"), *(Column(k, "time") for k in names)], rows)

    def operations(self, title: str) -> Table:
        names = [way.name for way in self.ways]
        rows = [[n, *(e[k].operations for k in names)] for n, e in self.entries.items()]
        return Table(title, [Column("N", "count"), *(Column(k, "count") for k in names)], rows)

    def compared(self, title: str, pairs: Sequence[tuple[str, str]]) -> Table:
        """How much longer the first of each pair takes, by time and by operations."""
        columns = [Column("N", "count")]
        for slow, fast in pairs:
            columns += [Column(f"{slow} / {fast}: time", "ratio"), Column("operations", "ratio")]
        rows = []
        for n, e in self.entries.items():
            rows.append([n, *(x for a, b in pairs for x in (ratio(e[a], e[b]), count_ratio(e[a], e[b])))])
        return Table(title, columns, rows)

    def time_curves(self, names: Sequence[str]) -> dict[str, tuple[list[float], list[float]]]:
        return self._curves(names, lambda e: None if e.seconds is None else e.seconds * 1e6)

    def operation_curves(self, names: Sequence[str]) -> dict[str, tuple[list[float], list[float]]]:
        return self._curves(names, lambda e: e.operations)

    def _curves(self, names, value) -> dict[str, tuple[list[float], list[float]]]:
        found = {}
        for name in names:
            points = [(n, value(e[name])) for n, e in self.entries.items() if value(e[name]) is not None]
            found[name] = [n for n, _ in points], [y for _, y in points]
        return found

    def panels(self, title: str) -> list[Lines]:
        names = [way.name for way in self.ways]
        return [
            Lines(f"{title}: measured", "N", "us per state", self.time_curves(names), marked=True),
            Lines(f"{title}: counted", "N", "operations per state", self.operation_curves(names)),
        ]


def curve(ratios: dict[int, float]) -> tuple[list[float], list[float]]:
    return list(map(float, ratios)), list(ratios.values())


def below(ratios: dict[int, float], level: float = 1.0) -> list[int]:
    """The sizes at which the slow one was faster."""
    return [n for n, x in ratios.items() if x < level]


def at_largest(ratios: dict[int, float]) -> str:
    n = max(ratios)
    return f"{ratios[n]:.2f}x at N = {n}"
