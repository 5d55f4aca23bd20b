"""What CasADi's functions of a quantity take, give and compute: the same in this process and in libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from ..evaluate.entries import SparseCode, SparseTrace
from .sparsity import diagonal


class CodeStep(NamedTuple):
    """Code that one call may run: which of the call's inputs it takes, and which of its results it gives."""

    code: SparseCode
    takes: Sequence[int]
    gives: Sequence[int]


class Recipe(NamedTuple):
    """A CasADi function: its inputs' and results' names, sparsity, and what computes it."""

    inputs: Sequence[tuple[str, ca.Sparsity]]
    results: Sequence[tuple[str, ca.Sparsity]]
    steps: Sequence[CodeStep]


class Knots:
    """What the CasADi functions of one traced function are, for a number of states."""

    def __init__(self, traced: SparseTrace, states: int) -> None:
        self.traced, self.states = traced, states

    def value(self) -> Recipe:
        f = self.traced
        step = CodeStep(f.value, range(len(f.inputs)), range(len(f.results)))
        return Recipe(self._dense(f.inputs), self._dense(f.results), [step])

    def _dense(self, sizes: dict[str, int], start: str = "") -> list[tuple[str, ca.Sparsity]]:
        return [(start + k, ca.Sparsity.dense(n, self.states)) for k, n in sizes.items()]

    def _unused(self, sizes: dict[str, int], start: str) -> list[tuple[str, ca.Sparsity]]:
        """Inputs that CasADi passes and nobody reads, without entries."""
        return [(start + k, ca.Sparsity(n, self.states)) for k, n in sizes.items()]

    def jacobian(self) -> Recipe:
        f = self.traced
        names = [f"jac_{o}_{i}" for o in f.results for i in f.inputs]
        blocks = [diagonal(p, self.states) for p in f.jacobian.patterns]
        inputs = [*self._dense(f.inputs), *self._unused(f.results, "out_")]
        step = CodeStep(f.jacobian, range(len(f.inputs)), f.jacobian.written)
        return Recipe(inputs, list(zip(names, blocks, strict=True)), [step])

    def adjoint(self) -> Recipe:
        f = self.traced
        inputs = [*self._dense(f.inputs), *self._unused(f.results, "out_"), *self._dense(f.results, "adj_")]
        n, m = len(f.inputs), len(f.results)
        step = CodeStep(f.adjoint, [*range(n), *range(n + m, n + 2 * m)], range(n))
        return Recipe(inputs, self._dense(f.inputs, "adj_"), [step])

    def hessian(self) -> Recipe:
        """The Jacobian of the adjoint: by the inputs, by the unread results, and by the weights."""
        f, N = self.traced, self.states
        base = self.adjoint()
        n, m = len(f.inputs), len(f.results)
        width = n + 2 * m
        names = [f"jac_{o}_{i}" for o, _ in base.results for i, _ in base.inputs]
        blocks: list[Any] = [None] * len(names)
        hessian, turned = [], []
        for i, size in enumerate(f.inputs.values()):
            for j in range(n):
                blocks[i * width + j] = diagonal(f.hessian.patterns[i * n + j], N)
                hessian.append(i * width + j)
            for o, length in enumerate(f.results.values()):
                blocks[i * width + n + o] = ca.Sparsity(size * N, length * N)
                blocks[i * width + n + m + o] = diagonal(f.turned.patterns[i * m + o], N)
                turned.append(i * width + n + m + o)
        inputs = [*base.inputs, *self._unused(f.inputs, "out_adj_")]
        steps = [
            CodeStep(f.hessian, [*range(n), *range(n + m, width)], [hessian[k] for k in f.hessian.written]),
            CodeStep(f.turned, range(n), [turned[k] for k in f.turned.written]),
        ]
        return Recipe(inputs, list(zip(names, blocks, strict=True)), steps)
