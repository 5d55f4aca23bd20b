"""LLVM for `Walk`: loops over bodies in which each lane is a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ...jit.emit.lanes import I64, PTR, Value
from ...jit.number import Number
from ..program import TABLE, GripLoop, Hold, Key, Program, Ref, Store, Variant, Walk
from .lanes import TreeLanes

NT = sum(TABLE.values())


class Walks(TreeLanes):
    """Code of walks. J holds NJ vectors for each joint, D holds ND for each dof; every input is an array of vectors.

    After the dofs, D holds G, sums over all bodies.
    """

    spaces: tuple[str, ...] = ("J", "D")

    def __init__(self, module: ir.Module, program: Program, lanes: int, kind: Number) -> None:
        super().__init__(module, program.graph, lanes, kind)
        self.program = program
        columns = program.column_keys()  # first in D, as `arrange` reads them together
        rest = sorted(program.wanted() - set(columns), key=lambda k: (k.space, k.field, k.path))
        self.offset: dict[Key, int] = {}
        self.counts = dict.fromkeys((*self.spaces, "G"), 0)
        for key in [*columns, *(k for k in rest if k.space in self.counts)]:
            self.offset[key] = self.counts[key.space]
            self.counts[key.space] += 1
        self.NJ, self.ND = max(self.counts["J"], 1), max(self.counts["D"], 1)
        self.arguments = 1 + len(self.spaces) + len(program.inputs)  # of every loop: data, spaces, inputs

    def areas(self, b: ir.IRBuilder, data: Value) -> list[Value]:
        """How many vectors each space has."""
        J, D = (b.mul(self.slot(b, data, s), I64(n)) for s, n in (("joints", self.NJ), ("nv", self.ND)))
        return [J, b.add(D, I64(self.counts["G"]))]

    def sums(self, b: ir.IRBuilder, data: Value, D: Value) -> Value:
        """Where the sums over all bodies begin."""
        return self.vector(b, D, b.mul(self.slot(b, data, "nv"), I64(self.ND)))

    def emit(self, number: int, loop: Walk | GripLoop | Hold) -> ir.Function:
        """A function of (data, spaces..., inputs...) that runs one walk."""
        assert isinstance(loop, Walk)
        f = self.function(f"walk{number}", [PTR] * self.arguments)
        data = f.args[0]
        b = ir.IRBuilder(f.append_basic_block("entry"))
        joints = self.slot(b, data, "joints")
        parents, variants = self.slot(b, data, "parent"), self.slot(b, data, "variant")
        outward = loop.direction == "outward"
        start, stop = (I64(0), joints) if outward else (b.sub(joints, I64(1)), I64(0))
        with self.loop(b, start, stop, 1 if outward else -1) as i:

            def case(v: Variant, stores: list[Store]) -> tuple[int, Callable[[], None]]:
                def body() -> None:
                    env = self.environment(b, f.args, i, None if v.is_root else self.integer(b, parents, i))
                    live = [s for s in stores if s.ref.key in self.offset]
                    sinks = [(s.value, self.sink(b, env, s)) for s in live]
                    self.straight(b, sinks, lambda ref: self.fetch(b, env, ref))

                return self.program.variants.index(v), body

            self.switch(b, self.integer(b, variants, i), [case(v, s) for v, s in loop.stores.items()])
        b.ret_void()
        return f

    def environment(self, b: ir.IRBuilder, memory: Sequence[Value], i: Value, parent: Value | None) -> dict:
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

    def pointer(self, b: ir.IRBuilder, env: dict, ref: Ref) -> tuple[Value, bool]:
        """Where a reference points, and whether to a single number instead of a vector."""
        if ref.space in ("table", "dofs", "param", "grip", "entry"):
            return self.number(b, env[ref.space], I64(ref.k)), True
        if ref.space in self.counts:
            assert ref.key is not None
            at = ref.k * self.ND + self.offset[ref.key]
            return self.vector(b, env[ref.space, ref.role], I64(at)), False
        return self.vector(b, env[ref.space], I64(ref.k)), False

    def fetch(self, b: ir.IRBuilder, env: dict, ref: Ref) -> Value:
        pointer, scalar = self.pointer(b, env, ref)
        return self.splat(b, self.load_number(b, pointer)) if scalar else self.load(b, pointer)

    def sink(self, b: ir.IRBuilder, env: dict, store: Store) -> Callable[[Value], None]:
        def put(x: Value) -> None:
            pointer, _ = self.pointer(b, env, store.ref)
            if store.add:
                x = b.fadd(self.load(b, pointer), x)
            self.store(b, x, pointer)

        return put
