"""Which files may be trusted with machine code: those that nobody but this user, or the system, can have written.

The rules are those of ssh. A folder and its files belong to this user and nobody else may write them; every folder on
the way belongs to this user or the system, and others may write it only if it keeps their hands off our entries (the
sticky bit of /tmp). Systems without owners, such as Windows, protect the user's folders by other means.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

WRITABLE = stat.S_IWGRP | stat.S_IWOTH
OWNERS = hasattr(os, "geteuid")
MOST_LINKS = 40


class Untrusted(Exception):
    """Somebody else can have written a file; the message says who and what to do."""


def require_own_folder(folder: Path) -> None:
    """Raise Untrusted unless only this user can put files into a folder that exists."""
    if OWNERS:
        path = require_trusted_way(folder)
        _require_own(path, os.lstat(path), WRITABLE)


def require_trusted_way(folder: Path) -> Path:
    """Raise Untrusted if others can change what lies on the way to a folder, as far as that exists; its last part."""
    path = whole = Path(os.path.abspath(folder))
    system = {0, os.geteuid(), os.stat("/").st_uid} if OWNERS else set()
    for path in way(whole) if OWNERS else ():
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            break
        if found.st_uid not in system:
            raise Untrusted(f"{path} belongs to user {found.st_uid}")
        if found.st_mode & WRITABLE and not found.st_mode & stat.S_ISVTX and not stat.S_ISLNK(found.st_mode):
            raise Untrusted(f"others may write {path}; to allow it, chmod go-w {path}")
    return path


def way(path: Path) -> Iterator[Path]:
    """Every folder and every link on the way to an absolute path, and at last the folder itself."""
    at, rest, links = Path(path.anchor), list(reversed(path.parts[1:])), 0
    yield at
    while rest:
        step = rest.pop()
        below = at.parent if step == ".." else at / step
        yield below
        if not below.is_symlink():
            at = below
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = Path(os.readlink(below))
        rest.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
        at = Path(target.anchor) if target.is_absolute() else at


def read_own(path: Path, forbidden: int = WRITABLE) -> bytes:
    """The contents of a file; Untrusted if it is not this user's own, or others have one of the `forbidden` rights."""
    flags = [getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")]  # a pipe must not make us wait
    handle = os.open(path, os.O_RDONLY | sum(flags))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Untrusted(f"{path} is not a regular file")
        if OWNERS:
            _require_own(path, found, forbidden)
        return file.read()


def _require_own(path: Path, found: os.stat_result, forbidden: int) -> None:
    if found.st_uid != os.geteuid():
        raise Untrusted(f"{path} belongs to user {found.st_uid}, not to you")
    if found.st_mode & forbidden:
        rights = "write" if forbidden == WRITABLE else "read or write"
        raise Untrusted(f"others may {rights} {path}; to allow it, chmod go-rwx {path}")
