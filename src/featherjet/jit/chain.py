"""Chains of kernels: one kernel that runs others, one after the other, on a few samples at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..forks import unforked
from .data import Data
from .emit.border import Axes, operands_of
from .engine import CPU, Library
from .kernel import Kernel
from .library import compiled_together, labelled, library
from .number import Number
from .objects import sources
from .rows import RowKernel

KEPT = 400_000  # bytes of results and temporaries of the samples that go through a chain together: they stay in L2
MOST = 64  # samples


class Link(NamedTuple):
    """A stage of a chain: its kernel, and the names of its operands, inputs first."""

    kernel: Kernel
    operands: tuple[str, ...]


class ChainData(Data):
    """Lengths of axes, the number of samples that go together, and the code and data of each stage."""

    def __init__(self, kind: Number, lengths: Sequence[int], stages: Sequence[tuple[Library, Data]]) -> None:
        self.stages = stages
        super().__init__(kind, lengths)

    def addresses(self) -> list[int]:
        return super().addresses() + [x for code, data in self.stages for x in (code.address("entry"), data.address)]


class Chain(RowKernel):
    """A kernel that runs `links`; results that several of them write or change are changed in place."""

    def __init__(
        self, name: str, cpu: CPU, inputs: Axes, results: Axes, temporaries: Axes, links: Sequence[Link],
        size: Mapping[str, int],
    ) -> None:  # fmt: skip
        everything = {**inputs, **results, **temporaries}
        axes = sorted({axis for core in everything.values() for axis in core if isinstance(axis, str)})
        shapes = {k: tuple(size[a] if isinstance(a, str) else a for a in core) for k, core in everything.items()}
        self._name, self._cpu, self._sides, self._links = name, cpu, (inputs, results, temporaries), list(links)
        self._axes, self._lengths = axes, [size[axis] for axis in axes]
        self._numbers = sum(prod(shapes[k]) for k in (*results, *temporaries))
        separate = any(link.kernel.separate_single for link in links)
        super().__init__(name, {k: shapes[k] for k in inputs}, [shapes[k] for k in results], self._loaded, separate)

    def _loaded(self, kind: Number, for_one: bool) -> tuple[Library, Data]:
        inputs, results, temporaries = self._sides
        cpu, steps = self._cpu, [link.operands for link in self._links]
        lanes = cpu.fitting(kind)
        fitting = min(MOST, KEPT // (self._numbers * kind.bytes)) // lanes * lanes

        def make() -> Any:
            with unforked:
                from .emit.chain import emit_chain

            operands = operands_of(inputs, results)
            return sources(emit_chain(operands, temporaries, steps, self._axes, cpu.platform, kind))

        what = "chain", self._name, *(tuple((k, *x) for k, x in side.items()) for side in self._sides), kind.name
        with compiled_together(labelled(self._name, "", for_one)):
            stages = [link.kernel.load(kind, for_one and link.kernel.separate_single) for link in self._links]
            code = library(cpu, (*what, tuple(steps)), self._name, make)
        together = 1 if for_one else max(lanes, fitting)  # samples of `in_sequence` read what those before them wrote
        return code, ChainData(kind, [*self._lengths, together], stages)
