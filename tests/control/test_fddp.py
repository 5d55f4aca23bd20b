"""FDDP on toys: optima known in closed form or by other solvers, batches, limits of time and patience."""

from __future__ import annotations

import numpy as np
import pytest

from featherjet import control
from featherjet.control.solvers.solution import CALLBACK, ITERATIONS, TIME
from featherjet.errors import InputError, UnknownName
from toys import linear, pendulum

Array = np.ndarray


def least_squares(toy: control.Horizon) -> Array:
    """The optimal controls of a linear problem, by eliminating the states: a dense linear system."""
    T, n, m = toy.T, toy.nx, toy.nu
    S = np.zeros((T + 1, n, T, m))  # d x_t / d u_s
    free = [toy.x0]
    for t in range(T):
        S[t + 1] = np.einsum("ij,jsk->isk", toy.A, S[t])  # type: ignore[attr-defined]
        S[t + 1, :, t] += toy.B  # type: ignore[attr-defined]
        free.append(toy.A @ free[-1])  # type: ignore[attr-defined]
    S = S.reshape(T + 1, n, T * m)
    Q = np.array([toy.Q] * T + [toy.Qf])  # type: ignore[attr-defined]
    H = np.einsum("tia,tij,tjb->ab", S, Q, S) + np.kron(np.eye(T), toy.R)  # type: ignore[attr-defined]
    return np.linalg.solve(H, -np.einsum("tia,tij,tj->a", S, Q, np.array(free))).reshape(T, m)


def test_a_linear_problem_takes_one_step() -> None:
    toy = linear()
    found = control.solve(toy)
    assert found.converged
    assert found.iterations == 1
    assert found.gap == 0
    np.testing.assert_allclose(found.us, least_squares(toy), atol=1e-8 * np.abs(found.us).max())
    assert found.log["step"][0] == 1
    assert found.log["gain"][0] == pytest.approx(found.log["expected"][0], rel=1e-7)  # regularisation of 1e-9


def test_gaps_close_in_the_measure_of_the_step() -> None:
    """Of a linear problem's gaps, 1 - alpha is left, and the last step closes them."""
    toy = linear()
    xs = np.random.default_rng(0).normal(size=(toy.T + 1, toy.nx))
    found = control.solve(toy, xs=xs, us=np.zeros((toy.T, toy.nu)))
    left = toy.difference(xs, np.concatenate([toy.x0[None], toy.values(xs, found.us * 0).next]))
    assert found.log["gap"][0] == pytest.approx(np.abs(left).max())
    np.testing.assert_allclose(found.us, least_squares(toy), atol=1e-8 * np.abs(found.us).max())
    new, _, _ = toy.rollout(toy.x0, xs, found.us, found.k * 0, found.K * 0, np.array(0.25), left, False)
    again = toy.difference(new, np.concatenate([toy.x0[None], toy.values(new, found.us).next]))
    first = left[0] * 0.75
    np.testing.assert_allclose(again[0], first, atol=1e-12)


def test_a_swing_up_is_stationary() -> None:
    """At the end the gradient of the cost by all controls, by central differences of rollouts, is zero."""
    toy = pendulum()
    found = control.solve(toy, tolerance=1e-14)
    assert found.converged
    assert abs(found.xs[-1, 0] - np.pi) < 0.01

    def cost(us: Array) -> float:
        return float(toy.rollout(toy.x0, found.xs, us, 0 * found.k, 0 * found.K, np.array(1.0), None, False)[2])

    assert cost(found.us) == pytest.approx(float(found.cost), rel=1e-12)
    h = 1e-5
    for t in (0, 20, 59):
        e = np.zeros_like(found.us)
        e[t] = h
        assert abs(cost(found.us + e) - cost(found.us - e)) / (2 * h) < 1e-6


def test_exact_hessians_take_fewer_iterations_to_the_same_motion() -> None:
    plain, exact = (control.solve(pendulum(exact=exact)) for exact in (False, True))
    assert exact.converged
    assert exact.iterations < 0.6 * plain.iterations
    assert exact.cost == pytest.approx(float(plain.cost), rel=1e-9)
    gains = exact.log["expected"][-3:]
    assert gains[1] < 1e-3 * gains[0]  # quadratic convergence


def test_a_batch_is_its_problems_one_by_one() -> None:
    """Though the problems outnumber the slots, and take different numbers of iterations."""
    toy = pendulum(T=40)
    x0 = np.random.default_rng(0).normal(size=(90, 2)) * 2.0
    together = control.solve(toy, x0)
    assert together.converged.all()
    assert len(set(together.iterations)) > 3
    for k in range(0, 90, 7):
        alone = control.solve(toy, x0[k])
        np.testing.assert_allclose(together.xs[k], alone.xs, atol=1e-12)
        assert together.iterations[k] == alone.iterations
        part = together[k]
        np.testing.assert_allclose(part.log["cost"][: len(alone.log)], alone.log["cost"], rtol=1e-12)
        assert np.isnan(part.log["cost"][len(alone.log) :]).all()


def test_warm_starts_are_quick() -> None:
    toy = pendulum()
    found = control.solve(toy)
    again = control.solve(toy, start=found)
    assert again.iterations <= 1
    assert again.cost == pytest.approx(float(found.cost), rel=1e-9)
    moved = control.solve(toy, toy.x0 + 0.01, start=found)
    assert moved.converged
    assert moved.iterations < found.iterations
    np.testing.assert_array_equal(moved.xs[0], toy.x0 + 0.01)


def test_it_stops_when_told_to() -> None:
    toy = pendulum()
    assert control.solve(toy, iterations=3).outcome == ITERATIONS
    assert len(control.solve(toy, iterations=3).log) == 3
    late = control.solve(toy, seconds=1e-9)
    assert late.outcome == TIME
    assert len(late.log) == 1
    assert not late.converged
    seen: list[control.Progress] = []

    def stop(state: control.Progress) -> bool:
        seen.append(state)
        return state.iteration == 4

    stopped = control.solve(toy, callback=stop)
    assert stopped.outcome == CALLBACK
    assert len(seen) == 5
    assert "callback" in stopped.message


def test_states_that_explode_are_no_steps() -> None:
    """A rollout that diverges is refused, and a shorter one taken."""
    toy = pendulum()
    step = toy.step
    toy.step = lambda x, u: np.where(np.abs(x[..., 1:]) < 2.5, step(x, u), np.nan)  # type: ignore[method-assign]
    found = control.solve(toy)
    assert (found.log["step"] < 1).any()
    assert np.isfinite(found.xs).all()
    assert np.abs(found.xs[:, 1]).max() < 2.5


def test_errors_say_what_to_do() -> None:
    toy = pendulum()
    with pytest.raises(UnknownName, match="fddp"):
        control.solve(toy, method="newton")
    with pytest.raises(InputError, match="us: expected shape"):
        control.solve(toy, us=np.zeros((3, 1)))
    with pytest.raises(InputError, match="at most one leading axis"):
        control.solve(toy, np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="x0"):
        control.solve(toy, [np.nan, 0.0])
    with pytest.raises(InputError, match="no column"):
        control.solve(toy, iterations=1).log["speed"]
