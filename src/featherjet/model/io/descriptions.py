"""Robots of the package robot_descriptions, by the names of its modules; it fetches their files when asked.

A name is that of a module, such as "panda_mj_description", or in full "robot_descriptions.panda_mj_description".
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ...errors import MissingExtra, ModelError
from ...forks import unforked

PACKAGE = "robot_descriptions"
FILES = ("URDF_PATH", "MJCF_PATH")  # where a module says its file is


def names() -> tuple[str, ...]:
    """The modules of the package that describe a robot; empty if it is not installed."""
    try:
        with unforked:
            package = import_module(PACKAGE)
    except ImportError:
        return ()
    return tuple(sorted(package.DESCRIPTIONS))


def find(name: str) -> Path | None:
    """The file of the robot with that name, fetched if need be; None if the package does not have it."""
    short = name.removeprefix(f"{PACKAGE}.")
    known = names()
    if short not in known:
        if short != name and not known:
            raise MissingExtra(f"the robot {name!r}", PACKAGE, "descriptions")
        return None
    try:
        with unforked:
            module = import_module(f"{PACKAGE}.{short}")
    except Exception as error:  # of git or of the network
        raise ModelError(f"{PACKAGE} cannot fetch {short!r}: {error}") from error
    for attribute in FILES:
        if path := getattr(module, attribute, None):
            return Path(path)
    raise ModelError(f"{PACKAGE} has {short!r} as a xacro template only; expand it first, then load the URDF file")
