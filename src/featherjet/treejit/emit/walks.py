"""LLVM for `Walk`: loops over bodies in which each lane is a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...jit.emit.lanes import I64, Builder, Function, Module, Value
from ...jit.loops.lower import Lowering
from ...jit.number import Number
from ..loops import traced
from ..program import TABLE, GripLoop, Ref, RowLoop, Store, Walk
from ..walks import MemoryLayout
from .lanes import TreeLanes

NT = sum(TABLE.values())


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
        self.arguments = 1 + len(self.spaces) + len(self.program.inputs)  # of every loop: data, spaces, inputs

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

    def environment(self, b: Builder, memory: Sequence[Value], i: Value, parent: Value | None) -> dict:
        """Pointers to the memory of joint i, by space."""
        data, J, D = memory[:3]
        inputs = memory[1 + len(self.spaces) :]
        first = self.integer(b, self.slot(b, data, "v_start"), i)
        env: dict = {
            ("J", "self"): self.vector(b, J, b.mul(i, I64(self.NJ))),
            ("D", "self"): self.vector(b, D, b.mul(first, I64(self.ND))),
            "table": self.number(b, self.slot(b, data, "table"), b.mul(i, I64(NT))),
            "dofs": self.number(b, self.slot(b, data, "dofs"), first),
            "param": self.slot(b, data, "param"),
        }
        if self.counts["G"]:
            env["G", "self"] = self.sums(b, data, D)
        if parent is not None:
            env["J", "parent"] = self.vector(b, J, b.mul(parent, I64(self.NJ)))
        for (name, entries), pointer in zip(self.program.inputs.items(), inputs, strict=True):
            if entries == "coordinates":
                start = self.integer(b, self.slot(b, data, "q_start"), i)
            else:
                start = {"forces": b.mul(i, I64(6)), "rates": first}.get(str(entries), I64(0))
            env[name] = self.vector(b, pointer, start)
        return env

    def pointer(self, b: Builder, env: dict, ref: Ref) -> tuple[Value, bool]:
        """Where a reference points, and whether to a single number instead of a vector."""
        if ref.space in ("table", "dofs", "param", "grip", "entry"):
            return self.number(b, env[ref.space], I64(ref.k)), True
        if ref.space in self.counts:
            assert ref.key is not None
            at = ref.k * self.ND + self.offset[ref.key]
            return self.vector(b, env[ref.space, ref.role], I64(at)), False
        return self.vector(b, env[ref.space], I64(ref.k)), False

    def fetch(self, b: Builder, env: dict, ref: Ref) -> Value:
        pointer, scalar = self.pointer(b, env, ref)
        return self.splat(b, self.load_number(b, pointer)) if scalar else self.load(b, pointer)

    def sink(self, b: Builder, env: dict, store: Store) -> Callable[[Value], None]:
        def put(x: Value) -> None:
            pointer, _ = self.pointer(b, env, store.ref)
            if store.add:
                x = b.fadd(self.load(b, pointer), x)
            self.store(b, x, pointer)

        return put


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
