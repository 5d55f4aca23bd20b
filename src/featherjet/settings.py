"""Environment variables, and when they count: not in a program that lends its rights to whoever starts it.

A program whose effective user or group is not its real one (setuid, setgid) was started by somebody with fewer rights,
who wrote its environment. There no variable of featherjet counts, and no code is read from a cache.
"""

from __future__ import annotations

import os

from .errors import InputError

LONGEST = 9  # digits of a number


def borrowed_rights() -> bool:
    """Whether this process has the rights of another user or group than the one that started it."""
    if not hasattr(os, "geteuid"):
        return False
    return os.getuid() != os.geteuid() or os.getgid() != os.getegid()


def setting(name: str) -> str | None:
    """The value of an environment variable; None if it is not set, or does not count here."""
    return None if borrowed_rights() else os.environ.get(name)


def is_set(name: str) -> bool:
    """Whether a variable that is a switch is on: set, and neither empty nor 0."""
    return setting(name) not in (None, "", "0")


def whole_number(name: str, what: str) -> int | None:
    """The value of a variable that is a whole number, of `what`; None if it is not set, or empty."""
    given = setting(name)
    if not given:
        return None
    if not (given.isascii() and given.isdecimal()) or len(given) > LONGEST:
        raise InputError(f"{name}: expected a whole number of {what}, got {given[:20]!r}")
    return int(given)
