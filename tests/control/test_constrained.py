"""Constraints by the augmented Lagrangian: closed forms, other solvers, and the conditions of an optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featherjet import control
from featherjet.control.solvers.constrained import Multipliers, Penalised
from featherjet.control.solvers.solution import VIOLATED
from toys import Linear, Pendulum, linear, pendulum

Array = np.ndarray


class Held(Linear):
    """A linear problem whose last state is given, x_T = end, and whose first coordinate has a ceiling at all knots."""

    end: Array
    ceiling: float = np.inf

    def constraints(self, xs: Array, us: Array) -> dict[str, Array]:
        batch, T, n, m = xs.shape[:-2], self.T, self.nx, self.nu
        e, Ex = np.zeros((*batch, T + 1, n)), np.zeros((*batch, T + 1, n, n))
        e[..., -1, :], Ex[..., -1, :, :] = xs[..., -1, :] - self.end, np.eye(n)
        Ix = np.zeros((*batch, T + 1, 1, n))
        Ix[..., 0, 0] = 1.0
        none = np.zeros((*batch, T, n, m))
        return {
            "equality": e, "inequality": xs[..., :1] - self.ceiling, "Ex": Ex, "Eu": none, "Ix": Ix,
            "Iu": none[..., :1, :],
        }  # fmt: skip


def held(ceiling: float = np.inf, **options: Any) -> Held:
    toy = Held(**{k: v for k, v in vars(linear(**options)).items() if k in linear().__dataclass_fields__})
    toy.A, toy.B, toy.c = linear().A, linear().B, linear().c
    toy.end, toy.ceiling, toy.ne, toy.ni = np.full(4, 0.3), min(ceiling, 1e6), 4, 1
    return toy


def dense(toy: Held) -> tuple[Array, Array, Array]:
    """H, g and S, s of the cost 1/2 u.H u + g.u over all controls, and of the states S u + s."""
    T, n, m = toy.T, toy.nx, toy.nu
    S, s = np.zeros((T + 1, n, T, m)), [toy.x0]
    for t in range(T):
        S[t + 1] = np.einsum("ij,jsk->isk", toy.A, S[t])
        S[t + 1, :, t] += toy.B
        s.append(toy.A @ s[-1])
    return S.reshape(T + 1, n, T * m), np.array(s), np.array([toy.Q] * T + [toy.Qf])


def test_a_given_end_is_a_linear_system() -> None:
    toy = held()
    S, s, Q = dense(toy)
    H = np.einsum("tia,tij,tjb->ab", S, Q, S) + np.kron(np.eye(toy.T), toy.R)
    g = np.einsum("tia,tij,tj->a", S, Q, s)
    n = toy.nx
    system = np.block([[H, S[-1].T], [S[-1], np.zeros((n, n))]])
    solved = np.linalg.solve(system, np.concatenate([-g, toy.end - s[-1]]))
    found = control.solve(toy)
    assert found.converged
    assert found.violation is not None
    assert found.violation < 1e-6
    np.testing.assert_allclose(found.xs[-1], toy.end, atol=1e-6)
    np.testing.assert_allclose(found.us.ravel(), solved[:-n], atol=1e-5)
    np.testing.assert_allclose(found.multipliers["equality"][-1], solved[-n:], rtol=1e-3)


def test_a_ceiling_holds_where_it_must() -> None:
    """Against SciPy's solver for quadratic programs with linear constraints."""
    optimize = pytest.importorskip("scipy.optimize")
    toy = held()
    free = control.solve(toy)
    toy.ceiling = 0.6 * float(free.xs[1:, 0].max())
    toy.x0 = np.minimum(toy.x0, [0.9 * toy.ceiling, 9, 9, 9])
    found = control.solve(toy)
    assert found.converged
    assert found.xs[:, 0].max() < toy.ceiling + 1e-6
    assert np.isclose(found.xs[:, 0], toy.ceiling, atol=1e-6).any()
    S, s, Q = dense(toy)
    H = np.einsum("tia,tij,tjb->ab", S, Q, S) + np.kron(np.eye(toy.T), toy.R)
    g = np.einsum("tia,tij,tj->a", S, Q, s)
    limits = [
        {"type": "eq", "fun": lambda u: S[-1] @ u + s[-1] - toy.end, "jac": lambda u: S[-1]},
        {"type": "ineq", "fun": lambda u: toy.ceiling - S[:, 0] @ u - s[:, 0], "jac": lambda u: -S[:, 0]},
    ]
    best = optimize.minimize(
        lambda u: 0.5 * u @ H @ u + g @ u, np.zeros(len(g)), jac=lambda u: H @ u + g, constraints=limits,
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(found.us.ravel(), best.x, atol=1e-4)
    z = found.multipliers["inequality"]
    assert (z >= 0).all()
    assert z[found.xs[:, 0] < toy.ceiling - 1e-3].max() < 1e-6  # complementarity


class Upright(Pendulum):
    """A swing-up whose end is a constraint, with a limit of speed."""

    speed = 1.5

    def constraints(self, xs: Array, us: Array) -> dict[str, Array]:
        batch, T = xs.shape[:-2], self.T
        e, Ex = np.zeros((*batch, T + 1, 2)), np.zeros((*batch, T + 1, 2, 2))
        e[..., -1, :], Ex[..., -1, :, :] = xs[..., -1, :] - self.goal, np.eye(2)
        c, Ix = np.stack([xs[..., 1], -xs[..., 1]], -1) - self.speed, np.zeros((*batch, T + 1, 2, 2))
        Ix[..., 0, 1], Ix[..., 1, 1] = 1.0, -1.0
        none = np.zeros((*batch, T, 2, 1))
        return {"equality": e, "inequality": c, "Ex": Ex, "Eu": none, "Ix": Ix, "Iu": none}


def upright(**options: Any) -> Upright:
    plain = pendulum(**options)
    return Upright(
        **{k: v for k, v in vars(plain).items() if k in plain.__dataclass_fields__ and k not in ("ne", "ni")},
        ne=2,
        ni=2,
    )


def test_a_swing_up_with_limits_of_everything() -> None:
    toy = upright(T=80, u_lower=-3.5, u_upper=3.5)
    found = control.solve(toy, iterations=300)
    assert found.converged
    np.testing.assert_allclose(found.xs[-1], toy.goal, atol=1e-6)
    assert np.abs(found.us).max() <= 3.5
    assert np.abs(found.xs[:, 1]).max() <= toy.speed + 1e-6
    assert np.abs(found.xs[:, 1]).max() > toy.speed - 1e-3
    assert found.cost == pytest.approx(toy.cost(found.xs, found.us).sum(), rel=1e-12)


def test_a_batch_is_its_problems_one_by_one() -> None:
    toy = upright(T=80)
    x0 = 0.3 * np.random.default_rng(0).normal(size=(5, 2))
    together = control.solve(toy, x0)
    assert together.converged.all()
    for k in range(5):
        alone = control.solve(toy, x0[k])
        np.testing.assert_allclose(together.xs[k], alone.xs, atol=1e-7)
        assert together.iterations[k] == alone.iterations


def test_a_warm_start_keeps_the_multipliers() -> None:
    toy = upright(T=80)
    found = control.solve(toy)
    again = control.solve(toy, start=found)
    assert again.converged
    assert again.iterations < 0.5 * found.iterations


def test_constraints_that_contradict_are_reported() -> None:
    toy = upright(T=80)
    toy.speed = 0.5  # too slow to get there in time
    found = control.solve(toy, iterations=60)
    assert not found.converged
    assert found.outcome == VIOLATED
    assert found.violation is not None
    assert found.violation > 1e-3
    assert "constraints" in found.message


def test_derivatives_of_the_augmented_cost() -> None:
    """By central differences, with active and inactive inequalities."""
    toy = upright(T=6)
    rng = np.random.default_rng(0)
    xs, us = rng.normal(size=(1, 7, 2)) * 2.0, rng.normal(size=(1, 6, 1))
    known = Multipliers(rng.normal(size=(1, 7, 2)), np.abs(rng.normal(size=(1, 7, 2))), np.array([3.0]))
    horizon = Penalised(toy, known)
    at, h = horizon.linearize(xs, us), 1e-6
    for t in range(7):
        for i in range(2):
            e = np.zeros_like(xs)
            e[0, t, i] = h
            up, down = horizon.values(xs + e, us).cost.sum(), horizon.values(xs - e, us).cost.sum()
            assert (up - down) / (2 * h) == pytest.approx(at.Lx[0, t, i], rel=1e-6, abs=1e-6)
            gradients = [horizon.linearize(xs + s * e, us).Lx[0, t] for s in (1.0, -1.0)]
            np.testing.assert_allclose((gradients[0] - gradients[1]) / (2 * h), at.Lxx[0, t, i], rtol=1e-6, atol=1e-5)
