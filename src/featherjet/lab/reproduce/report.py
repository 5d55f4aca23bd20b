"""The outcome of an experiment: tables, the paper's claims beside what was found, and panels of a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from .plots import Panel

Form = Literal["text", "time", "count", "ratio", "error"]
Cell = str | int | float | None
Verdict = Literal["holds", "holds, but not in size", "does not hold", "not tested"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)  # each worse than those before

NOISE = 0.95  # a ratio of times above this counts as no slower
SLACK = 1.5  # a number within this factor of the paper's counts as of the same size
RULE = (
    "A claim holds if every number found lies on the paper's side of one (ratios of times within "
    f"{1 - NOISE:.0%} of one count as equal) and within a factor of {SLACK:g} of the paper's number or range; errors "
    "within a factor of ten. On the right side but of another size, it holds but not in size. A bound (at most) and an "
    "error have no side: beyond that factor it does not hold. Where the paper has a number for each robot, each robot "
    "is judged by its own, and the worst counts."
)


@dataclass(frozen=True)
class Figure:
    """What a paper says of a number: it lies between `low` and `high`, and within a factor `slack` it is the same.

    sided: whether it matters on which side of one a number of another size lies; for errors it does not.
    """

    low: float
    high: float = math.inf
    slack: float = SLACK
    sided: bool = True

    @staticmethod
    def of(numbers: Iterable[float]) -> Figure:
        """The range of the paper's own numbers."""
        known = list(numbers)
        return Figure(min(known), max(known))


def exactly(number: float) -> Figure:
    return Figure(number, number, 1.0)


def about(number: float, slack: float = SLACK) -> Figure:
    return Figure(number, number, slack)


def error_of(number: float, slack: float = 10.0) -> Figure:
    return Figure(number, number, slack, sided=False)


def at_most(number: float) -> Figure:
    return Figure(0.0, number)


FAVOURED = Figure(1.0)  # a ratio in favour of something, for which the paper gives no number


def verdict(paper: Figure, found: Sequence[float]) -> Verdict:
    """The one rule by which all claims are judged; RULE states it in words."""
    if not found:
        return "not tested"
    size = all(paper.low / paper.slack <= x <= paper.high * paper.slack for x in found)
    if paper.low == paper.high == 1:  # neither side of one
        return "holds" if size else "does not hold"
    above, below = paper.sided and paper.low >= 1, paper.sided and paper.high <= 1
    side = all((x >= NOISE or not above) and (x <= 1 / NOISE or not below) for x in found)
    if not side or not (size or above or below):
        return "does not hold"
    return "holds" if size else "holds, but not in size"


@dataclass(frozen=True)
class TableColumn:
    """A heading, and how the numbers below it are shown."""

    head: str
    form: Form = "text"


@dataclass
class Table:
    """Rows of raw numbers; None leaves a cell empty."""

    title: str
    columns: Sequence[TableColumn]
    rows: list[list[Cell]]
    note: str = ""

    def data(self) -> dict[str, Any]:
        return {"title": self.title, "columns": [c.head for c in self.columns], "rows": self.rows, "note": self.note}


@dataclass(frozen=True)
class Claim:
    """A paper's statement and its figure, the numbers found here and the same in words, and a reason if they differ.

    cases: the paper's figure for each number, if it has one of its own, such as for each robot.
    """

    said: str
    paper: Figure
    numbers: Sequence[float]
    found: str
    why: str = ""
    cases: Sequence[Figure] = ()

    @property
    def verdict(self) -> Verdict:
        """Of cases, the worst."""
        if not self.cases or not self.numbers:
            return verdict(self.paper, self.numbers)
        found: list[Verdict] = [verdict(case, [x]) for case, x in zip(self.cases, self.numbers, strict=True)]
        return max(found, key=VERDICTS.index)

    def data(self) -> dict[str, Any]:
        paper = {"low": self.paper.low, "high": self.paper.high if math.isfinite(self.paper.high) else None}
        why = "" if self.verdict == "holds" else self.why
        numbers = [x if math.isfinite(x) else None for x in self.numbers]
        found = {"found": self.found, "numbers": numbers, "cases": [[c.low, c.high] for c in self.cases]}
        return {"said": self.said, "paper": paper, **found, "verdict": self.verdict, "why": why}


@dataclass
class ExperimentResult:
    """What one experiment found."""

    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "tables": [t.data() for t in self.tables],
            "claims": [c.data() for c in self.claims],
            "panels": [p.data() for p in self.panels],
            "remarks": self.remarks,
        }


def counted(factors: Sequence[float]) -> str:
    """Whether a claim that fails by time holds by operations."""
    return f"{'by operations it does' if min(factors) >= 1 else 'neither does it by operations'}: {span(factors)}"


def span(factors: Sequence[float]) -> str:
    """The range of some factors, as text."""
    low, high = (f"{x:.2f}x" for x in (min(factors), max(factors)))
    return low if low == high else f"{low} to {high}"
