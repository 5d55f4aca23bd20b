"""LLVM for `Responses`: a group of columns at a time, up to the root and out over all bodies, each lane a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from .columns import Columns
from .lanes import I8, I64, PTR, Value
from .program import Key, Ref, Responses, Store, Variant

STEP = 4  # integers for each step of a response: body, and masks


class Response:
    """Emits one responses loop."""

    def __init__(self, e: Columns, loop: Responses) -> None:
        self.e, self.loop = e, loop
        some = next(iter(loop.along.values()))
        self.state = {s.ref.key: k for k, s in enumerate(s for s in some if s.ref.space == "A")}
        self.left = {Key("J", 0, path): k for k, path in enumerate(loop.own)}
        self.handed = {Key("J", 0, path): k for k, path in enumerate(loop.handed)}

    def sizes(self) -> tuple[int, int, int]:
        """Vectors of scratch for each joint, for each dof, and for the handed."""
        return len(self.state), len(self.left), len(self.handed)

    def emit(self, number: int) -> ir.Function:
        """(data, P, pointers to the matrices, row strides in bytes, scratch): all entries."""
        e, loop = self.e, self.loop
        n_out = len(loop.matrices)
        f = e.function(f"responses{number}", [PTR] * 5)
        data, P, outs, row_strides, scratch = f.args
        b = self.b = ir.IRBuilder(f.append_basic_block("entry"))
        joints, nv, groups = (e.slot(b, data, s) for s in ("joints", "nv", "groups"))
        self.v_start, self.parent = e.slot(b, data, "v_start"), e.slot(b, data, "parent")
        self.variant = e.slot(b, data, "variant")
        self.P = P
        self.A = scratch
        self.U = e.vector(b, self.A, b.mul(joints, I64(len(self.state))))
        self.H = e.vector(b, self.U, b.mul(nv, I64(len(self.left))))
        self.outs = [b.load(b.gep(outs, [I64(m)], source_etype=PTR), typ=PTR, align=8) for m in range(n_out)]
        self.by_row = [e.integer(b, row_strides, I64(m)) for m in range(n_out)]
        starts, steps = e.slot(b, data, "start"), e.slot(b, data, "bodies")
        with e.loop(b, I64(0), groups) as g:
            self.first = b.mul(g, I64(e.L))
            self.group = e.number(b, P, b.mul(g, I64(len(e.kept) * e.L)))
            # Each group has four lists of steps: joints whose dofs are columns, ancestors, bodies outward, strangers.
            bounds = [e.integer(b, starts, b.add(b.mul(g, I64(4)), I64(k))) for k in range(5)]

            def each(k: int, body: Callable[[Value, list[Value]], None], bounds=bounds) -> None:
                with e.loop(b, bounds[k], bounds[k + 1]) as s:
                    at = b.gep(steps, [b.mul(s, I64(STEP))], source_etype=I64)
                    i, *masks = (e.integer(b, at, I64(j)) for j in range(STEP))
                    body(i, masks)

            self.there = e.integer(b, starts, b.add(b.mul(groups, I64(4)), b.add(g, I64(1))))
            self.begin()
            each(0, self.at_own)
            each(1, self.at_ancestor)
            each(2, self.at_body)
            each(3, self.at_stranger)
        b.ret_void()
        return f

    # Where things are

    def where(self, i: Value, first: Value, parent: Value | None) -> Callable[[Ref], tuple[Value, bool]]:
        e, b = self.e, self.b

        def find(ref: Ref) -> tuple[Value, bool]:
            assert ref.key is not None
            if ref.space == "D":
                if ref.role in ("col", "below", "here"):
                    return e.kept_at(b, self.group, ref.key), False
                return e.kept_at(b, e.record(b, self.P, b.add(first, I64(ref.k))), ref.key), True
            if ref.space == "H":
                return e.vector(b, self.H, I64(self.handed[ref.key])), False
            if ref.space == "L":
                return self.left_at(b.add(first, I64(ref.k)), ref.key), False
            joint = parent if ref.role == "parent" else i
            assert joint is not None
            return self.state_at(joint, ref.key), False

        return find

    def left_at(self, dof: Value, key: Key) -> Value:
        b = self.b
        return self.e.vector(b, self.U, b.add(b.mul(dof, I64(len(self.left))), I64(self.left[key])))

    def state_at(self, joint: Value, key: Key) -> Value:
        b = self.b
        return self.e.vector(b, self.A, b.add(b.mul(joint, I64(len(self.state))), I64(self.state[key])))

    def entry(self, m: int, row: Value) -> Value:
        """Where the group's entries of a row of matrix m begin."""
        b = self.b
        line = b.gep(self.outs[m], [b.mul(row, self.by_row[m])], source_etype=I8)
        return self.e.number(b, line, self.first)

    def compute(self, stores: Sequence[Store], where: Callable, masks: dict | None = None) -> dict[Ref, Value]:
        """The values of stores; loads whose role has a mask are zero in the lanes it leaves out."""
        found: dict[Ref, Value] = {}
        sinks = [(s.value, lambda x, r=s.ref: found.__setitem__(r, x)) for s in stores]
        self.e.straight(self.b, sinks, where, masks)
        return found

    def by_variant(self, i: Value, body: Callable[[Variant], None]) -> None:
        e = self.e
        cases = [(k, lambda v=v: body(v)) for k, v in enumerate(e.program.variants)]
        e.switch(self.b, e.integer(self.b, self.variant, i), cases)

    # Steps

    def begin(self) -> None:
        """Each lane starts with what its own joint hands up."""
        e, b = self.e, self.b
        where = self.where(I64(0), I64(0), None)
        for path, value in self.loop.handed.items():
            target = e.vector(b, self.H, I64(self.handed[Key("J", 0, path)]))
            e.straight(b, [(value, lambda x, t=target: e.store(b, x, t))], where)

    def at_own(self, i: Value, masks: list[Value]) -> None:
        """A joint whose dofs are columns of the group, or an ancestor: what is left at its dofs to begin with."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        mine = e.mask(b, masks[0])
        where = self.where(i, first, None)

        def body(v: Variant) -> None:
            for path, values in self.loop.own.items():
                for k in range(v.nv):

                    def keep(x: Value, k=k, path=path) -> None:
                        x = b.select(mine, x, e.const(0.0))
                        e.store(b, x, self.left_at(b.add(first, I64(k)), Key("J", 0, path)))

                    e.straight(b, [(values[k], keep)], where)

        self.by_variant(i, body)

    def at_ancestor(self, i: Value, masks: list[Value]) -> None:
        """The way up: lanes for which joint i is an ancestor."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        active = e.mask(b, masks[0])
        where = self.where(i, first, None)

        def body(v: Variant) -> None:
            for ref, x in self.compute(self.loop.up[v], where).items():
                pointer, _ = where(ref)
                e.store(b, b.select(active, x, e.load(b, pointer)), pointer)

        self.by_variant(i, body)

    def at_body(self, i: Value, masks: list[Value]) -> None:
        """The way out: lanes whose column's joint is i (at), is above i (inside), or neither (along)."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        inside, at, touched = masks

        def body(v: Variant) -> None:
            parent = None if v.is_root else e.integer(b, self.parent, i)
            where = self.where(i, first, parent)

            def finish(values: dict[Ref, Value]) -> None:
                entries = []
                for ref, x in values.items():
                    if ref.space == "E":
                        assert ref.key is not None
                        m = int(ref.key.path[0])
                        entries.append((x, self.entry(m, b.add(first, I64(ref.k)))))
                    else:
                        e.store(b, x, where(ref)[0])
                e.put(b, entries, self.there)

            none, everywhere = I64(0), I64((1 << e.L) - 1)
            outside = b.icmp_unsigned("==", b.or_(inside, at), none)
            with b.if_else(outside) as (yes, no):
                with yes, b.if_else(b.icmp_unsigned("==", touched, none)) as (still, moved):
                    with still:
                        if not v.is_root:
                            finish(self.compute(self.loop.still[v], where))
                    with moved:
                        finish(self.compute(self.loop.along[v], where))
                with no, b.if_else(b.icmp_unsigned("==", inside, everywhere)) as (yes2, no2):
                    with yes2:
                        if not v.is_root:
                            finish(self.compute(self.loop.inside[v], where))
                    with no2:
                        masks = {"below": e.mask(b, b.or_(inside, at)), "here": e.mask(b, at)}
                        finish(self.compute(self.loop.mixed[v], where, masks))

        self.by_variant(i, body)

    def at_stranger(self, i: Value, masks: list[Value]) -> None:
        """A body of a tree that has none of the group's columns."""
        e, b = self.e, self.b
        first = e.integer(b, self.v_start, i)
        after = e.integer(b, self.v_start, b.add(i, I64(1)))
        with e.loop(b, first, after) as k:
            e.put(b, [(e.const(0.0), self.entry(m, k)) for m in range(len(self.outs))], self.there)
