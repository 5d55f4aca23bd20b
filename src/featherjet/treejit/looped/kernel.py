"""Machine code for a looped program: its loops one after the other, for each sample of a batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import llvmlite.ir as ir
import numpy as np

from ...jit.emit.lanes import I8, I32, I64, PTR, VOID, Value, external
from ...jit.engine import CPU, Library, target
from ...jit.number import DOUBLE
from ...jit.objects import compiled, sources
from ...model.tree import Tree
from ..emit.columns import Columns
from ..emit.rolled import travelling
from ..program import Pairs, Responses, Torques, Variant, Walk
from ..tables import Tables, variants
from .product import emit_product, panel_size
from .program import LoopedProgram, MatrixProduct, SetWalk, SparseFactor, SparseSolve, WideWalk
from .sparse import emit_factor, emit_solve, solve_panel_size
from .tracing import trace_looped
from .walks import LoopedWalks

Array = np.ndarray


class LoopedKernel:
    """An algorithm, function(scan, *inputs) -> matrices, as loops on one robot; others with the same joints share code.

    lanes: columns of matrices that are computed at a time; with 1, all code is scalar. Samples are treated one by one.
    Inputs are q, rates, or matrices (nv^2); their numbers are trusted.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[str], tree: Tree, lanes: int = 1) -> None:
        self.tree = tree
        lanes = lanes if tree.nv >= lanes else 1
        self.tables = Tables(tree, lanes, DOUBLE)
        self.code, self.library = code_of(function, tuple(inputs), variants(tree), lanes, target())
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self._entry: Any = signature(self.library.address("entry"))
        self._entry.library = self.library  # so that the code lives as long as the function
        self._scratch = [aligned(size) for size in self.code.scratch(len(tree.nodes), tree.nv)]
        self._parents = np.array(tree.dof_parents, np.int64)

    def __call__(self, inputs: Sequence[Array], out: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """The matrices (B, nv, nv) of a batch of inputs (B, n)."""
        n = self.tree.nv
        out = out or tuple(np.empty((len(inputs[0]), n, n)) for _ in self.code.program.outputs)
        self.bound(inputs, out)()
        return out

    def bound(self, inputs: Sequence[Array], out: Sequence[Array]) -> Callable[[], None]:
        """A call with fixed arrays, `out` contiguous: it takes a microsecond more than the machine code."""
        arrays = [np.ascontiguousarray(x, float) for x in inputs]
        pointers = np.array([x.ctypes.data for x in (*arrays, *out, self._parents, *self._scratch)], np.uint64)
        kept = self, arrays, out, pointers  # alive as long as the call
        entry, data, size, address = self._entry, self.tables.address, len(arrays[0]), pointers.ctypes.data

        def call(kept: Any = kept) -> None:
            entry(data, size, address)

        return call


@lru_cache(maxsize=64)
def code_of(
    function: Callable[..., Any], inputs: tuple[str, ...], kinds: tuple[Variant, ...], lanes: int, cpu: CPU
) -> tuple[LoopedCode, Library]:
    """The code of an algorithm for all robots with these kinds of joints."""
    code = LoopedCode(trace_looped(function, inputs, kinds, lanes == 1), inputs, lanes)
    return code, Library(compiled(cpu, sources(code.emit(cpu.triple))), cpu)


def aligned(size: int) -> Array:
    """Memory for some doubles that begins with a cache line."""
    raw = np.zeros(size + 8)
    return raw[(-raw.ctypes.data // 8) % 8 :][:size]


class LoopedCode:
    """Emits `entry`, a function of (data, samples, pointers): to inputs, results, parents of dofs, scratch memory."""

    def __init__(self, program: LoopedProgram, inputs: Sequence[str], lanes: int) -> None:
        self.program, self.names, self.lanes = program, inputs, lanes

    def emit(self, triple: str) -> ir.Module:
        module = self.module = ir.Module("looped")
        module.triple = triple
        program = self.program
        w = self.w = LoopedWalks(module, program, self.lanes)
        self.c = Columns(module, program, self.lanes, DOUBLE)
        self.functions = {k: self.function(k, loop) for k, loop in enumerate(program.loops)}
        f = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, PTR]), "entry")
        self.data, samples, pointers = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        self.nv, nq = w.slot(b, self.data, "nv"), w.slot(b, self.data, "nq")
        self.places = b.alloca(I64, I32(3 * len(w.matrices)))
        square = b.mul(self.nv, self.nv)

        def pointer(k: int) -> Value:
            return b.load(b.gep(pointers, [I64(k)], source_etype=PTR), typ=PTR, align=8)

        at = len(self.names) + len(program.outputs)
        self.parents = pointer(at)
        self.scratch_at = [pointer(at + 1 + k) for k in range(len(self.scratch(1, 1)))]
        with w.loop(b, I64(0), samples) as s:

            def sample(k: int, size: Value) -> Value:
                return w.number(b, pointer(k), b.mul(s, size))

            self.matrix_at: dict[int, Value] = {}
            self.inputs: dict[str, Value] = {}
            for k, name in enumerate(self.names):
                if name in program.given:
                    self.matrix_at[program.given[name]] = sample(k, square)
                else:
                    self.inputs[name] = sample(k, nq if program.inputs.get(name) == "coordinates" else self.nv)
            for k, output in enumerate(program.outputs, len(self.names)):
                self.matrix_at[output.matrix] = sample(k, square)
            self.run()
        b.ret_void()
        return module

    def scratch(self, joints: int, nv: int) -> list[int]:
        """How many doubles each piece of scratch memory holds: J, D, P, responses, a panel, arrays, matrices."""
        w, c = self.w, self.c
        groups = -(-nv // c.L)
        travels = [loop for loop in self.program.loops if isinstance(loop, Responses | Torques)]
        sizes = [travelling(c, loop).sizes() for loop in travels]
        responses = max((c.L * (joints * by_joint + groups * c.L * by_dof) for by_joint, by_dof in sizes), default=0)
        panel = max(panel_size(nv, c.L), solve_panel_size(nv, c.L))
        fixed = [joints * w.NJ, nv * w.ND, groups * c.L * len(c.keys), responses, panel]
        inner = [m for m in w.matrices if m not in self.outside()]
        return [*fixed, *(w.size(array, joints, nv) for array in w.arrays), *(nv * nv for _ in inner)]

    def outside(self) -> set[int]:
        """Matrices that are inputs or results."""
        return {*self.program.given.values(), *(output.matrix for output in self.program.outputs)}

    def function(self, k: int, loop: Any) -> ir.Function:
        if isinstance(loop, SetWalk | WideWalk):
            return self.w.emit(k, loop)
        if isinstance(loop, MatrixProduct):
            return emit_product(self.w.wide, f"product{k}", loop.result in self.program.negative)
        if isinstance(loop, SparseFactor):
            return emit_factor(self.w, f"factor{k}")
        if isinstance(loop, SparseSolve):
            return emit_solve(self.w.wide, f"solve{k}", loop.result in self.program.negative, loop.right is None)
        return self.c.pairs(k, loop) if isinstance(loop, Pairs) else travelling(self.c, loop).emit(k)

    # One sample

    def run(self) -> None:
        """All loops in order."""
        b, w = self.b, self.w
        self.J, self.D, self.P, self.own, self.panel, *rest = self.scratch_at
        self.arrays = rest[: len(w.arrays)]
        inner = [m for m in w.matrices if m not in self.outside()]
        self.matrix_at |= dict(zip(inner, rest[len(w.arrays) :], strict=True))
        self.clear()
        for wide, loops in groupby(enumerate(self.program.loops), lambda x: isinstance(x[1], WideWalk)):
            if wide:
                vectors = b.udiv(b.add(self.nv, I64(self.lanes - 1)), I64(self.lanes))
                calls = [self.functions[k] for k, _ in loops]
                with w.loop(b, I64(0), vectors, w.vectors) as first:
                    end = b.add(first, I64(w.vectors))
                    end = b.select(b.icmp_signed("<", end, vectors), end, vectors)
                    for f in calls:
                        self.walk(f, first, end)
                continue
            for k, loop in loops:
                self.one(self.functions[k], loop)

    def one(self, f: ir.Function, loop: Any) -> None:
        b = self.b
        if isinstance(loop, Walk):
            self.walk(f, I64(0), I64(0))
        elif isinstance(loop, MatrixProduct):
            b.call(f, [self.nv, *(self.matrix_at[m] for m in (loop.left, loop.right, loop.result)), self.panel])
        elif isinstance(loop, SparseFactor):
            b.call(f, [self.nv, self.matrix_at[loop.matrix], self.matrix_at[loop.result], self.parents])
        elif isinstance(loop, SparseSolve):
            right = self.panel if loop.right is None else self.matrix_at[loop.right]
            matrices = self.matrix_at[loop.factor], right, self.matrix_at[loop.result]
            b.call(f, [self.nv, *matrices, self.panel, self.parents])
        else:
            self.arrange()
            for j, m in enumerate(loop.matrices):
                for q, x in enumerate((b.ptrtoint(self.matrix_at[m], I64), b.mul(self.nv, I64(8)), I64(0))):
                    b.store(x, b.gep(self.places, [I64(3 * j + q)], source_etype=I64), align=8)
            b.call(f, [self.data, self.P, self.places, *([self.own] if isinstance(loop, Responses | Torques) else [])])

    def walk(self, f: ir.Function, first: Value, end: Value) -> None:
        inputs = [self.inputs[name] for name in self.program.inputs]
        matrices = [self.matrix_at[m] for m in self.w.matrices]
        self.b.call(f, [self.data, self.J, self.D, *inputs, *self.arrays, *matrices, first, end])

    def clear(self) -> None:
        """Zeros in matrices that are written entry by entry."""
        b = self.b
        walks = [loop for loop in self.program.loops if isinstance(loop, SetWalk)]
        written = {e.matrix for walk in walks for of in walk.entries.values() for e in of} & set(self.w.matrices)
        fill = external(self.module, "llvm.memset.p0.i64", VOID, PTR, I8, I64, ir.IntType(1))
        for m in sorted(written):
            size = b.mul(b.mul(self.nv, self.nv), I64(8))
            b.call(fill, [self.matrix_at[m], I8(0), size, ir.IntType(1)(0)])

    def arrange(self) -> None:
        """Each dof's numbers by groups of columns, as matrix loops read them; see `emit/columns.py`."""
        b, w, c = self.b, self.w, self.c
        last, count = b.sub(self.nv, I64(1)), len(c.keys)
        with w.loop(b, I64(0), w.slot(b, self.data, "groups")) as g:
            for j in range(c.L):
                dof = b.add(b.mul(g, I64(c.L)), I64(j))
                dof = b.select(b.icmp_signed("<", dof, last), dof, last)
                with w.loop(b, I64(0), I64(count)) as k:
                    x = w.load(b, w.number(b, self.D, b.add(b.mul(dof, I64(w.ND)), k)))
                    place = b.add(b.mul(b.add(b.mul(g, I64(count)), k), I64(c.L)), I64(j))
                    w.store(b, x, w.number(b, self.P, place))
