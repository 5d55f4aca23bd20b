"""Traced functions and their derivatives as code that writes nothing but entries that are not zero everywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..jit.autodiff import adjoints, jacobian
from ..jit.engine import CPU
from ..jit.graph import Expr, Graph
from ..jit.kernel import Kernel, compile_straight
from ..jit.straight import Straight, loads

LONGEST = 1_000_000  # operations of a trace


@dataclass(frozen=True)
class Pattern:
    """The entries of a matrix that are not zero everywhere, column by column."""

    shape: tuple[int, int]
    rows: Array
    columns: Array

    @classmethod
    def of(cls, held: Array) -> Pattern:
        """That of a matrix of booleans."""
        columns, rows = np.nonzero(held.T)
        return cls(held.shape, rows, columns)  # type: ignore[arg-type]

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def starts(self) -> Array:
        """Where the entries of each column begin, and where those of the last end."""
        return np.searchsorted(self.columns, np.arange(self.shape[1] + 1))


class SparseCode:
    """Traced blocks: the pattern of each, and code that writes their entries.

    Results of the code are the blocks that have entries, in order; `written` has their numbers.
    """

    def __init__(
        self, name: str, straight: Straight, patterns: Sequence[Pattern], key: tuple[Any, ...], whose: str
    ) -> None:
        self.name, self.straight, self.patterns = name, straight, list(patterns)
        self.written = [k for k, p in enumerate(patterns) if p.count]
        self._key, self._whose = key, whose

    def kernel(self, cpu: CPU | None = None) -> Kernel:
        return compile_straight(lambda: self.straight, (*self._key, self.name), self.name, cpu=cpu, whose=self._whose)


class SparseTrace(ABC):
    """A traced function of vectors with its first and second derivatives, by automatic differentiation.

    inputs, results: their lengths by name; key: what determines the code; whose: the robot's name, for messages.
    """

    def __init__(self, inputs: Mapping[str, int], results: Mapping[str, int], whose: str) -> None:
        self.inputs, self.results, self.whose = dict(inputs), dict(results), whose

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]: ...

    @abstractmethod
    def values(self, given: Mapping[str, Array]) -> list[Array]:
        """The results at traced inputs."""

    @property
    def weights(self) -> dict[str, int]:
        """The inputs of adjoints besides the function's own: a weight for each result."""
        return {f"w_{name}": n for name, n in self.results.items()}

    # Code

    @cached_property
    def value(self) -> SparseCode:
        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            return [x.reshape(-1, 1) for x in self.values(given)]

        return self._code("value", run, self.inputs, dense=True)

    @cached_property
    def jacobian(self) -> SparseCode:
        """Derivatives of each result by each input: of the first by all, then of the second, and so on."""
        return self._code("jacobian", self.blocks, self.inputs)

    @cached_property
    def turned(self) -> SparseCode:
        """The transposes of the same: for each input, those of each result by it."""

        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            blocks = self.blocks(graph, given)
            n = len(self.inputs)
            return [blocks[o * n + i].T for i in range(n) for o in range(len(self.results))]

        return self._code("jacobian transposed", run, self.inputs)

    @cached_property
    def adjoint(self) -> SparseCode:
        """The derivatives of w.results by each input."""

        def run(graph: Graph, given: dict[str, Array]) -> list[Array]:
            return [x.reshape(-1, 1) for x in self.gradient(graph, given)]

        return self._code("adjoint", run, self.inputs | self.weights, dense=True)

    @cached_property
    def hessian(self) -> SparseCode:
        """The second derivatives of w.results by each input and each input."""
        return self._code("hessian", self.second, self.inputs | self.weights)

    def _code(
        self, name: str, run: Callable[[Graph, dict[str, Array]], list[Array]], inputs: Mapping[str, int],
        dense: bool = False,
    ) -> SparseCode:  # fmt: skip
        graph = Graph(LONGEST)
        given = {k: loads(graph, k, (n,)) for k, n in inputs.items()}
        with np.errstate(divide="ignore", invalid="ignore"):  # constants may be zero
            blocks = [lifted(graph, block) for block in run(graph, given)]
        patterns = [Pattern.of(np.full(b.shape, True) if dense else nonzero(b)) for b in blocks]
        entries = [list(b[p.rows, p.columns]) for b, p in zip(blocks, patterns, strict=True)]
        straight = Straight(graph, {k: (n,) for k, n in inputs.items()}, [((len(e),), e) for e in entries if e])
        return SparseCode(name, straight, patterns, self.key, self.whose)

    # Traces

    def blocks(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        """The Jacobian of each result by each input."""
        inputs = [given[k] for k in self.inputs]
        results = self.values(given)
        flat = jacobian([graph.lift(y) for r in results for y in r], [x for a in inputs for x in a], "auto")
        rows = np.split(flat, np.cumsum([len(r) for r in results])[:-1])
        ends = np.cumsum([len(a) for a in inputs])[:-1]
        return [block for strip in rows for block in np.split(strip, ends, axis=1)]

    def gradient(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        """The derivatives of the weighted results by each input."""
        total = graph.const(0.0)
        for w, y in zip(self.weights, self.values(given), strict=True):
            for a, b in zip(given[w], y, strict=True):
                total = total + a * b
        inputs = [given[k] for k in self.inputs]
        found = adjoints([total], [x for a in inputs for x in a])[0]
        entries = np.array([found.get(k, graph.const(0.0)) for k in range(sum(map(len, inputs)))], object)
        return np.split(entries, np.cumsum([len(a) for a in inputs])[:-1])

    def second(self, graph: Graph, given: dict[str, Array]) -> list[Array]:
        """The second derivatives of the weighted results by each input and each input."""
        inputs = [given[k] for k in self.inputs]
        gradient = self.gradient(graph, given)
        flat = jacobian([graph.lift(x) for g in gradient for x in g], [x for a in inputs for x in a], "forward")
        ends = np.cumsum([len(a) for a in inputs])[:-1]
        return [block for strip in np.split(flat, ends) for block in np.split(strip, ends, axis=1)]


def lifted(graph: Graph, block: Array) -> Array:
    """A matrix of expressions, numbers included."""
    found = np.empty(block.shape, object)
    for index, x in np.ndenumerate(block):
        found[index] = graph.lift(x)
    return found


def nonzero(block: Array) -> Array:
    found = np.empty(block.shape, bool)
    for index, x in np.ndenumerate(block):
        assert isinstance(x, Expr)
        found[index] = x.value != 0
    return found
