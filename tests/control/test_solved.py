"""Solvers on robots: Crocoddyl's arm, batches, windows, exact Hessians, and what becomes of solutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import MPC, Constraint, Control, Cost, Phase, Placement, Problem, Solution, State, solve

ARM_UP = [np.cos(1.5707), np.sin(1.5707), 2.618, -1.5707, np.cos(3.1415), np.sin(3.1415), 2.618, 1.0, 0.0]


@pytest.fixture(scope="module")
def arm() -> Problem:
    robot = fj.Robot(fj.load("arm").model, backend="compiled")
    reach = Placement("tool", robot.frame_placement(np.linspace(0.2, 0.8, 7), "tool"))
    costs = [Cost(reach, 1.0), Cost(State(), 0.1), Cost(Control(), 1e-3)]
    return Problem(robot, np.zeros(14), [Phase(25, 0.04, costs)], [Cost(reach, 100.0)])


@pytest.fixture(scope="module")
def reached(arm: Problem) -> Solution:
    return solve(arm)


def test_the_arm_takes_crocoddyls_iterations_to_its_cost() -> None:
    """Crocoddyl 3.2.1 on its example arm_manipulation: 24 iterations, cost 4.682872267776."""
    robot = fj.load("kinova")
    goal = np.eye(4)
    goal[:3, 3] = 0.6, 0.2, 0.5
    reach = Placement("j2s6s200_end_effector", goal)
    costs = [Cost(reach, 1.0), Cost(State(), 0.1), Cost(Control(), 0.1)]
    x0 = np.concatenate([ARM_UP, np.zeros(robot.nv)])
    found = solve(Problem(robot, x0, [Phase(100, 0.01, costs)], [Cost(reach, 1e3)]), regularisation=0.1)
    assert found.converged
    assert found.iterations == 24
    assert found.cost == pytest.approx(4.682872267776, rel=1e-11)


def test_a_batch_of_starts_is_each_of_them(arm: Problem) -> None:
    x0 = 0.3 * np.random.default_rng(0).normal(size=(9, 14))
    together = solve(arm, x0)
    assert together.converged.all()
    for k in (0, 4, 8):
        alone = solve(arm, x0[k])
        assert together.iterations[k] == alone.iterations
        np.testing.assert_allclose(together.us[k], alone.us, atol=1e-7 * np.abs(alone.us).max())


def test_goals_may_differ_within_a_batch(arm: Problem) -> None:
    """Data with an axis of problems: parts of the problem go into the slots."""
    robot = fj.Robot(arm.model, backend="compiled")
    goals = robot.frame_placement(np.random.default_rng(1).uniform(-0.6, 0.6, (5, 7)), "tool")

    def problem(goal: np.ndarray) -> Problem:
        reach = Placement("tool", goal)
        costs = [Cost(reach, 1.0), Cost(State(), 0.1), Cost(Control(), 1e-3)]
        return Problem(robot, np.zeros(14), [Phase(25, 0.04, costs)], [Cost(reach, 100.0)])

    together = solve(problem(goals[:, None]))
    assert together.batch == (5,)
    assert together.converged.all()
    for k in (0, 3):
        alone = solve(problem(goals[k]))
        np.testing.assert_allclose(together.us[k], alone.us, atol=1e-7 * np.abs(alone.us).max())


def test_an_end_that_is_a_constraint_is_met(arm: Problem) -> None:
    robot = fj.Robot(arm.model, backend="compiled")
    goal = robot.frame_placement(np.linspace(0.2, 0.8, 7), "tool")
    costs = [Cost(State(), 0.1), Cost(Control(), 1e-3)]
    found = solve(Problem(robot, np.zeros(14), [Phase(25, 0.04, costs)], [Constraint(Placement("tool", goal))]))
    assert found.converged
    assert found.violation is not None
    assert found.violation < 1e-6
    np.testing.assert_allclose(robot.frame_placement(found.xs[-1, :7], "tool"), goal, atol=1e-5)


def test_limits_of_efforts_hold(arm: Problem, reached: Solution) -> None:
    limited = arm.window(0, arm.T)
    most = 0.9 * np.abs(reached.us).max()
    limited.u_lower, limited.u_upper = np.full((arm.T, 7), -most), np.full((arm.T, 7), most)
    found = solve(limited)
    assert found.converged
    assert np.abs(found.us).max() == most
    assert found.cost > reached.cost


def test_exact_hessians_converge_faster_to_the_same_motion() -> None:
    robot = fj.Robot(fj.models.chain(2), backend="compiled")
    goal = State(np.array([2.5, 0.0, 0.0, 0.0]))
    weights = np.array([1.0, 1.0, 0.1, 0.1])
    found = {}
    for hessian in ("gauss-newton", "exact"):
        costs = [Cost(goal, 0.01 * weights), Cost(Control(), 0.1)]
        problem = Problem(robot, np.zeros(4), [Phase(60, 0.03, costs)], [Cost(goal, 1e3 * weights)], hessian=hessian)
        found[hessian] = solve(problem, tolerance=1e-10, iterations=300)
        assert found[hessian].converged
    plain, exact = found["gauss-newton"], found["exact"]
    assert exact.cost == pytest.approx(float(plain.cost), rel=1e-7)
    assert exact.iterations < plain.iterations


def test_windows_recede_along_a_problem(arm: Problem, reached: Solution) -> None:
    """One iteration a step stays close to the optimum of each window, and the tool approaches its goal."""
    robot = fj.Robot(arm.model, backend="compiled")
    mpc, x = MPC(arm, knots=15), arm.x0
    for k in range(arm.T):
        u = mpc.step(x)
        assert mpc.knot == k
        if k % 8 == 4:
            best = solve(arm.window(k, 15), x).us[0]
            np.testing.assert_allclose(u, best, atol=0.01 * np.abs(best).max())
        x = arm.values(np.broadcast_to(x, (arm.T + 1, 14)), np.broadcast_to(u, (arm.T, 7))).next[0]
    gone, goal = (robot.frame_placement(q[:7], "tool")[:3, 3] for q in (x, reached.xs[-1]))
    start = robot.frame_placement(arm.x0[:7], "tool")[:3, 3]
    assert np.linalg.norm(gone - goal) < 0.5 * np.linalg.norm(start - goal)


def test_a_solution_is_a_trajectory_and_a_picture(arm: Problem, reached: Solution, tmp_path: Path) -> None:
    motion = reached.trajectory()
    np.testing.assert_array_equal(motion.q, reached.xs[:, :7])
    np.testing.assert_array_equal(motion.tau[:-1], reached.us)
    np.testing.assert_allclose(motion.t, 0.04 * np.arange(26))
    again = fj.Trajectory.load(motion.save(tmp_path / "reach.npz"))
    np.testing.assert_array_equal(again.v, reached.xs[:, 7:])
    pytest.importorskip("matplotlib")
    reached.plot(tmp_path / "reach.png")
    assert (tmp_path / "reach.png").stat().st_size > 10_000
    terms = arm.terms(reached.xs, reached.us)
    assert sum(x.sum() for x in terms.values()) == pytest.approx(float(reached.cost), rel=1e-12)
