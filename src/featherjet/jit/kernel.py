"""Kernels: compiled functions of NumPy arrays, on any batch, in one call or on many threads.

`compile` is the front of the compiler: a function of scalars, the shapes of its inputs and a key that identifies it
make a Kernel. Its code is made when it is first called, kept on disk, and loaded again by the next process.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .data import Data
from .emit.quick import headers_are_known, quick_call
from .engine import CPU, Library, target
from .gufunc import Gufunc
from .library import library
from .memory import POOL, SMALL
from .straight import Function, Shape, Straight, shortest

Array = np.ndarray
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
GRAIN = 64  # samples go to threads in multiples of this, so that results do not depend on their number
WORTH = 4e5  # nanoseconds of work, roughly, below which a second thread costs more than it brings


def compile(
    function: Function,
    shapes: Mapping[str, Shape],
    key: Hashable,
    name: str = "",
    *,
    cpu: CPU | None = None,
    outputs: Sequence[Shape] | None = None,
    alternatives: Sequence[Function] = (),
    watch: int = 0,
    units: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    limit: int | None = None,
) -> Kernel:
    """A kernel of straight-line code: function(**arrays of scalars) gives arrays of scalars.

    shapes: of one sample of each input, by name.
    key: identifies the function and everything it depends on; prints the same in every process.
    cpu: what to make code for; by default, what FEATHERJET_CPU chooses.
    outputs: shapes of one sample of each result, if they are known before the function is traced.
    alternatives: functions with the same results; the one that takes the fewest instructions is compiled.
    watch: so many of the last results are not returned, but flagged where they are not clearly positive.
    units: for each input, parts (start, size) that must have norm one; they are checked, and scaled to it.
    limit: operations beyond which the first call raises `TooLong`.
    """
    cpu = cpu or target()

    def straight() -> Straight:
        best = shortest((function, *alternatives), shapes, limit, watch)
        best.units = units or {}
        return best

    def load(precision: int, one: bool) -> Library:
        lanes = 1 if one else cpu.lanes

        def make() -> Any:
            from .emit.straight import emit_straight

            return emit_straight(straight(), lanes, cpu.triple, precision == 32)

        return library(cpu, ("straight", key, lanes, precision), name, make)

    return Kernel(name, shapes, outputs, Data(), load, own_single=True)


class _Report(threading.local):
    """A word for kernels to set flags in, and its address as they are given it: one for each thread."""

    def __init__(self) -> None:
        self.flags = np.zeros(1, np.int64)
        self.address = np.array(self.flags.ctypes.data, np.int64)


REPORT = _Report()


class Code:
    """Loaded machine code: `call`, a gufunc for arrays of any kind, and `quick` for one sample in contiguous arrays."""

    def __init__(
        self, library: Library, data: Data, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], number: Any
    ) -> None:
        self._keep = library, data
        sides = (["()", *map(signature, inputs)], map(signature, outputs))
        self._gufunc = Gufunc(library.address("entry"), data.address, "->".join(map(",".join, sides)), name, number)
        self.call = self._gufunc.call
        self.quick = quick_call(library.address("quick"), data.block, (library, data))


def signature(shape: Shape) -> str:
    """A shape as gufuncs write it."""
    return "(" + ",".join(map(str, shape)) + ")"


class Kernel:
    """A compiled function, as code for batches and code for one sample; each is made when first used.

    inputs: shapes of one sample, by name. outputs: likewise, or None where only the code knows.
    load(precision, one) gives the code. Numbers of single precision have code of their own, which reads and writes such
    numbers, and computes with double ones. own_single: whether one sample is served by other code than batches.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        outputs: Sequence[Shape] | None,
        data: Data,
        load: Callable[[int, bool], Library],
        own_single: bool,
    ) -> None:
        self.name, self.inputs, self.data, self.load, self.own_single = name, dict(inputs), data, load, own_single
        self.cores = [len(shape) for shape in self.inputs.values()]
        self._outputs = None if outputs is None else list(outputs)

    @property
    def made(self) -> bool:
        """Whether any of its code has been made."""
        return not self.__dict__.keys().isdisjoint(("batch", "single", "batch32"))

    @cached_property
    def shapes(self) -> list[Shape]:
        """Of one sample of each result."""
        if self._outputs is None:
            self.batch  # noqa: B018  (knows the shapes)
        assert self._outputs is not None
        return self._outputs

    @cached_property
    def cost(self) -> float:
        """Roughly, nanoseconds for one sample."""
        return 4.0 * sum(map(prod, self.inputs.values())) + sum(map(prod, self.shapes))

    @cached_property
    def batch(self) -> Code:
        return self._code(64, False)

    @cached_property
    def single(self) -> Code:
        return self._code(64, True) if self.own_single else self.batch

    @cached_property
    def batch32(self) -> Code:
        return self._code(32, False)

    def _code(self, precision: int, one: bool) -> Code:
        library = self.load(precision, one)
        if self._outputs is None:
            self._outputs = [tuple(shape) for shape in json.loads(library.text("shapes"))]
        number = np.float32 if precision == 32 else np.float64
        return Code(library, self.data, self.name, list(self.inputs.values()), self._outputs, number)

    @cached_property
    def quick(self) -> Callable[..., tuple[Array, ...] | None]:
        """The shortest way to the results for one sample; None if it is not one, or if there is something to report."""
        call = self.quick_code
        if call is None:
            return lambda *given, out=None: None
        shapes, empty = self.shapes, np.empty

        def run(*given: Array, out: Any = None) -> tuple[Array, ...] | None:
            outs = tuple(map(empty, shapes)) if out is None else out if type(out) is tuple else (out,)
            return None if call(*given, *outs) else outs

        return run

    @property
    def quick_code(self) -> Callable[..., int] | None:
        """(inputs..., results...) -> flags, for one sample in contiguous arrays; it keeps all it calls alive.

        None where the layout of array headers is unknown.
        """
        return self.single.quick if headers_are_known() else None

    def values(self, *inputs: Array) -> tuple[Array, ...]:
        """The results of a batch of doubles, on this thread, whatever flags are raised."""
        return self._run(self.batch, inputs, None)[0]

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results, and the flags that were raised."""
        if any(x.ndim > 1 and len(x) >= GRAIN // 4 for x in inputs):
            many = self._many(inputs, out, threads)
            if many is not None:
                return many
        return self._run(self._choose(inputs), inputs, out)

    def _run(self, code: Code, inputs: Sequence[Any], out: tuple[Any, ...] | None) -> tuple[tuple, int]:
        report = REPORT
        results = code.call(report.address, *inputs, out=out) if out else code.call(report.address, *inputs)
        flags = int(report.flags[0])
        if flags:
            report.flags[0] = 0
        results = results if isinstance(results, tuple) else (results,)
        return tuple(map(np.asarray, results)) if () in self.shapes else results, flags

    def _choose(self, inputs: Sequence[Any]) -> Code:
        """The code for these inputs; of mixed precision, the double one."""
        if all(x.dtype == FLOAT32 for x in inputs):
            return self.batch32
        return self.batch if any(x.ndim > core for x, core in zip(inputs, self.cores, strict=True)) else self.single

    def _many(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int] | None:
        """The same for a large batch: in memory that was used before, over stretches of the first axis.

        None where this is not worth it, or where there may be something to report.
        """
        arrays = [np.asarray(x) for x in inputs]
        if any(x.ndim < core or x.dtype.kind not in "fiu" for x, core in zip(arrays, self.cores, strict=True)):
            return None
        batches = [x.shape[: x.ndim - core] for x, core in zip(arrays, self.cores, strict=True)]
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            return None
        if not batch:
            return None
        total = prod(batch)
        code = self._choose(arrays)
        number = FLOAT32 if code is self.__dict__.get("batch32") else FLOAT64
        if out is None:
            if total * max(map(prod, self.shapes)) * number.itemsize <= SMALL:
                return None
            outs = tuple(POOL.empty((*batch, *shape), number) for shape in self.shapes)
        else:
            outs = out
        if any(o.shape != (*batch, *shape) for o, shape in zip(outs, self.shapes, strict=True)):
            return None
        count = min(threads, int(total * self.cost // WORTH), batch[0] // GRAIN)
        if count < 2 or (out and any(np.may_share_memory(o, x) for o in out for x in arrays)):
            return self._run(code, arrays, outs)  # NumPy copies what overlaps, but sees only one stretch at a time
        wide = [
            np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])) for x, core in zip(arrays, self.cores, strict=True)
        ]
        size = -(-batch[0] // count // GRAIN) * GRAIN

        def work(start: int) -> int:
            part = slice(start, start + size)
            return self._run(code, [x[part] for x in wide], tuple(o[part] for o in outs))[1]

        flags = 0
        for one in workers(threads).map(work, range(0, batch[0], size)):
            flags |= one
        return outs, flags


def workers(threads: int) -> ThreadPoolExecutor:
    """Worker threads of this process; a fork starts with none."""
    key = (os.getpid(), threads)
    found = _workers.get(key)
    return found or _workers.setdefault(key, ThreadPoolExecutor(threads, thread_name_prefix="featherjet"))


_workers: dict[tuple[int, int], ThreadPoolExecutor] = {}
