"""LLVM for matrices of one sample, in which each lane is a column: `Pairs` here, `Responses` in responses.py.

The walks' numbers of each dof have been arranged, for each sample, by groups of L dofs: P[group][number][dof]. So the
records of a group of columns are vectors, a row's record is one number in all lanes, and a row's entries are stored
without shuffling. Masks, two bytes for each (row, group), say which lanes are of which kind.

Rows go two at a time, over runs of groups of one kind: a row's numbers stay in registers for the whole run, and a
group's serve both rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...jit.emit.lanes import (
    I1,
    I8,
    I64,
    PTR,
    Builder,
    Constant,
    Function,
    IntType,
    Module,
    Type,
    Value,
    VectorType,
    begun,
    transposed,
)
from ...jit.graph import Expr
from ...jit.number import Number
from ..program import Key, Pairs, Program, Ref, Sum, Triples
from ..tables import ACROSS, MASKS, MIXED, NOTHING, RUN, WITHIN
from .lanes import TreeLanes

I16 = IntType(16)
Place = tuple[Value, Value]  # a pointer, and how many bytes ahead of it to prefetch
NOT_AHEAD = I64(0)  # nothing to prefetch: the memory is in a cache


class MatrixPlace(NamedTuple):
    """Where a matrix begins, how many bytes apart its rows are, and how many bytes ahead to prefetch."""

    start: Value
    by_row: Value
    ahead: Value


class Columns(TreeLanes):
    """Code on groups of columns; P holds `len(keys)` vectors for each group."""

    def __init__(self, module: Module, program: Program, lanes: int, kind: Number) -> None:
        super().__init__(module, program.graph, lanes, kind, whole=False)
        self.program = program
        self.keys = program.column_keys()
        self.offset: dict[Key, int] = {key: k for k, key in enumerate(self.keys)}
        self.M = VectorType(I1, lanes)

    def mask(self, b: Builder, bits: Value) -> Value:
        """The lanes whose bits are set."""
        if self.L == 1:
            return b.trunc(bits, I1)
        low = b.trunc(bits, IntType(self.L)) if self.L < bits.type.width else bits  # type: ignore[attr-defined]
        return b.bitcast(low, self.M)

    def put(self, b: Builder, x: Sequence[tuple[Value, Place]], existing: Value) -> None:
        """Store pairs (vector, place), in the existing columns only: all lanes, except in the last group."""
        if self.L == 1:  # a group is one column, and exists; to prefetch for each number would take as long as it saves
            for x1, (pointer, _) in x:
                self.store(b, x1, pointer)
            return
        for _, (pointer, ahead) in x:
            if ahead is not NOT_AHEAD:
                self.prefetch(b, pointer, ahead)
        full = b.icmp_unsigned("==", existing, Constant(existing.type, (1 << self.L) - 1))
        with b.if_else(full, likely=True) as (yes, no):
            with yes:
                for vector, (pointer, _) in x:
                    self.store(b, vector, pointer)
            with no:
                for vector, (pointer, _) in x:
                    self.store_masked(b, vector, pointer, self.mask(b, existing))

    def record(self, b: Builder, P: Value, dof: Value) -> Value:
        """Where a dof's numbers begin; they are L numbers apart."""
        group = b.sdiv(dof, I64(self.L))
        start = b.add(b.mul(group, I64(len(self.keys) * self.L)), b.srem(dof, I64(self.L)))
        return self.number(b, P, start)

    def group(self, b: Builder, P: Value, g: Value) -> Value:
        """Where a group's vectors begin."""
        return self.number(b, P, b.mul(g, I64(len(self.keys) * self.L)))

    def key_at(self, b: Builder, record: Value, key: Key) -> Value:
        return self.number(b, record, I64(self.offset[key] * self.L))

    def splat_from(self, b: Builder, record: Value, key: Key) -> Value:
        """One dof's number in all lanes."""
        return self.splat(b, self.load_number(b, self.key_at(b, record, key)))

    def places(self, b: Builder, table: Value, count: int) -> list[MatrixPlace]:
        """The places of matrices, from a table of three numbers for each."""

        def entry(k: int, typ: Type) -> Value:
            return b.load(b.gep(table, [I64(k)], source_etype=I64), typ=typ, align=8)

        return [MatrixPlace(entry(3 * m, PTR), entry(3 * m + 1, I64), entry(3 * m + 2, I64)) for m in range(count)]

    def entry(self, b: Builder, matrix: MatrixPlace, row: Value, column: Value) -> Place:
        """Where an entry of a matrix is."""
        line = b.gep(matrix.start, [b.mul(row, matrix.by_row)], source_etype=I8)
        return self.number(b, line, column), matrix.ahead

    def pairs(self, number: int, loop: Pairs) -> Function:
        """A function of (data, P, places of the matrices) that writes all entries."""
        return PairsCode(self, loop).emit(number)

    def sum(self, number: int, loop: Sum) -> Function:
        """A function of (data, P, places of the matrices) that adds the second matrix to the first.

        Blocks of L rows and columns are vectors, transposed in registers; what remains is added entry by entry.
        """
        f = self.function(f"sum{number}", [PTR] * 3)
        data, _, places = f.args
        b = begun(f)
        nv, L = self.slot(b, data, "nv"), I64(self.L)
        target, addend = self.places(b, places, 2)
        whole = b.mul(b.sdiv(nv, L), L)

        def at(matrix: MatrixPlace, r: Value, c: Value) -> Value:
            return self.entry(b, matrix, r, c)[0]

        def block(matrix: MatrixPlace, r: Value, c: Value) -> list[Value]:
            return [self.load(b, at(matrix, b.add(r, I64(k)), c)) for k in range(self.L)]

        with self.loop(b, I64(0), whole, self.L) as r, self.loop(b, I64(0), whole, self.L) as c:
            x = [b.fadd(y, z) for y, z in zip(block(target, r, c), block(addend, r, c), strict=True)]
            if loop.transposed:
                x = [b.fadd(y, z) for y, z in zip(x, transposed(b, block(addend, c, r)), strict=True)]
            for k, y in enumerate(x):
                self.store(b, y, at(target, b.add(r, I64(k)), c))
        with self.loop(b, I64(0), nv) as r:
            first = b.select(b.icmp_signed("<", r, whole), whole, I64(0))
            with self.loop(b, first, nv) as c:
                terms = [at(target, r, c), at(addend, r, c), *([at(addend, c, r)] if loop.transposed else [])]
                x, *others = (self.load_number(b, term) for term in terms)
                for y in others:
                    x = b.fadd(x, y)
                b.store(x, terms[0], align=self.bytes)
        b.ret_void()
        return f


