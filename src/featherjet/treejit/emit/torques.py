"""LLVM for `Torques`: a group of rows at a time, up to the root and out over all bodies; each lane is a row's torque.

The entries of a group of rows are collected column by column, and then written row by row, transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...jit.emit.lanes import I1, I64, Constant, Value, VectorType, transposed
from ..program import Key, Ref, Torques, Variant
from ..tables import EARLY, OTHER_TREES, TORQUE_LISTS, TORQUE_OUT, TORQUE_PATH, TORQUE_STEP, TORQUE_UP
from .columns import Columns, Place
from .travel import StepTables, Travelling

STORED = 32  # bytes that are transposed and stored together; wider stores often straddle two cache lines


class TorquesCode(Travelling):
    """Emits one loop of torques."""

    tables = StepTables("torque_starts", "torque_steps", "torque_paths", len(TORQUE_LISTS), TORQUE_STEP)
    split_sums = True

    def __init__(self, e: Columns, loop: Torques) -> None:
        super().__init__(e, loop, (Key("J", 0, path) for path in loop.state))
        self.loop, self.R = loop, min(e.L, STORED // e.bytes)

    def sizes(self) -> tuple[int, int]:
        """Vectors of scratch for each joint, and for each dof."""
        return len(self.state), len(self.matrices)

    def take_steps(self) -> None:
        e, b = self.e, self.b
        padded = b.mul(self.groups, I64(e.L))
        self.entries = [e.vector(b, self.after_states, b.mul(padded, I64(m))) for m in range(len(self.matrices))]
        (handed,) = e.values(b, self.handed_first, self.loader())
        start, end = self.bounds[TORQUE_UP], self.bounds[TORQUE_UP + 1]
        e.carrying(b, start, end, handed, lambda s, h: self.up(h, s, self.up_step))
        # without other matrices only the symmetric one's entries after the diagonal are needed
        first = self.bounds[TORQUE_OUT if len(self.matrices) == 1 else EARLY]
        with e.loop(b, first, self.bounds[TORQUE_OUT + 1]) as s:
            self.out_run(*self.step(s))
        self.each(OTHER_TREES, self.at_unrelated, 1)
        self.write()

    # Where things are

    def loader(
        self, first: Value | None = None, state: Sequence[Value] = (), handed: Sequence[Value] = ()
    ) -> Callable[[Ref], Value]:
        """A loader for the joint whose dofs begin at `first`, from its parent's state and the values handed to it."""
        e, b = self.e, self.b

        def load(ref: Ref) -> Value:
            assert ref.key is not None
            if ref.space == "A":
                return state[self.state[ref.key]]
            if ref.space == "H":
                return handed[self.handed[ref.key]]
            if ref.role == "row":
                return e.load(b, e.key_at(b, self.group, ref.key))
            assert first is not None
            return e.splat_from(b, e.record(b, self.P, b.add(first, I64(ref.k))), ref.key)

        return load

    def entry_at(self, first: Value, ref: Ref) -> Value:
        """Where an entry is collected, of the joint whose dofs begin at `first`."""
        assert ref.key is not None
        return self.e.vector(self.b, self.entries[int(ref.key.path[0])], self.b.add(first, I64(ref.k)))

    # Steps

    def up_step(self, v: Variant, s: Value, h: list[Value], masked: bool) -> list[Value]:
        """Through a body: its state where the way branches, what it hands on, and the entries of its dofs."""
        e, b, loop = self.e, self.b, self.loop
        at = b.gep(self.paths, [b.mul(s, I64(TORQUE_PATH))], source_etype=I64)
        i, _, beyond, branches = (e.integer(b, at, I64(j)) for j in range(TORQUE_PATH))
        first = e.integer(b, self.v_start, i)
        with b.if_then(b.icmp_signed("!=", branches, I64(0))):
            for ref, x in self.compute(loop.turn[v], self.loader(first, handed=h)).items():
                assert ref.key is not None
                e.store(b, x, self.state_at(i, self.state[ref.key]))
        new = list(h)
        for ref, x in self.compute(loop.up[v], self.loader(first, handed=h)).items():
            assert ref.key is not None
            k = self.handed[ref.key]
            new[k] = b.select(e.mask(b, beyond), x, h[k]) if masked else x
        for ref, x in self.compute(loop.above[v], self.loader(first, handed=new)).items():
            e.store(b, x, self.entry_at(first, ref))
        return new

    def out_run(self, start: Value, end: Value, own: Value, known: Value, variant: Value, keep: Value) -> None:
        """A limb off all paths: bodies start to end of one variant; or one body that is on some lanes' paths."""
        b = self.b

        def body(v: Variant) -> None:
            if v.is_root:
                self.on_path(v, start, own, known, keep)
                return
            with b.if_else(b.icmp_signed("==", known, I64(0)), likely=True) as (yes, no):
                with yes:
                    self.off_paths(v, start, end, keep)
                with no:
                    self.on_path(v, start, own, known, keep)

        self.by_variant(variant, body)

    def parent_state(self, i: Value) -> list[Value]:
        return self.load_state(self.e.integer(self.b, self.parent, i))

    def off_paths(self, v: Variant, start: Value, end: Value, keep: Value) -> None:
        e, b = self.e, self.b

        def step(i: Value, a: list[Value]) -> list[Value]:
            first = e.integer(b, self.v_start, i)
            new = list(a)
            for ref, x in self.compute(self.loop.out[v], self.loader(first, state=a)).items():
                assert ref.key is not None
                if ref.space == "E":
                    e.store(b, x, self.entry_at(first, ref))
                else:
                    new[self.state[ref.key]] = x
            return new

        self.limb(start, end, self.parent_state(start), keep, step)

    def on_path(self, v: Variant, i: Value, own: Value, known: Value, keep: Value) -> None:
        """A body at or above some lanes' joints: those know its entries and state, from the start or the way up."""
        e, b, loop = self.e, self.b, self.loop
        first = e.integer(b, self.v_start, i)
        own_lanes, known_lanes = e.mask(b, own), e.mask(b, known)
        state = self.load_state(i)
        if v.is_root:  # other lanes are of other trees
            found: dict[Ref, Value] = dict.fromkeys(self.at_rest(v), e.const(0.0))
        else:
            found = self.compute(loop.out[v], self.loader(first, state=self.parent_state(i)))
        starts, entries = (e.values(b, list(x), self.loader())[0] for x in (loop.state.values(), loop.own[: v.nv]))
        for ref, x in found.items():
            assert ref.key is not None
            if ref.space == "A":
                k = self.state[ref.key]
                state[k] = b.select(known_lanes, state[k], x)
            elif int(ref.key.path[0]):
                target = self.entry_at(first, ref)
                e.store(b, b.select(known_lanes, e.load(b, target), x), target)
            else:
                entries[ref.k] = b.select(own_lanes, entries[ref.k], x)
        for k, x in enumerate(entries):
            e.store(b, x, e.vector(b, self.entries[0], b.add(first, I64(k))))
        self.store_state(i, [b.select(own_lanes, x, y) for x, y in zip(starts, state, strict=True)], keep)

    def at_rest(self, v: Variant) -> list[Ref]:
        """References to all that a body's step would store."""
        entries = [Ref("E", "self", k, Key("J", 0, (str(m),))) for m in range(len(self.entries)) for k in range(v.nv)]
        return [*entries, *(Ref("A", "self", 0, key) for key in self.state)]

    def at_unrelated(self, i: Value) -> None:
        """Zeros for a body of a tree that has none of the group's rows."""
        e, b = self.e, self.b

        def clear(k: Value) -> None:
            for entries in self.entries:
                e.store(b, e.const(0.0), e.vector(b, entries, k))

        self.dofs(i, clear)

    # Writing

    def write(self) -> None:
        """Write the group's rows, a register of them at a time, and below them its columns of the symmetric matrix."""
        e, b, R = self.e, self.b, self.R
        whole = b.and_(self.nv, I64(-R))
        rest = b.sub(self.nv, whole)
        after = b.add(self.first, I64(e.L))
        after = b.select(b.icmp_signed("<", after, self.nv), after, self.nv)
        with e.loop(b, self.first, after, R) as row:
            with b.if_then(b.icmp_signed("<", row, whole)):
                self.block(0, row, row, diagonal=True)
            following = b.add(row, I64(R))
            with e.loop(b, following, self.nv) as j:
                self.put(self.collected(0, j, row), e.entry(b, self.places[0], j, row))
            for m in range(len(self.entries)):
                with e.loop(b, I64(0) if m else following, whole, R) as j:
                    self.block(m, row, j)
            if R > 1:
                with b.if_then(b.icmp_signed(">", rest, I64(0))):
                    self.last_blocks(row, whole, rest)

    def last_blocks(self, row: Value, j: Value, rest: Value) -> None:
        """The last columns of a register of rows, fewer than a register."""
        b = self.b
        for m in range(1, len(self.entries)):
            self.block(m, row, j, rest)
        with b.if_else(b.icmp_signed("==", row, j)) as (yes, no):
            with yes:
                self.block(0, row, j, rest, diagonal=True)
            with no:
                self.block(0, row, j, rest)

    def collected(self, m: int, column: Value, row: Value) -> Value:
        """A register of entries of one column, from `row` on."""
        e, b = self.e, self.b
        at = e.number(b, e.vector(b, self.entries[m], column), b.sub(row, self.first))
        return b.load(at, typ=e.kind.vector(self.R), align=e.bytes)

    def put(self, x: Value, place: Place, rest: Value | None = None) -> None:
        """Store a register of numbers, the `rest` first of them, or all."""
        e, b = self.e, self.b
        pointer, ahead = place
        if e.L > 1:
            e.prefetch(b, pointer, ahead)
        if rest is None:
            e.store_unaligned(b, x, pointer)
            return
        e.store_masked(b, x, pointer, e.first_lanes(b, rest, self.R))

    def block(self, m: int, row: Value, j: Value, rest: Value | None = None, diagonal: bool = False) -> None:
        """A square of entries of matrix m from `row` and column j on: the `rest` first columns, or all.

        On the diagonal of the symmetric matrix, entries below it repeat those above.
        """
        b, R = self.b, self.R
        columns = [self.collected(m, b.add(j, I64(t)), row) for t in range(R)]
        rows = transposed(b, list(columns)) if R > 1 else columns
        kind = VectorType(I1, R)
        if diagonal and R > 1:
            below = [Constant(kind, [int(t < l) for t in range(R)]) for l in range(R)]
            rows = [b.select(mask, x, y) for mask, x, y in zip(below, columns, rows, strict=True)]

        def put(l: int) -> None:
            self.put(rows[l], self.e.entry(b, self.places[m], b.add(row, I64(l)), j), rest)

        with b.if_else(b.icmp_signed("<=", b.add(row, I64(R)), self.nv), likely=True) as (yes, no):
            with yes:
                for l in range(R):
                    put(l)
            with no:
                for l in range(R):
                    with b.if_then(b.icmp_signed("<", b.add(row, I64(l)), self.nv)):
                        put(l)
