"""Constraints on states and controls, by the augmented Lagrangian around FDDP.

    l + y.e + rho/2 |e|^2 + (|max(0, z + rho c)|^2 - |z|^2) / (2 rho)   for  e(x, u) = 0,  c(x, u) <= 0

is minimised by FDDP, again and again, with y + rho e and max(0, z + rho c) for the multipliers y and z after each time,
and a larger rho where the constraints hold no better than before (J. Nocedal, S. Wright, Numerical Optimization, 17.3;
T. Howell, B. Jackson, Z. Manchester, ALTRO, IROS 2019). Control limits stay with Box-FDDP.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...arrays import Array
from ..horizon import Horizon, Quadratic, Values, part
from .fddp import Fddp, Settings
from .solution import CONVERGED, ITERATIONS, TIME, VIOLATED, Log, Solution

FIRST_PENALTY, MOST_PENALTY, FACTOR = 10.0, 1e9, 10.0
BETTER = 0.25  # what violations must fall to, or the penalty grows
FIRST_TOLERANCE = 1e-2  # of the first search; each following one has a tenth of it
ROUNDS = 40


@dataclass
class Multipliers:
    """y (B, T + 1, ne), z (B, T + 1, ni) or None, and the penalty rho (B,)."""

    y: Array | None
    z: Array | None
    rho: Array

    def take(self, p: Any) -> Multipliers:
        return Multipliers(None if self.y is None else self.y[p], None if self.z is None else self.z[p], self.rho[p])

    def violation(self, at: Values) -> Array:
        """How far constraints and complementarity are from holding, (B,): the largest |e| and |max(c, -z / rho)|."""
        worst = np.zeros(len(self.rho))
        if self.y is not None and at.equality is not None:
            worst = np.maximum(worst, np.abs(at.equality).max((1, 2), initial=0.0))
        if self.z is not None and at.inequality is not None:
            slack = np.maximum(at.inequality, -self.z / self.rho[:, None, None])
            worst = np.maximum(worst, np.abs(slack).max((1, 2), initial=0.0))
        return worst

    def forces(self, at: Values) -> tuple[Array | None, Array | None]:
        """New multipliers y (B, T + 1, ne) and z (B, T + 1, ni), from the values of the constraints."""
        rho = self.rho[:, None, None]
        y = None if self.y is None or at.equality is None else self.y + rho * at.equality
        z = None if self.z is None or at.inequality is None else np.maximum(0.0, self.z + rho * at.inequality)
        return y, z

    def cost(self, at: Values) -> Array:
        """The cost (B, T + 1) that constraints add to each knot."""
        y, z = self.forces(at)
        total = np.zeros(at.cost.shape)
        rho = self.rho[:, None]
        if y is not None:
            total += ((y * y).sum(-1) - (self.y * self.y).sum(-1)) / (2 * rho)  # type: ignore[operator]
        if z is not None:
            total += ((z * z).sum(-1) - (self.z * self.z).sum(-1)) / (2 * rho)  # type: ignore[operator]
        return total


class Penalised:
    """A batch of problems whose constraints have become costs."""

    def __init__(self, inner: Horizon, multipliers: Multipliers) -> None:
        self.inner, self.multipliers = inner, multipliers
        self.T, self.nx, self.ndx, self.nu = inner.T, inner.nx, inner.ndx, inner.nu
        self.ne = self.ni = 0
        self.batch: tuple[int, ...] = multipliers.rho.shape
        self.x0, self.durations, self.exact = inner.x0, inner.durations, inner.exact
        self.u_lower, self.u_upper = inner.u_lower, inner.u_upper
        self.difference, self.integrate, self.guess = inner.difference, inner.integrate, inner.guess

    def values(self, xs: Array, us: Array) -> Values:
        values = self.inner.values(xs, us)
        return replace(values, cost=values.cost + self.multipliers.cost(values))

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        """Gauss-Newton in the constraints: their second derivatives are left out."""
        at = self.inner.linearize(xs, us, costates)
        y, z = self.multipliers.forces(at)
        rho = self.multipliers.rho[:, None, None]
        new = {name: getattr(at, name) for name in ("Lx", "Lu", "Lxx", "Lxu", "Luu")}
        for force, Cx, Cu in ((y, at.Ex, at.Eu), (z, at.Ix, at.Iu)):
            if force is None or Cx is None or Cu is None:
                continue
            weight = np.broadcast_to(rho, force.shape) if force is y else rho * (force > 0)
            Wx, Wu = weight[..., None] * Cx, weight[:, :-1, :, None] * Cu
            new["Lx"] = new["Lx"] + _transposed_times(Cx, force)
            new["Lu"] = new["Lu"] + _transposed_times(Cu, force[:, :-1])
            new["Lxx"] = new["Lxx"] + np.matmul(Cx.swapaxes(-1, -2), Wx)
            new["Lxu"] = new["Lxu"] + np.matmul(Cx[:, :-1].swapaxes(-1, -2), Wu)
            new["Luu"] = new["Luu"] + np.matmul(Cu.swapaxes(-1, -2), Wu)
        return replace(at, cost=at.cost + self.multipliers.cost(at), **new)

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        new_xs, new_us, cost = self.inner.rollout(x0, xs, us, k, K, alpha, gaps, clip)
        with np.errstate(invalid="ignore", over="ignore"):
            return new_xs, new_us, cost + self.multipliers.cost(self.inner.values(new_xs, new_us)).sum(-1)

    def terms(self, xs: Array, us: Array) -> Mapping[str, Array]:
        return self.inner.terms(xs, us)

    def take(self, problems: Any) -> Penalised:
        return Penalised(part(self.inner, problems), self.multipliers.take(problems))


def solve_constrained(
    horizon: Horizon, settings: Settings, tolerance: float, x0: Array, xs: Array, us: Array, start: Multipliers | None
) -> Solution:
    """Solve a batch of problems with constraints that hold to `tolerance`; `settings` are those of each search."""
    began, B = time.perf_counter(), len(x0)
    multipliers = start or _first(horizon.values(xs, us), B)
    solution = Fddp(horizon, settings, x0, xs, us).result()
    logs: list[Array] = [np.full((B, 0, solution.log.columns.shape[-1]), np.nan)]
    left, before, feasible = np.arange(B), np.full(B, np.inf), np.zeros(B, bool)
    violation, iterations = np.full(B, np.inf), np.zeros(B, int)
    for round_ in range(ROUNDS):
        some = horizon if len(left) == B else part(horizon, left)
        of_left = multipliers.take(left)
        patience = None if settings.seconds is None else settings.seconds - (time.perf_counter() - began)
        final = settings.tolerance
        inner = replace(settings, tolerance=max(final, FIRST_TOLERANCE * 0.1**round_), seconds=patience)
        search = Fddp(Penalised(some, of_left), inner, x0[left], solution.xs[left], solution.us[left], feasible[left])
        result = search.solve()
        feasible[left] = search.all.feasible
        _merge(solution, result, left)
        logs.append(np.full((B, len(result.log), logs[0].shape[-1]), np.nan))
        logs[-1][left] = result.log.columns
        iterations[left] += result.iterations + 1
        at = some.values(result.xs, result.us)
        violation[left] = of_left.violation(at)
        solution.cost[left] = at.cost.sum(-1)
        slow = violation[left] > BETTER * before[left]
        _update(multipliers, of_left, at, left, slow)
        before[left] = violation[left]
        late = patience is not None and time.perf_counter() - began > (settings.seconds or 0.0)
        told = result.outcome >= TIME
        done = (violation[left] <= tolerance) & result.converged & (inner.tolerance == final)
        left = left[~done]
        if late or told.any() or not len(left):
            break
    bad = violation > tolerance
    solution.outcome[bad & np.isin(solution.outcome, (CONVERGED, ITERATIONS))] = VIOLATED
    solution.converged = (solution.outcome == CONVERGED) & ~bad
    solution.violation, solution.iterations = violation, iterations
    solution.log, solution.seconds = _joined(logs), time.perf_counter() - began
    arrays = {"equality": multipliers.y, "inequality": multipliers.z, "penalty": multipliers.rho}
    solution.multipliers = {name: x for name, x in arrays.items() if x is not None}
    return solution


def _first(at: Values, B: int) -> Multipliers:
    """Multipliers of zero, and the first penalty."""
    y, z = (None if x is None else np.zeros((B, *x.shape[-2:])) for x in (at.equality, at.inequality))
    return Multipliers(y, z, np.full(B, FIRST_PENALTY))


def _update(multipliers: Multipliers, of_left: Multipliers, at: Values, left: Array, slow: Array) -> None:
    """Write new multipliers of the problems `left`, and raise the penalties of those that are slow (a mask of left)."""
    y, z = of_left.forces(at)
    if multipliers.y is not None and y is not None:
        multipliers.y[left] = y
    if multipliers.z is not None and z is not None:
        multipliers.z[left] = z
    multipliers.rho[left[slow]] = np.minimum(multipliers.rho[left[slow]] * FACTOR, MOST_PENALTY)


def _merge(solution: Solution, result: Solution, left: Array) -> None:
    """Write the results of the problems `left` into the solution of all."""
    for name in ("xs", "us", "cost", "gap", "outcome", "k", "K", "Vx"):
        getattr(solution, name)[left] = getattr(result, name)


def _joined(logs: list[Array]) -> Log:
    """Logs of several searches one after the other, without the empty rows between them."""
    columns = np.concatenate(logs, 1)
    order = np.argsort(np.isnan(columns[..., 0]), axis=1, kind="stable")
    columns = np.take_along_axis(columns, order[..., None], 1)
    most = int((~np.isnan(columns[..., 0])).sum(1).max(initial=0))
    return Log(columns[:, :most])


def _transposed_times(C: Array, x: Array) -> Array:
    """C^T x of each knot."""
    return np.matmul(x[..., None, :], C)[..., 0, :]
