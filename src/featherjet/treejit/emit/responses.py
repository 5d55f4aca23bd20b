"""LLVM for `Responses`: a group of columns at a time, up to the root and out over all bodies, each lane a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...jit.emit.lanes import I64, Value
from ..program import Key, Ref, Responses, Store, Variant
from ..tables import ALONG, INSIDE, OUT, OWN, SOME, STEP, STILL, UNRELATED, UP
from .columns import Columns
from .travel import StepTables, Travelling


class ResponsesCode(Travelling):
    """Emits one loop of responses."""

    tables = StepTables("start", "bodies", "paths", 4, STEP)

    def __init__(self, e: Columns, loop: Responses) -> None:
        stores = next(iter(loop.along.values()))
        super().__init__(e, loop, (s.ref.key for s in stores if s.ref.space == "A" and s.ref.key))
        self.loop = loop
        self.left = {Key("J", 0, path): k for k, path in enumerate(loop.own)}

    def sizes(self) -> tuple[int, int]:
        """Vectors of scratch for each joint, and for each dof."""
        return len(self.state), len(self.left)

    def take_steps(self) -> None:
        e, b, start, end = self.e, self.b, self.bounds[UP], self.bounds[UP + 1]
        self.each(OWN, self.at_own, 3)
        (handed,) = e.values(b, self.handed_first, self.loader())
        with b.if_then(b.icmp_signed("<", start, end)):
            e.carrying(b, start, end, handed, lambda s, h: self.up(h, s, self.up_step))
        self.each(OUT, self.out_run, STEP)
        self.each(UNRELATED, self.at_unrelated, 1)

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
        return self.e.vector(b, self.after_states, b.add(b.mul(dof, I64(len(self.left))), I64(self.left[key])))

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

    def up_step(self, v: Variant, s: Value, h: list[Value], masked: bool) -> list[Value]:
        """Through an ancestor: what it hands on, and leaves at its dofs."""
        e, b = self.e, self.b
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

    def out_run(
        self, start: Value, end: Value, kind: Value, variant: Value, below: Value, here: Value, keep: Value
    ) -> None:
        """A limb: bodies start to end of one variant and one kind, each the parent of the next."""
        e, b, loop = self.e, self.b, self.loop
        rules = {ALONG: loop.along, STILL: loop.still, INSIDE: loop.inside, SOME: loop.mixed}

        def body(v: Variant) -> None:
            # a root computes its state itself and ignores this
            ignored = [e.const(0.0)] * len(self.state)
            state = ignored if v.is_root else self.load_state(e.integer(b, self.parent, start))

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

                self.limb(start, end, state, keep, step)

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

        def clear(k: Value) -> None:
            e.put(b, [(e.const(0.0), e.entry(b, place, k, self.first)) for place in self.places], self.existing)

        self.dofs(i, clear)
