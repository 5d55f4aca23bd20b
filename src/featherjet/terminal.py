"""Output on a terminal: a rich console that shows control characters, and progress bars where somebody watches."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

from .errors import escaped

Thing = TypeVar("Thing")
PIPE_WIDTH = 1000  # columns, where the output is no terminal: nothing is cut


class PlainConsole(Console):
    """A console that obeys no control character of a text, such as a path or a name in a file: it shows them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(escaped(text), **settings)  # before it is measured


def console(stderr: bool = False) -> Console:
    """A console on the current stdout or stderr, without markup: a robot's name may contain brackets."""
    stream = (sys.stderr if stderr else sys.stdout) or io.StringIO()  # closed streams hear nothing
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return PlainConsole(file=stream, width=width, markup=False, highlight=False, emoji=False)


def progress() -> Progress:
    """A progress bar on stderr that disappears when done; disabled unless stderr is a terminal."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def watched(what: str, things: Iterable[Thing], count: int) -> Iterator[Thing]:
    """The same things, of which there are `count`, with a progress bar while they come."""
    with progress() as bar:
        yield from bar.track(things, total=count, description=what)
