"""Versions of Crocoddyl and Pinocchio that run together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

BUILT_AGAINST = {"3.2": "4.0"}  # PyPI's Crocoddyl, and the Pinocchio that it was built against


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def clash() -> str:
    """What Crocoddyl needs and does not find, or nothing. PyPI's wheels alone are judged: other builds fit together."""
    ours, theirs = installed("libcrocoddyl"), installed("libpinocchio")
    if ours is None or theirs is None:
        return ""
    wanted = BUILT_AGAINST.get(minor(ours))
    if wanted is None or minor(theirs) == wanted:
        return ""
    return f"Pinocchio {wanted}, since {theirs} crashes Crocoddyl {ours}"


def minor(release: str) -> str:
    """3.2 of 3.2.1."""
    return ".".join(release.split(".")[:2])
