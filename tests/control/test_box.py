"""Box-FDDP: single knots against SciPy's bounded least squares, motions against the conditions of an optimum."""

from __future__ import annotations

import numpy as np
import pytest

from control_helpers import random_quadratic
from featherjet import control
from featherjet.control.solvers.riccati import Riccati
from toys import linear, pendulum


@pytest.mark.parametrize("n, m", [(4, 3), (3, 12)])
def test_a_knot_is_a_bounded_least_squares_problem(n: int, m: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    B, r = 40, 1e-9
    rng = np.random.default_rng(0)
    d, low, high = random_quadratic(n, m, 1, B), -0.3 * rng.random((B, 1, m)), 0.3 * rng.random((B, 1, m))
    gains = Riccati(1, n, m, B, bounded=True)(d, None, np.full(B, r), (low, high))
    held = 0
    for p in range(B):
        V, Fu = d.Lxx[p, 1] + r * np.eye(n), d.Fu[p, 0]
        Quu, Qu = d.Luu[p, 0] + Fu.T @ V @ Fu + r * np.eye(m), d.Lu[p, 0] + Fu.T @ d.Lx[p, 1]
        U = np.linalg.cholesky(Quu).T
        best = optimize.lsq_linear(U, -np.linalg.solve(U.T, Qu), (low[p, 0], high[p, 0]), method="bvls", tol=1e-14)
        np.testing.assert_allclose(-gains.k[p, 0], best.x, atol=1e-12)
        fixed = best.active_mask != 0
        held += fixed.sum()
        assert (gains.K[p, 0][fixed] == 0).all()
        # The value function: gradient and Hessian of the minimum over free controls.
        Fx, free = d.Fx[p, 0], ~fixed
        Qux, k = d.Lxu[p, 0].T + Fu.T @ V @ Fx, gains.k[p, 0]
        Qxx, Qx = d.Lxx[p, 0] + Fx.T @ V @ Fx, d.Lx[p, 0] + Fx.T @ d.Lx[p, 1]
        reduced = Qxx - Qux[free].T @ np.linalg.solve(Quu[np.ix_(free, free)], Qux[free]) + r * np.eye(n)
        np.testing.assert_allclose(gains.Vxx[p, 0], reduced, atol=1e-10)
        np.testing.assert_allclose(gains.Vx[p, 0], Qx - Qux.T @ k, atol=1e-10)
        np.testing.assert_allclose([gains.slope[p], gains.bend[p]], [Qu @ k, k @ Quu @ k], atol=1e-10)
    assert B < held < B * m  # neither none nor all


def test_without_limits_it_is_fddp() -> None:
    d = random_quadratic(5, 3, 8, 2)
    wide = np.full((2, 8, 3), np.inf)
    bounded = Riccati(8, 5, 3, 2, bounded=True)(d, None, np.full(2, 0.1), (-wide, wide))
    plain = Riccati(8, 5, 3, 2)(d, None, np.full(2, 0.1))
    for name in ("K", "k", "Vx", "Vxx", "slope", "bend"):
        np.testing.assert_allclose(getattr(bounded, name), getattr(plain, name), atol=1e-10)


@pytest.mark.parametrize("toy", [linear(u_lower=-0.4, u_upper=0.3), pendulum(T=120, u_lower=-1.5, u_upper=1.2)])
def test_limits_hold_and_the_motion_is_optimal(toy: control.Horizon) -> None:
    """The gradient by controls is zero inside the limits, and pushes outwards at them."""
    assert toy.u_lower is not None and toy.u_upper is not None  # noqa: PT018
    found = control.solve(toy, iterations=300, tolerance=1e-13)
    assert found.converged
    assert (found.us >= toy.u_lower).all()
    assert (found.us <= toy.u_upper).all()
    at = toy.linearize(found.xs, found.us)
    p, slopes = at.Lx[-1], np.zeros_like(found.us)
    for t in reversed(range(toy.T)):
        slopes[t] = at.Lu[t] + at.Fu[t].T @ p
        p = at.Lx[t] + at.Fx[t].T @ p
    low, high = found.us == toy.u_lower, found.us == toy.u_upper
    assert low.any()
    assert high.any()
    assert (~low & ~high).any()
    scale = np.abs(slopes).max()
    assert np.abs(slopes[~low & ~high]).max() < 1e-5 * scale
    assert (slopes[low] > -1e-5 * scale).all()
    assert (slopes[high] < 1e-5 * scale).all()


def test_limits_are_ignored_on_request() -> None:
    toy = linear(u_lower=-0.4, u_upper=0.3)
    free = control.solve(toy, method="fddp")
    assert np.abs(free.us).max() > 0.5
    assert free.cost < control.solve(toy).cost
