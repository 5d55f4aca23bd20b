"""How commands print lines, tables and warnings, and write reports."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..atomic import write_text
from ..errors import FeatherjetWarning
from ..terminal import console

SHOWN_WARNINGS = 12


def line(*parts: str | tuple[str, str], stderr: bool = False) -> None:
    """Print one line, never wrapped, of plain texts and (text, style) pairs."""
    console(stderr).print(Text.assemble(*parts), soft_wrap=True)


def fail(message: str, label: str = "error: ") -> None:
    """Print an error as one line on stderr."""
    line((label, "bold red"), " ".join(message.split()), stderr=True)


def table(*columns: str | tuple[str, str], **settings: Any) -> Table:
    """A table without borders; a column is a heading, or (heading, alignment). Only the first column wraps."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), **settings)
    for k, column in enumerate(columns):
        heading, justify = column if isinstance(column, tuple) else (column, "left")
        made.add_column(heading, justify=justify, no_wrap=k > 0, overflow="fold")  # type: ignore[arg-type]
    return made


def ticking(bar: Progress, title: str, total: int) -> Callable[[], None]:
    """A new line of a progress bar, of so many steps; calling it makes one."""
    task = bar.add_task(title, total=total)
    return lambda: bar.advance(task)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print featherjet's warnings as lines on stderr: each once, and at most SHOWN_WARNINGS of them."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", FeatherjetWarning)
        usual = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if not issubclass(category, FeatherjetWarning):
                return usual(message, category, *where, **more)
            text = " ".join(str(message).split())
            if text not in seen:
                seen.add(text)
                if len(seen) <= SHOWN_WARNINGS:
                    line(("warning: ", "yellow"), text, stderr=True)

        warnings.showwarning = show
        try:
            yield
        finally:
            if len(seen) > SHOWN_WARNINGS:
                rest = f"{len(seen) - SHOWN_WARNINGS} more; `featherjet info` shows all"
                line(("warning: ", "yellow"), rest, stderr=True)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect warnings as a list of texts, one for each place and none twice, filled at the end of the block."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for w in caught:
        for place in getattr(w.message, "places", ()) or (str(w.message),):
            text = " ".join(place.split())
            if text not in found:
                found.append(text)


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON, atomically."""
    write_text(path, json.dumps(report, indent=1) + "\n")


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
