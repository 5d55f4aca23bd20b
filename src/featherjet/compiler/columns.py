"""LLVM for `Pairs` and `Responses`: matrices of one sample, in which each lane is a column.

What the walks kept for each dof has been arranged, for each sample, by groups of L dofs: P[group][number][dof].
So the records of a group of columns are plain vectors, the record of one dof is spread over the lanes, and a row's
entries are stored as they come. Masks, one byte for each (row, group), say which lanes are of which kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from .graph import Expr
from .lanes import I8, I64, PTR, VOID, Lanes, Value, external
from .program import Key, Pairs, Program, Ref, Responses, Store, Variant

MASKS = 4  # bytes for each (row, group) of pairs: within, across, diagonal, columns there are
STEP = 4  # integers for each step of a response: body, and masks


class Columns(Lanes):
    """P holds `len(kept)` vectors for each group of columns."""

    def __init__(self, module: ir.Module, program: Program, lanes: int) -> None:
        super().__init__(module, program.graph, lanes, 8)
        self.program = program
        self.kept = program.kept()
        self.offset: dict[Key, int] = {key: k for k, key in enumerate(self.kept)}
        self.M = ir.VectorType(ir.IntType(1), lanes)

    def mask(self, b: ir.IRBuilder, byte: Value) -> Value:
        """The lanes whose bits are set."""
        bits = b.trunc(byte, ir.IntType(self.L)) if self.L < byte.type.width else byte  # type: ignore[attr-defined]
        return b.bitcast(bits, self.M)

    def put(self, b: ir.IRBuilder, x: Sequence[tuple[Value, Value]], there: Value) -> None:
        """Store (vector, pointer)s, of each the lanes that are columns of the matrix: all, but in the last group."""
        name = f"llvm.masked.store.v{self.L}f64.p0"
        masked = external(self.module, name, VOID, self.V, PTR, ir.IntType(32), self.M)
        full = b.icmp_unsigned("==", there, ir.Constant(there.type, (1 << self.L) - 1))
        with b.if_else(full, likely=True) as (yes, no):
            with yes:
                for vector, pointer in x:
                    self.store(b, vector, pointer)
            with no:
                for vector, pointer in x:
                    b.call(masked, [vector, pointer, ir.IntType(32)(8), self.mask(b, there)])

    def record(self, b: ir.IRBuilder, P: Value, dof: Value) -> Value:
        """Where a dof's numbers begin: they follow each other at a distance of L doubles."""
        group = b.sdiv(dof, I64(self.L))
        start = b.add(b.mul(group, I64(len(self.kept) * self.L)), b.srem(dof, I64(self.L)))
        return self.number(b, P, start)

    def kept_at(self, b: ir.IRBuilder, record: Value, key: Key) -> Value:
        return self.number(b, record, I64(self.offset[key] * self.L))

    def pairs(self, number: int, loop: Pairs) -> ir.Function:
        """(data, P, pointers to the matrices, row strides in bytes, first, end): those rows' entries."""
        n_out = len(loop.matrices)
        f = self.function(f"pairs{number}", [PTR, PTR, PTR, PTR, I64, I64])
        data, P, outs, row_strides, start, end = f.args
        b = ir.IRBuilder(f.append_basic_block("entry"))
        groups = self.slot(b, data, "groups")
        masks = self.slot(b, data, "pair_masks")
        bases = [b.load(b.gep(outs, [I64(m)], source_etype=PTR), typ=PTR, align=8) for m in range(n_out)]
        by_row = [self.integer(b, row_strides, I64(m)) for m in range(n_out)]
        with self.loop(b, start, end) as r:
            this = self.record(b, P, r)
            rows = [b.gep(base, [b.mul(r, by)], source_etype=I8) for base, by in zip(bases, by_row, strict=True)]
            with self.loop(b, I64(0), groups) as g:
                first = b.mul(g, I64(self.L))
                group = self.number(b, P, b.mul(g, I64(len(self.kept) * self.L)))
                at = b.gep(masks, [b.mul(b.add(b.mul(r, groups), g), I64(MASKS))], source_etype=I8)
                within, across, middle, there = (
                    b.load(b.gep(at, [I64(k)], source_etype=I8), typ=I8, align=1) for k in range(MASKS)
                )

                def where(ref: Ref, this=this, group=group) -> tuple[Value, bool]:
                    assert ref.key is not None
                    return self.kept_at(b, this if ref.role == "row" else group, ref.key), ref.role == "row"

                def values(of: Sequence[Expr], where=where) -> list[Value]:
                    found: dict[int, Value] = {}
                    sinks = [(x, lambda y, m=m: found.__setitem__(m, y)) for m, x in enumerate(of)]
                    self.straight(b, sinks, where)
                    return [found[m] for m in range(n_out)]

                def extra(m: int, where=where) -> Value:
                    found: list[Value] = []
                    self.straight(b, [(loop.extra[m], found.append)], where)
                    return found[0]

                def emit(xs: Sequence[Value], rows=rows, first=first, there=there) -> None:
                    where = [self.number(b, row, first) for row in rows]
                    self.put(b, list(zip(xs, where, strict=True)), there)

                nothing = self.const(0.0)

                def lower(within=within, middle=middle, extra=extra) -> list[Value]:
                    """Entries of columns above the row, with what the diagonal has beyond them."""
                    found = values(loop.within)
                    on_diagonal = self.mask(b, middle)
                    for m in range(n_out):
                        if loop.extra[m].value != 0:
                            found[m] = b.fadd(found[m], b.select(on_diagonal, extra(m), nothing))
                    return [b.select(self.mask(b, within), x, nothing) for x in found]

                def upper(across=across) -> list[Value]:
                    return [b.select(self.mask(b, across), x, nothing) for x in values(loop.across)]

                none = I8(0)
                with b.if_else(b.icmp_unsigned("==", across, none)) as (yes, no):
                    with yes, b.if_else(b.icmp_unsigned("==", within, none)) as (empty, full):
                        with empty:
                            emit([nothing] * n_out)
                        with full:
                            emit(lower())
                    with no, b.if_else(b.icmp_unsigned("==", within, none)) as (yes, no):
                        with yes:
                            emit(upper())
                        with no:
                            emit([b.fadd(x, y) for x, y in zip(lower(), upper(), strict=True)])
        b.ret_void()
        return f

    def responses(self, number: int, loop: Responses) -> ir.Function:
        """(data, P, pointers, row strides, scratch): the same for matrices made column by column."""
        return _Response(self, loop).emit(number)


class _Response:
    """The parts of one responses loop."""

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
