"""One problem in several threads at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import featherjet as fj
from featherjet.control import Constraint, Control, Cost, Phase, Problem, Progress, State, Translation, solve

TURNS = 6  # iterations at which all threads wait for each other


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Threads take turns far more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def reach(**options: object) -> Problem:
    there = Translation("tool", (0.4, 0.2, 0.6))
    costs = [Cost(there, 10.0), Cost(State(), 0.1), Cost(Control(), 1e-2)]
    phase = Phase(20, 0.03, costs, constraints=[Constraint(Control(), -9.0, 9.0)])
    return Problem(fj.load("arm"), np.full(14, 0.1), [phase], [Cost(there, 100.0)], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("hessian", ["gauss-newton", "exact"])
def test_threads_solve_one_problem_as_one_thread_does(hessian: str) -> None:
    """They meet after each of the first iterations, so that all are within the same step of the solver."""
    p = reach(hessian=hessian)
    starts = 0.3 * np.random.default_rng(0).normal(size=(4, 14))
    alone = [solve(p, x0) for x0 in starts]
    assert min(int(s.iterations) for s in alone) > TURNS
    meeting = Barrier(len(starts))

    def together(x0: np.ndarray) -> fj.control.Solution:
        left = [TURNS]

        def meet(_: Progress) -> None:
            left[0] -= 1
            if left[0] >= 0:
                meeting.wait(60)

        return solve(p, x0, callback=meet)

    with ThreadPoolExecutor(len(starts)) as pool:
        for one, other in zip(alone, pool.map(together, starts), strict=True):
            np.testing.assert_array_equal(other.xs, one.xs)
            np.testing.assert_array_equal(other.us, one.us)


def test_derivatives_of_a_thread_stay_while_others_ask() -> None:
    p = reach()
    xs, us = p.guess()
    mine = p.linearize(xs, us)
    before = mine.Fx.copy(), mine.Lx.copy()
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(p.linearize, xs + 0.5, us - 1.0).result()
    assert np.abs(theirs.Fx - mine.Fx).max() > 0.01
    np.testing.assert_array_equal(mine.Fx, before[0])
    np.testing.assert_array_equal(mine.Lx, before[1])
