"""The compiled backward pass against the same equations in NumPy, and against SciPy's Riccati equation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from control_helpers import random_quadratic
from featherjet.control import Quadratic
from featherjet.control.solvers.recursion import RESULTS
from featherjet.control.solvers.riccati import SECONDS, WORTH, Riccati
from featherjet.jit.engine import VARIABLE, target, targets
from featherjet.jit.loops.spec import Fill

SIZES = [(2, 1, 5), (3, 5, 7), (7, 7, 6), (12, 6, 9), (36, 13, 4)]  # ndx, nu, T: every width of vectors, and both tall


def in_numpy(d: Quadratic, p: int, f: np.ndarray, r: float) -> dict[str, np.ndarray]:
    """The recursion of one problem as books have it."""
    T, n, m = d.Fu.shape[1:]
    V = d.Lxx[p, T] + r * np.eye(n)
    v = d.Lx[p, T] + V @ f[T]
    Vs, vs, Ks, ks, decrease = [V], [v], [], [], 0.0
    for t in reversed(range(T)):
        Fx, Fu = d.Fx[p, t], d.Fu[p, t]
        Qu, Quu = d.Lu[p, t] + Fu.T @ v, d.Luu[p, t] + Fu.T @ V @ Fu + r * np.eye(m)
        Qux = d.Lxu[p, t].T + Fu.T @ V @ Fx
        K, k = np.linalg.solve(Quu, Qux), np.linalg.solve(Quu, Qu)
        decrease += Qu @ k
        v = d.Lx[p, t] + Fx.T @ v - Qux.T @ k
        V = d.Lxx[p, t] + Fx.T @ V @ Fx - Qux.T @ K + r * np.eye(n)
        v = v + V @ f[t]
        for found, x in ((Vs, V), (vs, v), (Ks, K), (ks, k)):
            found.insert(0, x)
    found = {"Vxx": Vs, "Vx": vs, "K": Ks, "k": ks, "slope": decrease, "bend": decrease}
    return {name: np.array(x) for name, x in found.items()}


@pytest.mark.parametrize("cpu", targets())
@pytest.mark.parametrize("n, m, T", SIZES)
def test_equals_the_recursion_in_numpy(n: int, m: int, T: int, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, cpu)
    d, f = random_quadratic(n, m, T, 3), np.random.default_rng(1).normal(size=(3, T + 1, n))
    regularisation = np.array([1e-9, 0.3, 2.0])
    gains = Riccati(T, n, m, most=5)(d, f, regularisation)
    assert not gains.failed.any()
    for p in range(3):
        for name, expected in in_numpy(d, p, f[p], regularisation[p]).items():
            found = getattr(gains, name)[p]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max(), err_msg=name)
    assert (gains.Vxx == gains.Vxx.swapaxes(-1, -2)).all()


def test_no_gaps_are_gaps_of_zero() -> None:
    d = random_quadratic(4, 2, 6, 2)
    run = Riccati(6, 4, 2, most=2)
    with_zeros = run(d, np.zeros((2, 7, 4)), np.full(2, 0.1)).Vx.copy()
    np.testing.assert_array_equal(run(d, None, np.full(2, 0.1)).Vx, with_zeros)


def test_a_long_horizon_reaches_the_algebraic_riccati_equation() -> None:
    scipy_linalg = pytest.importorskip("scipy.linalg")
    d = random_quadratic(4, 2, 400, 1)
    for name in ("Fx", "Fu", "Lxx", "Lxu", "Luu"):
        x = getattr(d, name)
        setattr(d, name, np.broadcast_to(x[:, :1], x.shape))
    gains = Riccati(400, 4, 2)(d, None, np.zeros(1))
    A, B, Q, R, S = (getattr(d, name)[0, 0] for name in ("Fx", "Fu", "Lxx", "Luu", "Lxu"))
    V = scipy_linalg.solve_discrete_are(A, B, Q, R, s=S)
    np.testing.assert_allclose(gains.Vxx[0, 0], V, rtol=1e-10)


def test_padded_controls_have_no_gains() -> None:
    d = random_quadratic(4, 3, 5, 1)
    d.Lxu, d.Luu = d.Lxu.copy(), d.Luu.copy()
    d.Fu[0, 2], d.Lxu[0, 2], d.Lu[0, 2], d.Luu[0, 2] = 0.0, 0.0, 0.0, np.eye(3)
    gains = Riccati(5, 4, 3)(d, None, np.full(1, 1e-3))
    assert not gains.K[0, 2].any()
    assert not gains.k[0, 2].any()
    assert gains.K[0, 1].any()


@pytest.mark.parametrize("bad", [-50.0, np.nan])
def test_a_problem_without_a_minimum_fails_alone(bad: float) -> None:
    d = random_quadratic(4, 2, 6, 3)
    good = Riccati(6, 4, 2, most=3)(d, None, np.full(3, 0.1)).K.copy()
    d.Luu = d.Luu.copy()
    d.Luu[1, 3, 1, 1] = bad
    gains = Riccati(6, 4, 2, most=3)(d, None, np.full(3, 0.1))
    np.testing.assert_array_equal(gains.failed, [0, 1, 0])
    np.testing.assert_array_equal(gains.K[[0, 2]], good[[0, 2]])


@pytest.mark.parametrize("cpu", targets())
@pytest.mark.parametrize("gaps, keep", [(True, True), (False, False)])
def test_problems_in_lanes_have_the_same_bits(
    gaps: bool, keep: bool, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code with problems in lanes takes over once many small problems have been solved."""
    monkeypatch.setenv(VARIABLE, cpu)
    n, m, T, B = 2, 2, 5, 16
    d, rng = random_quadratic(n, m, T, B), np.random.default_rng(1)
    f, bounds = (rng.normal(size=(B, T + 1, n)) if gaps else None), -0.1 * rng.random((B, T, m))
    for bounded in (False, True):
        run = Riccati(T, n, m, B, keep=keep, bounded=bounded)
        args = d, f, np.full(B, 0.1), (bounds, -bounds) if bounded else None
        found = []
        for seconds in (0.0, 2 * WORTH):
            monkeypatch.setitem(SECONDS, (target().name, n, m, bounded), seconds)
            gains = run(*args)
            found.append({name: getattr(gains, name).copy() for name in RESULTS if keep or name != "Vxx"})
            for x in (gains.K, gains.k, gains.Vx):
                x[...] = np.nan
        assert run.fill(B) is Fill.SAMPLES
        for name, x in found[0].items():
            np.testing.assert_array_equal(found[1][name], x, err_msg=name)


def test_one_problem_first_then_several() -> None:
    """The first pass takes one of some problems, whose arrays NumPy may give any step from one problem to the next."""
    d = random_quadratic(4, 2, 6, 3)
    every = Riccati(6, 4, 2, 3)(d, None, np.full(3, 0.5))
    want = {name: getattr(every, name).copy() for name in ("K", "k", "Vx")}
    strided = np.lib.stride_tricks.as_strided
    arrays = {name: x for name, x in vars(d).items() if x is not None and x.ndim > 1}
    alone = replace(d, **{name: strided(x, (1, *x.shape[1:]), (8, *x.strides[1:])) for name, x in arrays.items()})
    passes = Riccati(6, 4, 2, 3)
    passes(alone, None, np.full(1, 0.5))
    found = passes(d, None, np.full(3, 0.5))
    for name, x in want.items():
        np.testing.assert_array_equal(getattr(found, name), x)
