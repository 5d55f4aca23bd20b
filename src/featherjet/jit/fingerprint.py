"""Fingerprints of values, for the keys of compiled code."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

REMEMBERED = 64  # objects whose fingerprints are remembered


def fingerprint(value: Any) -> Hashable:
    """A key that differs whenever a bit of the value differs, and prints the same in every process."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, tuple(fingerprint(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, dict):
        return tuple((k, fingerprint(x)) for k, x in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(fingerprint, value))
    if value is None or isinstance(value, (str, int, float, slice)):
        return repr(value)
    raise TypeError(f"cannot take the fingerprint of a {type(value).__name__}")


class Fingerprints:
    """Takes fingerprints, those of a frozen dataclass only once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Hashable]] = {}

    def __call__(self, value: Any) -> Hashable:
        if not (is_dataclass(value) and value.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            return fingerprint(value)
        found = self._known.get(id(value))
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[id(value)] = (
                value,
                fingerprint(value),
            )  # holds the value: its id stays taken
        return found[1]
