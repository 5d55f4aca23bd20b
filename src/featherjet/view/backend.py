"""matplotlib, which only some users have, and how pictures reach a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..atomic import atomic_write
from ..errors import InputError, MissingExtra
from ..forks import unforked


def require_matplotlib() -> Any:
    """matplotlib, set up to draw to files; or a MissingExtra that says how to install it."""
    try:
        with unforked:
            import matplotlib
    except ImportError:
        raise MissingExtra("drawing pictures", "matplotlib", "plots") from None
    matplotlib.use("Agg")
    return matplotlib


def save_png(figure: Any, path: Path, dpi: int = 110, overwrite: bool = True) -> Path:
    """Write a matplotlib figure as a PNG, atomically."""
    with atomic_write(path, overwrite) as file:
        figure.savefig(file, format="png", dpi=dpi, facecolor="white")
    return path


def refuse_other_formats(path: Path) -> None:
    """Raise an InputError unless the name of a picture ends in .png."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: pictures are PNG files; give it a name that ends in .png")
