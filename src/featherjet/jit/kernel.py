"""Kernels: compiled functions of NumPy arrays, on batches of any shape, on one thread or many.

`compile` is the front of the compiler. It makes a Kernel of a function of scalars, the shapes of its inputs and a key.
The first call compiles the code and caches it on disk; later processes load it from there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, cached_property, partial
from math import prod
from typing import Any

import numpy as np

from ..forks import unforked
from .batches import GRAIN, LEAST, SLICE, Team, flattened, in_turn, rows_within
from .data import Data
from .direct import Call, DirectCalls, declined
from .emit.direct_call import direct_call, direct_call_block, headers_are_known
from .engine import CPU, Library, target
from .flags import Flag
from .gufunc import gufunc
from .library import labelled, library
from .memory import POOL, SMALL
from .number import DOUBLE, SINGLE, Number
from .objects import sources
from .straight import Function, Shape, Straight, is_own, shortest
from .workers import on_this_thread, workers

Array = np.ndarray
LARGE = 4096  # numbers; an input with fewer rows is looked at as a large batch only if it has as many as that
KEPT = 50_000  # operations; a longer trace takes too much memory to keep for later
WORTH = 4e5  # nanoseconds of work, roughly, that a further thread must save


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
    whose: str = "",
    fast_compile: bool = False,
) -> Kernel:
    """A kernel of straight-line code for function(**arrays of scalars) -> arrays of scalars.

    shapes: of one sample of each input, by name.
    key: identifies the function and all it depends on besides this package's sources and these arguments; must print
    the same in every process. Functions from elsewhere are identified by what they trace instead.
    cpu: the CPU to compile for; by default the one FEATHERJET_CPU selects.
    outputs: shapes of one sample of each result, if known before tracing.
    alternatives: functions with the same results; the shortest is compiled.
    watch: the number of last results that are not returned, but flagged unless clearly positive.
    units: parts (start, size) of each input that must have norm one; the code checks and normalises them.
    limit: the number of operations above which the first call raises `TooLong`.
    whose: what messages say the code is for.
    fast_compile: whether code for batches that compiles fast will do: for short ones, which fetch it from memory each
    time, it is as fast as better code.
    """
    traced: list[Straight] = []  # kept between the code for batches and that for one sample

    def straight() -> Straight:
        if traced:
            return traced.pop()
        best = shortest((function, *alternatives), shapes, limit, watch)
        best.units = units or {}
        if len(best.graph.ops) <= KEPT:
            traced.append(best)
        return best

    if is_own(function, *alternatives):
        whole = key, tuple(shapes.items()), watch, tuple((units or {}).items())
    else:
        foreign = straight()
        traced[:] = [foreign] * (len(foreign.graph.ops) <= KEPT)
        whole = foreign.digest
    known: dict[str, Any] = {"shapes": shapes, "outputs": outputs, "cpu": cpu, "whose": whose}
    return compile_straight(straight, whole, name, **known, costly=limit is not None, fast_compile=fast_compile)


def compile_straight(
    straight: Callable[[], Straight],
    key: Hashable,
    name: str = "",
    *,
    shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[Shape] | None = None,
    cpu: CPU | None = None,
    whose: str = "",
    costly: bool = False,
    fast_compile: bool = False,
) -> Kernel:
    """A kernel of what `straight` has traced; see `compile`. If `shapes` is None, the trace has the shapes."""
    cpu = cpu or target()

    def load(kind: Number, for_one: bool) -> tuple[Library, Data]:
        lanes, fast = 1 if for_one else cpu.fitting(kind), fast_compile and not for_one

        def make() -> Any:
            with unforked:
                from .emit.straight import emit_straight

            return emit_straight(straight(), lanes, cpu.platform, kind, fast)

        what = "straight", key, lanes, kind.name, fast
        return library(cpu, what, labelled(name, whose, for_one), make), Data(kind)

    if shapes is None:
        found = straight()
        shapes, outputs = found.inputs, [shape for shape, _ in found.outputs]
    return Kernel(name, shapes, outputs, load, separate_single=True, costly=costly)


class _Report(threading.local):
    """The word in which kernels set flags, and its address as their first operand; one per thread."""

    def __init__(self) -> None:
        self.flags = np.zeros(1, np.int64)
        self.address = np.array(self.flags.ctypes.data, np.int64)


REPORT = _Report()


class Code:
    """Loaded machine code for one kind of number.

    `call` is the gufunc for any arrays, `direct` serves one sample in contiguous arrays, `direct_batch` some of them;
    `entry` and `data` are the addresses of the gufunc's inner loop and of the block it reads.
    """

    def __init__(
        self, library: Library, data: Data, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]
    ) -> None:
        self.kind = data.kind
        sides = (["()", *map(signature, inputs)], map(signature, outputs))
        types = "->".join(map(",".join, sides))
        self.entry, self.data = library.address("entry"), data.address
        self._keep = library, data
        self.call = gufunc(self.entry, self.data, types, name, self.kind.dtype, self._keep)
        self._shapes, self._apart = (inputs, outputs), library.number("apart") != 0

    @cached_property
    def direct(self) -> Any:
        return self._direct(False)

    @cached_property
    def direct_batch(self) -> Any:
        return self._direct(True)

    def _direct(self, batched: bool) -> Any:
        code = direct_call_code(target().name)
        block = direct_call_block(self.kind, self.entry, self.data, *self._shapes, batched, self._apart)
        return direct_call(code.address("direct_call"), block, (code, self._keep))


@cache
def direct_call_code(cpu_name: str) -> Library:
    """The code of direct calls, which all kernels share, for the CPU of that name."""
    cpu = target()

    def make() -> Any:
        with unforked:
            from .emit.direct_call import emit_direct_call

        return sources(emit_direct_call(cpu.platform))

    return library(cpu, "direct_call", "direct calls", make)


def signature(shape: Shape) -> str:
    """A shape in a gufunc's signature."""
    return "(" + ",".join(map(str, shape)) + ")"


