"""LLVM for a chain of kernels: each stage runs on a few samples, whose temporary results stay in the cache.

Machine code of the stages is called through their addresses, which are data of the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.ir as ir

from ..graph import Graph
from ..number import Number
from .border import ENTRY, Operand, emit_apart, entry_at
from .lanes import I8, I32, I64, LINE, PTR, Lanes, Value
from .platform import Platform
from .workspace import forget_exceptions, release, reserve


class ChainLanes(Lanes):
    """Lanes whose `data` holds the lengths of axes, how many samples go through the chain together, and the stages."""

    def __init__(self, module: ir.Module, axes: Sequence[str], steps: int, kind: Number) -> None:
        super().__init__(module, Graph(), 1, kind)
        names = [*axes, "chunk"]
        pointers = [f"{part}{k}" for k in range(steps) for part in ("code", "data")]
        self.places = {name: (k, PTR if name in pointers else I64) for k, name in enumerate([*names, *pointers])}

    def slot(self, b: ir.IRBuilder, data: Value, name: str) -> Value:
        index, typ = self.places[name]
        return b.load(b.gep(data, [I64(index)], source_etype=I64), typ=typ, align=8)

    def length(self, b: ir.IRBuilder, data: Value, name: int | str) -> Value:
        return I64(name) if isinstance(name, int) else self.slot(b, data, name)


def emit_chain(
    operands: Sequence[Operand],
    temporaries: Mapping[str, Sequence[int | str]],
    steps: Sequence[Sequence[str]],
    axes: Sequence[str],
    platform: Platform,
    kind: Number,
) -> ir.Module:
    """A module whose `entry` runs all steps; temporaries that no step writes are zero.

    operands: those of the chain, the word for flags first; temporaries: the core axes of arrays between steps;
    steps: the names of the operands of each, in the order of its code's.
    """
    module = platform.module("chain")
    w = ChainLanes(module, axes, len(steps), kind)
    ChainCode(w, operands, temporaries, steps).emit()
    emit_apart(module, True)
    return module


class ChainCode:
    """The loop over chunks of samples."""

    def __init__(
        self,
        w: ChainLanes,
        operands: Sequence[Operand],
        temporaries: Mapping[str, Sequence[int | str]],
        steps: Sequence[Sequence[str]],
    ) -> None:
        self.w, self.operands, self.temporaries, self.steps = w, operands, temporaries, steps

    def emit(self) -> None:
        w = self.w
        f = ir.Function(w.module, ENTRY, "entry")
        f.attributes.add("nounwind")
        self.args, dims, self.strides, self.data = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        samples, chunk = b.load(dims, typ=I64, align=8), w.slot(b, self.data, "chunk")
        chunk = b.select(b.icmp_signed("<", samples, chunk), samples, chunk)
        with b.if_then(b.icmp_signed("<", samples, I64(1)), likely=False):
            b.ret_void()
        memory = self.allocate(chunk)
        self.count = b.alloca(I64)
        most = max(len(step) for step in self.steps) + 1
        self.pointers, self.numbers = b.alloca(PTR, I32(most)), b.alloca(I64, I32(4 * most))
        with w.loop(b, I64(0), samples, chunk) as s:
            left = b.sub(samples, s)
            b.store(b.select(b.icmp_signed("<", left, chunk), left, chunk), self.count)
            for k, step in enumerate(self.steps):
                self.run(k, step, s)
        release(w.module, b, self.args, memory)
        forget_exceptions(w.module, b)
        b.ret_void()

    def allocate(self, chunk: Value) -> Value:
        """Memory for the temporaries of a chunk; sets where each begins, and its bytes per sample."""
        b, w = self.b, self.w
        self.sizes: dict[str, Value] = {}
        total: Value = I64(LINE)
        begins = {}
        for name, core in self.temporaries.items():
            size: Value = I64(w.bytes)
            for axis in core:
                size = b.mul(size, w.length(b, self.data, axis))
            self.sizes[name], begins[name] = size, total
            whole = b.and_(b.add(b.mul(size, chunk), I64(LINE - 1)), I64(-LINE))
            total = b.add(total, whole)
        memory = reserve(w.module, b, self.args, total, zeroed=True)
        first = b.and_(b.ptrtoint(memory, I64), I64(-LINE))
        self.places = {name: b.inttoptr(b.add(first, at), PTR) for name, at in begins.items()}
        return memory

    def run(self, k: int, step: Sequence[str], s: Value) -> None:
        """Call one stage for the samples from s on."""
        b, w = self.b, self.w
        at = 0

        def number(x: Value) -> None:
            nonlocal at
            b.store(x, b.gep(self.numbers, [I64(at)], source_etype=I64), align=8)
            at += 1

        found = [self.operand(self.operands[0].name, s), *(self.operand(name, s) for name in step)]
        for o, (pointer, _, _) in enumerate(found):
            b.store(pointer, b.gep(self.pointers, [I64(o)], source_etype=PTR))
        for _, by_sample, _ in found:
            number(by_sample)
        for _, _, core in found:
            for stride in core:
                number(stride)
        code, data = (w.slot(b, self.data, f"{part}{k}") for part in ("code", "data"))
        b.call(entry_at(code), [self.pointers, self.count, self.numbers, data])

    def operand(self, name: str, s: Value) -> tuple[Value, Value, list[Value]]:
        """Where an operand's sample s begins, its stride by samples, and its core strides, in bytes."""
        b, w = self.b, self.w
        if name in self.temporaries:
            sizes = [w.length(b, self.data, axis) for axis in self.temporaries[name]]
            core: list[Value] = []
            stride: Value = I64(w.bytes)
            for size in reversed(sizes):
                core.insert(0, stride)
                stride = b.mul(stride, size)
            return self.places[name], self.sizes[name], core
        o = next(k for k, x in enumerate(self.operands) if x.name == name)
        at = len(self.operands) + sum(len(x.core) for x in self.operands[:o])
        core = [w.integer(b, self.strides, I64(at + k)) for k in range(len(self.operands[o].core))]
        by_sample = w.integer(b, self.strides, I64(o))
        base = b.load(b.gep(self.args, [I64(o)], source_etype=PTR), typ=PTR)
        return b.gep(base, [b.mul(s, by_sample)], source_etype=I8), by_sample, core
