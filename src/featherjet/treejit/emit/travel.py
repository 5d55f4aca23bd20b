"""LLVM that `Responses` and `Torques` share: groups of columns or rows that go up to the root and out over all bodies.

On the way up every lane follows its own path, so handed values stay in registers. On the way out they do so along a
limb, where each body's parent is the body before it; only at branches does a body's state go to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from ...jit.emit.lanes import I64, PTR, Function, Value, begun
from ..program import Key, Ref, Responses, Store, Torques, Variant
from .columns import Columns

Step = Callable[[Value, list[Value]], list[Value]]  # (body or step, carried values) -> what is carried on


class StepTables(NamedTuple):
    """The tables of a robot that say which steps each group takes: see `tables.ColumnSteps` and `TorqueSteps`.

    lists: how many lists of steps a group has; width: the integers of a step.
    """

    starts: str
    steps: str
    paths: str
    lists: int
    width: int


class Travelling:
    """Emits one loop; subclasses say in `take_steps` what a group does. state, handed: keys of what is carried."""

    tables: ClassVar[StepTables]
    split_sums: ClassVar[bool] = False  # whether long sums that others wait for become two

    def __init__(self, e: Columns, loop: Responses | Torques, state: Iterable[Key]) -> None:
        self.e = e
        self.state = {key: k for k, key in enumerate(state)}
        self.handed = {Key("J", 0, path): k for k, path in enumerate(loop.handed)}
        self.handed_first, self.matrices = list(loop.handed.values()), loop.matrices

    def emit(self, number: int) -> Function:
        """A function of (data, P, places of the matrices, scratch) that writes all entries."""
        e, tables = self.e, self.tables
        f = e.function(f"loop{number}", [PTR] * 4)
        data, self.P, places, self.A = f.args
        b = self.b = begun(f)
        joints, self.groups, self.nv = (e.slot(b, data, s) for s in ("joints", "groups", "nv"))
        self.v_start, self.parent, self.paths = (e.slot(b, data, s) for s in ("v_start", "parent", tables.paths))
        self.after_states = e.vector(b, self.A, b.mul(joints, I64(len(self.state))))
        self.places = e.places(b, places, len(self.matrices))
        starts, self.steps = e.slot(b, data, tables.starts), e.slot(b, data, tables.steps)
        with e.loop(b, I64(0), self.groups) as g:
            self.first, self.group = b.mul(g, I64(e.L)), e.group(b, self.P, g)
            begin = b.mul(g, I64(tables.lists))
            self.bounds = [e.integer(b, starts, b.add(begin, I64(k))) for k in range(tables.lists + 1)]
            after = b.mul(self.groups, I64(tables.lists))
            self.existing = e.integer(b, starts, b.add(after, b.add(g, I64(1))))
            self.take_steps()
        b.ret_void()
        return f

    def take_steps(self) -> None:
        raise NotImplementedError

    def step(self, s: Value) -> list[Value]:
        """The integers of a step."""
        at = self.b.gep(self.steps, [self.b.mul(s, I64(self.tables.width))], source_etype=I64)
        return [self.e.integer(self.b, at, I64(j)) for j in range(self.tables.width)]

    def each(self, kind: int, body: Callable[..., None], count: int) -> None:
        """body(the first `count` integers) of all steps of a list."""
        with self.e.loop(self.b, self.bounds[kind], self.bounds[kind + 1]) as s:
            body(*self.step(s)[:count])

    def compute(self, stores: Sequence[Store], load: Callable[[Ref], Value]) -> dict[Ref, Value]:
        """The values of stores."""
        (found,) = self.e.values(self.b, [s.value for s in stores], load, split_sums=self.split_sums)
        return {s.ref: x for s, x in zip(stores, found, strict=True)}

    def by_variant(self, number: Value, body: Callable[[Variant], None]) -> None:
        cases = [(k, lambda v=v: body(v)) for k, v in enumerate(self.e.program.variants)]
        self.e.switch(self.b, number, cases)

    # States of bodies

    def state_at(self, joint: Value, k: int) -> Value:
        return self.e.vector(self.b, self.A, self.b.add(self.b.mul(joint, I64(len(self.state))), I64(k)))

    def load_state(self, joint: Value) -> list[Value]:
        return [self.e.load(self.b, self.state_at(joint, k)) for k in range(len(self.state))]

    def store_state(self, joint: Value, state: Sequence[Value], keep: Value) -> None:
        """Store a body's state if some child that begins a limb of its own, or a later group, reads it."""
        with self.b.if_then(self.b.icmp_signed("!=", keep, I64(0))):
            for k, x in enumerate(state):
                self.e.store(self.b, x, self.state_at(joint, k))

    # Runs of steps

    def up(self, handed: list[Value], run_of: Value, step: Callable[..., list[Value]]) -> list[Value]:
        """A run of bodies of one variant on the way up, step(variant, number of the body, handed, masked).

        run_of: the number of the step that is (first, end, full, variant). All lanes go that way (full), or some, and
        steps are masked.
        """
        e, b = self.e, self.b
        start, end, full, variant, *_ = self.step(run_of)
        cells = [e.cell(b) for _ in handed]

        def body(v: Variant) -> None:
            def run(masked: bool) -> None:
                last = e.carrying(b, start, end, handed, lambda s, h: step(v, s, h, masked))
                for cell, x in zip(cells, last, strict=True):
                    b.store(x, cell)

            with b.if_else(b.icmp_signed("!=", full, I64(0))) as (yes, no):
                with yes:
                    run(False)
                with no:
                    run(True)

        self.by_variant(variant, body)
        return [b.load(cell, typ=e.V, align=e.bytes) for cell in cells]

    def limb(self, start: Value, end: Value, state: list[Value], keep: Value, step: Step) -> None:
        """Bodies start to end, each the parent of the next; `state` is that of the first one's parent."""
        last = self.e.carrying(self.b, start, end, state, step)
        self.store_state(self.b.sub(end, I64(1)), last, keep)

    def dofs(self, joint: Value, body: Callable[[Value], None]) -> None:
        """body(dof) for all dofs of a joint."""
        after = self.e.integer(self.b, self.v_start, self.b.add(joint, I64(1)))
        with self.e.loop(self.b, self.e.integer(self.b, self.v_start, joint), after) as k:
            body(k)
