"""Quantities of Dask arrays: lazy Dask arrays, block by block along the batch axes, with shapes and dtypes known.

Nothing here imports Dask unless someone gives a Dask array. Blocks are computed on one thread each: Dask has its own.
They travel as the robot's data; a process makes the robot of it once and finds its code in the cache on disk.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import arrays
from ..arrays import Out
from ..errors import InputError
from ..jit.workers import on_this_thread

Array = np.ndarray
Core = tuple[tuple[int, ...], str]  # the shape of one sample, and what an error calls it
KNOWN = 32  # calls that a process keeps for blocks to come
DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class LazyBlock:
    """(arrays of one block) -> results of that block. It pickles small, and loads once in each process.

    evaluator: whose `run(name, inputs, fext, None, settings, **options)` computes. optional: the names of the last
    inputs, "fext" or "settings". packed: evaluator, name and options, pickled; equal calls have equal bytes.
    """

    def __init__(self, packed: bytes, what: tuple[Any, ...], optional: Sequence[str], dtype: str) -> None:
        self.evaluator, self._name, self._options = what
        self._packed, self._how = packed, (tuple(optional), dtype)

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        optional, dtype = self._how
        given = inputs[: len(inputs) - len(optional)]
        more = dict(zip(optional, inputs[len(given) :], strict=True))
        with on_this_thread:
            found = self.evaluator.run(self._name, given, more.get("fext"), None, more.get("settings"), **self._options)
        return tuple(x.astype(dtype, copy=False) for x in found)

    def __dask_tokenize__(self) -> tuple:
        return "featherjet", self._packed, self._how

    def __reduce__(self) -> tuple:
        return _again, (self._packed, *self._how)


_packed: WeakKeyDictionary[Any, dict[Hashable, bytes]] = WeakKeyDictionary()


def packed(evaluator: Any, key: Hashable, name: Any, options: Mapping[str, Any]) -> bytes:
    """An evaluator's call, pickled; the same bytes for equal keys, which pickling again would not promise."""
    known = _packed.setdefault(evaluator, {})
    if len(known) >= KNOWN:
        known.clear()
    return known.get(key) or known.setdefault(key, pickle.dumps((evaluator, name, dict(options))))


@lru_cache(KNOWN)
def _unpacked(packed: bytes) -> tuple[Any, ...]:
    return pickle.loads(packed)


def _again(packed: bytes, optional: tuple[str, ...], dtype: str) -> LazyBlock:
    return LazyBlock(packed, _unpacked(packed), optional, dtype)


def run(
    make: Callable[[str], LazyBlock],
    inputs: Mapping[str, Any],
    cores: Mapping[str, Core],
    results: Sequence[tuple[int, ...]],
    single: bool,
    out: Out,
) -> tuple[Any, ...]:
    """A quantity's results as Dask arrays.

    make(dtype): the block that computes. inputs, cores: arrays, at least one of them lazy, and their core shapes, by
    name. results: the core shapes of the results. single: whether inputs in float32 give results in float32.
    """
    da: Any = import_module("dask.array")
    if out is not None:
        raise InputError("out: the results of Dask arrays are Dask arrays; leave it out")
    given = {}
    for name, x in inputs.items():
        if arrays.is_lazy(x):
            given[name] = _checked(da, name, x, *cores[name])
        else:
            kind = SINGLE if getattr(x, "dtype", None) == SINGLE else DOUBLE
            given[name] = da.from_array(arrays.finite(name, x, *cores[name]).astype(kind, copy=False), chunks=-1)
    dtype = SINGLE if single and all(x.dtype == SINGLE for x in given.values()) else DOUBLE
    _refuse_batches(given, cores)
    most = max(x.ndim - len(cores[name][0]) for name, x in given.items())
    loop = tuple(f"batch {k}" for k in range(most))
    operands: list[Any] = []
    for name, x in given.items():
        core = len(cores[name][0])
        operands += [x, (*loop[most - (x.ndim - core) :], *(f"{name} {k}" for k in range(core)))]
    meta = np.empty((0,) * most, dtype)
    blocks = da.blockwise(make(dtype.str), loop, *operands, concatenate=True, meta=meta)
    found = []
    for number, core in enumerate(results):
        axes = {f"result {k}": n for k, n in enumerate(core)}
        meta = np.empty((0,) * (most + len(core)), dtype)
        pick = partial(_item, number)
        found.append(da.blockwise(pick, (*loop, *axes), blocks, loop, new_axes=axes, meta=meta))
    return tuple(found)


def _item(number: int, results: tuple[Array, ...]) -> Array:
    return results[number]


def _checked(da: Any, name: str, x: Any, core: tuple[int, ...], letters: str) -> Any:
    """A lazy array, if it is a Dask array of real numbers (..., *core) with whole core axes."""
    if not isinstance(x, da.Array):
        raise InputError(f"{name}: expected a Dask array, got {type(x).__name__}; dask.array.from_delayed makes one")
    arrays.check_shape(name, x, core, letters)
    for axis, (length, chunks) in enumerate(zip(core, x.chunks[x.ndim - len(core) :], strict=True), x.ndim - len(core)):
        if chunks != (length,):
            raise InputError(
                f"{name}: axis {axis} ({letters}) is cut into {len(chunks)} chunks; only batch axes may be: "
                f"{name}.rechunk({{{axis}: -1}})"
            )
    return x


def _refuse_batches(given: Mapping[str, Any], cores: Mapping[str, Core]) -> None:
    """Raise if batch shapes do not broadcast; lengths that nobody knows yet are left to Dask."""
    known = {name: x for name, x in given.items() if not any(map(math.isnan, x.shape))}
    if known:
        arrays.common_batch({name: (x, len(cores[name][0])) for name, x in known.items()})
