"""Random functions of the loop language: machine code and the interpreter of programs against their definition.

Every statement keeps numbers within [-1, 1] and moves by no more than its operands do, so that results of any program
are known to a few roundings for each statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featherjet.jit.engine import target, targets
from featherjet.jit.loops.emit import trace
from featherjet.jit.loops.interpret import interpret
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.math.scalars import sincos, sqrt, where_less

TOLERANCE = {"float64": 1e-12, "float32": 1e-3}  # some thousand roundings
VALUES: dict[str, tuple[int, Callable[..., Any]]] = {
    "mean": (2, lambda x, y: 0.5 * (x + y)),
    "half the difference": (2, lambda x, y: 0.5 * (x - y)),
    "half the product": (2, lambda x, y: 0.5 * (x * y)),
    "share": (2, lambda x, y: 0.5 * x / (2.0 + y)),
    "root": (1, lambda x: 0.5 * sqrt(2.0 + x)),
    "sine": (1, lambda x: sincos(x)[0]),
    "cosine": (1, lambda x: sincos(x)[1]),
    "weighted": (3, lambda x, y, z: (x + y + z) / 3.0),
    "minus": (1, lambda x: -x),
}
STATEMENTS = ("store", "store", "store", "loop", "columns", "cell", "when", "cases", "until", "call", "product")
DEEPEST = 3


class Node(NamedTuple):
    """A statement: what it is, numbers that say how, and the statements inside."""

    kind: str
    numbers: tuple[int, ...]
    inside: tuple[Node, ...] = ()


def drawn(rng: np.random.Generator, depth: int = 0, columns: bool = False) -> tuple[Node, ...]:
    """Some statements; inside a loop over columns, no further loops."""
    found = []
    for _ in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(STATEMENTS))
        if (depth >= DEEPEST and kind not in ("store", "cell")) or (columns and kind not in ("store", "cell")):
            kind = "store"
        if kind == "product" and depth:  # it takes arrays as they are between loops
            kind = "loop"
        inside = drawn(rng, depth + 1, columns or kind == "columns") if kind in ("loop", "columns", "when") else ()
        found.append(Node(kind, tuple(rng.integers(0, 1000, 12).tolist()), inside))
    return tuple(found)


class Runner:
    """Runs statements by a handle of the loop language on arrays A (n, m), x (n,), B (n, m), y (n,) and a table."""

    def __init__(self, t: Any, arrays: tuple[Any, ...], kind: Any, n: Any, m: Any) -> None:
        self.t, self.kind, self.n, self.m = t, kind, n, m
        self.A, self.x, self.B, self.y, self.P = arrays
        self.cells: list[Any] = []

    def read(self, k: int, i: Any, c: Any) -> Any:
        """One of the numbers that a statement may read: some were stored in earlier rounds of a loop."""
        far = self.n - 1 - i
        places: list[Any] = [(self.x, i), (self.y, i), (self.y, far), (self.y, 0), (None, 0.25)]
        places += [(cell, 0) for cell in self.cells[-2:]]
        if c is not None:
            places += [(self.A, (i, c)), (self.B, (i, c)), (self.B, (far, c)), (self.A, (far, c))]
        array, at = places[k % len(places)]
        return at if array is None else array[at]

    def value(self, numbers: tuple[int, ...], i: Any, c: Any) -> Any:
        """An expression of two operations."""
        arity, f = list(VALUES.values())[numbers[0] % len(VALUES)]
        first = f(*(self.read(k, i, c) for k in numbers[1 : 1 + arity]))
        arity, g = list(VALUES.values())[numbers[4] % len(VALUES)]
        return g(*([first, *(self.read(k, i, c) for k in numbers[5 : 4 + arity])][:arity]))

    def run(self, nodes: tuple[Node, ...], i: Any = 0, c: Any = None) -> None:
        for node in nodes:
            getattr(self, node.kind)(node, i, c)

    def store(self, node: Node, i: Any, c: Any) -> None:
        found = self.value(node.numbers, i, c)
        if node.numbers[8] % 3 == 0:
            a, b = self.read(node.numbers[9], i, c), self.read(node.numbers[10], i, c)
            found = where_less(a, b + 0.0123, found, 0.5 * found)
        if c is not None:
            self.B[i, c] = found
        elif self.cells and node.numbers[11] % 3 == 0:
            self.cells[-1][0] = found
        else:
            self.y[i] = found

    def cell(self, node: Node, i: Any, c: Any) -> None:
        self.cells.append(self.t.cell(self.value(node.numbers, i, c)))

    def loop(self, node: Node, i: Any, c: Any) -> None:
        start, step, down = node.numbers[0] % 2, 1 + node.numbers[1] % 2, node.numbers[2] % 2 == 0
        held = len(self.cells)
        for k in self.t.loop(self.n, start=start, step=step, down=down):
            self.run(node.inside, k)
            del self.cells[held:]

    def columns(self, node: Node, i: Any, c: Any) -> None:
        held = len(self.cells)
        for k in self.t.columns(self.m):
            self.run(node.inside, i, k)
            del self.cells[held:]

    def when(self, node: Node, i: Any, c: Any) -> None:
        held = len(self.cells)
        for _ in self.t.when(i, 1 + node.numbers[0] % 4):
            self.run(node.inside, i, c)
            del self.cells[held:]

    def cases(self, node: Node, i: Any, c: Any) -> None:
        for k in self.t.cases(self.kind[i], 3):
            self.y[i] = self.value(node.numbers[k:] + node.numbers[:k], i, c)

    def until(self, node: Node, i: Any, c: Any) -> None:
        """As often as each sample's own number says: those that are done stay as they are while others go on."""
        left, kept = self.t.cell(1.5 + self.x[i]), self.t.cell(self.y[i])
        for _ in self.t.until(lambda: (0.0 * left[0], left[0]), 9):
            kept[0] = where_less(0.0, left[0], 0.5 * (kept[0] + self.value(node.numbers, i, c)), kept[0])
            left[0] = where_less(0.0, left[0], left[0] - 0.4, left[0])
        self.y[i] = kept[0]

    def call(self, node: Node, i: Any, c: Any) -> None:
        self.t.call(shared, self.A[i], self.B[i], self.y, i, self.m)

    def product(self, node: Node, i: Any, c: Any) -> None:
        """P = (A^T B) scaled, and y from it."""
        self.t.product(self.P, self.A, self.B, (self.m, self.m, self.n))
        for k in self.t.loop(self.n):
            for j in self.t.columns(self.m):
                self.B[k, j] = 0.5 * sincos(self.P[0, j] / 16.0)[0] + 0.25 * self.B[k, j]


