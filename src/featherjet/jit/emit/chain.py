"""LLVM for a chain of kernels: each stage runs on a few samples, whose temporary results stay in the cache.

Machine code of the stages is called through their addresses, which are data of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph
from ..number import Number
from .border import ENTRY, Axes, Border, Operand, emit_entry
from .foreign import function_at
from .lanes import I32, I64, PTR, Lanes, Module, Value
from .platform import Platform


def emit_chain(
    operands: Sequence[Operand],
    temporaries: Axes,
    steps: Sequence[Sequence[str]],
    axes: Sequence[str],
    platform: Platform,
    kind: Number,
) -> Module:
    """A module whose `entry` runs all steps; temporaries that no step writes are zero.

    operands: those of the chain, the word for flags first; temporaries: the core axes of arrays between steps;
    steps: the names of the operands of each, in the order of its code's. Its `data` has the lengths of axes, how many
    samples go through the chain together, and the code and data of each stage.
    """
    module = platform.module("chain")
    counts = [*axes, "chunk"]
    stages = [f"{part}{k}" for k in range(len(steps)) for part in ("code", "data")]
    w = Lanes(module, Graph(), 1, kind, slots=[*counts, *stages], counts=counts)
    emit_entry(module, ChainCode(w, operands, temporaries, steps).emit(), apart=True)
    return module


class ChainCode(Border):
    """The loop over chunks of samples."""

    def __init__(
        self, w: Lanes, operands: Sequence[Operand], temporaries: Axes, steps: Sequence[Sequence[str]]
    ) -> None:
        super().__init__(w, operands, [])
        self.temporaries, self.stages = temporaries, steps

    def scratch(self, samples: Value) -> Value:
        """Memory for the temporaries of a chunk; sets where each begins, and its bytes per sample."""
        b, w = self.b, self.w
        chunk = w.slot(b, self.data, "chunk")
        self.chunk = b.select(b.icmp_signed("<", samples, chunk), samples, chunk)
        counts = [self.count(core) for core in self.temporaries.values()]
        memory, pieces = self.allocate([self.product(n, self.chunk) for n in counts], zeroed=True)
        sizes = [b.mul(n, I64(w.bytes)) for n in counts]
        self.places = dict(zip(self.temporaries, zip(pieces, sizes, strict=True), strict=True))
        self.left = b.alloca(I64)
        most = max(len(step) for step in self.stages) + 1
        self.pointers, self.numbers = b.alloca(PTR, I32(most)), b.alloca(I64, I32(4 * most))
        return memory

    def together(self, samples: Value) -> Value:
        return self.chunk

    def begin(self, samples: Value, s: Value) -> None:
        left = self.b.sub(samples, s)
        self.b.store(self.b.select(self.b.icmp_signed("<", left, self.chunk), left, self.chunk), self.left)

    def compute(self, samples: Value, s: Value) -> None:
        """Call all stages for the samples from s on."""
        b = self.b
        for k, step in enumerate(self.stages):
            found = [self.operand(self.operands[0].name, s), *(self.operand(name, s) for name in step)]
            for o, (pointer, _, _) in enumerate(found):
                b.store(pointer, b.gep(self.pointers, [I64(o)], source_etype=PTR))
            strides = [x for _, x, _ in found] + [x for _, _, core in found for x in core]
            for at, stride in enumerate(strides):
                b.store(stride, b.gep(self.numbers, [I64(at)], source_etype=I64), align=8)
            code, data = (self.w.slot(b, self.data, f"{part}{k}") for part in ("code", "data"))
            b.call(function_at(code, ENTRY), [self.pointers, self.left, self.numbers, data])

    def operand(self, name: str, s: Value) -> tuple[Value, Value, list[Value]]:
        """Where an operand's sample s begins, its stride by samples, and its core strides, in bytes."""
        if name not in self.temporaries:
            o = next(k for k, x in enumerate(self.operands) if x.name == name)
            return self.sample(o, s), self.steps[o], self.strides[o]
        core: list[Value] = []
        stride: Value = I64(self.w.bytes)
        for axis in reversed(self.temporaries[name]):
            core.insert(0, stride)
            stride = self.b.mul(stride, self.dimension(axis))
        return *self.places[name], core
