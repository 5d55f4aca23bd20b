"""Kernels of products, inverses and sums of groups, against NumPy, for all lanes and both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherjet.jit import engine
from featherjet.jit.flags import Flag
from featherjet.jit.loops.kernel import LoopKernel
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.treejit.linear import Runs, fold_kernel, inverse_kernel, product_kernel

SAMPLES = 3
ROUNDING = {np.float64: 1e-13, np.float32: 1e-5}


@pytest.fixture(params=engine.targets())
def cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> engine.CPU:
    monkeypatch.setenv(engine.VARIABLE, request.param)
    return engine.target()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("shape", [(5,), (6, 6), (9, 23), (7, 2, 3)])
def test_products(shape: tuple[int, ...], dtype: Any, cpu: engine.CPU) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(SAMPLES, shape[0], shape[0])), rng.normal(size=(SAMPLES, *shape))
    ((found,), _) = product_kernel(shape, cpu)([A.astype(dtype), B.astype(dtype)], None, 1)
    np.testing.assert_allclose(found, -np.einsum("sij,sj...->si...", A, B), rtol=0, atol=20 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("n", [1, 6, 23])
def test_inverses(n: int, dtype: Any, cpu: engine.CPU) -> None:
    x = np.random.default_rng(n).normal(size=(SAMPLES, n, n))
    M = x @ x.swapaxes(1, 2) + n * np.eye(n)
    kernel = inverse_kernel(n, cpu)
    ((found,), flags) = kernel([M.astype(dtype)], None, 1)
    assert not flags
    np.testing.assert_allclose(found @ M, np.broadcast_to(np.eye(n), M.shape), rtol=0, atol=30 * ROUNDING[dtype])
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))
    M[1] = 1.0
    assert kernel([M.astype(dtype)], None, 1)[1] == (Flag.SMALL_MARGIN if n > 1 else 0)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("shape, folded", [((7,), [0]), ((7, 7), [0, 1]), ((3, 2, 7, 2), [2]), ((7, 11), [0])])
def test_folds(shape: tuple[int, ...], folded: list[int], dtype: Any, cpu: engine.CPU) -> None:
    """G^T x along some axes, and the same by the definition."""
    groups, factors = np.array([0, 1, 2, 0, 1, 3, 1]), np.array([1.0, 1.0, 1.0, 0.5, 2.0, 1.0, -3.0])
    G = np.zeros((7, 4))
    G[np.arange(7), groups] = factors
    x = np.random.default_rng(1).normal(size=(SAMPLES, *shape))
    kernel = fold_kernel(shape, folded, Runs.of(groups, factors), 4, cpu)
    ((found,), _) = kernel([x.astype(dtype)], None, 1)
    expected = x
    for axis in folded:
        expected = np.moveaxis(np.tensordot(expected, G, (axis + 1, 0)), -1, axis + 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=30 * ROUNDING[dtype])
    assert isinstance(kernel, LoopKernel)
    defined, spec = np.zeros(expected.shape[1:]), kernel.spec
    tables = {name: LoopArray(kernel.tables[name]) for name in (*spec.tables, *spec.factors)}
    sizes = (kernel.sizes[name] for name in spec.sizes)
    spec.function(ArrayLoops(), LoopArray(x[0]), LoopArray(defined), *sizes, **tables, **dict(spec.constants))
    np.testing.assert_allclose(defined, expected[0], rtol=0, atol=1e-13)


def test_vectors_may_be_scattered(cpu: engine.CPU) -> None:
    """Entries of a vector that are apart."""
    rng = np.random.default_rng(2)
    A, b, wide = rng.normal(size=(SAMPLES, 5, 5)), rng.normal(size=(SAMPLES, 10)), np.zeros((SAMPLES, 15))
    product_kernel((5,), cpu)([A, b[:, ::2]], (wide[:, ::3],), 1)
    np.testing.assert_allclose(wide[:, ::3], -np.einsum("sij,sj->si", A, b[:, ::2]), rtol=0, atol=1e-13)
    assert not wide[:, 1::3].any()
