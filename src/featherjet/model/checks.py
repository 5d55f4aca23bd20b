"""Checks of the numbers and names that make up a model."""

from __future__ import annotations

import numpy as np

from ..arrays import masked
from ..errors import ModelError

Array = np.ndarray
LARGEST = 1e30  # of a model's numbers: with inputs below 1e60, no result then exceeds the largest double


def numbers(x: object, what: str) -> Array:
    """A new float array of whatever numbers x holds."""
    if masked(x):
        raise ModelError(f"{what}: some entries are masked; fill them in first")
    try:
        if np.asarray(x).dtype.kind in "biufO":
            return np.array(x, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(f"{what}: expected numbers, got {type(x).__name__}")


def require_name(what: str, name: object) -> None:
    """Raise a ModelError unless a name can be shown on a terminal as it is."""
    if not isinstance(name, str):
        raise ModelError(f"{what}: expected a name, got {type(name).__name__}")
    if not name.isprintable():
        raise ModelError(f"{what} {name!r}: its name contains control characters")


def whole(x: object, what: str) -> int:
    """An index; anything but a whole number is an error."""
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)):
        raise ModelError(f"{what}: expected a whole number, got {str(x)[:40]}")
    return int(x)


def frozen(x: object, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float array of the given shape without NaN; anything else is an error."""
    a = numbers(x, what)
    if a.shape != shape:
        raise ModelError(f"{what}: expected shape {shape}, got {a.shape}")
    if np.isnan(a).any():
        raise ModelError(f"{what}: contains NaN")
    a.flags.writeable = False
    return a


def bounded(x: object, shape: tuple[int, ...], what: str) -> Array:
    """A read-only array of numbers that are finite and can be computed with."""
    if not np.isfinite(numbers(x, what)).all():
        raise ModelError(f"{what}: must be finite, got {x}")
    a = frozen(x, shape, what)
    if a.size and np.abs(a).max() > LARGEST:
        raise ModelError(f"{what}: {np.abs(a).max():.3g} is too large to compute with; the limit is {LARGEST:g}")
    return a


def rigid(T: object, what: str) -> Array:
    """A read-only homogeneous transform (4, 4), identity for None; its rotation is checked."""
    a = bounded(np.eye(4) if T is None else T, (4, 4), what)
    R = a[:3, :3]
    if np.abs(R).max() > 2 or np.abs(R.T @ R - np.eye(3)).max() > 1e-8 or np.linalg.det(R) < 0:
        raise ModelError(f"{what}: not a rigid transform: its rotation block is not orthonormal")
    if (a[3] != (0.0, 0.0, 0.0, 1.0)).any():
        raise ModelError(f"{what}: not a rigid transform: its last row is {a[3]}, not 0 0 0 1")
    return a
