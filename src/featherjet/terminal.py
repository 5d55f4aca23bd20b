"""Output on a terminal: a rich console, and progress bars that show only where somebody watches."""

from __future__ import annotations

import io
import os
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PIPE_WIDTH = 1000  # columns, where the output is no terminal: nothing is cut


def console(stderr: bool = False) -> Console:
    """A console on the current stdout or stderr, without markup: a robot's name may contain brackets."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # closed streams hear nothing
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def progress() -> Progress:
    """A progress bar on stderr that disappears when done; disabled unless stderr is a terminal."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