class PairsCode:
    """Emits one loop over pairs."""

    def __init__(self, e: Columns, loop: Pairs | Triples) -> None:
        self.e, self.loop, self.n_out = e, loop, len(loop.matrices)

    def emit(self, number: int) -> Function:
        e = self.e
        f = e.function(f"pairs{number}", [PTR, PTR, PTR])
        data, self.P, places = f.args
        b = self.b = begun(f)
        self.open(data)
        starts, runs = e.slot(b, data, "pair_starts"), e.slot(b, data, "pair_runs")
        self.places = e.places(b, places, self.n_out)
        with e.loop(b, I64(0), self.nv, 2) as r:
            rows = self.two_rows(r)
            pair = b.udiv(r, I64(2))
            first, after = (e.integer(b, starts, b.add(pair, I64(k))) for k in range(2))
            with e.loop(b, first, after) as k:
                run = b.gep(runs, [b.mul(k, I64(RUN))], source_etype=I64)
                kind, g0, g1 = (e.integer(b, run, I64(j)) for j in range(RUN))
                cases = [
                    (NOTHING, lambda: self.zeros(rows, g0, g1)),
                    (WITHIN, lambda: self.run(rows, g0, g1, self.loop.within, 0)),
                    (ACROSS, lambda: self.run(rows, g0, g1, self.loop.across, 1)),
                    (MIXED, lambda: self.mixed(rows, g0, g1)),
                ]
                e.switch(b, kind, cases)
        b.ret_void()
        return f

    def open(self, data: Value) -> None:
        """Find what all loops over pairs read."""
        b, e = self.b, self.e
        self.groups, self.masks, self.nv = (e.slot(b, data, s) for s in ("groups", "pair_masks", "nv"))
        self.last = b.sub(self.nv, I64(1))

    def two_rows(self, r: Value) -> list[Value]:
        """Row r and the next. If the number of rows is odd, the last is computed twice, over its own runs."""
        b = self.b
        return [r, b.select(b.icmp_signed("<", r, self.last), b.add(r, I64(1)), r)]

    def bits(self, row: Value, g: Value, k: int) -> Value:
        """Mask number k of a row and a group."""
        b = self.b
        at = b.add(b.mul(b.add(b.mul(row, self.groups), g), I64(MASKS)), I64(k))
        return b.load(b.gep(self.masks, [at], source_etype=I16), typ=I16, align=2)

    def put(self, rows: Sequence[Value], g: Value, existing: Value, m: int, values: Sequence[Value]) -> None:
        """Store entries of matrix m in each row, in the existing columns."""
        b, e = self.b, self.e
        first = b.mul(g, I64(e.L))
        places = [e.entry(b, self.places[m], row, first) for row in rows]
        e.put(b, list(zip(values, places, strict=True)), existing)

    def zeros(self, rows: Sequence[Value], g0: Value, g1: Value) -> None:
        with self.e.loop(self.b, g0, g1) as g:
            self.nothing(rows, g)

    def nothing(self, rows: Sequence[Value], g: Value) -> None:
        """A group of zeros."""
        existing = self.bits(rows[0], g, 3)
        for m in range(self.n_out):
            self.put(rows, g, existing, m, [self.e.const(0.0)] * len(rows))

    def run(self, rows: Sequence[Value], g0: Value, g1: Value, of: Sequence[Expr], kind: int) -> None:
        """Groups of one kind for both rows. Each matrix is stored before the next begins, so that both rows and the few
        vectors of the group in use fit the registers."""
        b, e = self.b, self.e
        row_loaders = [self.row_loader(row, of) for row in rows]
        with e.loop(b, g0, g1) as g:
            masks = [e.mask(b, self.bits(row, g, kind)) for row in rows]
            existing = self.bits(rows[0], g, 3)
            for m, x in enumerate(of):
                group = self.group_loader(g)
                found = e.values(b, [x], *(self.by_role(load, group) for load in row_loaders))
                values = [b.select(k, y, e.const(0.0)) for k, (y,) in zip(masks, found, strict=True)]
                self.put(rows, g, existing, m, values)

    def mixed(self, rows: Sequence[Value], g0: Value, g1: Value) -> None:
        """Groups that have columns both above and below a row's dof, or of its own joint."""
        b, e, loop = self.b, self.e, self.loop
        nothing = e.const(0.0)
        with e.loop(b, g0, g1) as g:
            masks = [[e.mask(b, self.bits(row, g, k)) for k in (0, 1, 2, 4)] for row in rows]
            existing = self.bits(rows[0], g, 3)
            for m in range(self.n_out):
                wanted = [loop.within[m], loop.across[m], loop.extra[m], loop.own[m]]
                group = self.group_loader(g)
                found = e.values_apart(b, wanted, *(self.by_role(self.row_loader(row, wanted), group) for row in rows))
                values = []
                for (within, across, diagonal, own), (lower, upper, extra, same) in zip(masks, found, strict=True):
                    x = b.select(within, lower, b.select(across, upper, nothing))
                    x = x if loop.own[m] is loop.within[m] else b.select(own, same, x)
                    values.append(x if loop.extra[m].value == 0 else b.fadd(x, b.select(diagonal, extra, nothing)))
                self.put(rows, g, existing, m, values)

    # Loads

    def row_loader(self, row: Value, of: Sequence[Expr]) -> Callable[[Ref], Value]:
        """A loader of a row's record, which loads all of it now."""
        return self.splats(row, [ref for ref in self.e.loads(of) if ref.role == "row"]).__getitem__

    def splats(self, row: Value, refs: Sequence[Ref]) -> dict[Ref, Value]:
        """Numbers of one dof, in all lanes."""
        record = self.e.record(self.b, self.P, row)
        return {ref: self.e.splat_from(self.b, record, ref.key) for ref in refs if ref.key is not None}

    def group_loader(self, g: Value) -> Callable[[Ref], Value]:
        """A loader of a group's records, which loads each number once, when first needed."""
        group = self.e.group(self.b, self.P, g)
        known: dict[Ref, Value] = {}

        def load(ref: Ref) -> Value:
            if ref not in known:
                known[ref] = self.from_group(group, g, ref)
            return known[ref]

        return load

    def from_group(self, group: Value, g: Value, ref: Ref) -> Value:
        """A number of all dofs of group g, whose vectors begin at `group`."""
        assert ref.key is not None
        return self.e.load(self.b, self.e.key_at(self.b, group, ref.key))

    @staticmethod
    def by_role(row: Callable[[Ref], Value], group: Callable[[Ref], Value]) -> Callable[[Ref], Value]:
        return lambda ref: row(ref) if ref.role == "row" else group(ref)
