"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes its place at the end, or vanishes if anything goes wrong."""
    beside = path.with_name(path.name + ".part")
    try:
        yield beside
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        beside.unlink(missing_ok=True)
