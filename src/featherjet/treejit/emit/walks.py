"""Loops over bodies and contacts in which each lane is a sample: their memory, and their code."""

from __future__ import annotations

from ...jit.emit.lanes import I64, Builder, Function, Module, Value
from ...jit.loops.lower import Lowering
from ...jit.number import Number
from ..loops import traced
from ..program import GripLoop, RowLoop, Walk
from ..walks import MemoryLayout
from .lanes import TreeLanes


class Walks(TreeLanes):
    """Code of walks. J holds NJ vectors for each joint, D holds ND for each dof; every input is an array of vectors.

    After the dofs, D holds G, sums over all bodies.
    """

    spaces: tuple[str, ...] = ("J", "D")

    def __init__(self, module: Module, layout: MemoryLayout, lanes: int, kind: Number) -> None:
        super().__init__(module, layout.program.graph, lanes, kind)
        self.program, self.layout, self.offset, self.counts = layout.program, layout, layout.offset, layout.counts
        self.NJ, self.ND = layout.NJ, layout.ND
        self.lowering = Lowering(self, self.slot)

    def areas(self, b: Builder, data: Value) -> dict[str, Value]:
        """How many vectors each space has."""
        J, D = (b.mul(self.slot(b, data, s), I64(n)) for s, n in (("joints", self.NJ), ("nv", self.ND)))
        return {"J": J, "D": b.add(D, I64(self.counts["G"]))}

    def sums(self, b: Builder, data: Value, D: Value) -> Value:
        """Where the sums over all bodies begin."""
        return self.vector(b, D, b.mul(self.slot(b, data, "nv"), I64(self.ND)))

    def emit(self, number: int, loop: Walk | GripLoop | RowLoop) -> Function:
        """A function of (data, report, spaces..., inputs...) that runs one loop."""
        return self.lowering.emit(traced(self.layout, number, loop))


class ContactWalks(Walks):
    """Code of walks over bodies and contacts. T holds NT vectors for each grip, E holds NE for each entry.

    What loops over rows work in follows.
    """

    spaces = ("J", "D", "T", "E")

    def areas(self, b: Builder, data: Value) -> dict[str, Value]:
        layout, found = self.layout, super().areas(b, data)
        found["J"] = b.add(found["J"], I64(self.NJ))  # the world is a body after the last joint
        for space, count, n in (("T", "grips", layout.NT), ("E", "entries", layout.NE)):
            found[space] = b.mul(self.slot(b, data, count), I64(n))
        for name, axes in layout.work.items():
            found[name] = I64(1)
            for axis in axes:
                found[name] = b.mul(found[name], self.dimension(b, data, axis))
        return found
