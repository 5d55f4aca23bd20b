"""The outcome of an experiment: tables, the paper's claims beside what was found, and panels of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .plots import Panel

Form = Literal["text", "time", "count", "ratio", "error"]
Cell = str | int | float | None
Verdict = Literal["holds", "holds, but not in size", "does not hold", "not tested"]


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
    """A statement of a paper, what was found here, and the reason if that differs."""

    said: str
    found: str
    verdict: Verdict
    why: str = ""


@dataclass
class Outcome:
    """What one experiment found."""

    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "tables": [t.data() for t in self.tables],
            "claims": [vars(c) | ({"why": ""} if c.verdict == "holds" else {}) for c in self.claims],
            "panels": [p.data() for p in self.panels],
            "remarks": self.remarks,
        }


def held(yes: bool) -> Verdict:
    return "holds" if yes else "does not hold"


def sized(order: bool, size: bool) -> Verdict:
    """The verdict on a factor: whether its direction holds, and whether it is about as large as the paper's."""
    return held(order) if size or not order else "holds, but not in size"


def counted(factors: Sequence[float]) -> str:
    """Whether a claim that fails by time holds by operations."""
    return f"{'by operations it does' if min(factors) >= 1 else 'neither does it by operations'}: {span(factors)}"


def span(factors: Sequence[float]) -> str:
    """The range of some factors, as text."""
    low, high = (f"{x:.2f}x" for x in (min(factors), max(factors)))
    return low if low == high else f"{low} to {high}"
