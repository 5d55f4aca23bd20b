"""Model predictive control: a horizon that recedes, solved anew at each step from where the last one ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import arrays
from ...arrays import Array
from ...errors import InputError
from ..horizon import Horizon, Receding
from ..problem.problem import Problem
from .solution import Solution
from .solving import check_horizon, solve


class MPC:
    """A controller: `step(x)` takes the measured state and returns the controls to apply.

        mpc = fj.control.MPC(problem, knots=50)
        u = mpc.step(x)

    problem: a Problem or another Horizon. If it is longer than `knots`, or cyclic, a window of it moves on by one knot
    a step; otherwise the same horizon is solved each time. Knots that take no time (impacts) are passed with the knot
    before them.
    iterations: of the solver, a step; the first step takes `first`. seconds: a time limit for a step, or None.
    Other options are those of `solve`.
    """

    def __init__(
        self,
        problem: Any,
        knots: int | None = None,
        *,
        iterations: int = 1,
        first: int = 20,
        seconds: float | None = None,
        **options: Any,
    ) -> None:
        check_horizon(problem)
        self.problem: Horizon = problem
        self.T = problem.T if knots is None else arrays.whole_number("knots", knots, 1)
        recedes, longer = isinstance(problem, Receding), problem.T > self.T
        self.moves = recedes and (longer or getattr(problem, "cyclic", False))
        if not recedes and self.problem.T != self.T:
            raise InputError(f"knots: this problem has {self.problem.T}, and no windows of {self.T}; leave knots out")
        self._iterations = arrays.whole_number("iterations", iterations, 1)
        self._first = arrays.whole_number("first", first, 1)
        self._options = {"seconds": seconds, **options}
        if isinstance(problem, Problem):
            problem.compile()  # that of all windows, so that no step waits for it
        self.reset()

    def __repr__(self) -> str:
        return f"<MPC of {self.T} knots at knot {self.knot} of {self.problem!r}>"

    def reset(self, knot: int = 0) -> None:
        """Forget the last solution, and begin at a knot of the problem."""
        self.knot, self.solution = arrays.whole_number("knot", knot, 0), None

    solution: Solution | None

    @property
    def window(self) -> Horizon:
        """The horizon of the next step."""
        return self.problem.window(self.knot, self.T) if isinstance(self.problem, Receding) else self.problem

    def step(self, x: Any) -> Array:
        """The controls (nu,) at a state x (nx,); `solution` then has all else, such as gains for faster loops."""
        x = arrays.finite_exactly("x", x, (self.problem.nx,), "nx numbers of a state [q, v]")
        while self.solution is not None and self._passed():
            self._shift()
        h = self.window
        if self.solution is None:
            solution = solve(h, x, iterations=self._first, **self._options)
        else:
            solution = solve(h, x, self._xs, self._us, iterations=self._iterations, **self._options)
        self.solution = solution
        self._xs, self._us = solution.xs, solution.us
        self._waits = False
        return solution.us[0].copy()

    # How the window moves

    _waits = True  # whether the window has moved since the last step
    _xs: Array
    _us: Array

    def _passed(self) -> bool:
        """Whether the window has to move on: once a step, and past knots that take no time."""
        return not self._waits or (self.moves and self.window.durations[0] == 0)

    def _shift(self) -> None:
        self._xs, self._us = (np.concatenate([x[1:], x[-1:]]) for x in (self._xs, self._us))
        self._waits = True
        self.knot += self.moves
