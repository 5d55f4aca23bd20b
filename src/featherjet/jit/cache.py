"""The cache of compiled code on disk.

A hash of everything that determines the code names its file: featherjet's sources, the kernel, LLVM and the CPU. The
file begins with a hash of its contents, so a truncated, corrupt or foreign file is detected and replaced. Files are
written aside and moved into place, so many processes may write at once. If the folder cannot be written, one warning
says so and code stays in memory. FEATHERJET_CACHE_DIR moves the cache; an empty string turns it off.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

MAGIC = b"featherjet code 1\n"
SUFFIX = ".fjo"
DETERMINING = ("math", "model", "algorithms", "jit", "treejit", "evaluate")  # folders whose sources determine code


class CacheWarning(UserWarning):
    """Compiled code could not be kept on disk."""


def folder() -> Path | None:
    """The cache folder, or None if the cache is off."""
    chosen = os.environ.get("FEATHERJET_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "featherjet"


@cache
def sources() -> str:
    """A hash of the sources that determine compiled code."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in DETERMINING:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def name_of(*what: object) -> str:
    """The file name of the code that `what` and the current sources determine."""
    return hashlib.sha256("\n".join([sources(), *map(repr, what)]).encode()).hexdigest()[:40] + SUFFIX


def read(name: str) -> bytes | None:
    """The code of that name, or None if it is missing or damaged."""
    place = folder()
    if place is None:
        return None
    try:
        data = (place / name).read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    code = data[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(code).digest() != data[len(MAGIC) : start]:
        return None
    return code


def write(name: str, code: bytes) -> None:
    """Store code; a failure warns once."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(aside, place / name)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise
    except OSError as error:
        if place not in _warned:
            _warned.add(place)
            reason = error.strerror or type(error).__name__
            message = f"compiled code cannot be kept in {place} ({reason}); every process will compile it again"
            warnings.warn(message, CacheWarning, stacklevel=3)


_warned: set[Path] = set()


def files() -> list[Path]:
    """All files of the cache, including leftovers of interrupted writes."""
    place = folder()
    if place is None or not place.is_dir():
        return []
    return sorted(p for p in place.iterdir() if p.suffix in (SUFFIX, ".part"))


def clear() -> int:
    """Remove all files; returns how many."""
    found = files()
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)
