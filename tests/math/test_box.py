"""Quadratic programs with bounds: the definition against SciPy's, machine code against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherjet.jit import engine
from featherjet.jit.loops.emit import trace
from featherjet.jit.loops.interpret import interpret
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.jit.loops.spec import Fill, LoopSpec
from featherjet.math.box import minimise_in_box
from featherjet.math.loops import ArrayLoops, LoopArray

M, N, SAMPLES = 5, 3, 13
WIDE = M + N + 1


def in_box(
    t: Any, Q: Any, low: Any, high: Any, K: Any, x: Any, slope: Any, failed: Any, *work: Any
) -> None:  # fmt: skip
    failed[0] = 0.0
    minimise_in_box(t, Q, low, high, K, x, slope, failed, work, M, N)


INPUTS = {"Q": (M, WIDE), "low": (M,), "high": (M,)}
RESULTS = {"K": (M, N), "x": (M,), "slope": (M,), "failed": (1,)}
WORK = {"G": (M, WIDE), "Z": (M, WIDE), "k": (M,), "free": (M,), "trial": (M,), "trial_slope": (M,)}


def problems() -> list[np.ndarray]:
    """[H B g], low and high of some samples; in the last one H is not positive definite."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(SAMPLES, M, M))
    Q = np.concatenate([A @ A.swapaxes(1, 2) + np.eye(M), rng.normal(size=(SAMPLES, M, N + 1))], 2)
    Q[-1, 2, 2] = -100.0
    return [Q, -0.2 * rng.random((SAMPLES, M)), 0.2 * rng.random((SAMPLES, M))]


def by_definition(given: list[np.ndarray]) -> list[np.ndarray]:
    """Results and, after them, which variables are free."""
    arrays = [LoopArray(np.moveaxis(x, 0, -1).copy(), x.ndim - 1) for x in given]
    others = [LoopArray(np.zeros((*axes, SAMPLES)), len(axes)) for axes in (*RESULTS.values(), *WORK.values())]
    in_box(ArrayLoops((SAMPLES,)), *arrays, *others)
    return [np.moveaxis(x.values, -1, 0) for x in others]


def test_the_minimum_is_that_of_bounded_least_squares() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    Q, low, high = given = problems()
    K, x, slope, failed, *_, free = by_definition(given)[:8]
    np.testing.assert_array_equal(failed[:, 0], [*[0.0] * (SAMPLES - 1), 1.0])
    held = 0
    for s in range(SAMPLES - 1):
        H, B, g = Q[s, :, :M], Q[s, :, M:-1], Q[s, :, -1]
        U = np.linalg.cholesky(H).T
        best = optimize.lsq_linear(U, -np.linalg.solve(U.T, g), (low[s], high[s]), method="bvls", tol=1e-14)
        np.testing.assert_allclose(x[s], best.x, atol=1e-12)
        np.testing.assert_allclose(slope[s], H @ x[s] + g, atol=1e-12)
        loose = best.active_mask == 0
        np.testing.assert_array_equal(free[s] == 1, loose)
        assert not K[s, ~loose].any()
        np.testing.assert_allclose(K[s, loose], np.linalg.solve(H[np.ix_(loose, loose)], B[loose]), atol=1e-12)
        held += M - loose.sum()
    assert SAMPLES < held < M * (SAMPLES - 1)  # neither none nor all


def test_samples_do_not_change_each_other() -> None:
    """Some take more rounds than others; alone, each has the same numbers."""
    given = problems()
    together = by_definition(given)[: len(RESULTS)]
    for s in range(SAMPLES - 1):
        alone = by_definition([np.repeat(x[s : s + 1], SAMPLES, 0) for x in given])
        for x, y in zip(together, alone, strict=False):
            np.testing.assert_array_equal(x[s], y[s])


def test_the_program_means_what_the_function_does() -> None:
    given = problems()
    spec = LoopSpec("in_box", in_box, INPUTS, RESULTS, Fill.SAMPLES, WORK)
    flat = [np.moveaxis(x, 0, -1).reshape(-1, SAMPLES).copy() for x in given]
    others = [np.zeros((int(np.prod(axes)), SAMPLES)) for axes in (*RESULTS.values(), *WORK.values())]
    interpret(trace(spec), [*flat, *others])
    for x, y in zip(others, by_definition(given)[: len(RESULTS)], strict=False):
        np.testing.assert_allclose(x.T.reshape(y.shape)[:-1], y[:-1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("cpu", engine.targets())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fill", Fill)
def test_machine_code_solves_as_the_definition(
    fill: Fill, dtype: Any, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv(engine.VARIABLE, cpu)
    given = problems()
    kernel = LoopKernel(LoopSpec("in_box", in_box, INPUTS, RESULTS, fill, WORK))
    found, _ = kernel([x.astype(dtype) for x in given], None, 1)
    tolerance = 1e-12 if dtype is np.float64 else 1e-4  # times conditions of up to 30
    for x, y in zip(found, by_definition(given), strict=False):
        np.testing.assert_allclose(x[:-1], y[:-1], rtol=0, atol=tolerance * max(1.0, np.abs(y[:-1]).max()))
    np.testing.assert_array_equal(found[-1][:, 0], [*[0.0] * (SAMPLES - 1), 1.0])
