"""The fast backend: algorithms as machine code, called as NumPy gufuncs, on as many threads as wanted."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .compiler.kernels import KERNELS, signature
from .compiler.tables import Tables, variants
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


class Kernel:
    """One compiled quantity of one robot."""

    def __init__(self, tree: Tree, tables: Tables, name: str, fext: bool) -> None:
        from .compiler.gufunc import Gufunc
        from .compiler.library import library

        sizes = {"q": tree.nq, "v": tree.nv, "joints": len(tree.nodes), "six": 6, "sixteen": 16}
        self._keep = tables, library(name, variants(tree), fext)
        self.address, self.data = self._keep[1].address("entry"), tables.address
        self._gufunc = Gufunc(self.address, tables.address, signature(name, fext, sizes), name)
        self.call = self._gufunc.call
        self.cores = [1 + (x == "fext") for x in (*KERNELS[name].inputs, *(("fext",) if fext else ()))]
        self.shapes = [tuple(sizes[d] for d in core) for core in KERNELS[name].outputs]
        self.cost = 25.0 * tree.nv + sum(1.0 * tree.nv**2 for shape in self.shapes if len(shape) == 2)

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results, and the flags that were raised."""
        if threads > 1 and any(x.ndim > 1 and len(x) >= 2 * GRAIN for x in inputs):
            split = self._threaded(inputs, out, threads)
            if split is not None:
                return split
        report = REPORT
        results = self.call(report.address, *inputs, out=out) if out else self.call(report.address, *inputs)
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

        def work(start: int) -> int:
            part = slice(start, start + size)
            report = REPORT
            self.call(report.address, *(x[part] for x in wide), out=tuple(o[part] for o in outs))
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
    """All kernels of one tree, made when first called."""

    def __init__(self, tree: Tree) -> None:
        from .compiler.engine import host_lanes

        self.tree = tree
        self.tables = Tables(tree, host_lanes())
        self._kernels: dict[tuple[str, bool], Kernel] = {}

    def kernel(self, name: str, fext: bool) -> Kernel:
        found = self._kernels.get((name, fext))
        if found is None:
            found = self._kernels[name, fext] = Kernel(self.tree, self.tables, name, fext)
        return found
