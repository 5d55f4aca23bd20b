"""The cache of compiled code on disk.

A hash of everything that determines the code names its file: featherjet's sources, the kernel, LLVM and the CPU. Code
from a file is run, so a file counts only if nobody but this user can have written it (`trust`), and if it carries a
signature of its name, its target and its contents by a key that lies in the folder and that only this user can read.
Truncated, corrupt, foreign and renamed files are therefore detected and replaced. Files are written atomically, so many
processes may write at once. The files used least recently make room once the cache exceeds its limit. If the folder
cannot be trusted or written, one warning says so and code stays in memory.

FEATHERJET_CACHE_DIR moves the cache, and an empty string turns it off; FEATHERJET_CACHE_MB limits its size.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..atomic import atomic_write, leftovers, sweep
from ..errors import FeatherjetWarning, InputError, warn
from ..settings import borrowed_rights, setting, whole_number
from .trust import Untrusted, read_own, require_own_folder, require_trusted_way

MAGIC = b"featherjet code 2\n"
SUFFIX = ".fjo"
KEY = "key"  # the file of the key that signs code
KEY_BYTES = SIGNATURE_BYTES = 32
LIMIT_MB = 512
ROOM = 0.8  # of the limit: how much remains once the limit is exceeded, so that not every write has to make room


class CacheWarning(FeatherjetWarning):
    """Compiled code could not be kept on disk."""


def folder() -> Path | None:
    """The cache folder, or None if the cache is off; `why_off` says why."""
    if borrowed_rights():
        return None
    chosen = setting("FEATHERJET_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = _caches()
    return base / "featherjet" if base is not None and base.is_absolute() else None


def _caches() -> Path | None:
    """Where this user's programs keep their caches; None for a user without a home, as in containers."""
    given = os.environ.get({"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME"), "")
    if given and os.path.isabs(given):
        return Path(given)
    if os.environ.get("HOME") == "":
        return None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")


def is_off() -> bool:
    """Whether the user has turned the cache off."""
    return setting("FEATHERJET_CACHE_DIR") == ""


def why_off() -> str:
    """Why no code is kept on disk, if `folder` is None."""
    if borrowed_rights():
        return f"this process belongs to user {os.getuid()}, but has the rights of another user or group"
    if is_off():
        return "FEATHERJET_CACHE_DIR is empty"
    return "this user has no home folder (FEATHERJET_CACHE_DIR may name another)"


def remark() -> str:
    """What messages say of code that is being compiled."""
    return "once; kept on disk" if folder() else "once"


@cache
def sources() -> str:
    """A hash of all sources of featherjet: whatever it traces and however it compiles, a change makes other code.

    A package without sources, as in a frozen program, cannot tell what has changed: its code serves this process alone.
    """
    root, found = str(Path(__file__).parents[1]), []
    for place, folders, names in os.walk(root):
        folders[:] = [x for x in folders if x != "__pycache__"]
        found += [os.path.join(place, x) for x in names if x.endswith(".py") and not x.startswith(".")]
    if not found:
        return secrets.token_hex()
    digest = hashlib.sha256()
    for path in sorted(found):
        with open(path, "rb", buffering=0) as file:
            digest.update(path[len(root) :].encode() + b"\0" + file.read())
    return digest.hexdigest()


def name_of(*what: object) -> str:
    """The file name of the code that `what` and the current sources determine."""
    return hashlib.sha256("\n".join([sources(), *map(repr, what)]).encode()).hexdigest()[:40] + SUFFIX


def limit() -> int:
    """The most bytes the cache may take: FEATHERJET_CACHE_MB, or 512 MB."""
    given = whole_number("FEATHERJET_CACHE_MB", "megabytes")
    return (LIMIT_MB if given is None else given) << 20


def read(name: str, target: str) -> bytes | None:
    """The code of that name for a target, or None if it is missing, damaged or not to be trusted."""
    place = folder()
    if place is None:
        return None
    path = place / name
    try:
        require_own_folder(place)
        key = read_own(place / KEY, forbidden=0o077)
        data = read_own(path)
    except Untrusted as reason:
        _warn(place, f"compiled code in {place} is not used: {reason}")
        return None
    except OSError:
        return None
    start = len(MAGIC) + SIGNATURE_BYTES
    code = data[start:]
    expected = MAGIC + _signature(key, name, target, code)
    if len(key) != KEY_BYTES or not hmac.compare_digest(data[:start], expected):
        return None
    with suppress(OSError):
        os.utime(path)  # used now; access times are unreliable
    return code


def write(name: str, target: str, code: bytes) -> None:
    """Store code; a failure warns once."""
    place = folder()
    if place is None:
        if not is_off():
            _warn(None, f"compiled code is not kept on disk: {why_off()}")
        return
    try:
        require_trusted_way(place)  # before the first folder is made: it would belong to this user in another's home
        for missing in reversed([p for p in (place, *place.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        require_own_folder(place)
        signature = _signature(_key(place), name, target, code)
        with atomic_write(place / name, private=True) as file:
            file.write(MAGIC + signature + code)
        make_room(place)
    except Untrusted as reason:
        _warn(place, f"compiled code is not kept in {place}: {reason}")
    except (OSError, InputError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        reason = getattr(cause, "strerror", None) or str(error)
        _warn(place, f"compiled code cannot be kept in {place} ({reason}); every process will compile it again")


def _key(place: Path) -> bytes:
    """The key of a folder, made if it is missing or damaged; of several processes that make one, the first wins."""
    path = place / KEY
    with suppress(FileNotFoundError):
        found = read_own(path, forbidden=0o077)
        if len(found) == KEY_BYTES:
            return found
        path.unlink()
    try:
        with atomic_write(path, overwrite=False, private=True) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    except InputError:
        if not path.exists():
            raise
    return read_own(path, forbidden=0o077)


def _signature(key: bytes, name: str, target: str, code: bytes) -> bytes:
    signed = hmac.new(key, digestmod=hashlib.sha256)
    for part in (name.encode(), target.encode(), code):
        signed.update(len(part).to_bytes(8, "little"))
        signed.update(part)
    return signed.digest()


def make_room(place: Path) -> None:
    """Remove the files used least recently if the cache exceeds its limit."""
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                with suppress(OSError):  # another process may have removed it
                    about = entry.stat(follow_symlinks=False)
                    found.append((about.st_mtime_ns, about.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= limit():
        return
    for _, size, path in sorted(found)[:-1]:  # the newest is what has just been written
        with suppress(OSError):
            os.unlink(path)
        total -= size
        if total <= ROOM * limit():
            break


def _warn(place: Path | None, message: str) -> None:
    if place not in _warned:
        _warned.add(place)
        warn(CacheWarning(message))


_warned: set[Path | None] = set()


def files() -> list[Path]:
    """All files of the cache, including those that writers have not finished; not the key."""
    place = folder()
    if place is None or not place.is_dir():
        return []
    return sorted([*(p for p in place.iterdir() if p.suffix == SUFFIX), *leftovers(place)])


def clear() -> int:
    """Remove all code; returns how many files."""
    place, count = folder(), 0
    for path in files():
        if path.suffix == SUFFIX:
            path.unlink(missing_ok=True)
            count += 1
    if place is not None:
        sweep(place)
    return count
