"""LLVM for `Triples`: tensors of one sample, slab by slab, in which each lane is a column.

For slab k, the numbers R of all dofs on a path with dof k are computed first, by groups: R[group][number][dof]. The
slab is then a matrix over pairs, but only of these dofs: rows of others are zeros, and so are groups without them.
Writing takes as long as computing: a humanoid's tensors have 4 MB, most of it zeros. So a slab is computed in memory
that stays in the caches, and then goes to its place past them, runs of whole rows of zeros too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...jit.emit.lanes import I8, I64, PTR, Constant, Function, Value, begun
from ...jit.graph import Expr
from ..program import Ref, Triples
from ..tables import ACROSS, MIXED, NOTHING, SLAB, WITHIN
from .columns import NOT_AHEAD, Columns, MatrixPlace, PairsCode
from .streams import emit_stream

LARGE = 1 << 21  # bytes of one result of all samples beyond which it is written past the caches


class TriplesCode(PairsCode):
    """Emits one loop over triples."""

    def __init__(self, e: Columns, loop: Triples) -> None:
        super().__init__(e, loop)
        self.terms = loop.below, loop.above
        self.offset = {key: n for n, key in enumerate(loop.keys)}
        self.at: dict[Value, tuple[Value, ...]] = {}

    def sizes(self) -> tuple[int, int]:
        """Vectors of scratch for each joint, and for each dof."""
        return 0, -(-len(self.offset) // self.e.L)

    def emit(self, number: int) -> Function:
        """A function of (data, P, places of the tensors, scratch) that writes all entries.

        A place has the bytes between slabs, and those of all samples.
        """
        e = self.e
        stream = emit_stream(e)
        f = e.function(f"triples{number}", [PTR] * 4)
        data, self.P, places, self.R = f.args
        b = self.b = begun(f)
        self.open(data)
        starts, runs = e.slot(b, data, "slab_starts"), e.slot(b, data, "slab_runs")
        tensors = e.places(b, places, self.n_out)
        by_row = b.mul(self.nv, I64(e.bytes))
        stage = e.vector(b, self.R, b.mul(self.groups, I64(len(self.offset))))
        stages = [b.gep(stage, [b.mul(b.mul(self.nv, by_row), I64(m))], source_etype=I8) for m in range(self.n_out)]
        self.places = [MatrixPlace(x, by_row, NOT_AHEAD) for x in stages]
        with e.loop(b, I64(0), self.nv) as self.k:
            self.records()
            first, after = (e.integer(b, starts, b.add(self.k, I64(n))) for n in range(2))
            with e.loop(b, first, after) as s:
                run = b.gep(runs, [b.mul(s, I64(SLAB))], source_etype=I64)
                kin, r0, r1 = (e.integer(b, run, I64(n)) for n in range(SLAB))
                some = b.icmp_signed("!=", kin, I64(0))
                with b.if_then(some), e.loop(b, r0, r1, 2) as r:
                    self.rows(r)
                for x, place in zip(tensors, self.places, strict=True):
                    slab = b.gep(x.start, [b.mul(self.k, x.by_row)], source_etype=I8)
                    ends = [b.gep(slab, [b.mul(r, by_row)], source_etype=I8) for r in (r0, r1)]
                    source = b.select(
                        some, b.gep(place.start, [b.mul(r0, by_row)], source_etype=I8), Constant(PTR, None)
                    )
                    b.call(stream, [*ends, source, b.icmp_signed(">", x.ahead, I64(LARGE))])
        b.fence("seq_cst")
        b.ret_void()
        return f

    def records(self) -> None:
        """Compute the numbers R of all dofs on a path with dof k."""
        b, e, (of_below, of_above) = self.b, self.e, self.terms
        known = self.splats(self.k, [ref for ref in e.loads([*of_below, *of_above]) if ref.role == "slab"])
        with e.loop(b, I64(0), self.groups) as g:
            above, below = (self.bits(self.k, g, n) for n in range(2))

            def store(of: Sequence[Value]) -> None:
                for n, x in enumerate(of):
                    e.store(b, x, self.place(g, n))

            def values(*of: Sequence[Expr]) -> list[list[Value]]:
                load = self.group_loader(g)
                found = e.values(b, [x for part in of for x in part], lambda r: known[r] if r in known else load(r))[0]
                return [found[n : n + len(self.offset)] for n in range(0, len(found), len(self.offset))]

            def mixed() -> None:
                lower, upper = values(of_below, of_above)
                mask = e.mask(b, below)
                store([b.select(mask, x, y) for x, y in zip(lower, upper, strict=True)])

            none = Constant(above.type, 0)
            some = [b.zext(b.icmp_unsigned("!=", x, none), I64) for x in (above, below)]
            cases = [
                (0, lambda: None),
                (1, lambda: store(*values(of_above))),
                (2, lambda: store(*values(of_below))),
                (3, mixed),
            ]
            e.switch(b, b.add(some[0], b.mul(some[1], I64(2))), cases)

    def place(self, g: Value, n: int) -> Value:
        """Where number n of a group's R is."""
        b, e = self.b, self.e
        return e.vector(b, self.R, b.add(b.mul(g, I64(len(self.offset))), I64(n)))

    # Entries

    def rows(self, r: Value) -> None:
        """All entries of row r and the next, group by group."""
        b, e, loop = self.b, self.e, self.loop
        rows = self.two_rows(r)
        whole = [self.has_entries(row) for row in rows]
        for row in rows:
            self.find(row)
        with e.loop(b, I64(0), self.groups) as g:
            kin = self.kin(g)
            live = [b.and_(kin, x) for x in whole]
            within, across, own = (
                [b.and_(self.bits(row, g, k), x) for row, x in zip(rows, live, strict=True)] for k in (0, 1, 4)
            )

            def some(masks: Sequence[Value]) -> Value:
                return b.zext(b.icmp_unsigned("!=", b.or_(*masks), Constant(kin.type, 0)), I64)

            # 0 nothing, 1 within, 2 across, 3 both; own entries are within, and count as both
            kind = b.or_(b.or_(some(within), b.mul(some(across), I64(2))), b.mul(some(own), I64(3)))
            cases = [
                (NOTHING, lambda: self.nothing(rows, g)),
                (WITHIN, lambda: self.entries(rows, g, [(within, loop.within)])),
                (ACROSS, lambda: self.entries(rows, g, [(across, loop.across)])),
                (MIXED, lambda: self.entries(rows, g, [(own, loop.own), (within, loop.within), (across, loop.across)])),
            ]
            e.switch(b, kind, cases)

    def entries(self, rows: Sequence[Value], g: Value, kinds: Sequence[tuple[Sequence[Value], Sequence[Expr]]]) -> None:
        """A group of columns: of each kind the lanes of each row, the first kind first, and the values."""
        b, e = self.b, self.e
        existing = self.bits(rows[0], g, 3)
        masks = [[e.mask(b, x) for x in lanes] for lanes, _ in kinds]
        for m in range(self.n_out):
            of = [values[m] for _, values in kinds]
            group = self.group_loader(g)
            found = e.values_apart(b, of, *(self.by_role(self.row_loader(row, of), group) for row in rows))
            values = []
            for r, row in enumerate(found):
                x: Value = e.const(0.0)
                for mask, y in reversed(list(zip(masks, row, strict=True))):
                    x = b.select(mask[r], y, x)
                values.append(x)
            self.put(rows, g, existing, m, values)

    def kin(self, g: Value) -> Value:
        """The dofs of a group that are on a path with dof k."""
        return self.b.or_(self.bits(self.k, g, 0), self.bits(self.k, g, 1))

    def has_entries(self, row: Value) -> Value:
        """All lanes if a row's dof is on a path with dof k, else none."""
        b, L = self.b, I64(self.e.L)
        kin = self.kin(b.udiv(row, L))
        bit = b.and_(b.lshr(kin, b.trunc(b.urem(row, L), kin.type)), Constant(kin.type, 1))
        return b.sub(Constant(kin.type, 0), bit)

    # Loads

    def splats(self, row: Value, refs: Sequence[Ref]) -> dict[Ref, Value]:
        b, e, found = self.b, self.e, {}
        P, R = self.at.get(row) or self.find(row)
        for ref in refs:
            assert ref.key is not None
            place = (R, self.offset) if ref.space == "R" else (P, e.offset)
            found[ref] = e.splat(b, e.load_number(b, e.number(b, place[0], I64(place[1][ref.key] * e.L))))
        return found

    def find(self, row: Value) -> tuple[Value, Value]:
        """Where the numbers of a dof begin, those of every slab and those of this one; they are L numbers apart."""
        b, e = self.b, self.e
        group, lane = b.udiv(row, I64(e.L)), b.urem(row, I64(e.L))
        self.at[row] = tuple(
            e.number(b, base, b.add(b.mul(group, I64(count * e.L)), lane))
            for base, count in ((self.P, len(e.keys)), (self.R, len(self.offset)))
        )
        return self.at[row]

    def from_group(self, group: Value, g: Value, ref: Ref) -> Value:
        if ref.space != "R":
            return super().from_group(group, g, ref)
        assert ref.key is not None
        return self.e.load(self.b, self.place(g, self.offset[ref.key]))
