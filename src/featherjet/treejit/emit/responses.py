"""LLVM for `Responses`: a group of columns at a time, up to the root and out over all bodies, each lane a column.

On the way up every lane follows its own path, so handed values stay in registers. On the way out they do so along a
limb, where each body's parent is the body before it; only at branches does a body's state go to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from ...jit.emit.lanes import I64, PTR, Value
from ..program import Key, Ref, Responses, Store, Variant
from ..tables import ALONG, INSIDE, OUT, OWN, SOME, STEP, STILL, UNRELATED, UP
from .columns import Columns


class ResponsesCode:
    """Emits one loop of responses."""

    def __init__(self, e: Columns, loop: Responses) -> None:
        self.e, self.loop = e, loop
        stores = next(iter(loop.along.values()))
        self.state = {s.ref.key: k for k, s in enumerate(s for s in stores if s.ref.space == "A")}
        self.left = {Key("J", 0, path): k for k, path in enumerate(loop.own)}
        self.handed = {Key("J", 0, path): k for k, path in enumerate(loop.handed)}

    def sizes(self) -> tuple[int, int]:
        """Vectors of scratch for each joint, and for each dof."""
        return len(self.state), len(self.left)

    def emit(self, number: int) -> ir.Function:
        """A function of (data, P, places of the matrices, scratch) that writes all entries."""
        e, loop = self.e, self.loop
        f = e.function(f"responses{number}", [PTR] * 4)
        data, P, places, scratch = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        joints, groups = (e.slot(b, data, s) for s in ("joints", "groups"))
        self.v_start, self.parent = e.slot(b, data, "v_start"), e.slot(b, data, "parent")
        self.paths = e.slot(b, data, "paths")
        self.P = P
        self.A = scratch
        self.U = e.vector(b, self.A, b.mul(joints, I64(len(self.state))))
        self.places = e.places(b, places, len(loop.matrices))
        starts, steps = e.slot(b, data, "start"), e.slot(b, data, "bodies")
        with e.loop(b, I64(0), groups) as g:
            self.first = b.mul(g, I64(e.L))
            self.group = e.group(b, P, g)
            bounds = [e.integer(b, starts, b.add(b.mul(g, I64(4)), I64(k))) for k in range(5)]

            def entry(s: Value) -> list[Value]:
                at = b.gep(steps, [b.mul(s, I64(STEP))], source_etype=I64)
                return [e.integer(b, at, I64(j)) for j in range(STEP)]

            self.existing = e.integer(b, starts, b.add(b.mul(groups, I64(4)), b.add(g, I64(1))))
            with e.loop(b, bounds[OWN], bounds[OWN + 1]) as s:
                self.at_own(*entry(s)[:3])
            (handed,) = e.values(b, list(loop.handed.values()), self.loader())
            with b.if_then(b.icmp_signed("<", bounds[UP], bounds[UP + 1])):
                e.carrying(b, bounds[UP], bounds[UP + 1], handed, lambda s, h: self.up_run(h, *entry(s)[:4]))
            with e.loop(b, bounds[OUT], bounds[OUT + 1]) as s:
                self.out_run(*entry(s))
            with e.loop(b, bounds[UNRELATED], bounds[UNRELATED + 1]) as s:
                self.at_unrelated(entry(s)[0])
        b.ret_void()
        return f

    # Where things are

    def loader(
        self,
        first: Value | None = None,
        state: Sequence[Value] = (),
        handed: Sequence[Value] = (),
        known: dict[Ref, Value] | None = None,
        masks: dict[str, Value] | None = None,
    ) -> Callable[[Ref], Value]:
        """A loader for the joint whose dofs begin at `first`, from its parent's state and the values handed to it.

        Loads of a role with a mask are zero in the lanes outside it.
        """
        e, b = self.e, self.b

        def fetch(ref: Ref) -> Value:
            assert ref.key is not None
            if ref.space == "A":
                return state[self.state[ref.key]]
            if ref.space == "H":
                return handed[self.handed[ref.key]]
            if ref.space == "D" and ref.role in ("col", "below", "here"):
                return e.load(b, e.key_at(b, self.group, ref.key))
            assert first is not None
            dof = b.add(first, I64(ref.k))
            if ref.space == "L":
                return e.load(b, self.left_at(dof, ref.key))
            return e.splat_from(b, e.record(b, self.P, dof), ref.key)

        def load(ref: Ref) -> Value:
            if known and ref in known:
                return known[ref]
            x = fetch(ref)
            mask = (masks or {}).get(ref.role)
            return x if mask is None else b.select(mask, x, e.const(0.0))

        return load

    def left_at(self, dof: Value, key: Key) -> Value:
        b = self.b
        return self.e.vector(b, self.U, b.add(b.mul(dof, I64(len(self.left))), I64(self.left[key])))

    def state_at(self, joint: Value, k: int) -> Value:
        b = self.b
        return self.e.vector(b, self.A, b.add(b.mul(joint, I64(len(self.state))), I64(k)))

    def compute(self, stores: Sequence[Store], load: Callable[[Ref], Value]) -> dict[Ref, Value]:
        """The values of stores."""
        (found,) = self.e.values(self.b, [s.value for s in stores], load)
        return {s.ref: x for s, x in zip(stores, found, strict=True)}

    def by_variant(self, number: Value, body: Callable[[Variant], None]) -> None:
        cases = [(k, lambda v=v: body(v)) for k, v in enumerate(self.e.program.variants)]
        self.e.switch(self.b, number, cases)

    # Steps

    def at_own(self, i: Value, mask: Value, variant: Value) -> None:
        """Store the start values left at the dofs of a joint that has columns of the group, or is on their way."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        own_lanes = e.mask(b, mask)
        load = self.loader()

        def body(v: Variant) -> None:
            for path, values in self.loop.own.items():
                for k, x in enumerate(e.values(b, values[: v.nv], load)[0]):
                    target = self.left_at(b.add(first, I64(k)), Key("J", 0, path))
                    e.store(b, b.select(own_lanes, x, e.const(0.0)), target)

        self.by_variant(variant, body)

    def up_run(self, handed: list[Value], start: Value, end: Value, full: Value, variant: Value) -> list[Value]:
        """A run of ancestors of one variant, nearest first; all lanes are below them (full), or some."""
        e, b = self.e, self.b
        cells = [e.cell(b) for _ in handed]

        def body(v: Variant) -> None:
            def steps(masked: bool) -> None:
                def step(s: Value, h: list[Value]) -> list[Value]:
                    at = b.gep(self.paths, [b.mul(s, I64(2))], source_etype=I64)
                    i, mask = (e.integer(b, at, I64(j)) for j in range(2))
                    first = e.integer(b, self.v_start, i)
                    active = e.mask(b, mask) if masked else None
                    new = list(h)
                    for ref, x in self.compute(self.loop.up[v], self.loader(first, handed=h)).items():
                        assert ref.key is not None
                        if ref.space == "H":
                            k = self.handed[ref.key]
                            new[k] = x if active is None else b.select(active, x, h[k])
                        else:
                            target = self.left_at(b.add(first, I64(ref.k)), ref.key)
                            e.store(b, x if active is None else b.select(active, x, e.load(b, target)), target)
                    return new

                for cell, x in zip(cells, e.carrying(b, start, end, handed, step), strict=True):
                    b.store(x, cell)

            with b.if_else(b.icmp_signed("!=", full, I64(0))) as (yes, no):
                with yes:
                    steps(False)
                with no:
                    steps(True)

        self.by_variant(variant, body)
        return [b.load(cell, typ=e.V, align=e.bytes) for cell in cells]

    def out_run(
        self, start: Value, end: Value, kind: Value, variant: Value, below: Value, here: Value, keep: Value
    ) -> None:
        """A limb: bodies start to end of one variant and one kind, each the parent of the next."""
        e, b, loop = self.e, self.b, self.loop
        rules = {ALONG: loop.along, STILL: loop.still, INSIDE: loop.inside, SOME: loop.mixed}

        def body(v: Variant) -> None:
            parent = None if v.is_root else e.integer(b, self.parent, start)
            # a root computes its state itself and ignores this
            state = [e.const(0.0)] * len(self.state)
            if parent is not None:
                state = [e.load(b, self.state_at(parent, k)) for k in range(len(self.state))]

            def run(stores: Sequence[Store], masks: dict[str, Value]) -> None:
                refs = [ref for ref in e.loads(s.value for s in stores) if ref.role in ("col", "below", "here")]
                column = self.loader(masks=masks)
                known = {ref: column(ref) for ref in refs}

                def step(i: Value, a: list[Value]) -> list[Value]:
                    first = e.integer(b, self.v_start, i)
                    new, entries = list(a), []
                    for ref, x in self.compute(stores, self.loader(first, state=a, known=known)).items():
                        assert ref.key is not None
                        if ref.space == "E":
                            place = self.places[int(ref.key.path[0])]
                            entries.append((x, e.entry(b, place, b.add(first, I64(ref.k)), self.first)))
                        else:
                            new[self.state[ref.key]] = x
                    e.put(b, entries, self.existing)
                    return new

                last = e.carrying(b, start, end, state, step)
                with b.if_then(b.icmp_signed("!=", keep, I64(0))):
                    for k, x in enumerate(last):
                        e.store(b, x, self.state_at(b.sub(end, I64(1)), k))

            cases = []
            for number, rule in rules.items():
                if v in rule:
                    under = e.mask(b, below)
                    masks = {"below": under, "here": e.mask(b, here), "col": under}
                    cases.append((number, lambda rule=rule, masks=masks: run(rule[v], masks)))
            e.switch(b, kind, cases)

        self.by_variant(variant, body)

    def at_unrelated(self, i: Value) -> None:
        """Write zeros for a body of a tree that has none of the group's columns."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        after = e.integer(b, self.v_start, b.add(i, I64(1)))
        with e.loop(b, first, after) as k:
            e.put(b, [(e.const(0.0), e.entry(b, place, k, self.first)) for place in self.places], self.existing)
