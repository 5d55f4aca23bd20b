"""FDDP: differential dynamic programming on knots that need not join, for one problem or many at once.

[FDDP] C. Mastalli et al., Crocoddyl: an efficient and versatile framework for multi-contact optimal control, ICRA 2020.
The regularisation schedule, the acceptance of steps and the stopping criterion are those of Crocoddyl's SolverFDDP, so
that both take the same iterations.

Problems of a batch occupy slots. Each goes its own way: a problem that is done leaves its slot to the next one, so that
the slots stay full, and what an iteration touches stays in the processor's cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .horizon import Horizon, Quadratic
from .riccati import Gains, Riccati
from .solution import CALLBACK, COLUMNS, CONVERGED, ITERATIONS, STUCK, TIME, Log, Solution

STEPS = 0.5 ** np.arange(10.0)  # lengths of steps, in the order of trying
LEAST_REGULARISATION, MOST_REGULARISATION, FACTOR = 1e-9, 1e9, 10.0
GOOD_STEP, POOR_STEP = 0.5, 0.01  # longer steps lower the regularisation, shorter ones raise it
FLAT = 1e-12  # expected slopes below this are rounding
ENOUGH, TOLERATED = 0.1, 2.0  # of the expected gain; of the expected loss, while gaps close
CLOSED = 1e-16  # gaps up to this are none
SLOT_BYTES = 8e6  # of all slots' matrices
MOST_SLOTS = 64


@dataclass(frozen=True)
class Progress:
    """What a callback sees: the iteration, how many problems are at work and done, and the last row of their logs.

    rows (p, 7): a row of COLUMNS for each problem at work, whose numbers are `problems` (p,).
    """

    iteration: int
    problems: Array
    rows: Array
    done: int
    total: int


@dataclass(frozen=True)
class Settings:
    """tolerance: of the expected gain; iterations: the most; regularisation: at the start; seconds: the most, or None;
    clip: whether controls keep their limits; callback: called after each iteration, stops everything if it returns
    True."""

    tolerance: float = 1e-9
    iterations: int = 100
    regularisation: float = LEAST_REGULARISATION
    seconds: float | None = None
    clip: bool = False
    callback: Callable[[Progress], object] | None = None


class Fddp:
    """Solves the problems of a horizon; xs (B, T + 1, nx), us (B, T, nu), x0 (B, nx) are where it starts."""

    def __init__(self, horizon: Horizon, settings: Settings, x0: Array, xs: Array, us: Array) -> None:
        self.h, self.settings, self.x0 = horizon, settings, x0
        self.B, T, n, m = len(x0), horizon.T, horizon.ndx, horizon.nu
        per_problem = 8 * T * (3 * n * n + 3 * n * m)
        self.room = int(min(self.B, max(8, min(MOST_SLOTS, SLOT_BYTES // per_problem))))
        self.riccati = Riccati(T, n, m, self.room, settings.clip)
        self.xs, self.us = xs.copy(), us.copy()
        self.k, self.K = np.zeros((self.B, T, m)), np.zeros((self.B, T, m, n))
        self.Vx = np.zeros((self.B, T + 1, n))
        self.costates = np.zeros((self.B, T + 1, n)) if horizon.exact else None
        self.cost, self.gap = np.full(self.B, np.nan), np.full(self.B, np.nan)
        self.regularisation = np.full(self.B, float(settings.regularisation))
        self.feasible, self.was = np.zeros(self.B, bool), np.zeros(self.B, bool)
        self.iterations, self.outcome = np.zeros(self.B, int), np.full(self.B, ITERATIONS)
        self.rows: list[tuple[Array, Array, Array]] = []  # problems, their iterations, their rows of the log

    def solve(self) -> Solution:
        began = time.perf_counter()
        waiting = self.B
        slots = np.arange(0)
        count = done = 0
        while waiting or len(slots):
            fresh = np.arange(self.B - waiting, self.B - waiting + min(waiting, self.room - len(slots)))
            waiting -= len(fresh)
            slots = np.concatenate([slots, fresh])
            stays, rows = self.iterate(slots)
            self.rows.append((slots, self.iterations[slots], rows))
            limit = self.settings.seconds
            late = limit is not None and time.perf_counter() - began > limit
            done += int((~stays).sum())
            told = Progress(count, slots, rows, done, self.B)
            if (self.settings.callback is not None and self.settings.callback(told)) or late:
                rest = slots[stays]
                self.outcome[rest] = self.outcome[self.B - waiting :] = TIME if late else CALLBACK
                break
            slots = slots[stays]
            self.iterations[slots] += 1
            count += 1
        return self.result(time.perf_counter() - began)

    def iterate(self, p: Array) -> tuple[Array, Array]:
        """One iteration of problems p: which of them go on, and their rows of the log."""
        s = self.settings
        h, whole = (self.h, slice(None)) if len(p) == self.B else (self.h.take(p), p)
        xs, us, x0 = self.xs[whole], self.us[whole], self.x0[whole]
        before = xs if self.costates is None else xs.copy()
        quadratic = h.linearize(xs, us, self._multipliers(whole, p))
        self.cost[whole] = quadratic.cost.sum(-1)
        gaps = self._gaps(h, quadratic, x0, xs, p)
        gains, stuck = self._backward(quadratic, gaps, p, self._bounds(h, us))
        self._keep(gains, p)
        rows = self._search(h, p, x0, xs, us, gains, gaps, stuck)
        if self.costates is not None:
            self._follow(h, p, gains, gaps, before)
        self.gap[whole] = rows[:, COLUMNS.index("gap")]
        step = rows[:, COLUMNS.index("step")]
        regularisation = self.regularisation[p]
        longer, shorter = step > GOOD_STEP, step <= POOR_STEP
        regularisation[longer] = np.maximum(regularisation[longer] / FACTOR, LEAST_REGULARISATION)
        regularisation[shorter] = np.minimum(regularisation[shorter] * FACTOR, MOST_REGULARISATION)
        self.regularisation[p] = regularisation
        stuck |= shorter & (regularisation == MOST_REGULARISATION)
        converged = self.was[p] & (rows[:, COLUMNS.index("stop")] < s.tolerance) & ~stuck
        self.outcome[p[stuck]], self.outcome[p[converged]] = STUCK, CONVERGED
        return ~(stuck | converged | (self.iterations[p] + 1 >= s.iterations)), rows

    def _multipliers(self, whole: Array | slice, p: Array) -> Array | None:
        """Costates for exact Hessians; there are none before the first backward pass."""
        return None if self.costates is None or not self.iterations[p].all() else self.costates[whole]

    def _gaps(self, h: Horizon, at: Quadratic, x0: Array, xs: Array, p: Array) -> Array | None:
        """f_{t-1} (-) xs_t of problems that are not feasible yet, or None if all are."""
        if self.feasible[p].all():
            return None
        gaps = h.difference(xs, np.concatenate([x0[:, None], at.next], 1))
        gaps[self.feasible[p]] = 0.0
        self.feasible[p] |= np.abs(gaps).max((1, 2)) <= CLOSED
        return gaps

    def _bounds(self, h: Horizon, us: Array) -> tuple[Array, Array] | None:
        """By how much controls may change."""
        if not self.settings.clip:
            return None
        lower = -np.inf if h.u_lower is None else h.u_lower
        upper = np.inf if h.u_upper is None else h.u_upper
        return lower - us, upper - us

    def _backward(
        self, at: Quadratic, gaps: Array | None, p: Array, bounds: tuple[Array, Array] | None
    ) -> tuple[Gains, Array]:
        """Gains, with as much regularisation as they need; and where no regularisation helps."""
        stuck = np.zeros(len(p), bool)
        while True:
            gains = self.riccati(at, gaps, self.regularisation[p], bounds)
            failed = (gains.failed != 0) & ~stuck
            if not failed.any():
                return gains, stuck
            self.regularisation[p[failed]] = np.minimum(self.regularisation[p[failed]] * FACTOR, MOST_REGULARISATION)
            stuck |= failed & (self.regularisation[p] == MOST_REGULARISATION)

    def _keep(self, gains: Gains, p: Array) -> None:
        self.k[p], self.K[p], self.Vx[p] = gains.k, gains.K, gains.Vx

    def _search(
        self, h: Horizon, p: Array, x0: Array, xs: Array, us: Array, gains: Gains, gaps: Array | None, stuck: Array
    ) -> Array:
        """Take the first step that gains enough; returns the rows of the log.

        The expected gain of a step of length alpha is alpha (d1 + alpha d2 / 2); while there are gaps f,
            d1 = sum k.Qu - f.(Vx + Vxx dx),  d2 = sum -k.Quu k + f.Vxx f + 2 f.Vxx dx,  dx = xs (-) new xs.
        """
        slope, bend = gains.slope.copy(), -gains.bend
        Vf = None
        if gaps is not None:
            Vf = np.matmul(gains.Vxx, gaps[..., None])[..., 0]
            slope -= np.einsum("ptx,ptx->p", gains.Vx, gaps)
            bend += np.einsum("ptx,ptx->p", gaps, Vf)
        d1, d2 = slope.copy(), bend.copy()
        cost = self.cost[p]
        open_ = np.zeros(len(p), bool) if gaps is None else ~self.feasible[p]
        step, gain, expected = np.full(len(p), STEPS[-1]), np.zeros(len(p)), np.zeros(len(p))
        left = np.flatnonzero(~stuck)
        for alpha in STEPS:
            if not len(left):
                break
            all_ = len(left) == len(p)
            some = h if all_ else h.take(left)
            i = slice(None) if all_ else left
            closing = None if gaps is None or alpha == 1 else gaps[i]
            new_xs, new_us, new_cost = some.rollout(
                x0[i], xs[i], us[i], gains.k[i], gains.K[i], np.full(len(left), alpha), closing, self.settings.clip
            )
            finite = np.isfinite(new_cost)
            bent = np.zeros(len(left))
            if Vf is not None:
                dx = some.difference(new_xs, xs[i])
                bent = np.where(open_[i] & finite, -np.einsum("ptx,ptx->p", Vf[i], dx), 0.0)
            d1[i] = np.where(finite, slope[i] + bent, d1[i])
            d2[i] = np.where(finite, bend[i] - 2 * bent, d2[i])
            won, hoped = cost[i] - new_cost, alpha * (d1[i] + 0.5 * alpha * d2[i])
            descends = (hoped >= 0) & ((np.abs(d1[i]) < FLAT) | (won > ENOUGH * hoped))
            good = finite & (descends | ((hoped < 0) & open_[i] & (won > TOLERATED * hoped)))
            taken = left[good]
            gain[left], expected[left] = won, hoped
            step[taken] = alpha
            q = p[taken]
            self.xs[q], self.us[q], self.cost[q] = new_xs[good], new_us[good], new_cost[good]
            self.was[q] = self.feasible[q]
            self.feasible[q] |= alpha == 1
            left = left[~good]
        widest = np.zeros(len(p)) if gaps is None else np.abs(gaps).max((1, 2))
        stop = np.abs(d1 + 0.5 * d2)
        return np.stack([cost, step, gain, expected, widest, self.regularisation[p], stop], -1)

    def _follow(self, h: Horizon, p: Array, gains: Gains, gaps: Array | None, before: Array) -> None:
        """Costates at the new states: the gradient of the value function there."""
        dx = h.difference(before, self.xs[p])
        if gaps is not None:
            dx -= gaps  # Vx is the gradient where the gaps lead to
        assert self.costates is not None
        self.costates[p] = gains.Vx + np.matmul(gains.Vxx, dx[..., None])[..., 0]

    def result(self, seconds: float) -> Solution:
        most = 1 + max((int(i.max()) for _, i, _ in self.rows), default=-1)
        columns = np.full((self.B, most, len(COLUMNS)), np.nan)
        for problems, iterations, rows in self.rows:
            columns[problems, iterations] = rows
        return Solution(
            self.h, self.xs, self.us, self.cost, np.where(self.feasible, 0.0, self.gap), self.outcome == CONVERGED,
            self.outcome, self.iterations, self.k, self.K, self.Vx, Log(columns), seconds,
        )  # fmt: skip