def shared(t: Any, row: Any, out: Any, y: Any, i: Any, m: Any) -> None:
    for j in t.loop(m):
        out[j] = 0.5 * (out[j] + row[j])
    y[i] = 0.5 * (y[i] + out[m - 1])


def function_of(nodes: tuple[Node, ...]) -> Callable[..., None]:
    def function(t: Any, A: Any, x: Any, B: Any, y: Any, P: Any, n: Any, m: Any, kind: Any) -> None:
        for i in t.loop(n):
            y[i] = 0.5 * x[i]
            for c in t.columns(m):
                B[i, c] = 0.5 * A[i, c]
        Runner(t, (A, x, B, y, P), kind, n, m).run(nodes)

    return function


def mistakes(nodes: tuple[Node, ...], seed: int, cpu: str, fill: Fill, dtype: Any) -> str:
    """What is wrong with the code for a program, or with what interprets it."""
    rng = np.random.default_rng(seed)
    n, m, samples = int(rng.integers(2, 6)), int(rng.integers(1, 11)), int(rng.integers(1, 19))
    kind = {"kind": rng.integers(0, 3, n)}
    A, x = (rng.uniform(-1, 1, (samples, *shape)).astype(dtype) for shape in ((n, m), (n,)))
    results = {"B": ("n", "m"), "y": ("n",)}
    spec = LoopSpec(
        "fuzz", function_of(nodes), {"A": ("n", "m"), "x": ("n",)}, results, fill, work={"P": ("m", "m")},
        sizes=("n", "m"), tables=("kind",),
    )  # fmt: skip
    B, y, P = np.zeros((n, m, samples)), np.zeros((n, samples)), np.zeros((m, m, samples))
    wide = [np.moveaxis(k.astype(float), 0, -1).copy() for k in (A, x)]
    arrays = [LoopArray(k, k.ndim - 1) for k in (*wide, B, y, P)]
    spec.function(ArrayLoops((samples,)), *arrays, n, m, kind=LoopArray(kind["kind"]))
    defined = [np.moveaxis(k, -1, 0) for k in (B, y)]
    found, flags = LoopKernel(spec, {"n": n, "m": m}, kind, cpu=target(cpu))([A, x], None, 1)
    flat = [k.reshape(-1, samples) for k in wide]
    B, y, P = np.zeros((n * m, samples)), np.zeros((n, samples)), np.zeros((m * m, samples))
    if fill is Fill.SAMPLES:
        interpret(trace(spec), [*flat, B, y, P], found={"n": n, "m": m} | kind)
        told = [np.moveaxis(k, -1, 0).reshape(d.shape) for k, d in zip((B, y), defined, strict=True)]
        if not all(np.array_equal(a, b) for a, b in zip(told, defined, strict=True)):
            return "the interpreter"
    apart = max(float(np.abs(a - b).max()) for a, b in zip(found, defined, strict=True))
    if flags or not apart <= TOLERANCE[np.dtype(dtype).name]:
        return f"machine code: {apart:.1e} apart, flags {flags}"
    return ""


def attempt(rng: np.random.Generator) -> str:
    """One random program, of random sizes, for a processor, lanes and a precision of chance."""
    nodes, seed, cpu = drawn(rng), int(rng.integers(1 << 30)), str(rng.choice(targets()))
    fill = Fill.SAMPLES if rng.random() < 0.5 else Fill.COLUMNS
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    said = mistakes(nodes, seed, cpu, fill, dtype)
    return f"{said}\n{cpu}, {fill}, {dtype.__name__}, seed {seed}\n{nodes}" if said else ""
