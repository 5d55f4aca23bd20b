"""The fast backend: algorithms as machine code, called as NumPy gufuncs, on as many threads as wanted."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import into
from ..errors import InputError
from ..jit import library as libraries
from ..jit.emit.quick import headers_are_known, plain_call
from ..jit.engine import Library, host_lanes
from ..jit.graph import TooLong
from ..jit.gufunc import Gufunc
from ..jit.memory import POOL, SMALL
from ..model.tree import Tree
from ..treejit.kernels import KERNELS, Shape, shapes, unrolls
from ..treejit.tables import Tables
from .reference import Reference

if TYPE_CHECKING:
    from ..jit.straight import Straight

Array = np.ndarray
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
GRAIN = 64  # samples go to threads in multiples of this, so that results do not depend on their number
REMEMBERED = 64  # objects whose fingerprints are kept
WORTH = 4e5  # nanoseconds of work, roughly, below which a second thread costs more than it brings


class _Report(threading.local):
    """A word for kernels to set flags in, and its address as they are given it: one for each thread."""

    def __init__(self) -> None:
        self.flags = np.zeros(1, np.int64)
        self.address = np.array(self.flags.ctypes.data, np.int64)


REPORT = _Report()


class Code:
    """Loaded machine code of a kernel: a gufunc for arrays of any kind, `plain` for one state in plain arrays."""

    def __init__(
        self,
        library: Library,
        tables: Tables,
        name: str,
        inputs: Sequence[Shape],
        outputs: Sequence[Shape],
        number: Any,
    ) -> None:
        self._keep = library, tables
        self.outputs = list(outputs)
        sides = (["()", *map(core, inputs)], map(core, outputs))
        self._gufunc = Gufunc(library.address("entry"), tables.address, "->".join(map(",".join, sides)), name, number)
        self.call = self._gufunc.call
        self.plain = plain_call(library.address("plain"), tables.block, (library, tables))


def core(shape: Shape) -> str:
    """A shape as gufuncs write it."""
    return "(" + ",".join(map(str, shape)) + ")"


class Kernel:
    """One compiled quantity of one robot, as code for batches and code for one state; each is made when first used.

    library(precision, one) makes the code; where the results' shapes are not known before, it tells them. Numbers of
    single precision have code of their own, which reads and writes such numbers, and computes with double ones.
    """

    def __init__(
        self,
        tables: Tables,
        name: str,
        inputs: dict[str, Shape],
        outputs: list[Shape] | None,
        library: Callable[[int, bool], Library],
        unroll: bool,
    ) -> None:
        self.tables, self.name, self.inputs, self.library, self.unroll = tables, name, inputs, library, unroll
        self.cores = [len(shape) for shape in inputs.values()]
        self._outputs = outputs

    @property
    def quickly(self) -> bool:
        """Whether `plain` may be called."""
        return headers_are_known()

    @cached_property
    def shapes(self) -> list[Shape]:
        if self._outputs is None:
            self._outputs = self.batch.outputs
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
        return self._code(64, True) if self.unroll else self.batch

    @cached_property
    def batch32(self) -> Code:
        return self._code(32, False)

    def _code(self, precision: int, one: bool) -> Code:
        library = self.library(precision, one)
        if self._outputs is None:
            self._outputs = [tuple(shape) for shape in json.loads(library.text("shapes"))]
        number = np.float32 if precision == 32 else np.float64
        return Code(library, self.tables, self.name, list(self.inputs.values()), self._outputs, number)

    @cached_property
    def quick(self) -> Callable[..., tuple[Array, ...] | None]:
        """The shortest way to the results for one state; None if it is not one, or if there is something to report."""
        if not self.quickly:
            return lambda *given, out=None: None
        plain, shapes, empty = self.single.plain, self.shapes, np.empty

        def run(*given: Array, out: Any = None) -> tuple[Array, ...] | None:
            outs = tuple(map(empty, shapes)) if out is None else out if type(out) is tuple else (out,)
            return None if plain(*given, *outs) else outs

        return run

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


class Compiled:
    """All kernels of one tree, made when first called.

    unroll: whether code is made for this robot alone (True), shared with all robots that have the same kinds of joints
    (False; not where joints mimic), or what is better for each kernel (None).
    """

    def __init__(self, tree: Tree, unroll: bool | None = None) -> None:
        self.tree, self.unroll = tree, unroll
        self.tables = Tables(tree, host_lanes())
        self._kernels: dict[tuple[str, bool], Kernel] = {}

    def kernel(self, name: str, fext: bool) -> Kernel:
        found = self._kernels.get((name, fext))
        if found is None:  # one wins, if threads come at once
            found = self._kernels.setdefault((name, fext), self._kernel(name, fext))
        return found

    def _kernel(self, name: str, fext: bool) -> Kernel:
        tree = self.tree
        possible = tree.coupling is None and KERNELS[name].rolled
        unroll = unrolls(name, tree) if self.unroll is None or not possible else self.unroll

        def library(precision: int, one: bool) -> Library:
            if not unroll:
                return libraries.rolled(name, tree, fext, precision)
            return libraries.unrolled((name, self.tables.digest, fext), straight, precision, one)

        def straight() -> Straight:
            from ..jit.straight import trace_kernel

            return trace_kernel(tree, KERNELS[name], fext)

        return Kernel(self.tables, name, *shapes(name, fext, tree), library, unroll)


class Specialised:
    """Runs a reference's algorithms as machine code for its robot alone: same inputs, same results.

    What takes more operations than the reference says is left to it: that would take too long to compile.
    """

    def __init__(self, reference: Reference, tables: Tables) -> None:
        self.reference, self.tables = reference, tables
        self._kernels: dict[tuple, Kernel | None] = {}
        self._known: dict[int, tuple[Any, Hashable]] = {}

    def run(
        self, name: str, inputs: dict[str, Array], threads: int, out: tuple[Array, ...] = (), **static: Any
    ) -> tuple[Array, ...]:
        """As Reference.run; the first results may be given places."""
        given = {k: x for k, x in inputs.items() if x is not None}
        known = tuple((k, self._fingerprint(x)) for k, x in sorted(static.items()))
        key = (type(self.reference).__name__, name, tuple(given), known)
        if key not in self._kernels:
            self._kernels[key] = self._kernel(key, name, given, static)
        kernel = self._kernels[key]
        try:
            if kernel is not None:
                return kernel(list(given.values()), self._places(kernel, given, out), threads)[0]
        except TooLong:
            self._kernels[key] = None
        results = self.reference.run(name, inputs, **static)
        return (*into(out, results[: len(out)]), *results[len(out) :]) if out else results

    def _fingerprint(self, value: Any) -> Hashable:
        """That of a dataclass which cannot change is taken once."""
        if not (is_dataclass(value) and value.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            return fingerprint(value)
        found = self._known.get(id(value))
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[id(value)] = value, fingerprint(value)  # held, so that nothing else gets its id
        return found[1]

    def _places(self, kernel: Kernel, given: dict[str, Array], out: tuple[Array, ...]) -> tuple[Array, ...] | None:
        if not out:
            return None
        core = zip(given.values(), kernel.cores, strict=True)
        batch = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in core))
        want = [(*batch, *shape) for shape in kernel.shapes]
        if len(out) > len(want) or [o.shape for o in out] != want[: len(out)]:
            expected, got = (", ".join(map(str, shapes)) for shapes in (want[: len(out)], [o.shape for o in out]))
            raise InputError(f"out: expected arrays of shape {expected}; got {got}")
        return (*out, *(np.empty(shape) for shape in want[len(out) :]))

    def _kernel(self, key: tuple, name: str, given: dict[str, Array], static: dict[str, Any]) -> Kernel:
        cores = {k: x.shape[x.ndim - (2 if k == "fext" else 1) :] for k, x in given.items()}

        def straight() -> Straight:
            from ..jit.straight import trace

            reference = self.reference
            compute = lambda **arrays: reference.compute(name, arrays, (), object, **static)  # noqa: E731
            return trace(compute, cores, reference.longest)

        def library(precision: int, one: bool) -> Library:
            return libraries.unrolled((key, self.tables.digest), straight, precision, one)

        return Kernel(self.tables, name, cores, None, library, True)


def fingerprint(value: Any) -> Hashable:
    """What distinguishes two values, down to the last bit, as something that prints the same in every process."""
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
    raise TypeError(f"no fingerprint of a {type(value).__name__}")
