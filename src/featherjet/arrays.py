"""Checks of users' arrays. They run once, here; inner code trusts its input."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError

Array = np.ndarray
Out = Any  # None, an array, or a tuple of arrays
# By package: what to do with arrays that have no numbers for NumPy
FRAMEWORKS = {
    "jax": "JAX is tracing this call (jit, vmap, grad, ...), and this function takes NumPy arrays; "
    "use those of featherjet.jax.wrap(robot)",
    "jaxlib": "JAX has no numbers of this array yet; use the functions of featherjet.jax.wrap(robot)",
    "torch": "this function takes NumPy arrays, and the tensor is not one (it requires gradients, or is on another "
    "device); use those of featherjet.torch.wrap(robot), or give tensor.detach().cpu()",
    "casadi": "this function takes numbers, and the expression is symbolic; featherjet.casadi.function(robot, ...) "
    "makes functions of symbols",
}


def is_lazy(x: object) -> bool:
    """Whether x is a Dask collection, which has no numbers yet."""
    return hasattr(x, "__dask_graph__")


def numbers(x: Any) -> Any:
    """x as an array; a Dask array stays one."""
    return x if is_lazy(x) else np.asarray(x)


def masked(x: object) -> bool:
    """Whether an array has masked entries. np.ma is not touched, for NumPy imports it when it first is."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(x, getattr(ma, "MaskedArray", ())) and ma.is_masked(x)


def finite(name: str, x: object, core: tuple[int, ...], letters: str) -> Array:
    """x as a float64 array (..., *core) of finite numbers."""
    if is_lazy(x):
        raise InputError(f"{name}: this needs numbers, which a Dask {type(x).__name__} has only after .compute()")
    if masked(x):
        raise InputError(f"{name}: some entries are masked; fill them in first")
    try:
        a = np.asarray(x)
    except ValueError as e:
        raise InputError(f"{name}: expected an array of shape (..., {letters}), got ragged nesting") from e
    except (TypeError, RuntimeError) as e:
        if advice := FRAMEWORKS.get(type(x).__module__.partition(".")[0]):
            raise InputError(f"{name}: {advice}") from e
        raise
    check_shape(name, a, core, letters)
    a = a.astype(np.float64, copy=False)
    if not np.isfinite(a).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
        raise InputError(f"{name}{list(where) if where else ''} is {a[where]}: every entry must be finite")
    return a


def check_shape(name: str, x: Any, core: tuple[int, ...], letters: str) -> None:
    """Raise unless x, an array of any library, has real numbers and a shape (..., *core)."""
    if x.dtype.kind not in "fiu":
        raise InputError(f"{name}: expected real numbers, got dtype {x.dtype}")
    if x.shape[max(x.ndim - len(core), 0) :] != core:
        want = ", ".join(map(str, core))
        raise InputError(f"{name}: expected shape (..., {want}), with {letters}; got {x.shape}")


def finite_exactly(name: str, x: object, core: tuple[int, ...], letters: str) -> Array:
    """x as a float64 array of shape `core`, without batch axes."""
    found = finite(name, x, core, letters)
    if found.shape != core:
        raise InputError(f"{name}: expected {letters}, shape {core}; got {found.shape}")
    return found


def common_batch(arrays: Mapping[str, tuple[Any, int]]) -> tuple[int, ...]:
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
        if o.dtype.kind in "biu":
            raise InputError(f"out: expected arrays of float64 or float32, got {o.dtype}")
        if not o.flags.writeable:
            raise InputError("out: an array is read-only, such as one that was broadcast; give a copy")
    for k, o in enumerate(outs):
        if any(_share(o, other) for other in outs[:k]):
            raise InputError("out: two of the arrays share memory; give each result its own")
    return tuple(outs)


def _share(x: Array, y: Array) -> bool:
    """Whether two arrays have an entry in common; no, if that is hard to tell."""
    try:
        return np.may_share_memory(x, y) and np.shares_memory(x, y, max_work=1000)  # type: ignore[arg-type]
    except Exception as error:  # NumPy's TooHardError, whose place differs between versions
        if type(error).__name__ != "TooHardError":
            raise
        return False


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


def shortened(x: object) -> str:
    """What a user gave, in an error message: not longer than a line."""
    text = repr(x) if not isinstance(x, int) or abs(x) < 10**30 else f"a number of {len(str(abs(x)))} digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def positive_number(name: str, x: Any) -> float:
    """x as a float; raises unless it is a positive finite number."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)) or not _between(x):
        raise InputError(f"{name}: expected a positive number, got {shortened(x)}")
    return float(x)


def _between(x: Any) -> bool:
    """Whether a number is positive and fits into a float."""
    try:
        return bool(0 < float(x) < np.inf)
    except (OverflowError, TypeError):  # too large, or complex
        return False


def whole_number(name: str, x: Any, least: int, why: str = "", most: int | None = None) -> int:
    """x as an int; raises unless it is a whole number from `least` to `most`. `why` explains `least`."""
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)) or x < least:
        raise InputError(f"{name}: expected a whole number, at least {least}{why}; got {shortened(x)}")
    if most is not None and x > most:
        raise InputError(f"{name}: expected at most {most}, got {shortened(int(x))}")
    return int(x)


def path_of(given: Any) -> Path:
    """A user's path; raises unless it is one of type str, or an object that has one."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):
        hint = "; os.fsdecode(...) makes text of bytes" if isinstance(text, bytes) else ""
        raise InputError(f"path: expected a str or a pathlib.Path, got {type(text).__name__}{hint}")
    return Path(text)
