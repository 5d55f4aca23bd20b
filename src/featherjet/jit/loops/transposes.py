"""The schedule of transposes C = A^T: blocks in registers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ..emit.lanes import I64, Value, transposed
from .index import Index
from .program import ArrayPart, LaneRole, ScheduledTranspose


class TransposeCode:
    """Emits one transpose at a place of a function's code (`lower.FunctionCode`)."""

    def __init__(self, code: Any, s: ScheduledTranspose) -> None:
        self.code, self.s, self.b, self.w = code, s, code.b, code.w

    def emit(self) -> None:
        code, b, L = self.code, self.b, self.w.L
        with ExitStack() as stack:
            code.scope(stack)
            m, n = (code.integer(x) for x in self.s.sizes)
            if L == 1 or code.function.arrays[self.s.target.array].lanes is LaneRole.SAMPLES:
                self.over(I64(0), m, I64(0), n, 1, self.entry)
                return
            rows, columns = (b.and_(x, I64(-L)) for x in (m, n))
            self.over(I64(0), rows, I64(0), columns, L, self.block)
            self.over(I64(0), rows, columns, n, 1, self.entry)
            self.over(rows, m, I64(0), n, 1, self.entry)

    def over(
        self, row: Value, m: Value, column: Value, n: Value, step: int, body: Callable[[Index, Index], None]
    ) -> None:
        """body(i, j) for places of the target."""
        with self.code.looping(row, m, step) as i, self.code.looping(column, n, step) as j:
            body(i, j)

    def block(self, i: Index, j: Index) -> None:
        """L rows and columns; entries that follow each other are loaded and stored together."""
        w, b = self.w, self.b
        x = [b.load(self.pointer(self.s.source, j + k, i), typ=w.V, align=w.bytes) for k in range(w.L)]
        for k, y in enumerate(transposed(b, x)):
            b.store(y, self.pointer(self.s.target, i + k, j), align=w.bytes)

    def entry(self, i: Index, j: Index) -> None:
        w, b = self.w, self.b
        samples = self.code.function.arrays[self.s.target.array].lanes is LaneRole.SAMPLES
        kind, align = (w.V, w.align) if samples else (w.N, w.bytes)
        x = b.load(self.pointer(self.s.source, j, i), typ=kind, align=align)
        b.store(x, self.pointer(self.s.target, i, j), align=align)

    def pointer(self, part: ArrayPart, row: Index, column: Index) -> Value:
        at = part.offset + part.strides[0] * row + part.strides[1] * column
        return self.code.address(self.code.function.arrays[part.array], at)
