"""A family of robots of growing size with several algorithms on each: the tables and curves of the papers' figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .algorithms import Algorithm
from .lab import CHAIN, Lab, Measurement, Measurements, count_ratio, ratio
from .plots import LinePanel
from .report import NOISE, Table, TableColumn, span

LARGE = (50, 100, 200, 500)  # sizes at which algorithms run as loops
QUICK_LARGEST = 50  # of those that a quick run times
COUNTED = "operations only"
LOOPS = (
    f"From N = {LARGE[0]} on in loops: scalar code, one state at a time. Below, straight-line code: states in lanes."
)

Curve = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Comparison:
    """How many times longer one algorithm takes than another, by size: in time where both were timed, in operations."""

    times: dict[int, float]
    counts: dict[int, float]

    @property
    def text(self) -> str:
        return f"time {span(list(self.times.values()))}, operations {span(list(self.counts.values()))}"

    @property
    def slower(self) -> list[int]:
        """The sizes at which the first is the faster one, by time or by operations."""
        return sorted({*below(self.times, NOISE), *below(self.counts)})


@dataclass
class SizeSweep:
    """Measurements by size and algorithm; at the sizes LARGE of algorithms as loops."""

    family: str
    algorithms: Sequence[Algorithm]
    found: dict[int, Measurements]

    @staticmethod
    def run(
        lab: Lab, family: str, sizes: Sequence[int], algorithms: Sequence[Algorithm], limit: int | None = None
    ) -> SizeSweep:
        """Race the algorithms on the robots family.format(n), as straight-line code at `sizes`, and as loops at LARGE.

        On chains, operations are extrapolated to the large sizes.
        """
        found: dict[int, Measurements] = {}
        long: set[Algorithm] = set()  # too long for one robot means too long for all larger ones
        for n in sizes:
            name = family.format(n)
            found[n] = lab.race(name, [x for x in algorithms if x not in long], limit)
            found[n] |= {x.name: Measurement(lab.operations(x, name)) for x in long}
            long |= {x for x in algorithms if found[n][x.name].rounds is None}
        for n in LARGE:
            if n in looped_sizes(lab):
                found[n] = lab.race_loops(family.format(n), algorithms)
            elif family == CHAIN:
                found[n] = {x.name: Measurement(lab.growth(x).at(n)) for x in algorithms}
        return SizeSweep(family, algorithms, found)

    @staticmethod
    def steps(lab: Lab, sizes: Sequence[int], algorithms: Sequence[Algorithm]) -> int:
        """How many steps `run` takes."""
        return len(sizes) * len(algorithms) + len(looped_sizes(lab)) * sum(x.looped is not None for x in algorithms)

    @property
    def timed(self) -> list[int]:
        """The sizes at which something was timed."""
        return [n for n, m in self.found.items() if any(x.rounds is not None for x in m.values())]

    def add_best(self, name: str, of: Sequence[str]) -> None:
        """Add the best of some algorithms, size by size: by time where all were timed, else by operations."""
        for measurements in self.found.values():
            known = [measurements[k] for k in of]
            if all(m.seconds is not None for m in known):
                measurements[name] = min(known, key=lambda m: m.seconds or 0.0)
            else:
                counted = [m for m in known if m.operations is not None]
                measurements[name] = min(counted, key=lambda m: m.operations or 0, default=Measurement(None))

    def compare(self, slow: str, fast: str) -> Comparison:
        return Comparison(self._ratios(ratio, slow, fast), self._ratios(count_ratio, slow, fast))

    def _ratios(self, of: Callable[..., float | None], slow: str, fast: str) -> dict[int, float]:
        ratios = {n: of(m[slow], m[fast]) for n, m in self.found.items()}
        return {n: x for n, x in ratios.items() if x is not None}

    # Tables

    def times(self, title: str) -> Table:
        names = [x.name for x in self.algorithms]
        rows = [
            [n, *(m[k].seconds if m[k].rounds is not None else COUNTED for k in names)]
            for n, m in self.found.items()
            if n in self.timed
        ]
        columns = [TableColumn("N", "count"), *(TableColumn(k, "time") for k in names)]
        return Table(title, columns, rows, LOOPS if set(self.timed) & set(LARGE) else "")

    def operations(self, title: str) -> Table:
        names = [x.name for x in self.algorithms]
        rows = [[n, *(m[k].operations for k in names)] for n, m in self.found.items()]
        return Table(title, [TableColumn("N", "count"), *(TableColumn(k, "count") for k in names)], rows)

    def comparisons(self, title: str, pairs: Sequence[tuple[str, str]]) -> Table:
        """How much longer the first of each pair takes, by time and by operations."""
        columns = [TableColumn("N", "count")]
        for slow, fast in pairs:
            columns += [TableColumn(f"{slow} / {fast}: time", "ratio"), TableColumn("operations", "ratio")]
        rows = []
        for n, m in self.found.items():
            rows.append([n, *(x for a, b in pairs for x in (ratio(m[a], m[b]), count_ratio(m[a], m[b])))])
        return Table(title, columns, rows)

    # Curves

    def time_curves(self, names: Sequence[str]) -> dict[str, Curve]:
        """Microseconds per state."""
        return self._curves(names, lambda m: None if m.seconds is None else m.seconds * 1e6)

    def operation_curves(self, names: Sequence[str]) -> dict[str, Curve]:
        return self._curves(names, lambda m: m.operations)

    def _curves(self, names: Sequence[str], value: Callable[[Measurement], float | None]) -> dict[str, Curve]:
        curves = {}
        for name in names:
            points = [(float(n), y) for n, m in self.found.items() if (y := value(m[name])) is not None]
            curves[name] = [n for n, _ in points], [y for _, y in points]
        return curves

    def panels(self, title: str) -> list[LinePanel]:
        names = [x.name for x in self.algorithms]
        return [
            LinePanel(f"{title}: measured", "N", "us per state", self.time_curves(names), marked=True),
            LinePanel(f"{title}: counted", "N", "operations per state", self.operation_curves(names)),
        ]


def curve(ratios: dict[int, float]) -> Curve:
    return list(map(float, ratios)), list(ratios.values())


def ratio_lines(title: str, ratios: dict[str, dict[int, float]], marked: bool) -> LinePanel:
    """Ratios over the size as a panel, with a line at one."""
    return LinePanel(title, "N", "ratio", {k: curve(r) for k, r in ratios.items()}, marked=marked, level=1)


def below(ratios: dict[int, float], level: float = 1.0) -> list[int]:
    """The sizes at which a ratio is below a level."""
    return [n for n, x in ratios.items() if x < level]


def looped_sizes(lab: Lab) -> list[int]:
    """The sizes at which algorithms are timed as loops."""
    return [n for n in LARGE if not lab.quick or n <= QUICK_LARGEST]


def at_large(ratios: dict[int, float]) -> str:
    """Ratios at sizes that papers name; at the largest, if there is none of those."""
    known = [n for n in (100, 500) if n in ratios] or [max(ratios)]
    return ", ".join(f"{ratios[n]:.2f}x at N = {n}" for n in known)


def extrapolation_remark(lab: Lab, algorithms: Sequence[Algorithm]) -> str:
    """How good the counts for large N are."""
    worst = max(algorithms, key=lambda x: lab.growth(x).error)
    error = lab.growth(worst).error
    exact = "exactly" if error == 0 else f"within {error:.1%} ({worst.name})"
    return f"Operations at large N are polynomials in N; they meet a count that was not fitted {exact}."
