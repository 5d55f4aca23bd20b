"""Receding horizons on toys, and pictures of solutions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet import control
from featherjet.errors import InputError
from toys import Linear, Pendulum, linear, pendulum

Array = np.ndarray


def test_a_linear_problem_is_solved_exactly_each_time() -> None:
    """One iteration from anywhere finds the optimum of the same horizon from the new state."""
    toy = linear()
    mpc = control.MPC(toy)
    x = toy.x0
    for _ in range(4):
        u = mpc.step(x)
        np.testing.assert_allclose(u, control.solve(toy, x).us[0], atol=1e-7)
        x = toy.step(x, u)


def test_a_pendulum_swings_up_and_stays_up() -> None:
    """In a model that errs: the true pendulum is pushed at every step."""
    toy = pendulum(T=40, u_lower=-3.0, u_upper=3.0)
    mpc = control.MPC(toy, first=50)
    rng = np.random.default_rng(0)
    x = toy.x0
    for _ in range(120):
        u = mpc.step(x)
        assert np.abs(u).max() <= 3.0
        x = toy.step(x, u) + np.array([0.0, 0.01 * rng.normal()])
    assert abs(x[0] - np.pi) < 0.2
    assert mpc.solution is not None
    assert len(mpc.solution.log) == 1


class Moving(Linear):
    """A linear problem that is pushed by c = push[t] at knot t of the window."""

    push: Array
    impact = -1  # a knot that takes no time

    def step(self, x: Array, u: Array) -> Array:
        return x @ self.A.T + u @ self.B.T + self.push[: self.T]

    def rollout(self, *args: Any) -> tuple[Array, Array, Array]:
        raise NotImplementedError

    def window(self, start: int, T: int) -> Moving:
        part = Moving(**{k: v for k, v in vars(self).items() if k in self.__dataclass_fields__})
        part.T, part.A, part.B, part.push = T, self.A, self.B, self.push[start : start + T]
        part.durations = np.where(np.arange(start, start + T) == self.impact, 0.0, 0.05)
        return part


def moving() -> Moving:
    plain = linear(T=30)
    toy = Moving(**{k: v for k, v in vars(plain).items() if k in plain.__dataclass_fields__})
    toy.A, toy.B, toy.push = plain.A, plain.B, np.random.default_rng(1).normal(size=(60, 4))
    return toy


def test_the_window_moves_by_a_knot_a_step_and_past_impacts(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = moving()
    toy.impact = 2
    starts: list[Array] = []

    def solved(h: Any, x: Array, xs: Any = None, us: Any = None, **_: Any) -> Any:
        starts.append(h.push[0])
        guess = h.guess(x) if xs is None else (xs, us)
        return control.Solution(h, *guess, *[np.zeros(1)] * 8, control.Log(np.zeros((1, 7))))

    monkeypatch.setattr("featherjet.control.solvers.mpc.solve", solved)
    mpc = control.MPC(toy, knots=10)
    for _ in range(4):
        mpc.step(toy.x0)
    np.testing.assert_array_equal(starts, toy.push[[0, 1, 3, 4]])
    mpc.reset(7)
    mpc.step(toy.x0)
    np.testing.assert_array_equal(starts[-1], toy.push[7])


def test_a_fixed_horizon_stays_where_it_is() -> None:
    """Knots cost differently; the horizon has windows, but is neither longer than `knots` nor cyclic."""
    robot = fj.load("arm")
    costs = [control.Cost(control.Control(), 1e-3)]
    reach = control.Cost(control.State(np.concatenate([np.full(7, 0.5), np.zeros(7)])), 10.0)
    phases = [control.Phase(3, 0.05, [*costs, reach]), control.Phase(3, 0.05, costs)]
    problem = control.Problem(robot, np.zeros(14), phases, [reach])
    fixed, moving = control.MPC(problem), control.MPC(problem, knots=4)
    around = control.MPC(control.Problem(robot, np.zeros(14), phases, [reach], cyclic=True))
    for k in range(3):
        for mpc in (moving, around):
            mpc.step(problem.x0)
            assert mpc.knot == k
        fixed.step(problem.x0)
        assert fixed.solution is not None
        xs, us = fixed.solution.xs, fixed.solution.us
        assert fixed.knot == 0
        assert fixed.window.values(xs, us).cost.sum() == problem.values(xs, us).cost.sum()


def test_a_warm_start_is_the_last_solution_moved_on() -> None:
    toy = pendulum(T=30)
    mpc = control.MPC(toy, first=60)
    mpc.step(toy.x0)
    assert mpc.solution is not None
    first = mpc.solution
    u = mpc.step(first.xs[1])
    assert abs(u - first.us[1]) < 0.05 * np.abs(first.us).max()


def test_windows_of_what_has_none_are_refused() -> None:
    with pytest.raises(InputError, match="leave knots out"):
        control.MPC(linear(), knots=10)
    with pytest.raises(InputError, match="x: expected"):
        control.MPC(linear()).step([0.0, 1.0])


@pytest.mark.parametrize("toy", [pendulum(T=20, u_lower=-1.0, u_upper=1.0), linear(T=10)])
def test_solutions_are_drawn(toy: Pendulum, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = control.solve(toy)
    assert len(found.plot().axes) == 5
    assert not list(tmp_path.iterdir())
    found.plot(tmp_path / "found.png")
    assert (tmp_path / "found.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="too many for a plot"):
        control.solve(toy, np.stack([toy.x0] * 2)).plot(tmp_path / "many.png")
    assert "cost" in str(found.log).splitlines()[0]
    assert len(str(found.log).splitlines()) == 1 + len(found.log)
    assert "converged" in repr(found)
