"""Model files however users give them: by path, as text, or open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, NamedTuple

from ...errors import InputError, ModelError
from .xmltree import MOST_BYTES, read_bytes

BLANK = "\ufeff \t\r\n"
Source = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]


class Document(NamedTuple):
    """A model file: its content, what messages call it, and its path, if it has one."""

    content: str | bytes
    source: str
    path: Path | None = None


def document_at(path: Path) -> Document:
    return Document(read_bytes(path), os.fspath(path), path)


def document_in(given: object) -> Document | None:
    """XML text, or what an open file has to read, as a document; None for anything else, such as a path or a name."""
    if callable(read := getattr(given, "read", None)):
        try:
            content = read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:  # ValueError: it is closed, or not text
            raise ModelError(f"{getattr(given, 'name', '<file>')}: cannot be read ({error})") from None
        return _opened(given, content)
    if isinstance(given, str) and (text := given.lstrip(BLANK)).startswith("<"):
        return Document(text if text.startswith("<?") else given.lstrip("\ufeff"), "<string>")
    if isinstance(given, bytes) and given.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        return Document(given.lstrip(), "<string>")
    return None


def _opened(file: object, content: object) -> Document:
    """What an open file had to read; its path is known if it has one."""
    name = getattr(file, "name", None)
    source = name if isinstance(name, str) else "<file>"
    if not isinstance(content, str | bytes):
        raise InputError(f"{source}: reading it gives {type(content).__name__}, not text")
    if len(content) > MOST_BYTES:
        raise ModelError(f"{source}: has more than {MOST_BYTES >> 20} MB; no robot needs that much")
    if not content.strip():
        raise ModelError(f"{source}: is empty, or has been read to its end")
    return Document(content, source, Path(source) if os.path.isfile(source) else None)
