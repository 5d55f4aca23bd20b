"""Matrices as sparse as a tree: the definition against dense algebra, machine code against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherjet.algorithms.dynamics import ltl
from featherjet.jit import engine
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.math import dense, sparse
from featherjet.math.loops import ArrayLoops, LoopArray

PARENTS = {
    "chain": list(range(-1, 10)),
    "tree": [-1, 0, 1, 2, 1, 4, 0, 6, 7, 6, -1, 10, 10],
    "long": list(range(-1, 69)),
}


def tables(parents: list[int]) -> dict[str, np.ndarray]:
    """The ancestors of each row, nearest first."""
    start, ancestors = [0], []
    for k in parents:
        while k >= 0:
            ancestors.append(k)
            k = parents[k]
        start.append(len(ancestors))
    return {"start": np.array(start, np.int64), "ancestors": np.array(ancestors, np.int64)}


def matrix(parents: list[int]) -> np.ndarray:
    """A symmetric positive definite matrix, as sparse as the tree."""
    rng, n = np.random.default_rng(len(parents)), len(parents)
    L = np.eye(n)
    for k in range(n):
        i = parents[k]
        while i >= 0:
            L[k, i] = rng.normal() / n
            i = parents[i]
    return L.T @ np.diag(rng.uniform(1.0, 2.0, n)) @ L


def solved(
    t: Any, M: Any, B: Any, H: Any, X: Any, inverse: Any, panel: Any, n: Any, lanes: int, start: Any,
    ancestors: Any,
) -> None:  # fmt: skip
    """X = -M^-1 B, and M^-1."""
    paths = sparse.TreePaths(start, ancestors)
    sparse.factorise(t, M, H, paths, n)
    sparse.solve(t, H, B, X, panel, paths, n, lanes, plus=False)
    sparse.solve(t, H, None, inverse, panel, paths, n, lanes)


def by_definition(parents: list[int], M: np.ndarray, B: np.ndarray, lanes: int) -> list[np.ndarray]:
    n = len(parents)
    H, X, inverse = (LoopArray(np.zeros((n, n))) for _ in range(3))
    panel = LoopArray(np.zeros((n, sparse.VECTORS * lanes)))
    found = {k: LoopArray(x) for k, x in tables(parents).items()}
    solved(ArrayLoops(), LoopArray(M), LoopArray(B), H, X, inverse, panel, n, lanes, **found)
    return [x.values for x in (H, X, inverse)]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("tree", PARENTS)
def test_factors_and_solutions(tree: str, lanes: int) -> None:
    parents = PARENTS[tree]
    M, B = matrix(parents), np.random.default_rng(0).normal(size=(len(parents),) * 2)
    H, X, inverse = by_definition(parents, M, B, lanes)
    factor = ltl.factorise(M, parents)
    np.testing.assert_allclose(np.tril(H, -1), factor.L, rtol=0, atol=1e-14)
    np.testing.assert_allclose(H.diagonal(), factor.D, rtol=1e-13)
    np.testing.assert_allclose(X, -np.linalg.solve(M, B), rtol=0, atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(M), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("tree", PARENTS)
def test_machine_code_solves_as_the_definition(tree: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    parents, lanes = PARENTS[tree], engine.target().lanes
    square = ("n", "n")
    spec = LoopSpec(
        "sparse", solved, {"M": square, "B": square}, {"H": square, "X": square, "inverse": square}, Fill.COLUMNS,
        work={"panel": ("n", sparse.VECTORS * lanes)}, sizes=("n",), tables=("start", "ancestors"),
        constants=(("lanes", lanes),),
    )  # fmt: skip
    M, B = matrix(parents), np.random.default_rng(0).normal(size=(len(parents),) * 2)
    found, _ = LoopKernel(spec, {"n": len(parents)}, tables(parents))([M[None], B[None]], None, 1)
    H, X, inverse = (x[0] for x in found)
    defined = by_definition(parents, M, B, lanes)
    for x, y in zip((np.tril(H), X, inverse), (np.tril(defined[0]), *defined[1:]), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)


def multiplied(t: Any, A: Any, B: Any, C: Any, panel: Any, n: Any, width: int, plus: bool) -> None:
    dense.product(t, A, B, C, panel, n, width, plus)


@pytest.mark.parametrize("plus", [True, False])
@pytest.mark.parametrize("n", [1, 11, 12, 13, 40])
@pytest.mark.parametrize("cpu", engine.targets())
def test_products_by_panels(n: int, plus: bool, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    square, width = ("n", "n"), 3 * engine.target().lanes
    spec = LoopSpec(
        "panels", multiplied, {"A": square, "B": square}, {"C": square}, Fill.COLUMNS, work={"panel": ("n", width)},
        sizes=("n",), constants=(("width", width), ("plus", plus)),
    )  # fmt: skip
    A, B = np.random.default_rng(n).normal(size=(2, n, n))
    ((found,), _) = LoopKernel(spec, {"n": n})([A[None], B[None]], None, 1)
    true = A @ B if plus else -A @ B
    np.testing.assert_allclose(found[0], true, rtol=0, atol=1e-13 * n)
    defined = np.zeros((n, n))
    panel = LoopArray(np.zeros((n, width)))
    multiplied(ArrayLoops(), LoopArray(A), LoopArray(B), LoopArray(defined), panel, n, width, plus)
    np.testing.assert_allclose(defined, true, rtol=0, atol=1e-13 * n)
