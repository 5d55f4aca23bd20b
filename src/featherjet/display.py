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


class Markup(str):
    """HTML, which only `markup` and `together` make."""

    __slots__ = ()


def markup(template: str, *parts: object) -> Markup:
    """HTML from a template of our own words, with `{}` for each part; what is not Markup is shown as the text it is.

    All HTML of featherjet is made here, so that no name of a file can become a tag, an attribute or a script.
    """
    return Markup(template.format(*(x if isinstance(x, Markup) else escape(escaped(str(x))) for x in parts)))


def together(parts: Iterable[Markup]) -> Markup:
    """Pieces of HTML in a row."""
    return Markup("".join(markup("{}", x) for x in parts))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """An HTML table of plain texts."""

    def row(cell: str, texts: Iterable[object]) -> Markup:
        return markup("<tr>{}</tr>", together(markup(cell, text) for text in texts))

    lines = [row('<th style="text-align:left">{}</th>', headings)]
    lines += [row('<td style="text-align:left">{}</td>', texts) for texts in rows]
    title = markup('<caption style="text-align:left">{}</caption>', caption) if caption else Markup()
    return markup("<table>{}{}</table>", title, together(lines))


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
