"""Maps over the scalars of values made of dataclasses, tuples, lists and dictionaries.

A list has one entry per degree of freedom of a joint, and a dictionary holds partial derivatives or entries of matrices
by degrees of freedom; everything else has a fixed shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

Path = tuple[Any, ...]  # attribute names, tuple positions as strings, list positions as integers, and Members


class Member(NamedTuple):
    """A key of a dictionary, as a part of a path."""

    key: Any


def mapped(value: Any, leaf: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """The same structure with leaf(path, scalar) in place of every scalar; None stays."""
    if value is None:
        return None
    if is_dataclass(value) and not isinstance(value, type):
        parts = (mapped(getattr(value, f.name), leaf, (*path, f.name)) for f in fields(value))
        return type(value)(*parts)
    if isinstance(value, tuple):
        parts = (mapped(x, leaf, (*path, str(k))) for k, x in enumerate(value))
        return tuple(parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return type(value)({k: mapped(x, leaf, (*path, Member(k))) for k, x in value.items()})
    if isinstance(value, list):
        return [mapped(x, leaf, (*path, k)) for k, x in enumerate(value)]
    return leaf(path, value)


def leaves(value: Any) -> list[tuple[Path, Any]]:
    """Every scalar with its path."""
    found: list[tuple[Path, Any]] = []
    mapped(value, lambda path, x: found.append((path, x)))
    return found


def split(path: Path) -> tuple[Path, int | None]:
    """A path without its list position, and that position or None."""
    at = [k for k, part in enumerate(path) if isinstance(part, int)]
    if not at:
        return path, None
    if len(at) > 1:
        raise TypeError(f"a list within a list at {path}: lists may only have one entry per degree of freedom")
    return path[: at[0]] + path[at[0] + 1 :], path[at[0]]
