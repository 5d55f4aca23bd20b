"""Checks of users' arrays. They run once, here; inner code trusts its input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError

Array = np.ndarray
Out = Any  # None, an array, or a tuple of arrays


def finite(name: str, x: object, core: tuple[int, ...], letters: str) -> Array:
    """x as a float64 array (..., *core) of finite numbers."""
    try:
        a = np.asarray(x)
    except ValueError as e:
        raise InputError(f"{name}: expected an array of shape (..., {letters}), got ragged nesting") from e
    if a.dtype.kind not in "fiu":
        raise InputError(f"{name}: expected real numbers, got dtype {a.dtype}")
    if a.shape[max(a.ndim - len(core), 0) :] != core:
        want = ", ".join(map(str, core))
        raise InputError(f"{name}: expected shape (..., {want}), with {letters}; got {a.shape}")
    a = a.astype(np.float64, copy=False)
    if not np.isfinite(a).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
        raise InputError(f"{name}{list(where) if where else ''} is {a[where]}: every entry must be finite")
    return a


def finite_exactly(name: str, x: object, core: tuple[int, ...], letters: str) -> Array:
    """x as a float64 array of shape `core`, without batch axes."""
    found = finite(name, x, core, letters)
    if found.shape != core:
        raise InputError(f"{name}: expected {letters}, shape {core}; got {found.shape}")
    return found


def common_batch(arrays: dict[str, tuple[Array, int]]) -> tuple[int, ...]:
    """The broadcast batch shape of named arrays, each with its number of core axes."""
    shapes = {name: x.shape[: x.ndim - core] for name, (x, core) in arrays.items()}
    first = next(iter(shapes.values()))
    if all(shape == first for shape in shapes.values()):
        return first
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InputError(f"batch shapes do not broadcast: {listed}") from None


def outputs(out: Out) -> tuple[Array, ...]:
    """`out` as a tuple of arrays."""
    outs = out if isinstance(out, tuple) else (out,)
    for o in outs:
        if not isinstance(o, np.ndarray):
            raise InputError(f"out: expected an array or a tuple of arrays, got {type(o).__name__}")
    return tuple(outs)


def copied(out: Out, results: tuple[Array, ...]) -> tuple[Array, ...]:
    """The results, copied into `out` if given."""
    if out is None:
        return results
    outs = outputs(out)
    if len(outs) != len(results) or any(o.shape != r.shape for o, r in zip(outs, results, strict=True)):
        want = ", ".join(str(r.shape) for r in results)
        raise InputError(f"out: expected shapes {want}; got {', '.join(str(o.shape) for o in outs)}")
    for o, r in zip(outs, results, strict=True):
        np.copyto(o, r)
    return outs


def positive_number(name: str, x: Any) -> float:
    """x as a float; raises unless it is a positive finite number."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)) or not 0 < float(x) < np.inf:
        raise InputError(f"{name}: expected a positive number, got {x!r}")
    return float(x)


def whole_number(name: str, x: Any, least: int, why: str = "") -> int:
    """x as an int; raises unless it is a whole number of at least `least`. `why` explains the bound."""
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)) or x < least:
        raise InputError(f"{name}: expected a whole number, at least {least}{why}; got {x!r}")
    return int(x)
