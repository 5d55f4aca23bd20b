"""Dense linear algebra in the loop language: definitions against NumPy, machine code against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherjet.jit import engine
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.math.dense import factorise, invert, solve
from featherjet.math.loops import ArrayLoops, LoopArray

SAMPLES = 11


def positive(n: int) -> np.ndarray:
    """Symmetric positive definite matrices (SAMPLES, n, n)."""
    x = np.random.default_rng(n).normal(size=(SAMPLES, n, n))
    return x @ x.swapaxes(1, 2) + np.eye(n)


def last_axis(x: np.ndarray) -> LoopArray:
    """An array of the loop language with samples in lanes, of one whose first axis they are."""
    return LoopArray(np.moveaxis(x, 0, -1).copy(), x.ndim - 1)


def solved(t: Any, A: Any, b: Any, L: Any, x: Any, dinv: Any, margins: Any, n: Any) -> None:
    """x = A^-1 b, and what is found on the way."""
    for i in t.loop(n):
        x[i] = b[i]
        for j in t.loop(n):
            L[i, j] = A[i, j]
    t.call(factorise, L, dinv, margins, n)
    t.call(solve, L, dinv, x, n)


SOLVED = LoopSpec(
    "solved", solved, {"A": ("n", "n"), "b": ("n",)},
    {"L": ("n", "n"), "x": ("n",), "dinv": ("n",), "margins": ("n",)}, Fill.SAMPLES, sizes=("n",),
)  # fmt: skip


def solved_by_definition(A: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    n = A.shape[-1]
    results = [last_axis(np.zeros(x.shape)) for x in (A, b, b, b)]
    solved(ArrayLoops((SAMPLES,)), last_axis(A), last_axis(b), *results, n)
    return [np.moveaxis(x.values, -1, 0) for x in results]


@pytest.mark.parametrize("n", [1, 2, 7, 24])
def test_factors_and_solutions(n: int) -> None:
    A, b = positive(n), np.random.default_rng(0).normal(size=(SAMPLES, n))
    factors, x, dinv, margins = solved_by_definition(A, b)
    L = np.tril(factors, -1) + np.eye(n)
    np.testing.assert_allclose(L.swapaxes(1, 2) / dinv[:, None] @ L, A, rtol=0, atol=1e-13 * np.abs(A).max())
    np.testing.assert_allclose(margins, 1.0 / (dinv * A.diagonal(axis1=1, axis2=2)), rtol=1e-13)
    np.testing.assert_allclose(A @ x[..., None], b[..., None], rtol=0, atol=1e-12 * np.abs(A).max() * np.abs(x).max())


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_machine_code_solves_as_the_definition(cpu: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATHERJET_CPU", cpu)
    n, tolerance = 9, 1e-12 if dtype is np.float64 else 1e-3  # times the condition of the worst sample, about 100
    A, b = positive(n), np.random.default_rng(0).normal(size=(SAMPLES, n))
    found, _ = LoopKernel(SOLVED, {"n": n})([A.astype(dtype), b.astype(dtype)], None, 1)
    for x, y in zip(found, solved_by_definition(A, b), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * np.abs(y).max())


def test_inverses() -> None:
    for n in (1, 6, 9):
        M = positive(n)
        inverse, W = (LoopArray(np.zeros((n, n))) for _ in range(2))
        for sample in M:
            invert(ArrayLoops(), LoopArray(sample), inverse, W, n)
            np.testing.assert_allclose(inverse.values, np.linalg.inv(sample), rtol=0, atol=1e-13 * np.linalg.cond(M[0]))
            np.testing.assert_array_equal(inverse.values, inverse.values.T)


def test_a_matrix_of_rank_one_is_flagged() -> None:
    t, x = ArrayLoops(margin=1e-11), np.ones((3, 3))
    with np.errstate(all="ignore"):
        invert(t, LoopArray(x), LoopArray(np.zeros((3, 3))), LoopArray(np.zeros((3, 3))), 3)
    assert t.flagged
