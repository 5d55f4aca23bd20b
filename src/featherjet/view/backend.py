"""matplotlib, which only some users have, and how pictures reach a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .. import arrays
from ..atomic import atomic_write
from ..errors import InputError, MissingExtra
from ..forks import unforked


def require_matplotlib() -> Any:
    """matplotlib, or a MissingExtra that says how to install it."""
    try:
        with unforked:
            import matplotlib
    except ImportError:
        raise MissingExtra("drawing pictures", "matplotlib", "plots") from None
    return matplotlib


def literal(text: str) -> str:
    """A name of a file as matplotlib shows it letter by letter: dollars would begin mathematics."""
    return text.replace("$", r"\$")


def save_png(figure: Any, path: Path, dpi: int = 110, overwrite: bool = True) -> Path:
    """Write a matplotlib figure as a PNG, atomically."""
    with atomic_write(path, overwrite) as file:
        figure.savefig(file, format="png", dpi=dpi, facecolor="white")
    return path


def drawn(figure: Any, path: str | os.PathLike[str] | None, overwrite: bool = True) -> Any:
    """The figure, written as a PNG if there is a path."""
    if path is not None:
        save_png(figure, arrays.path_of(path), overwrite=overwrite)
    return figure


def refuse_other_formats(path: str | os.PathLike[str] | None) -> None:
    """Raise an InputError unless the name of a picture, if there is one, ends in .png."""
    if path is not None and arrays.path_of(path).suffix.lower() != ".png":
        raise InputError(f"{os.fspath(path)}: pictures are PNG files; give it a name that ends in .png")
