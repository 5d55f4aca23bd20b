"""LLVM for functions that bring samples into lanes and back.

Samples of an operand begin at the pointers of an array, one for each lane. Kernels with few operands have these
functions inlined, which saves a few nanoseconds; in others they have the same text everywhere, and compile once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .lanes import (
    I8,
    I32,
    I64,
    PTR,
    Builder,
    Constant,
    Lanes,
    Type,
    Undefined,
    Value,
    begun,
    shuffled,
    transposed,
)

FEW = 7  # operands


class Transfers:
    """Makes the functions of a module for one number of lanes, each when first asked for."""

    def __init__(self, w: Lanes, inline: bool) -> None:
        self.w, self.inline = w, inline

    def _once(self, name: str, args: Sequence[Type], body: Callable[..., None]) -> Any:
        whole = f"{name}_{self.w.L}"
        if whole in self.w.module.globals:
            return self.w.module.globals[whole]
        f = self.w.function(name, args, inline=self.inline)
        b = begun(f)
        body(b, *f.args)
        b.ret_void()
        return f

    def lane(self, b: Builder, lanes: Value, l: Value | int) -> Value:
        """Where a lane's sample begins."""
        return b.load(b.gep(lanes, [I64(l) if isinstance(l, int) else l], source_etype=PTR), typ=PTR)

    # Inputs

    def read(self) -> Any:
        """(lanes, size, target, total): read contiguous numbers, and add them, scaled, to the total.

        The total of numbers that are not finite, or large, is not finite.
        """
        return self._once("read", [PTR, I64, PTR, PTR], self._read)

    def _read(self, b: Builder, lanes: Value, size: Value, target: Value, total: Value) -> None:
        """L numbers of L samples at a time; the last time, fewer numbers."""
        w = self.w
        begins = [self.lane(b, lanes, l) for l in range(w.L)]
        store, end = self._checking(b, total)
        full = b.and_(size, I64(-w.L))
        with w.loop(b, I64(0), full, w.L) as k:
            x = [b.load(w.number(b, begin, k), typ=w.V, align=w.bytes) for begin in begins]
            for j, y in enumerate(transposed(b, x)):
                store(y, w.vector(b, target, b.add(k, I64(j))))
        rest = b.sub(size, full)
        with b.if_then(b.icmp_signed(">", rest, I64(0))):
            mask = w.first_lanes(b, rest)
            x = [w.load_masked(b, w.number(b, begin, full), mask) for begin in begins]
            for j, y in enumerate(transposed(b, x, first=True)[: w.L - 1]):
                with b.if_then(b.icmp_signed("<", I64(j), rest)):
                    store(y, w.vector(b, target, b.add(full, I64(j))))
        end()

    def gather(self, axes: int) -> Any:
        """(lanes, target, total, lengths..., strides...): the same for numbers of any layout, one by one."""

        def body(b: Builder, lanes: Value, target: Value, total: Value, *layout: Value) -> None:
            w = self.w
            store, end = self._checking(b, total)

            def entry(index: Value, shift: Value) -> None:
                x: Value = Constant(w.V, Undefined)
                for l in range(w.L):
                    number = w.load_number(b, b.gep(self.lane(b, lanes, l), [shift], source_etype=I8))
                    x = b.insert_element(x, number, I32(l)) if w.L > 1 else number
                store(x, w.vector(b, target, index))

            self.w.entries(b, layout[:axes], layout[axes:], entry)
            end()

        return self._once(f"gather{axes}", [PTR, PTR, PTR, *[I64] * (2 * axes)], body)

    def _checking(self, b: Builder, total: Value) -> tuple[Callable[[Value, Value], None], Callable[[], None]]:
        """What stores a vector and adds it to a sum, and what adds that sum to the total at the end."""
        w, scale, own = self.w, self.w.const(self.w.kind.overflowing), self.w.cell(b)
        w.store(b, w.load(b, total), own)  # LLVM keeps the sum in a register

        def store(x: Value, target: Value) -> None:
            w.store(b, x, target)
            w.store(b, b.fadd(w.load(b, own), b.fmul(x, scale)), own)

        return store, lambda: w.store(b, w.load(b, own), total)

    # Results

    def write(self) -> Any:
        """(source, targets, ahead, table, count): write groups of L entries of L samples, some of them zero.

        The table has where runs of numbers, zeros, numbers, ... begin. ahead: bytes from what is written to what is
        fetched for later.
        """
        return self._once("write", [PTR, PTR, I64, PTR, I64], self._write)

    def _write(self, b: Builder, source: Value, targets: Value, ahead: Value, table: Value, count: Value) -> None:
        w, L = self.w, self.w.L
        begins = [self.lane(b, targets, l) for l in range(L)]

        def put(k: Value, rows: Sequence[Value]) -> None:
            for x, begin in zip(rows, begins, strict=True):
                pointer = w.number(b, begin, k)
                w.prefetch(b, pointer, ahead)
                w.store_unaligned(b, x, pointer)

        with w.loop(b, I64(0), b.sub(count, I64(1)), 2) as r:
            start, middle, end = (w.integer(b, table, b.add(r, I64(j))) for j in range(3))
            with w.loop(b, start, middle, L) as k:
                put(k, transposed(b, [w.load(b, w.vector(b, source, b.add(k, I64(j)))) for j in range(L)]))
            with w.loop(b, middle, end, L) as k:
                put(k, [w.const(0.0)] * L)

    def write_rest(self, count: int) -> Any:
        """(source, targets, first): write the last entries, fewer than L."""

        def body(b: Builder, source: Value, targets: Value, first: Value) -> None:
            w, L = self.w, self.w.L
            last = [w.load(b, w.vector(b, source, b.add(first, I64(k)))) for k in range(count)]
            rows = transposed(b, [*last, *[Constant(w.V, Undefined)] * (L - count)])
            for l, x in enumerate(rows):
                store_first(b, x, count, w.number(b, self.lane(b, targets, l), first), w)

        return self._once(f"write_rest{count}", [PTR, PTR, I64], body)

    def scatter(self, axes: int) -> Any:
        """(staged samples, numbers from one to the next, lanes, count, lengths..., strides...): write results of any
        layout, number by number."""

        def body(b: Builder, stage: Value, size: Value, lanes: Value, count: Value, *layout: Value) -> None:
            w = self.w
            with w.loop(b, I64(0), count) as l:
                sample, target = w.number(b, stage, b.mul(l, size)), self.lane(b, lanes, l)

                def entry(index: Value, shift: Value) -> None:
                    x = w.load_number(b, w.number(b, sample, index))
                    w.store_unaligned(b, x, b.gep(target, [shift], source_etype=I8))

                self.w.entries(b, layout[:axes], layout[axes:], entry)

        return self._once(f"scatter{axes}", [PTR, I64, PTR, I64, *[I64] * (2 * axes)], body)


def store_first(b: Builder, x: Value, count: int, pointer: Value, w: Lanes) -> None:
    """Store the first lanes of a vector, in pieces of four, two and one, or the like."""
    at = 0
    while at < count:
        size = 1 << ((count - at).bit_length() - 1)
        piece = shuffled(b, x, x, range(at, at + size)) if size > 1 else b.extract_element(x, I32(at))
        w.store_unaligned(b, piece, w.number(b, pointer, I64(at)))
        at += size
