"""What takes long says so, to whoever watches: a line on stderr if that is a terminal, or in a notebook.

FEATHERJET_QUIET=1 turns this off. Programs whose output goes to a file never print such lines.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import escaped
from ..settings import is_set

PATIENCE = 0.5  # seconds


@contextmanager
def announced(doing: str, remark: str) -> Iterator[None]:
    """Say what is being done if it takes longer than PATIENCE."""
    if not somebody_watches():
        yield
        return
    timer = threading.Timer(PATIENCE, _say, [f"featherjet: {doing} ({remark}) ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def muted() -> Iterator[None]:
    """No lines meanwhile: a progress bar tells more."""
    global _muted
    _muted += 1
    try:
        yield
    finally:
        _muted -= 1


_muted = 0


def somebody_watches() -> bool:
    if _muted or is_set("FEATHERJET_QUIET") or sys.stderr is None:
        return False
    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # under a progress bar, rich stands before it
    return "ipykernel" in sys.modules or stream.isatty()


def _say(line: str) -> None:
    print(escaped(line), file=sys.stderr, flush=True)
