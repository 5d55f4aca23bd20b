"""The fast backend: algorithms as machine code, called as NumPy gufuncs, on as many threads as wanted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from .compiler import library as libraries
from .compiler.engine import Library, host_lanes
from .compiler.gufunc import Gufunc
from .compiler.kernels import KERNELS, signature, unrolls
from .compiler.plain import Plain, headers_are_known
from .compiler.tables import Tables, sizes
from .model.tree import Tree

Array = np.ndarray
GRAIN = 64  # samples go to threads in multiples of this, so that results do not depend on their number
WORTH = 4e5  # nanoseconds of work, roughly, below which a second thread costs more than it brings


class _Report(threading.local):
    """A word for kernels to set flags in, and its address as they are given it: one for each thread."""

    def __init__(self) -> None:
        self.flags = np.zeros(1, np.int64)
        self.address = np.array(self.flags.ctypes.data, np.int64)


REPORT = _Report()


class Code:
    """Loaded machine code of a kernel: a gufunc for arrays of any kind, `plain` for one state in plain arrays."""

    def __init__(self, library: Library, tables: Tables, name: str, fext: bool, sizes: dict[str, int]) -> None:
        self._keep = library, tables
        self.entry, self.data = library.address("entry"), tables.address
        self._gufunc = Gufunc(self.entry, self.data, signature(name, fext, sizes), name)
        self.call = self._gufunc.call
        self._plain = Plain(library.address("plain"), tables.block)
        self.plain = self._plain.call


class Kernel:
    """One compiled quantity of one robot, as code for batches and code for one state; each is made when first used."""

    def __init__(self, tree: Tree, tables: Tables, name: str, fext: bool, unroll: bool) -> None:
        self.tree, self.tables, self.name, self.fext, self.unroll = tree, tables, name, fext, unroll
        self.sizes = sizes(tree)
        self.cores = [1 + (x == "fext") for x in (*KERNELS[name].inputs, *(("fext",) if fext else ()))]
        self.shapes = [tuple(self.sizes[d] for d in core) for core in KERNELS[name].outputs]
        self.cost = 25.0 * tree.nv + sum(1.0 * tree.nv**2 for shape in self.shapes if len(shape) == 2)

    @property
    def quickly(self) -> bool:
        """Whether `plain` may be called."""
        return headers_are_known()

    @cached_property
    def batch(self) -> Code:
        if self.unroll:
            library = libraries.unrolled(self.name, self.tree, self.tables, self.fext, single=False)
        else:
            library = libraries.rolled(self.name, self.tree, self.fext)
        return Code(library, self.tables, self.name, self.fext, self.sizes)

    @cached_property
    def single(self) -> Code:
        if not self.unroll:
            return self.batch
        library = libraries.unrolled(self.name, self.tree, self.tables, self.fext, single=True)
        return Code(library, self.tables, self.name, self.fext, self.sizes)

    @cached_property
    def quick(self) -> Callable[..., tuple[Array, ...] | None]:
        """The shortest way to the results for one state; None if it is not one, or if there is something to report."""
        if not self.quickly:
            return lambda *given: None
        plain, shapes, empty = self.single.plain, self.shapes, np.empty

        def run(*given: Array) -> tuple[Array, ...] | None:
            outs = tuple(map(empty, shapes))
            return None if plain(*given, *outs) else outs

        return run

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results, and the flags that were raised."""
        if threads > 1 and any(x.ndim > 1 and len(x) >= 2 * GRAIN for x in inputs):
            split = self._threaded(inputs, out, threads)
            if split is not None:
                return split
        many = any(x.ndim > core for x, core in zip(inputs, self.cores, strict=True))
        call = (self.batch if many else self.single).call
        report = REPORT
        results = call(report.address, *inputs, out=out) if out else call(report.address, *inputs)
        flags = int(report.flags[0])
        if flags:
            report.flags[0] = 0
        return (results if isinstance(results, tuple) else (results,)), flags

    def _threaded(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int):
        """The same over stretches of the first batch axis; None where that is not worth it."""
        arrays = [np.asarray(x) for x in inputs]
        if any(x.ndim < core or x.dtype.kind not in "fiu" for x, core in zip(arrays, self.cores, strict=True)):
            return None
        batches = [x.shape[: x.ndim - core] for x, core in zip(arrays, self.cores, strict=True)]
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            return None
        total = int(np.prod(batch))
        if not batch or total * self.cost < 2 * WORTH or batch[0] < 2 * GRAIN:
            return None
        if out and any(np.may_share_memory(o, x) for o in out for x in arrays):
            return None  # NumPy copies what overlaps, but sees only one stretch at a time
        outs = out or tuple(np.empty((*batch, *shape)) for shape in self.shapes)
        if any(o.shape != (*batch, *shape) for o, shape in zip(outs, self.shapes, strict=True)):
            return None
        wide = [
            np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :])) for x, core in zip(arrays, self.cores, strict=True)
        ]
        count = min(threads, int(total * self.cost // WORTH), batch[0] // GRAIN)
        size = -(-batch[0] // count // GRAIN) * GRAIN
        starts = range(0, batch[0], size)
        call = self.batch.call

        def work(start: int) -> int:
            part = slice(start, start + size)
            report = REPORT
            call(report.address, *(x[part] for x in wide), out=tuple(o[part] for o in outs))
            flags = int(report.flags[0])
            report.flags[0] = 0
            return flags

        flags = 0
        for one in pool(threads).map(work, starts):
            flags |= one
        return outs, flags


def pool(threads: int) -> ThreadPoolExecutor:
    """Worker threads of this process; a fork starts with none."""
    key = (os.getpid(), threads)
    found = _pools.get(key)
    return found or _pools.setdefault(key, ThreadPoolExecutor(threads, thread_name_prefix="featherjet"))


_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


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
        if found is None:
            possible = self.tree.coupling is None and KERNELS[name].rolled
            unroll = unrolls(name, self.tree) if self.unroll is None or not possible else self.unroll
            found = self._kernels[name, fext] = Kernel(self.tree, self.tables, name, fext, unroll)
        return found
