"""What the commands print with: rich on a terminal, plain lines of a fixed width in a pipe."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ..errors import ModelWarning, PhysicsWarning

PIPE_WIDTH = 1000  # nothing is cut for want of room
SHOWN_WARNINGS = 12
OURS = (PhysicsWarning, ModelWarning)


def console(stderr: bool = False) -> Console:
    """A console on stdout or stderr as they are now, without markup: a robot's name may be anything."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def line(*parts: str | tuple[str, str], stderr: bool = False) -> None:
    """Print one line of plain and (text, style) parts, never broken."""
    console(stderr).print(Text.assemble(*parts), soft_wrap=True)


def fail(message: str, label: str = "error: ") -> None:
    """One line on stderr."""
    line((label, "bold red"), " ".join(message.split()), stderr=True)


def table(*columns: str | tuple[str, str], **settings: Any) -> Table:
    """A plain table; a column is a heading, or heading and alignment. Without room the first column folds."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), **settings)
    for k, column in enumerate(columns):
        heading, justify = column if isinstance(column, tuple) else (column, "left")
        made.add_column(heading, justify=justify, no_wrap=k > 0, overflow="fold")  # type: ignore[arg-type]
    return made


def progress() -> Progress:
    """A bar on stderr, which vanishes when done; silent where nobody watches."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


@contextmanager
def told_warnings() -> Iterator[None]:
    """Show our own warnings as lines on stderr, each once, and not more than one can read."""
    told: set[str] = set()
    with warnings.catch_warnings():
        for category in OURS:
            warnings.simplefilter("always", category)
        usual = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if not issubclass(category, OURS):
                return usual(message, category, *where, **more)
            text = " ".join(str(message).split())
            if text not in told:
                told.add(text)
                if len(told) <= SHOWN_WARNINGS:
                    line(("warning: ", "yellow"), text, stderr=True)

        warnings.showwarning = show
        try:
            yield
        finally:
            if len(told) > SHOWN_WARNINGS:
                rest = f"{len(told) - SHOWN_WARNINGS} more; `featherjet info` shows all"
                line(("warning: ", "yellow"), rest, stderr=True)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Our own warnings as a list of texts, each once."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for w in caught:
        text = " ".join(str(w.message).split())
        if text not in found:
            found.append(text)
