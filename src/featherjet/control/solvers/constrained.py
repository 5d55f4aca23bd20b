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
        """The multipliers that the constraints' values call for."""
        rho = self.rho[:, None, None]
        y = None if self.y is None or at.equality is None else self.y + rho * at.equality
        z = None if self.z is None or at.inequality is None else np.maximum(0.0, self.z + rho * at.inequality)
        return y, z

    def cost(self, at: Values) -> Array:
        """What constraints add to the cost of each knot, (B, T + 1)."""
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
        found = self.inner.values(xs, us)
        return replace(found, cost=found.cost + self.multipliers.cost(found))

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
    known = start or _first(horizon.values(xs, us), B)
    found = Fddp(horizon, settings, x0, xs, us).result()
    logs: list[Array] = [np.full((B, 0, found.log.columns.shape[-1]), np.nan)]
    left, before, feasible = np.arange(B), np.full(B, np.inf), np.zeros(B, bool)
    violation, iterations = np.full(B, np.inf), np.zeros(B, int)
    for round_ in range(ROUNDS):
        some = horizon if len(left) == B else part(horizon, left)
        own = known.take(left)
        patience = None if settings.seconds is None else settings.seconds - (time.perf_counter() - began)
        final = settings.tolerance
        inner = replace(settings, tolerance=max(final, FIRST_TOLERANCE * 0.1**round_), seconds=patience)
        search = Fddp(Penalised(some, own), inner, x0[left], found.xs[left], found.us[left], feasible[left])
        got = search.solve()
        feasible[left] = search.all.feasible
        _merge(found, got, left)
        logs.append(np.full((B, len(got.log), logs[0].shape[-1]), np.nan))
        logs[-1][left] = got.log.columns
        iterations[left] += got.iterations + 1
        at = some.values(got.xs, got.us)
        violation[left] = own.violation(at)
        found.cost[left] = at.cost.sum(-1)
        slow = violation[left] > BETTER * before[left]
        _update(known, own, at, left, slow)
        before[left] = violation[left]
        late = patience is not None and time.perf_counter() - began > (settings.seconds or 0.0)
        told = got.outcome >= TIME
        done = (violation[left] <= tolerance) & got.converged & (inner.tolerance == final)
        left = left[~done]
        if late or told.any() or not len(left):
            break
    bad = violation > tolerance
    found.outcome[bad & np.isin(found.outcome, (CONVERGED, ITERATIONS))] = VIOLATED
    found.converged = (found.outcome == CONVERGED) & ~bad
    found.violation, found.iterations = violation, iterations
    found.log, found.seconds = _joined(logs), time.perf_counter() - began
    given = {"equality": known.y, "inequality": known.z, "penalty": known.rho}
    found.multipliers = {name: x for name, x in given.items() if x is not None}
    return found


def _first(at: Values, B: int) -> Multipliers:
    """No multipliers yet."""
    y, z = (None if x is None else np.zeros((B, *x.shape[-2:])) for x in (at.equality, at.inequality))
    return Multipliers(y, z, np.full(B, FIRST_PENALTY))


def _update(known: Multipliers, own: Multipliers, at: Values, left: Array, slow: Array) -> None:
    y, z = own.forces(at)
    if known.y is not None and y is not None:
        known.y[left] = y
    if known.z is not None and z is not None:
        known.z[left] = z
    known.rho[left[slow]] = np.minimum(known.rho[left[slow]] * FACTOR, MOST_PENALTY)


def _merge(found: Solution, got: Solution, left: Array) -> None:
    for name in ("xs", "us", "cost", "gap", "outcome", "k", "K", "Vx"):
        getattr(found, name)[left] = getattr(got, name)


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