class Kernel:
    """A compiled function. Its code for batches and for one sample, in each precision, loads on first use.

    inputs: shapes of one sample, by name. outputs: likewise, or None if only the code knows them.
    load(kind, for_one): loads the code that computes with a kind of number, and the data it reads.
    direct(*inputs, out=None): the results of calls like those that have run without flags, in the precision that ran
    last: one sample, or a short batch; None for anything else, and where a flag is set. See `DirectCalls`.
    separate_single: whether one sample has its own code, apart from that for batches.
    costly: code that takes long to compile: that for batches, once it exists, then serves single samples too.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        outputs: Sequence[Shape] | None,
        load: Callable[[Number, bool], tuple[Library, Data]],
        separate_single: bool,
        costly: bool = False,
    ) -> None:
        self.costly, self.made = costly, False  # made: whether any code is loaded
        self.in_double = False  # whether to compute in double whatever the precision of inputs
        self.name, self.inputs, self.load, self.separate_single = name, dict(inputs), load, separate_single
        self.cores = [len(shape) for shape in self.inputs.values()]
        self._outputs = None if outputs is None else list(outputs)
        self._codes: dict[tuple[Number, bool], Code] = {}
        self.direct: Call = declined
        self._direct: dict[Number, DirectCalls] = {}

    @cached_property
    def shapes(self) -> list[Shape]:
        """The shape of one sample of each result."""
        if self._outputs is None:
            self.batch  # noqa: B018  (loading it sets the shapes)
        assert self._outputs is not None
        return self._outputs

    @cached_property
    def cost(self) -> float:
        """A rough estimate of the nanoseconds per sample."""
        return 4.0 * sum(map(prod, self.inputs.values())) + sum(map(prod, self.shapes))

    @property
    def batch(self) -> Code:
        """The code for batches of doubles."""
        return self.code(DOUBLE, False)

    @property
    def single(self) -> Code:
        """The code for one sample of doubles."""
        return self.code(DOUBLE, True)

    def code(self, kind: Number, for_one: bool) -> Code:
        """The code for a kind of number, for batches or for one sample."""
        key = kind, for_one and self.separate_single
        found = self._codes.get(key)
        if found is None:
            library, data = self.load(*key)
            self.made = True
            if self._outputs is None:
                self._outputs = [tuple(shape) for shape in json.loads(library.text("shapes"))]
            found = Code(library, data, self.name, list(self.inputs.values()), self._outputs)
            found = self._codes.setdefault(key, found)  # the first of several threads wins
        return found

    def direct_code(self, kind: Number = DOUBLE) -> Callable[..., int] | None:
        """(inputs..., results...) -> flags, for one sample in contiguous arrays.

        None if the layout of array headers is unknown. The function keeps the code it calls alive.
        """
        return self.code(kind, True).direct if headers_are_known() else None

    def bound(self, *operands: Array) -> Callable[[], int] | None:
        """() -> flags: the code for one sample of doubles on these arrays, inputs, then results; None as there."""
        code = self.direct_code()
        return None if code is None else partial(code, *operands)

    def values(self, *inputs: Array, out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """The results of a batch of doubles, on this thread; flags are ignored.

        Rows of a sample in `out` must be contiguous.
        """
        return self._run(self.batch, inputs, out)[0]

    def __call__(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int]:
        """The results and the flags."""
        found = None
        for x in inputs:  # loops, since generators would cost each call half a microsecond
            if x.ndim > 1 and (len(x) >= GRAIN // 4 or x.size >= LARGE):
                found = self._large(inputs, out, threads)
                break
        code = self._choose(inputs)
        results, flags = found or self._run(code, inputs, out)
        axes = results[0].ndim - len(self.shapes[0])
        if not flags and axes < 2 and results[0].size:
            calls = self._direct.get(code.kind)
            if calls is None or not calls.takes(axes):
                self._take_directly(code, axes)
            else:
                self.direct = calls.run
        return results, flags

    def _take_directly(self, code: Code, axes: int) -> None:
        """Let `direct` take calls like one that this code has run; axes: of samples."""
        if not headers_are_known():
            return
        calls = self._direct.get(code.kind)
        if calls is None:
            calls = DirectCalls(self.shapes, code.kind.dtype, self.cores[0] + 1, self.cost)
            calls = self._direct.setdefault(code.kind, calls)
        if axes:
            calls.take_batches(code.direct_batch)
        else:
            calls.take_one(code.direct)
        self.direct = calls.run

    def _run(self, code: Code, inputs: Sequence[Any], out: tuple[Any, ...] | None) -> tuple[tuple, int]:
        report = REPORT
        results = code.call(report.address, *inputs, out=out) if out else code.call(report.address, *inputs)
        flags = int(report.flags[0])
        if flags:
            report.flags[0] = 0
            if flags & Flag.NO_MEMORY:
                raise MemoryError(f"{self.name}: no memory to compute in; try fewer threads, or a smaller batch")
        results = results if isinstance(results, tuple) else (results,)
        return tuple(map(np.asarray, results)) if () in self.shapes else results, flags

    def _choose(self, inputs: Sequence[Any]) -> Code:
        """The code for these inputs."""
        kind = self._kind(inputs)
        for x, core in zip(inputs, self.cores, strict=True):
            if x.ndim > core:
                return self.code(kind, False)
        made = self._codes
        if self.costly and (kind, False) in made and (kind, True) not in made:
            return self.code(kind, False)
        return self.code(kind, True)

    def _kind(self, inputs: Sequence[Any]) -> Number:
        """What to compute with; mixed precision takes double."""
        if self.in_double:
            return DOUBLE
        for x in inputs:
            if x.dtype != SINGLE.dtype:
                return DOUBLE
        return SINGLE

    def _large(self, inputs: Sequence[Any], out: tuple[Any, ...] | None, threads: int) -> tuple[tuple, int] | None:
        """The results and flags of a large batch, in reused memory and on several threads along the first axis.

        None if this would not pay, or if the inputs need the explanations of the general way.
        """
        arrays = [np.asarray(x) for x in inputs]
        if any(x.ndim < core or x.dtype.kind not in "fiu" for x, core in zip(arrays, self.cores, strict=True)):
            return None
        batches = [x.shape[: x.ndim - core] for x, core in zip(arrays, self.cores, strict=True)]
        batch = batches[0]
        if any(b != batch for b in batches):
            try:
                batch = np.broadcast_shapes(*batches)
            except ValueError:
                return None
        total = prod(batch)
        if not batch or not total:
            return None
        code = self._choose(arrays)
        number = code.kind.dtype
        if threads > 1 and total * self.cost >= 2 * WORTH:
            workers()  # before results take their memory
        if out is None:
            if total * max(map(prod, self.shapes)) * number.itemsize <= SMALL and total * self.cost <= SLICE:
                return None
            outs = tuple(POOL.empty((*batch, *shape), number) for shape in self.shapes)
        else:
            outs = out
        if any(o.shape != (*batch, *shape) for o, shape in zip(outs, self.shapes, strict=True)):
            return None
        if total * self.cost <= SLICE and (threads == 1 or total * self.cost < 2 * WORTH):
            return self._run(code, arrays, outs)  # one slice, one thread
        if out:  # what they overlap is copied, as NumPy does within one call
            arrays = [x.copy() if any(np.may_share_memory(o, x) for o in out) else x for x in arrays]
        return outs, self._in_slices(code, *flattened(batch, arrays, self.cores, outs), threads)

    def _in_slices(
        self, code: Code, batch: Sequence[int], wide: Sequence[Array], outs: Sequence[Array], threads: int
    ) -> int:
        """Compute a batch in slices along its first axis, or row by row where rows are long; return the flags."""
        flags = 0
        if len(batch) > 1 and self.cost * prod(batch[1:]) > SLICE:
            for row in range(batch[0]):
                flags |= self._in_slices(code, batch[1:], [x[row] for x in wide], [o[row] for o in outs], threads)
            return flags

        def run(part: slice) -> int:
            return self._run(code, [x[part] for x in wide], tuple(o[part] for o in outs))[1]

        most = rows_within(batch, self.cost, SLICE)
        team = 1 if on_this_thread else min(threads, int(prod(batch) * self.cost // WORTH), batch[0] // GRAIN)
        if team < 2:
            return in_turn(run, batch[0], most)
        return Team(run, batch[0], rows_within(batch, self.cost, LEAST), most).run(workers(), team - 1)
