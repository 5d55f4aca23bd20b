"""LLVM for matrices of one sample, in which each lane is a column; here `Pairs`, in responses.py `Responses`.

What the walks kept for each dof has been arranged, for each sample, by groups of L dofs: P[group][number][dof].
So the records of a group of columns are plain vectors, the record of one dof is spread over the lanes, and a row's
entries are stored as they come. Masks, one byte for each (row, group), say which lanes are of which kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ir

from .graph import Expr
from .lanes import I8, I64, PTR, VOID, Lanes, Value, external
from .program import Key, Pairs, Program, Ref

MASKS = 4  # bytes for each (row, group) of pairs: within, across, diagonal, columns there are


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
