"""Atomic writing: a file is replaced in one step when its successor is complete, or stays as it was."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` to write to.

    On success the temporary file replaces `path` and survives a power failure; on any error it is removed.
    """
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        with named_in_errors(path):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(final.parent)


def write_text(path: Path, text: str) -> Path:
    """Write a UTF-8 text file atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def refuse_bad_target(path: Path, overwrite: bool) -> None:
    """Raise an InputError if `path` cannot be created, or exists while `overwrite` is False."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file in it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{path.parent}: there is no such directory")
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists; --overwrite replaces it")


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Turn an OSError (disk full, no permission) into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def _sync_directory(directory: Path) -> None:
    """Flush the directory entry to disk, where the system allows it."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
