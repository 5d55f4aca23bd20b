"""LLVM for a rolled program: runs its loops for each group of samples, and writes the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...jit.effort import Effort
from ...jit.emit.border import Operand, emit_entry
from ...jit.emit.lanes import I1, I64, Builder, Function, Value
from ...jit.emit.platform import Platform
from ...jit.number import DOUBLE, Number
from ...jit.objects import ModuleText, sources
from ..program import (
    MATRICES,
    Blocks,
    GripLoop,
    Output,
    Pairs,
    Program,
    Responses,
    RowLoop,
    Sum,
    Torques,
    Triples,
    Walk,
)
from ..results import MATRICES as MATRIX_KINDS
from ..results import traced_results
from ..tiles import samples_at_once, tile_size
from ..walks import MemoryLayout
from .blocks import emit_block_columns, emit_blocks, padded
from .columns import Columns
from .matrices import MatrixOutput
from .responses import ResponsesCode
from .tiles import TilesCode
from .torques import TorquesCode
from .triples import TriplesCode
from .walks import ContactWalks, Walks

OWN = (Responses, Torques, Triples)  # loops that have scratch memory of their own


def emit_rolled(
    program: Program,
    operands: Sequence[Operand],
    lanes: int,
    platform: Platform,
    kind: Number,
    effort: Effort = Effort.FULL,
) -> Iterator[ModuleText]:
    """Modules with an `entry` that treats batches some samples at a time, `lanes` at most, and a few one by one.

    Code for one sample has only the latter, that for short batches only the former.
    """
    module = platform.module("kernel")
    columns = Columns(module, program, lanes, kind)
    matrices = {k: emit_matrices(columns, k, x) for k, x in enumerate(program.loops) if isinstance(x, MATRICES)}
    blocks = next((emit_blocks(columns, loop) for loop in program.loops if isinstance(loop, Blocks)), None)
    W = walks_of(program)
    several = samples_at_once(lanes, kind) if matrices and not blocks else lanes
    layout = MemoryLayout(program, W.spaces, settles=kind is DOUBLE)
    one, some = W(module, layout, 1, kind), W(module, layout, several, kind)
    tiles = {} if effort is Effort.ONE else emit_tiles(some, lanes)
    few = many = None
    if effort is not Effort.BATCHES or tiles:  # small robots have no tiles
        few = RolledCode(one, columns, matrices, blocks, operands).emit()
    if effort is not Effort.ONE:
        many = RolledCode(some, columns, matrices, blocks, operands, tiles).emit()

    def too_small(b: Builder, data: Value) -> Value:
        """Whether the robot has fewer dofs than a tile."""
        return b.icmp_signed("<", one.slot(b, data, "nv"), I64(tile_size(several)))

    apart = bool(program.watched) or W is not Walks
    if many is None or few is None:
        emit_entry(module, many or few, apart=apart)  # type: ignore[arg-type]
    else:
        emit_entry(module, many, few, several, too_small if tiles else None, apart)
    return sources(module)


def emit_tiles(w: Walks, lanes: int) -> dict[int, Function]:
    """The functions of loops over pairs on several samples, if there are no other loops that compute matrices."""
    loops = {k: loop for k, loop in enumerate(w.program.loops) if isinstance(loop, (*MATRICES, Blocks))}
    registers = 32 if lanes > w.L else 16  # half registers of AVX-512, else whole ones of AVX
    tiled = {k: loop for k, loop in loops.items() if isinstance(loop, Pairs)}
    return {k: TilesCode(w, loop, registers).emit(k) for k, loop in tiled.items()} if len(tiled) == len(loops) else {}


def walks_of(program: Program) -> type[Walks]:
    """What a program walks over."""
    return ContactWalks if any(isinstance(loop, GripLoop) for loop in program.loops) else Walks


def emit_matrices(columns: Columns, number: int, loop: Pairs | Responses | Torques | Sum | Triples) -> Function:
    """The function of a loop that computes matrices of one sample."""
    if isinstance(loop, Pairs):
        return columns.pairs(number, loop)
    return columns.sum(number, loop) if isinstance(loop, Sum) else travelling(columns, loop).emit(number)


def travelling(columns: Columns, loop: Responses | Torques | Triples) -> ResponsesCode | TorquesCode | TriplesCode:
    """The code of a loop that has scratch memory: its lanes go up to the root and out again, or it makes tensors."""
    if isinstance(loop, Triples):
        return TriplesCode(columns, loop)
    return ResponsesCode(columns, loop) if isinstance(loop, Responses) else TorquesCode(columns, loop)


class RolledCode(MatrixOutput):
    """The loops of a program for one number of lanes."""

    w: Walks

    def __init__(
        self,
        walks: Walks,
        columns: Columns,
        matrices: dict[int, Function],
        blocks: Function | None,
        operands: Sequence[Operand],
        tiles: dict[int, Function] | None = None,
    ) -> None:
        super().__init__(walks, operands, list(walks.program.inputs))
        self.tiles = tiles or {}
        self.c, self.matrices, self.program = columns, matrices, walks.program
        self.block_function = blocks
        self.blocks = next((loop for loop in self.program.loops if isinstance(loop, Blocks)), None)

    def emit(self, name: str = "samples") -> Function:
        loops = enumerate(self.program.loops)
        self.calls = [self.w.emit(k, loop) for k, loop in loops if isinstance(loop, Walk | GripLoop | RowLoop)]
        axes = [self.operands[o].core for o in self.outputs()]
        results = traced_results(self.w.layout, axes)
        self.write_results = results and self.w.lowering.emit(results)
        if (self.matrices or self.blocks) and not self.tiles:
            self.arrange = self.emit_arrange()
        if self.blocks:
            self.block_columns = emit_block_columns(self.w, self.blocks, self.c.L)
        return super().emit(name)

    def compute(self, samples: Value, s: Value) -> None:
        b, w, L = self.b, self.w, self.w.L
        if w.counts["G"]:
            sums = w.sums(b, self.data, self.spaces["D"])
            for k in range(w.counts["G"]):
                w.store(b, w.const(0.0), w.vector(b, sums, I64(k)))
        for walk in self.calls:
            b.call(walk, [self.data, self.report, *self.spaces.values(), *self.inputs])
        if self.program.watched:
            with w.loop(b, I64(0), self.nv) as k:
                at = b.add(b.mul(k, I64(w.ND)), I64(w.offset[self.program.watched]))
                self.watch(w.load(b, w.vector(b, self.spaces["D"], at)))
        self.write_vectors()
        if self.blocks:
            b.call(self.block_columns, [self.data, self.spaces["J"], self.Q, self.block_area])
        if self.tiles:
            self.write_tiles()
        elif self.matrices or self.blocks:
            b.call(self.arrange, [self.data, self.spaces["D"], self.P, self.area])
            left = b.sub(samples, s)
            with w.loop(b, I64(0), b.select(b.icmp_signed("<", left, I64(L)), left, I64(L))) as lane:
                self.write_matrices(lane, samples)
                self.write_blocks(lane)

    def write_vectors(self) -> None:
        """Write the results that are no matrices; those of one sample directly where they are contiguous."""
        b, vectors = self.b, self.vectors
        if self.w.L == 1:
            vectors = {o: b.select(self.flat(o), self.lane_pointer(o, I64(0)), x) for o, x in vectors.items()}
        if self.write_results:
            own = [self.data, self.report, *self.spaces.values(), *self.inputs, *vectors.values()]
            b.call(self.write_results, own)
        for o, x in vectors.items():
            if self.w.L > 1:
                self.write_lanes(x, o)
                continue
            with b.if_then(b.not_(self.flat(o)), likely=False):
                self.write_entries(x, o)

    def scratch(self, samples: Value) -> Value:
        """One allocation for J, D, the inputs, P, the columns' scratch, and matrices that are not written directly."""
        b, w = self.b, self.w
        self.joints, self.nq, self.nv = (w.slot(b, self.data, s) for s in ("joints", "nq", "nv"))
        groups = w.slot(b, self.data, "groups")
        tensors = any(isinstance(loop, Triples) for loop in self.program.loops)
        self.rest = [self.nv, self.nv] if tensors else [self.nv]
        self.area = I64(0) if self.tiles else self.product(groups, I64(self.c.L * len(self.c.keys)))
        own = I64(0)
        for loop in self.program.loops:
            if isinstance(loop, OWN):
                by_joint, by_dof = travelling(self.c, loop).sizes()
                parts = self.product(self.joints, I64(by_joint)), self.product(groups, I64(self.c.L * by_dof))
                own = self.product(self.checked("sadd", *parts), I64(self.c.L))
            if isinstance(loop, Triples):
                own = self.checked("sadd", own, self.product(self.nv, self.nv, I64(len(loop.matrices))))
        self.sizes = [self.count(x.core) for x in self.operands if x.name in self.names and not x.output]
        inputs = [self.product(size, I64(w.L)) for size in self.sizes]
        matrices = [o for o, out in self.results() if out.kind == "matrix"]
        square = self.product(self.nv, *self.rest, I64(len(matrices) * (w.L if self.tiles else 1)))
        spare = I64(0)
        for o in matrices:
            spare = b.select(self.dense(o), spare, square)
        self.block_area = I64(0)
        if self.blocks:
            o = self.block_operand()
            self.block_area = self.product(
                I64(len(self.blocks.keys[0])), padded(w, b, self.data, self.blocks, self.c.L)
            )
            columns = self.product(self.joints, I64(self.blocks.width))
            spare = b.select(self.dense(o), spare, self.product(self.nv, columns))
        inner = self.product(self.nv, self.nv, I64(len(self.inner())))
        areas = {name: self.product(count, I64(w.L)) for name, count in w.areas(b, self.data).items()}
        columns = [self.product(area, I64(w.L)) for area in (self.area, self.block_area)]
        vectors = [o for o, out in self.results() if out.kind not in MATRIX_KINDS]
        results = [self.product(self.count(self.operands[o].core), I64(w.L)) for o in vectors]
        counts = [*columns, own, inner, spare, *areas.values(), *inputs, *results]
        memory, pieces = self.allocate(counts)
        self.P, self.Q, self.own, self.inner_matrices, self.spare, *rest = pieces
        self.spaces = dict(zip(areas, rest, strict=False))
        rest = rest[len(areas) :]
        self.inputs, self.vectors = rest[: len(inputs)], dict(zip(vectors, rest[len(inputs) :], strict=True))
        return memory

    def dimension(self, name: int | str) -> Value:
        return self.w.dimension(self.b, self.data, name)

    def normalise(self) -> None:
        """Normalise quaternions and cosine-sine pairs, which the tables list."""
        b, w = self.b, self.w
        units = w.slot(b, self.data, "units")
        for name in (name for name, entries in self.program.inputs.items() if entries == "coordinates"):
            q = self.inputs[self.names.index(name)]
            with w.loop(b, I64(0), w.slot(b, self.data, "n_units")) as u:
                start, size = (w.integer(b, units, b.add(b.mul(u, I64(2)), I64(k))) for k in range(2))
                self.normalise_part(q, start, b.add(start, size))

    def results(self) -> list[tuple[int, Output]]:
        """(index of the operand, Output) of each result."""
        return list(zip(self.outputs(), self.program.outputs, strict=True))

    def dense(self, o: int) -> Value:
        """Whether a row's entries are contiguous."""
        b, size = self.b, I64(self.w.bytes)
        contiguous: Value = I1(1)
        for name, stride in zip(reversed(self.operands[o].core[1:]), reversed(self.strides[o][1:]), strict=True):
            contiguous = b.and_(contiguous, b.icmp_signed("==", stride, size))
            size = b.mul(size, self.dimension(name))
        return contiguous
