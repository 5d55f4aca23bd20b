"""Problems in CasADi: values, Jacobians along all tangents, and a solver of CasADi's that finds FDDP's motion."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import CenterOfMass, Constraint, Control, Cost, Phase, Problem, State, Translation
from featherjet.errors import InputError

ca = pytest.importorskip("casadi")
STEP = 1e-6


def flight() -> Problem:
    robot = fj.load("quadruped")
    q = robot.neutral()
    x0 = np.concatenate([q, np.zeros(robot.nv)])
    costs = [Cost(State(x0)), Cost(CenterOfMass((0.1, 0.2, 0.3))), Cost(Control())]
    return Problem(robot, x0, [Phase(3, 0.02, costs, constraints=[Constraint(Control(), upper=2.0)])], costs[:2])


def test_jacobians_are_those_of_values() -> None:
    p, rng = flight(), np.random.default_rng(4)
    f = fj.casadi.horizon(p)
    xs = p.integrate(p.guess()[0], 0.3 * rng.normal(size=(p.T + 1, p.ndx)))
    us = rng.normal(size=(p.T, p.nu))
    values = p.values(xs, us)
    got = f(xs.T, us.T)
    for x, want in zip(got, (values.next, values.cost[:, None], values.inequality), strict=True):
        np.testing.assert_allclose(np.array(x).T, want, atol=1e-13)
    X, U = ca.MX.sym("X", p.nx, p.T + 1), ca.MX.sym("U", p.nu, p.T)
    everything = ca.vertcat(*(ca.vec(y) for y in f(X, U)))
    J = ca.Function("J", [X, U], [ca.jacobian(everything, ca.vertcat(ca.vec(X), ca.vec(U)))])
    dx, du = rng.normal(size=(p.T + 1, p.ndx)), rng.normal(size=us.shape)
    ends = [(p.integrate(xs, s * STEP * dx), us + s * STEP * du) for s in (1.0, -1.0)]
    rate = (ends[0][0] - ends[1][0]) / (2 * STEP)
    plus, minus = (np.concatenate([np.array(y).T.ravel() for y in f(x.T, u.T)]) for x, u in ends)
    want = (plus - minus) / (2 * STEP)
    found = np.array(J(xs.T, us.T) @ np.concatenate([rate.ravel(), du.ravel()])).ravel()
    np.testing.assert_allclose(found, want, atol=1e-6 * np.abs(want).max())
    assert J(xs.T, us.T).nnz() < 0.5 * np.prod(J(xs.T, us.T).shape)


def test_ipopt_finds_the_motion_that_fddp_finds() -> None:
    robot = fj.load("arm")
    reach = Translation("tool", (0.4, 0.2, 0.6))
    costs = [Cost(reach, 10.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    p = Problem(robot, np.full(14, 0.1), [Phase(8, 0.05, costs)], [Cost(reach, 100.0), Cost(State(), 1.0)])
    solution = fj.control.solve(p)
    f = fj.casadi.horizon(p)
    opti = ca.Opti()
    X, U = opti.variable(p.nx, p.T + 1), opti.variable(p.nu, p.T)
    after, cost = f(X, U)
    opti.minimize(ca.sum2(cost))
    opti.subject_to(X[:, 0] == p.x0)
    opti.subject_to(ca.vec(X[:, 1:] - after) == 0)
    xs, us = p.guess()
    opti.set_initial(X, xs.T)
    opti.set_initial(U, us.T)
    quiet = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 500, "tol": 1e-7}
    opti.solver("ipopt", {"print_time": False}, quiet)
    found = opti.solve()
    np.testing.assert_allclose(found.value(ca.sum2(cost)), solution.cost, rtol=1e-5)


def test_batches_are_refused() -> None:
    p = flight()
    with pytest.raises(InputError, match="a batch"):
        fj.casadi.horizon(Problem(fj.load("arm"), np.zeros((2, 14)), [Phase(1, 0.1, [Cost(Control())])]))
    with pytest.raises(InputError, match="expected a Problem"):
        fj.casadi.horizon(p.evaluator)  # type: ignore[arg-type]
