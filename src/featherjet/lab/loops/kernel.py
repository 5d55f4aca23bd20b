"""Machine code of an algorithm as loops."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...errors import InputError
from ...jit.engine import target
from ...jit.loops.emit import contiguous
from ...jit.loops.index import size
from ...jit.loops.kernel import LoopKernel
from ...jit.loops.program import LaneRole, Let
from ...jit.loops.spec import Fill, LoopSpec
from ...jit.loops.trace import Tracer
from ...math.vec3 import Vec3
from ...model.joints import KINDS
from ...model.tree import Tree
from .code import LoopCode
from .memory import Key, LoopMemory
from .scan import LoopScan
from .tables import INTEGERS, NUMBERS, tables

Array = np.ndarray
PASSES = 12


class LoopedAlgorithm:
    """An algorithm, function(scan, *inputs) -> matrices, as a function of the loop language for trees of one kind.

    matrices: those of the inputs that are matrices over dofs; kind: of joints; gravity: three numbers.
    """

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[str], matrices: Sequence[str], kind: str, gravity: Any,
        lanes: int,
    ) -> None:  # fmt: skip
        self.function, self.inputs, self.kind, self.gravity, self.lanes = function, inputs, kind, gravity, lanes
        self.axes = {x: ("n", "n") if x in matrices else ("n",) for x in inputs}
        self.memory, self.count = LoopMemory(), 0
        self.work: dict[str, tuple] = {}
        for _ in range(PASSES):
            if self._settled():
                return
        raise RuntimeError("what a loop reads changes with every trace")

    def _settled(self) -> bool:
        """Trace once; whether nothing new was found."""
        t = Tracer("algorithm", False)
        arrays = {x: t.argument(x, contiguous(axes), fixed=True) for x, axes in self.axes.items()}
        found = {x: t.table(x, [1], LaneRole.INTEGERS) for x in INTEGERS}
        found |= {x: t.table(x, [1], LaneRole.NUMBERS) for x in NUMBERS}
        self.work = {}

        def make(name: str, axes: tuple) -> Any:
            self.work[name] = axes
            return t.argument(name, contiguous(axes))

        settled = self.memory.end(t.graph, self._run(LoopCode(t, self.memory, arrays, found, make)))
        lets = (s for block in t.finished().blocks for s in block.statements if isinstance(s, Let))
        if settled and any(self.memory.is_missed(s.operation) for s in lets):
            raise RuntimeError("a loop reads what nothing stores")
        return settled

    def _run(self, code: LoopCode) -> list[Key]:
        """Write the function; returns its results."""
        self.memory.begin()
        scan = LoopScan(code, size("n"), KINDS[self.kind], Vec3(*self.gravity), self.lanes)
        results = list(self.function(scan, *self.inputs))
        self.count = len(results)
        scan.run()
        return [M.key for M in results]

    def spec(self) -> LoopSpec:
        """The function; its results are the matrices, then memory that is zero at first and stays from call to call."""
        results = {f"result{k}": ("n", "n") for k in range(self.count)} | self.work

        def run(t: Any, *rest: Any, **found: Any) -> None:
            arrays = dict(zip([*self.axes, *results], rest, strict=False))
            self._run(LoopCode(t, self.memory, arrays, found, None))

        return LoopSpec("looped", run, self.axes, results, Fill.COLUMNS, sizes=("n",), tables=INTEGERS, factors=NUMBERS)


# The same for all robots with these joints
looped = lru_cache(maxsize=64)(LoopedAlgorithm)


class LoopedKernel:
    """An algorithm as loops on one robot; others with the same kind of joints share its code.

    lanes: columns of matrices that are computed at a time; with 1, all code is scalar. Samples are treated one by one.
    """

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[str], tree: Tree, lanes: int = 1,
        matrices: Sequence[str] = (),
    ) -> None:  # fmt: skip
        n, g, found = tree.nv, tree.gravity, tables(tree)
        lanes = lanes if n >= lanes else 1
        if lanes > 1 and any(x.parent != x.index - 1 for x in tree.nodes):
            raise InputError("columns go in lanes on chains alone")
        kind = tree.nodes[0].kind.name
        algorithm = looped(function, tuple(inputs), tuple(matrices), kind, (g.x, g.y, g.z), lanes)
        spec, self.count = algorithm.spec(), algorithm.count
        self.kernel = LoopKernel(spec, {"n": n}, found, replace(target(), lanes=lanes))
        self.inputs, results = list(self.kernel.inputs.values()), self.kernel.shapes
        self.results, self.memory = results[: self.count], [aligned(x) for x in results[self.count :]]

    def __call__(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The matrices (B, nv, nv) of a batch of inputs (B, n)."""
        out = tuple(np.zeros((len(inputs[0]), *shape)) for shape in self.results)
        self.bound(inputs, out)()
        return out

    def bound(self, inputs: Sequence[Array], out: Sequence[Array]) -> Callable[[], None]:
        """A call with fixed arrays; entries of `out` that are zero for all states are not written, and must be zero."""
        code, samples = self.kernel.batch, len(inputs[0])
        report = np.zeros(1, np.int64)
        address = np.array(report.ctypes.data, np.int64)
        given = [np.ascontiguousarray(x, float).reshape(samples, *s) for x, s in zip(inputs, self.inputs, strict=True)]
        operands = [*given, *out, *self.memory]
        lengths = [x.strides[0] for x in (*given, *out)] + [0] * len(self.memory)
        cores = [s for x in (*given, *out) for s in x.strides[1:]] + [s for x in self.memory for s in x.strides]
        args = np.array([x.ctypes.data for x in (address, *operands)], np.uint64)
        steps = np.array([0, *lengths, *cores], np.int64)
        dims = np.array([samples, self.kernel.sizes["n"]], np.int64)
        entry: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.entry)
        where = *(x.ctypes.data for x in (args, dims, steps)), code.data
        kept = self, code, report, address, operands, args, steps, dims  # alive as long as the call

        def call(kept: Any = kept) -> None:
            entry(*where)

        return call


def aligned(shape: Sequence[int]) -> Array:
    """Zeros that begin with a cache line."""
    raw = np.zeros(prod(shape) + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][: prod(shape)].reshape(shape)
