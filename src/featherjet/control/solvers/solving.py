"""Solving optimal control problems: the front of the solvers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ... import arrays
from ...arrays import Array
from ...errors import InputError, UnknownName
from ...terminal import progress as bar
from ..horizon import Horizon, Quadratic, Values
from .constrained import Multipliers, solve_constrained
from .fddp import Fddp, Progress, Settings
from .solution import Solution

METHODS = ("fddp", "box-fddp", "augmented-lagrangian")
Record = TypeVar("Record", bound=Values)


def solve(
    problem: Any,
    x0: Any = None,
    xs: Any = None,
    us: Any = None,
    *,
    start: Solution | None = None,
    method: str | None = None,
    tolerance: float = 1e-9,
    iterations: int = 100,
    regularisation: float = 1e-9,
    seconds: float | None = None,
    violation: float = 1e-6,
    callback: Callable[[Progress], object] | None = None,
    progress: bool = False,
) -> Solution:
    """Solve an optimal control problem, or many at once.

    problem: a Problem or another Horizon.
    x0 (..., nx): where it starts, if not at the problem's own x0; a leading axis makes a batch of problems.
    xs (..., T + 1, nx), us (..., T, nu): a first guess, by default the problem's own; `start`: that of a solution.
    method: "augmented-lagrangian" keeps limits of controls and constraints; "box-fddp" keeps limits of controls alone;
    "fddp" keeps neither. By default, what the problem has.
    tolerance: the solver stops when it expects to gain less than this; iterations: the most; regularisation: what is
    added to Hessians at first; seconds: a time limit, after which the best motion so far is returned.
    violation: how well constraints have to hold.
    callback: called with a `Progress` after each iteration; the solver stops if it returns True.
    progress: shows a bar of the problems of a batch, on a terminal.
    """
    check_horizon(problem)
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function of a Progress, got {type(callback).__name__}")
    if start is not None and not isinstance(start, Solution):
        raise InputError(f"start: expected a Solution to begin with, got {type(start).__name__}")
    if method is not None and method not in METHODS:
        raise UnknownName("method", method, METHODS)
    arrays.positive_number("tolerance", tolerance)
    arrays.positive_number("regularisation", regularisation)
    arrays.positive_number("violation", violation)
    arrays.whole_number("iterations", iterations, 1)
    if seconds is not None:
        arrays.positive_number("seconds", seconds)
    horizon: Horizon = problem
    batch, x0, xs, us = beginning(horizon, x0, xs, us, start)
    one = horizon if batch else OneProblem(horizon)
    method = method or needed(one)
    limited = horizon.u_lower is not None or horizon.u_upper is not None
    clip = limited and method != "fddp"
    if clip:
        us = np.clip(us, horizon.u_lower, horizon.u_upper)
    settings = Settings(tolerance, iterations, regularisation, seconds, clip, callback)
    with bar() if progress else nullcontext() as shown:
        if shown is not None:
            settings = _watched(settings, shown, len(x0))
        if method == "augmented-lagrangian":
            solution = solve_constrained(one, settings, violation, x0, xs, us, _multipliers(start, bool(batch)))
        else:
            solution = Fddp(one, settings, x0, xs, us).solve()
    solution.horizon = horizon
    return solution if batch else solution[0]


def check_horizon(problem: object) -> None:
    """Raise unless this can be solved."""
    if not hasattr(problem, "linearize"):
        raise InputError(f"problem: expected a control.Problem or another Horizon, got {type(problem).__name__}")


def needed(h: Horizon) -> str:
    """The method for what a horizon has: constraints, limits of controls, or neither."""
    if h.ne or h.ni:
        return "augmented-lagrangian"
    return "fddp" if h.u_lower is None and h.u_upper is None else "box-fddp"


def _multipliers(start: Solution | None, batch: bool) -> Multipliers | None:
    """Those of a solution to start with, if it has any."""
    if start is None or not start.multipliers:
        return None
    arrays_of = {name: np.array(x if batch else x[None]) for name, x in start.multipliers.items()}
    return Multipliers(arrays_of.get("equality"), arrays_of.get("inequality"), arrays_of["penalty"])


def beginning(
    h: Horizon, x0: Any, xs: Any, us: Any, start: Solution | None
) -> tuple[tuple[int, ...], Array, Array, Array]:
    """The batch, () or (B,), and x0 (B, nx), xs (B, T + 1, nx), us (B, T, nu) to start with; B is 1 for one problem."""
    if start is not None:
        xs, us = start.xs if xs is None else xs, start.us if us is None else us
    x0 = arrays.finite("x0", h.x0 if x0 is None else x0, (h.nx,), "nx numbers of a state [q, v]")
    if xs is None or us is None:
        guess = h.guess(x0)
        xs, us = guess[0] if xs is None else xs, guess[1] if us is None else us
    xs = arrays.finite("xs", xs, (h.T + 1, h.nx), "a state for each of T + 1 knots")
    us = arrays.finite("us", us, (h.T, h.nu), "nu controls for each of T knots")
    batch = arrays.common_batch({"x0": (x0, 1), "xs": (xs, 2), "us": (us, 2), "problem": (np.empty(h.batch), 0)})
    if len(batch) > 1:
        raise InputError(f"x0, xs, us: expected at most one leading axis, of problems; got {batch}")
    B = batch or (1,)
    x0, xs, us = (np.broadcast_to(x, (*B, *x.shape[x.ndim - k :])) for x, k in ((x0, 1), (xs, 2), (us, 2)))
    return batch, x0, xs, us


def _watched(settings: Settings, shown: Any, total: int) -> Settings:
    """The same settings, with a callback that moves a progress bar."""
    task = shown.add_task("solving", total=total)

    def told(state: Progress) -> object:
        shown.update(task, completed=state.done)
        return settings.callback(state) if settings.callback is not None else False

    return replace(settings, callback=told)


class OneProblem:
    """A horizon of one problem as a batch of one: solvers give it arrays with a leading axis of length 1."""

    def __init__(self, horizon: Horizon) -> None:
        self.inner = horizon
        self.T, self.nx, self.ndx, self.nu = horizon.T, horizon.nx, horizon.ndx, horizon.nu
        self.ne, self.ni = horizon.ne, horizon.ni
        self.batch: tuple[int, ...] = (1,)
        self.x0, self.durations, self.exact = horizon.x0[None], horizon.durations, horizon.exact
        limits = horizon.u_lower, horizon.u_upper
        self.u_lower, self.u_upper = (None if x is None else x[None] for x in limits)
        self._last: tuple[Quadratic, Quadratic] | None = None  # horizons may use theirs again

    def difference(self, x0: Array, x1: Array) -> Array:
        return self.inner.difference(x0[0], x1[0])[None]

    def integrate(self, x: Array, dx: Array) -> Array:
        return self.inner.integrate(x[0], dx[0])[None]

    def guess(self, x0: Array) -> tuple[Array, Array]:
        xs, us = self.inner.guess(x0[0])
        return xs[None], us[None]

    def values(self, xs: Array, us: Array) -> Values:
        return _with_axis(self.inner.values(xs[0], us[0]))

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        quadratic = self.inner.linearize(xs[0], us[0], None if costates is None else costates[0])
        if self._last is None or self._last[0] is not quadratic:
            self._last = quadratic, _with_axis(quadratic)
        return self._last[1]

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        found = self.inner.rollout(x0[0], xs[0], us[0], k[0], K[0], alpha[0], None if gaps is None else gaps[0], clip)
        new_xs, new_us, cost = found
        return new_xs[None], new_us[None], np.reshape(cost, 1)

    def terms(self, xs: Array, us: Array) -> dict[str, Array]:
        return {name: x[None] for name, x in self.inner.terms(xs[0], us[0]).items()}

    def take(self, problems: Any) -> Horizon:
        return self


def _with_axis(record: Record) -> Record:
    return replace(record, **{name: np.asarray(x)[None] for name, x in vars(record).items() if x is not None})
