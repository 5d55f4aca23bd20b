"""How results and robots show themselves: one line each, and a small table in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeVar

import numpy as np

from .errors import escaped

Class = TypeVar("Class", bound=type)
FEW = 12  # numbers of a vector that is shown in full


def brief(x: Any) -> str:
    """A short vector as its numbers, a larger array as its shape, anything else as itself."""
    if not isinstance(x, np.ndarray):
        shape = getattr(x, "shape", None)
        return repr(x) if shape is None else f"{type(x).__name__} {shape}"
    if x.ndim <= 1 and x.size <= FEW:
        return np.array2string(x, precision=4, suppress_small=True, separator=", ", max_line_width=1000)
    kind = "" if x.dtype == np.float64 else f" {x.dtype}"
    return f"array {x.shape}{kind}"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """An HTML table of plain texts."""

    def row(tag: str, cells: Iterable[object]) -> str:
        inner = "".join(f'<{tag} style="text-align:left">{escape(escaped(str(cell)))}</{tag}>' for cell in cells)
        return f"<tr>{inner}</tr>"

    lines = [row("th", headings), *(row("td", cells) for cells in rows)]
    title = f'<caption style="text-align:left">{escape(escaped(caption))}</caption>' if caption else ""
    return f"<table>{title}{''.join(lines)}</table>"


def compact(cls: Class) -> Class:
    """Give a named tuple of arrays a repr of one line, and a table of shapes and sizes in notebooks."""

    def __repr__(self: Any) -> str:
        return f"{cls.__name__}({', '.join(f'{k}={brief(x)}' for k, x in self._asdict().items())})"

    def _repr_html_(self: Any) -> str:
        rows = []
        for name, x in self._asdict().items():
            numeric = isinstance(x, np.ndarray) and x.size
            largest = f"{np.abs(x).max():.4g}" if numeric else ""
            zeros = f"{np.mean(x == 0):.0%}" if numeric else ""
            rows.append((name, getattr(x, "shape", x), largest, zeros))
        return table(("", "shape", "largest entry", "zeros"), rows, cls.__name__)

    cls.__repr__, cls._repr_html_ = __repr__, _repr_html_  # type: ignore[attr-defined]
    return cls
