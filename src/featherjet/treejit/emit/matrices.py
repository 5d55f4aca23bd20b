"""LLVM for writing matrices: from lanes of samples to lanes of columns, and from there to the user's arrays."""

from __future__ import annotations

from ...jit.emit.border import AHEAD, Border
from ...jit.emit.lanes import I8, I32, I64, PTR, Function, PointerType, Value, begun, transposed
from ..program import MATRICES, Blocks, Output, Pairs, Responses, Sum, Torques, Triples
from ..tiles import tile_size
from .columns import Columns
from .tiles import HEAD
from .walks import Walks

LARGE = 1 << 16  # bytes; of larger matrices the next rows are prefetched, not the next samples
ROWS = 8  # rows to prefetch ahead


class MatrixOutput(Border):
    """The part of `RolledCode` that writes matrices; it declares the attributes it uses."""

    w: Walks
    c: Columns
    nv: Value
    rest: list[Value]  # the lengths of a matrix's or tensor's axes but the first
    area: Value
    P: Value
    own: Value
    inner_matrices: Value
    spare: Value
    matrices: dict[int, Function]
    tiles: dict[int, Function]
    spaces: dict[str, Value]
    joints: Value
    Q: Value
    block_area: Value
    blocks: Blocks | None
    block_function: Function | None

    def results(self) -> list[tuple[int, Output]]:
        raise NotImplementedError

    def dense(self, o: int) -> Value:
        raise NotImplementedError

    def emit_arrange(self) -> Function:
        """A function of (data, D, P, area) that moves each dof's numbers from lanes of samples to lanes of dofs."""
        w, C = self.w, self.c.L
        f = w.function("arrange", [PTR, PTR, PTR, I64])
        data, D, P, area = f.args
        b = begun(f)
        last = b.sub(w.slot(b, data, "nv"), I64(1))
        count = len(self.c.keys)
        with w.loop(b, I64(0), w.slot(b, data, "groups")) as g:
            records = []
            for j in range(C):
                dof = b.add(b.mul(g, I64(C)), I64(j))
                dof = b.select(b.icmp_signed("<", dof, last), dof, last)
                records.append(w.vector(b, D, b.mul(dof, I64(w.ND))))
            with w.loop(b, I64(0), I64(count)) as k:
                x = [w.load(b, w.vector(b, record, k)) for record in records]
                target = w.number(b, P, b.mul(b.add(b.mul(g, I64(count)), k), I64(C)))
                if w.L == 1:
                    for j in range(C):
                        w.store_unaligned(b, x[j], w.number(b, target, I64(j)))
                else:
                    for j in range(0, C, w.L):
                        for l, y in enumerate(transposed(b, x[j : j + w.L])):
                            w.store_unaligned(b, y, w.number(b, target, b.add(b.mul(area, I64(l)), I64(j))))
        b.ret_void()
        return f

    def inner(self) -> list[int]:
        """Matrices that are not results: the loops that follow read them."""
        loops = (loop for loop in self.w.program.loops if isinstance(loop, MATRICES))
        known = {out.matrix for _, out in self.results() if out.kind == "matrix"}
        return sorted({number for loop in loops for number in loop.matrices} - known)

    def write_matrices(self, lane: Value, samples: Value) -> None:
        """Write all matrices of one sample: directly, or through spare memory if rows are not contiguous."""
        b, w = self.b, self.w
        P = w.number(b, self.P, b.mul(self.area, lane))
        results = {out.matrix: o for o, out in self.results() if out.kind == "matrix"}
        width: Value = I64(w.bytes)
        for length in self.rest:
            width = b.mul(width, length)
        at: dict[int, tuple[Value, Value]] = {}
        for k, number in enumerate(self.inner()):
            at[number] = self.square(self.inner_matrices, k), width
        for k, (number, o) in enumerate(results.items()):
            dense = self.dense(o)
            start = b.select(dense, self.lane_pointer(o, lane), self.square(self.spare, k))
            at[number] = start, b.select(dense, self.strides[o][0], width)
        with b.goto_entry_block():
            places = b.alloca(I64, I32(3 * len(at)))
        for k, f in self.matrices.items():
            loop = self.w.program.loops[k]
            assert isinstance(loop, MATRICES)
            for m, number in enumerate(loop.matrices):
                start, by_row = at[number]
                ahead: Value = I64(0)
                if number in results and not isinstance(loop, Sum):
                    ahead = self.ahead(results[number], loop, samples)
                for j, x in enumerate((b.ptrtoint(start, I64), by_row, ahead)):
                    b.store(x, b.gep(places, [I64(3 * m + j)], source_etype=I64), align=8)
            b.call(f, [self.data, P, places, *([self.own] if isinstance(loop, Responses | Torques | Triples) else [])])
        for number, o in results.items():
            with b.if_then(b.not_(self.dense(o)), likely=False):
                self.scatter_matrix(o, at[number][0], self.lane_pointer(o, lane))

    def write_tiles(self) -> None:
        """Write all matrices of all lanes' samples at once: directly, or through spare memory if not contiguous."""
        b, w = self.b, self.w
        results = {out.matrix: o for o, out in self.results() if out.kind == "matrix"}
        width: Value = b.mul(self.nv, I64(w.bytes))
        at: dict[int, list[Value]] = {}  # of each matrix: bytes between rows, bytes ahead, where each lane's begins
        for k, number in enumerate(self.inner()):
            at[number] = [width, I64(0), *[self.square(self.inner_matrices, k)] * w.L]
        for k, (number, o) in enumerate(results.items()):
            dense, by_row = self.dense(o), self.strides[o][0]
            large = b.icmp_signed(">", b.mul(self.nv, by_row), I64(LARGE))
            near = b.mul(by_row, I64(tile_size(w.L)))  # the rows of the next tiles, or else the next samples
            ahead = b.select(large, near, b.mul(self.steps[o], I64(w.L)))
            starts = [
                b.select(dense, self.lane_pointer(o, I64(l)), self.square(self.spare, k * w.L + l)) for l in range(w.L)
            ]
            at[number] = [b.select(dense, by_row, width), ahead, *starts]
        with b.goto_entry_block():
            places = b.alloca(I64, I32((HEAD + w.L) * len(at)))
        for k, f in self.tiles.items():
            loop = self.w.program.loops[k]
            assert isinstance(loop, Pairs)
            for j, x in enumerate(x for number in loop.matrices for x in at[number]):
                x = b.ptrtoint(x, I64) if isinstance(x.type, PointerType) else x
                b.store(x, b.gep(places, [I64(j)], source_etype=I64), align=8)
            b.call(f, [self.data, self.spaces["D"], places])
        for number, o in results.items():
            with b.if_then(b.not_(self.dense(o)), likely=False):
                for l in range(w.L):
                    self.scatter_matrix(o, at[number][HEAD + l], self.lane_pointer(o, I64(l)))

    def block_operand(self) -> int:
        """The number of the operand that is a matrix of blocks."""
        return next(o for o, out in self.results() if out.kind == "blocks")

    def write_blocks(self, lane: Value) -> None:
        """Write the matrix of blocks of one sample, if there is one: directly, or through spare memory."""
        if self.blocks is None or self.block_function is None:
            return
        b, w, o = self.b, self.w, self.block_operand()
        P, Q = (w.number(b, at, b.mul(area, lane)) for at, area in ((self.P, self.area), (self.Q, self.block_area)))
        dense, target = self.dense(o), self.lane_pointer(o, lane)
        columns = b.mul(self.joints, I64(self.blocks.width))
        by_row = b.select(dense, self.strides[o][0], b.mul(columns, I64(w.bytes)))
        size = b.mul(self.nv, by_row)
        ahead = b.select(
            b.icmp_signed(">", size, I64(LARGE)), b.mul(by_row, I64(ROWS)), b.mul(self.steps[o], I64(AHEAD))
        )
        b.call(self.block_function, [self.data, P, Q, b.select(dense, target, self.spare), by_row, ahead])
        with b.if_then(b.not_(dense), likely=False):
            self.scatter_matrix(o, self.spare, target)

    def ahead(self, o: int, loop: Pairs | Responses | Torques | Triples, samples: Value) -> Value:
        """How many bytes ahead to prefetch: some samples, or the next rows or columns of large matrices.

        Prefetched memory must still be in the second-level cache when it is written. Of tensors instead: how many bytes
        all samples have.
        """
        b = self.b
        if isinstance(loop, Triples):
            return b.mul(b.mul(self.nv, self.strides[o][0]), samples)
        by_row = self.strides[o][0]
        rows = ROWS if isinstance(loop, Pairs) else self.c.L
        near = I64(self.c.bytes * (2 * self.c.L - 1)) if isinstance(loop, Responses) else b.mul(by_row, I64(rows))
        large = b.icmp_signed(">", b.mul(self.nv, by_row), I64(LARGE))
        return b.select(large, near, b.mul(self.steps[o], I64(AHEAD)))

    def square(self, base: Value, k: int) -> Value:
        """Matrix number k of those that begin at `base`."""
        b = self.b
        size = self.nv
        for length in self.rest:
            size = b.mul(size, length)
        return self.w.number(b, base, b.mul(size, I64(k)))

    def scatter_matrix(self, o: int, matrix: Value, target: Value) -> None:
        """Copy a matrix from spare memory to a target of any strides."""
        b, w = self.b, self.w

        def entry(index: Value, shift: Value) -> None:
            x = w.load_number(b, w.number(b, matrix, index))
            w.store_unaligned(b, x, b.gep(target, [shift], source_etype=I8))

        w.entries(b, [self.dimension(axis) for axis in self.operands[o].core], self.strides[o], entry)
