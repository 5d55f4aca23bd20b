"""The loop language on NumPy arrays, which is its definition.

An algorithm with loops is a plain function f(t, arrays..., sizes...) over generic scalars. With `ArrayLoops` as t it
runs at once; with a `jit.loops.trace.Tracer` as t it becomes a program, and machine code. It must not branch on values:
what depends on values says so by `where_less`, by `when` and `until` for blocks, and what depends on integers by
`cases`.

    for i in t.loop(n): ...                   i = 0, ..., n - 1; with start, step, or downwards
    for c in t.columns(n): ...                all columns of a row at once: A[i, c] = A[i, c] - l * A[k, c]
    for _ in t.until(lambda: (a, b), most):   again while a < b in any lane, at most so often, at least once
    for _ in t.when(a, b): ...                if a < b: integers, or numbers in any lane
    for k in t.cases(i, numbers): ...         the one of these integers that i is
    x = t.cell(0.0);  x[0] = x[0] + 1.0       a variable
    t.product(C, A, B, (m, n, k))             C = A^T B, and the like, by the best schedule there is
    t.transpose(C, A, (m, n))                 C = A^T
    t.call(f, *arguments)                     f(t, *arguments) as a function of its own
    t.watch(x)                                tell the caller where x is not clearly positive

Numbers of several samples lie in the last axis of an array. Python's own `range` unrolls a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np


class LoopArray:
    """An array as the loop language sees it: `axes` of it are indexed, what is left lies in lanes.

    Fewer indices give a part, of which stores go to the whole; as many give a value of its own.
    """

    def __init__(self, values: Any, axes: int | None = None) -> None:
        self.values: Any = np.asarray(values)
        self.axes = self.values.ndim if axes is None else axes

    def __getitem__(self, index: Any) -> Any:
        found = self.values[index]
        count = len(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else 1
        if count < self.axes:
            return LoopArray(found, self.axes - count)
        return found.copy() if found.ndim else found[()]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.values[index] = value

    def beyond(self, *first: int) -> LoopArray:
        """The part that begins at `first`."""
        return LoopArray(self.values[tuple(slice(k, None) for k in first)], self.axes)

    @property
    def T(self) -> LoopArray:
        """The transpose of a matrix."""
        return LoopArray(np.swapaxes(self.values, 0, 1), self.axes)

    def matrix(self, width: int) -> LoopArray:
        """A vector as a matrix: rows of `width` entries that follow each other, as far as there are whole rows."""
        count = len(self.values) // width
        return LoopArray(self.values[: count * width].reshape(count, width, *self.values.shape[1:]), 2)

    @property
    def rows(self) -> LoopArray:
        """As a matrix: the first axis, and all others as one, whose entries follow each other."""
        lengths = self.values.shape
        return LoopArray(self.values.reshape(lengths[0], -1, *lengths[self.axes :]), 2)

    @property
    def row(self) -> LoopArray:
        """A vector as a matrix of one row."""
        return LoopArray(self.values[None], 2)


class Cells:
    """Variables, each with a value of its own in every lane, or in every column."""

    def __init__(self, count: int, x: Any) -> None:
        self.values = [x] * count

    def __getitem__(self, k: int) -> Any:
        return self.values[k]

    def __setitem__(self, k: int, value: Any) -> None:
        self.values[k] = value


class ArrayLoops:
    """The handle t of the loop language on arrays; `lanes`: the shape of a number, () or (samples,)."""

    def __init__(self, lanes: tuple[int, ...] = (), margin: float = 0.0, dtype: Any = float) -> None:
        self.lanes, self.margin, self.dtype = lanes, margin, dtype
        self.flagged = False  # whether a watched number was not clearly positive

    def loop(self, n: int, start: int = 0, step: int = 1, down: bool = False) -> Iterator[int]:
        """The integers from `start` on and below n; downwards from the last of them."""
        indices = range(start, n, step)
        yield from reversed(indices) if down else indices

    def columns(self, n: int) -> Iterator[slice]:
        """The columns of a row, 0 to n - 1, which do not depend on each other."""
        yield slice(0, n)

    def until(self, unsettled: Callable[[], tuple[Any, Any]], most: int) -> Iterator[int]:
        """Again while unsettled() gives a < b, or NaN, in any lane; the first time in any case."""
        for k in range(most):
            yield k
            a, b = unsettled()
            if np.all(np.real(a) >= np.real(b)):
                return

    def when(self, a: Any, b: Any) -> Iterator[None]:
        """Once if a < b in any lane."""
        if np.any(np.real(a) < np.real(b)):
            yield None

    def cases(self, index: int, numbers: int | Sequence[int]) -> Iterator[int]:
        """The case that an integer is, one of some numbers or below a count."""
        if index not in (range(numbers) if isinstance(numbers, int) else numbers):
            raise IndexError(f"{index} is not one of the cases {numbers}")
        yield int(index)

    def number(self, x: float) -> Any:
        """A number, in all lanes."""
        return np.full(self.lanes, x, self.dtype)[()]

    def cell(self, x: Any) -> Cells:
        """A variable, which begins as x: read and write it as cell[0]."""
        return self.cells(1, x)

    def cells(self, count: int, x: Any = 0.0) -> Cells:
        """Some variables."""
        return Cells(count, self.number(0.0) + x)

    def product(
        self,
        C: LoopArray,
        A: LoopArray,
        B: LoopArray,
        sizes: tuple[int, int, int],
        start: LoopArray | None = None,
        plus: bool = True,
        upper: bool = False,
    ) -> None:
        """C = start + A^T B with A (k, m), B (k, n), C (m, n) and sizes (m, n, k); no start counts as zero.

        plus: or start - A^T B; upper: entries of C below the diagonal may have any value.
        """
        m, n, depth = sizes
        a, b = A.values[:depth, :m], B.values[:depth, :n]
        found = np.einsum("km...,kn...->mn...", a, b)
        before = 0.0 if start is None else start.values[:m, :n]
        C.values[:m, :n] = before + found if plus else before - found

    def transpose(self, C: LoopArray, A: LoopArray, sizes: tuple[int, int]) -> None:
        """C = A^T with C (m, n), A (n, m) and sizes (m, n); they lie apart."""
        m, n = sizes
        C.values[:m, :n] = np.swapaxes(A.values[:n, :m], 0, 1)

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """function(t, *arguments)."""
        function(self, *arguments)

    def watch(self, x: Any) -> None:
        """Flag a number that is not clearly positive, or not a number."""
        self.flagged |= not np.all(np.real(x) > self.margin)
