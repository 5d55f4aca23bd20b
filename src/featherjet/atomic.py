"""Atomic writing: a file is replaced in one step when its successor is complete, or stays as it was.

Every file that featherjet writes is written here. The successor grows beside its target under a name nobody can guess,
opened exclusively and locked, so that two writers of one target never meet. Files that killed writers left behind are
removed by later writers in the same folder, which know them by their name and by the missing lock.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import InputError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None

LEFTOVER = re.compile(r"\.featherjet-[0-9a-f]{32}\.part")
GRACE = 60.0  # seconds before a file without a lock counts as left behind: its writer may be about to lock it
NO_LINKS = (errno.EPERM, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # what file systems without hard links say
KINDS = {
    stat.S_ISDIR: "a directory",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


@contextmanager
def atomic_write(path: Path, overwrite: bool = True, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write to; on success it becomes `path` and survives a power failure, on any error it is removed.

    A file that is replaced hands on its mode and owner. A link stays; the file it points to is replaced. Devices, pipes
    and sockets are refused. Without `overwrite`, a file that exists, or appears meanwhile, stays. `private`: only this
    user may read and write the file, whatever was there before.
    """
    final = _final(path)
    with named_in_errors(path):
        before = _replaceable(path, final, overwrite)
        temporary = final.with_name(f".featherjet-{secrets.token_hex(16)}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(temporary, flags, 0o600 if private or before else 0o666)
    try:
        with named_in_errors(path):
            with os.fdopen(handle, "w+b") as file:
                _lock(handle)
                if before and not private:
                    _inherit(path, handle, before)
                yield file
                file.flush()
                os.fsync(handle)
            _replaceable(path, final, overwrite)  # somebody may have put something else there meanwhile
            _move(path, temporary, final, overwrite)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_directory(final.parent)
    sweep(final.parent)


def write_text(path: Path, text: str, overwrite: bool = True) -> Path:
    """Write a UTF-8 text file atomically."""
    with atomic_write(path, overwrite) as file:
        file.write(text.encode())
    return path


def refuse_bad_target(path: Path, overwrite: bool) -> None:
    """Raise an InputError if `path` cannot be created, or exists while `overwrite` is False."""
    final = _final(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file in it")
    if not final.parent.is_dir():
        raise InputError(f"{path.parent}: there is no such directory")
    _replaceable(path, final, overwrite)


def refuse_own_input(target: Path, *sources: Path) -> None:
    """Raise an InputError if a command would write over a file it reads."""
    for source in sources:
        if source.exists() and target.exists() and source.samefile(target):
            raise InputError(f"{target}: is the input itself; choose another name for the output")


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Turn an OSError (disk full, no permission) into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def leftovers(folder: Path) -> list[Path]:
    """The files that writers, at work or killed, have not finished."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [Path(e.path) for e in entries if LEFTOVER.fullmatch(e.name) and e.is_file(follow_symlinks=False)]
    return []


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder."""
    for path in leftovers(folder):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > GRACE and _abandoned(path):
                path.unlink(missing_ok=True)


def _final(path: Path) -> Path:
    """Where a path leads, through links."""
    if "\0" in os.fspath(path):
        raise InputError(f"{os.fspath(path)!r}: no file can have this name")
    return Path(os.path.realpath(path))


def _replaceable(path: Path, final: Path, overwrite: bool) -> os.stat_result | None:
    """What is at `final`, a regular file or nothing; anything else is refused."""
    try:
        found = os.lstat(final)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        what = next((name for holds, name in KINDS.items() if holds(found.st_mode)), "not a regular file")
        raise InputError(f"{path}: is {what}; only regular files are replaced")
    if not overwrite:
        raise InputError(f"{path}: exists; --overwrite replaces it")
    return found


def _inherit(path: Path, handle: int, before: os.stat_result) -> None:
    """Give the successor the owner and the mode of what it replaces."""
    if not hasattr(os, "fchown"):
        return
    try:
        made = os.fstat(handle)
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            os.fchown(handle, before.st_uid, before.st_gid)
    except PermissionError:
        raise InputError(f"{path}: belongs to another user or group, which would be lost; write elsewhere") from None
    os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)


def _move(path: Path, temporary: Path, final: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, final)
        return
    try:
        os.link(temporary, final)  # unlike a rename, it never replaces
    except FileExistsError:
        raise InputError(f"{path}: exists; --overwrite replaces it") from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.rename(temporary, final)


def _lock(handle: int) -> None:
    """Show that the file has a living writer; some network file systems know no locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _abandoned(path: Path) -> bool:
    """Whether no living writer holds the lock of a file."""
    if fcntl is None:
        return True
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _sync_directory(directory: Path) -> None:
    """Flush the directory entry to disk, where the system allows it."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
