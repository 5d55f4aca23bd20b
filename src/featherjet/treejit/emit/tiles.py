"""LLVM for `Pairs` on several samples at once: tiles of some rows and columns, in which each lane is a sample.

All lanes compute the same entry of different samples, so none is idle. The entries of one row of a tile are transposed
in registers: then each vector holds entries of one sample, which are stored together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ...jit.emit.lanes import I8, I64, PTR, Constant, Function, Value, begun, transposed
from ...jit.graph import Expr
from ..program import Pairs, Ref
from ..tiles import ACROSS, DIAGONAL, MIXED, OWN, TILE_RUN, UNRELATED, WITHIN, tile_size
from .walks import Walks

HEAD = 2  # integers of each matrix in `places` before those of its lanes
LOADS = 3  # numbers to load for each prefetch: a tile has three or more times as many


class TilesCode:
    """Emits one loop over pairs; `registers`: how many vectors the CPU has registers for."""

    def __init__(self, w: Walks, loop: Pairs, registers: int) -> None:
        self.w, self.loop, self.n_out = w, loop, len(loop.matrices)
        self.T = tile_size(w.L)
        self.rows = min(self.T, max(1, registers // 2 // self.T))  # rows of a tile that are computed together

    def emit(self, number: int) -> Function:
        """A function of (data, D, places of the matrices) that writes all entries of all lanes' samples.

        places: for each matrix the bytes between rows, the bytes ahead to prefetch, and where each lane's begins.
        """
        w, T = self.w, self.T
        f = w.function(f"tiles{number}", [PTR] * 3)
        data, self.D, self.places = f.args
        b = self.b = begun(f)
        runs, self.codes = w.slot(b, data, "tile_runs"), w.slot(b, data, "tile_codes")
        self.by_row, self.ahead = (
            [w.integer(b, self.places, I64(m * (HEAD + w.L) + k)) for m in range(self.n_out)] for k in range(HEAD)
        )
        self.at = b.alloca(PTR, I64(self.n_out * w.L))
        self.entries = b.alloca(w.V, I64(self.n_out * T**2))
        self.entries.align = w.align  # type: ignore[attr-defined]
        with w.loop(b, I64(0), w.slot(b, data, "n_tile_runs")) as k:
            run = b.gep(runs, [b.mul(k, I64(TILE_RUN))], source_etype=I64)
            kind, row, first, end, codes = (w.integer(b, run, I64(j)) for j in range(TILE_RUN))
            self.point(row)
            cases = [
                (UNRELATED, lambda: self.zeros(first, end)),
                (WITHIN, lambda: self.run(row, first, end, self.loop.within)),
                (ACROSS, lambda: self.run(row, first, end, self.loop.across)),
                (MIXED, lambda: self.mixed(row, first, codes)),
            ]
            w.switch(b, kind, cases)
        b.ret_void()
        return f

    # Memory

    def point(self, row: Value) -> None:
        """Keep where a row begins in each lane's matrices."""
        b, w = self.b, self.w
        for m in range(self.n_out):
            shift = b.mul(row, self.by_row[m])
            for l in range(w.L):
                place = b.gep(self.places, [I64(m * (HEAD + w.L) + HEAD + l)], source_etype=I64)
                start = b.gep(b.load(place, typ=PTR, align=8), [shift], source_etype=I8)
                b.store(start, b.gep(self.at, [I64(m * w.L + l)], source_etype=PTR), align=8)

    def starts(self, m: int) -> list[Value]:
        """Where the tile's first row begins, in each lane's matrix m."""
        b, w = self.b, self.w
        pointers = [b.gep(self.at, [I64(m * w.L + l)], source_etype=PTR) for l in range(w.L)]
        return [b.load(pointer, typ=PTR, align=8) for pointer in pointers]

    def record(self, dof: Value) -> Value:
        return self.w.vector(self.b, self.D, self.b.mul(dof, I64(self.w.ND)))

    def shift(self, m: int, a: int, column: Value) -> Value:
        """Bytes from the beginning of a tile's first row to a column of its row number a."""
        b = self.b
        return b.add(b.mul(self.by_row[m], I64(a)), b.mul(column, I64(self.w.bytes)))

    def put(self, m: int, starts: Sequence[Value], a: int, column: Value, x: Sequence[Value]) -> None:
        """Store entries of each lane, from a column on, in row number a of the tile."""
        b, w, shift = self.b, self.w, self.shift(m, a, column)
        for start, y in zip(starts, x, strict=True):
            w.store_unaligned(b, y, b.gep(start, [shift], source_etype=I8))

    def fetches(self, m: int, starts: Sequence[Value], column: Value) -> Iterator[None]:
        """Prefetches what is `ahead` of each row of a tile, for each lane, one at each step.

        One for each half of a line, spread over the tile: measured faster than one for each line, and than all at once.
        """
        b, w = self.b, self.w
        for a in range(self.T):
            shift = b.add(self.shift(m, a, column), self.ahead[m])
            for start in starts:
                yield w.prefetch(b, start, shift)

    # Runs

    def zeros(self, first: Value, end: Value) -> None:
        w, T = self.w, self.T
        nothing = Constant(w.kind.vector(T), [0.0] * T)
        for m in range(self.n_out):
            starts = self.starts(m)
            with w.loop(self.b, first, end, T) as column:
                for _ in self.fetches(m, starts, column):
                    pass
                for a in range(T):
                    self.put(m, starts, a, column, [nothing] * w.L)

    def run(self, row: Value, first: Value, end: Value, of: Sequence[Expr]) -> None:
        """Tiles whose entries are all of one kind, some rows at a time. A matrix is written to the run's end before the
        next begins, so that the memory of few rows is fetched at once."""
        b, w, T = self.b, self.w, self.T
        above = self.record(row)
        for m, x in enumerate(of):
            starts = self.starts(m)
            with w.loop(b, first, end, T) as column:
                left, fetches = self.record(column), self.fetches(m, starts, column)
                for a in range(0, T, self.rows):
                    rows = range(a, a + self.rows)
                    load = self.loader(above, left, fetches)
                    found = w.values(b, [x], *(partial(load, i=i, j=j) for i in rows for j in range(T)))
                    for k, i in enumerate(rows):
                        self.put(m, starts, i, column, transposed(b, [y for (y,) in found[k * T : (k + 1) * T]]))
                for _ in fetches:
                    pass

    def loader(self, above: Value, left: Value, fetches: Iterator[None] | None = None) -> Callable[..., Value]:
        """Loads the numbers of dofs i and j after a tile's first row and column, each once, when first needed.

        Every few loads it takes a step of `fetches`.
        """
        b, w = self.b, self.w
        known: dict[tuple, Value] = {}

        def load(ref: Ref, i: int = 0, j: int = 0) -> Value:
            assert ref.key is not None
            base, k = (above, i) if ref.role == "row" else (left, j)
            at = k * w.ND + w.offset[ref.key]
            if (ref.role, at) not in known:
                known[ref.role, at] = w.load(b, w.vector(b, base, I64(at)))
                if fetches is not None and len(known) % LOADS == 0:
                    next(fetches, None)
            return known[ref.role, at]

        return load

    def mixed(self, row: Value, column: Value, codes: Value) -> None:
        """One tile, entry by entry."""
        b, w, T = self.b, self.w, self.T
        with w.loop(b, I64(0), I64(T)) as i, w.loop(b, I64(0), I64(T)) as j:
            above, left = self.record(b.add(row, i)), self.record(b.add(column, j))
            at = b.add(b.mul(i, I64(T)), j)

            def case(values: Sequence[Expr], extra: Sequence[Expr]) -> None:
                load = self.loader(above, left)
                (found,), (added,) = w.values_apart(b, values, load), w.values_apart(b, extra, load)
                for m, x in enumerate(found):
                    x = b.fadd(x, added[m]) if added and extra[m].value != 0 else x
                    w.store(b, x, w.vector(b, self.entries, b.add(at, I64(m * T**2))))

            code = b.load(b.gep(self.codes, [b.add(codes, at)], source_etype=I8), typ=I8, align=1)
            w.switch(
                b, b.zext(code, I64), [(k, lambda of=of, extra=extra: case(of, extra)) for k, of, extra in self.kinds()]
            )
        for m in range(self.n_out):
            starts = self.starts(m)
            for _ in self.fetches(m, starts, column):
                pass
            for i in range(T):
                first = (m * T + i) * T
                values = [w.load(b, w.vector(b, self.entries, I64(first + j))) for j in range(T)]
                self.put(m, starts, i, column, transposed(b, values))

    def kinds(self) -> list[tuple[int, Sequence[Expr], Sequence[Expr]]]:
        """The expressions of each kind of entry, one for each matrix, and what to add to them."""
        loop = self.loop
        nothing = [self.w.graph.const(0.0)] * self.n_out
        return [
            (UNRELATED, nothing, ()),
            (WITHIN, loop.within, ()),
            (ACROSS, loop.across, ()),
            (OWN, loop.own, ()),
            (DIAGONAL, loop.own, loop.extra),
        ]
