"""Iterations that are taken again: the same numbers as those of a problem that has never been asked before."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import featherjet as fj
from backends import kernel_of
from featherjet.control import (
    CenterOfMass,
    Constraint,
    Control,
    Cost,
    Force,
    Impact,
    Phase,
    Problem,
    State,
    Translation,
    Velocity,
    solve,
)
from featherjet.control.compiled.replay import Replay
from featherjet.jit.sequence import AtOnce, InRows

Array = np.ndarray
FEET = ("LF_foot", "LH_foot", "RF_foot", "RH_foot")
NAMES = ("next", "cost", "Lx", "Lu", "Lxx", "Lxu", "Luu", "Fx", "Fu", "equality", "inequality")


def of_arm() -> Problem:
    """An arm, with constraints, some of whose joints have no motors."""
    robot = fj.load("arm", backend="compiled")
    x0 = np.concatenate([robot.neutral(), np.zeros(robot.nv)])
    costs = [Cost(State(), 0.1), Cost(Control(), 1e-3), Cost(Translation("tool", (0.4, 0.1, 0.5)))]
    limits = [Constraint(Velocity("tool")), Constraint(Control(), -5.0, 5.0)]
    return Problem(
        robot,
        x0,
        [Phase(6, 0.02, costs, constraints=limits)],
        [Cost(State())],
        actuated=("joint1", "joint3", "joint4", "joint7"),
    )


def of_quadruped(integrator: str = "euler") -> Problem:
    """A quadruped that stands, flies, strikes the ground and stands again."""
    robot = fj.load("quadruped", backend="compiled")
    x0 = np.concatenate([robot.neutral(), np.zeros(robot.nv)])
    four, two = (fj.Contacts(robot, [fj.PointContact(f) for f in feet]) for feet in (FEET, FEET[:2]))
    costs = [Cost(State(), 0.1), Cost(Control(), 1e-3), Cost(CenterOfMass((0.0, 0.0, 0.4)))]
    return Problem(
        robot, x0,
        [
            Phase(4, 0.01, [*costs, Cost(Force(FEET[0]), 1e-4)], four, integrator=integrator),
            Phase(3, 0.01, costs, integrator=integrator),
            Impact(two, [Cost(State(), 0.1)]),
            Phase(2, 0.01, costs, two, integrator=integrator),
        ],
        [Cost(State())],
    )  # fmt: skip


MAKERS: dict[str, Callable[[], Problem]] = {
    "arm": of_arm,
    "quadruped": of_quadruped,
    "rk4": lambda: of_quadruped("rk4"),
}


def at_random(p: Problem, seed: int, batch: tuple[int, ...] = ()) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    xs, us = p.guess()
    xs, us = (np.broadcast_to(x, (*batch, *x.shape)) for x in (xs, us))
    return p.integrate(xs, 0.05 * rng.normal(size=(*xs.shape[:-1], p.ndx))), us + rng.normal(size=us.shape)


def numbers(p: Problem, xs: Array, us: Array) -> dict[str, Array]:
    found = p.linearize(xs, us)
    return {k: x.copy() for k in NAMES if (x := getattr(found, k)) is not None}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)
def test_iterations_taken_again_are_those_of_a_new_problem(name: str, batch: tuple[int, ...]) -> None:
    p = MAKERS[name]()
    for seed in (0, 1, 2, 1):  # plainly, recorded, again, and again
        xs, us = at_random(p, seed, batch)
        found, fresh = numbers(p, xs, us), numbers(MAKERS[name](), xs, us)
        for k in fresh:
            np.testing.assert_array_equal(found[k], fresh[k], f"{k}, seed {seed}")


@pytest.mark.parametrize("name", MAKERS)
def test_iterations_after_rollouts_are_those_of_a_new_problem(name: str) -> None:
    p = MAKERS[name]()
    zero, policy = np.zeros((p.T, p.nu)), np.zeros((p.T, p.nu, p.ndx))
    for seed in (0, 1, 2, 3):
        xs, us = at_random(p, seed)
        xs, us, _ = p.rollout(xs[0], xs, us, zero, policy, np.ones(()), None, False)
        found, fresh = numbers(p, xs, us), numbers(MAKERS[name](), xs, us)
        for k in fresh:
            np.testing.assert_allclose(found[k], fresh[k], 1e-9, 1e-9 * (1 + np.abs(fresh[k]).max()), err_msg=k)


def test_solutions_do_not_depend_on_what_was_solved_before() -> None:
    used, fresh = of_quadruped(), of_quadruped()
    xs, us = at_random(used, 5)
    solve(used, xs=xs, us=us, iterations=3)
    a, b = solve(used, iterations=4), solve(fresh, iterations=4)
    np.testing.assert_array_equal(a.xs, b.xs)
    np.testing.assert_array_equal(a.us, b.us)


def test_code_for_rows_runs_row_after_row() -> None:
    robot = fj.load("arm", backend="compiled")
    kernel = kernel_of(robot, "integrate")
    rng = np.random.default_rng(0)
    qs, w = np.zeros((5, 4, robot.nq)), rng.normal(size=(5, 3, robot.nv))
    qs[:, 0] = rng.normal(size=(5, robot.nq))
    run = InRows(kernel, [qs[:, :-1], w, qs[:, 1:]])
    for _ in range(2):
        qs[:, 1:] = np.nan
        run()
        np.testing.assert_allclose(qs[:, 1:] - qs[:, :1], np.cumsum(w, 1), 0, 1e-13)


def test_a_track_takes_its_steps_again_where_its_arrays_are() -> None:
    robot = fj.load("arm", backend="compiled")
    kernel, track = kernel_of(robot, "integrate"), Replay()
    rng = np.random.default_rng(0)
    for shape in ((4,), (2, 3), ()):  # one axis of samples runs at once; others go the general way
        q, w = rng.normal(size=(*shape, robot.nq)), rng.normal(size=(*shape, robot.nv))
        (found,) = track.run(kernel, q, w)
        assert AtOnce.fits(kernel, (q, w), (found,)) == (len(shape) < 2)
        doubled = np.zeros_like(found)
        track.do(lambda a=found, out=doubled: np.multiply(a, 2.0, out))
        q[...], w[...] = 1.0, 2.0
        track()
        np.testing.assert_array_equal(doubled, 6.0)


@pytest.mark.parametrize("name", MAKERS)
def test_problems_and_solutions_are_copied_and_pickled_before_and_after_they_are_solved(name: str) -> None:
    p = MAKERS[name]()
    copies = [copy.deepcopy(p), pickle.loads(pickle.dumps(p))]
    found = solve(p, iterations=4)
    copies += [copy.copy(p), pickle.loads(pickle.dumps(p))]
    for other in copies:
        again = solve(other, iterations=4)
        np.testing.assert_array_equal(again.xs, found.xs)
        np.testing.assert_array_equal(again.us, found.us)
    kept = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(kept.xs, found.xs)
    assert kept.outcome == found.outcome
