"""FDDP: differential dynamic programming on knots that need not join, for one problem or many at once.

[FDDP] C. Mastalli et al., Crocoddyl: an efficient and versatile framework for multi-contact optimal control, ICRA 2020.
The regularisation schedule, the acceptance of steps and the stopping criterion are those of Crocoddyl's SolverFDDP, so
that both take the same iterations.

Problems of a batch occupy slots. Each goes its own way: a problem that is done leaves its slot to the next one, so that
the slots stay full. Derivatives and backward passes take a few problems at a time, whose matrices stay in the
processor's cache; rollouts take all slots at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...jit.memory import POOL
from ..horizon import Horizon, Quadratic, part
from .riccati import Gains, Riccati
from .solution import CALLBACK, COLUMNS, CONVERGED, ITERATIONS, STUCK, TIME, Log, Solution

STEPS = tuple(0.5**i for i in range(10))  # lengths of steps, in the order of trying
LEAST_REGULARISATION, MOST_REGULARISATION, FACTOR = 1e-9, 1e9, 10.0
GOOD_STEP, POOR_STEP = 0.5, 0.01  # longer steps lower the regularisation, shorter ones raise it
FLAT = 1e-12  # expected slopes below this are rounding
ENOUGH, TOLERATED = 0.1, 2.0  # of the expected gain; of the expected loss, while gaps close
CLOSED = 1e-16  # gaps up to this are none
NEAR = 0.1  # of the cost: exact Hessians are used once a full step is expected to gain less than this
SLOTS = 64
WHOLE = 8  # problems that fill the lanes of any processor
CACHE = 4.8e6  # bytes of matrices of the problems that are differentiated together
COST, STEP, GAIN, EXPECTED, GAP, REGULARISATION, STOP = range(len(COLUMNS))


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
    """When a search stops, and what it keeps to.

    tolerance: of the expected gain; iterations: the most; regularisation: at the start; seconds: the most, or None;
    clip: whether controls keep their limits; callback: called after each iteration, stops everything if it returns
    True.
    """

    tolerance: float = 1e-9
    iterations: int = 100
    regularisation: float = LEAST_REGULARISATION
    seconds: float | None = None
    clip: bool = False
    callback: Callable[[Progress], object] | None = None


@dataclass
class Slots:
    """The problems at work, p of them, and where they are.

    feasible: whether their knots join; was: whether they did before the last step.
    costates: for exact Hessians, which need them; zero for as long as Gauss-Newton steps do better.
    """

    problems: Array
    x0: Array
    xs: Array
    us: Array
    costates: Array
    cost: Array
    regularisation: Array
    feasible: Array
    was: Array
    iterations: Array

    def __getitem__(self, which: Any) -> Slots:
        return Slots(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def __len__(self) -> int:
        return len(self.problems)

    def joined(self, other: Slots) -> Slots:
        if not len(other):
            return self
        return Slots(**{f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)})


class Aim(NamedTuple):
    """The direction of a step of p problems; alpha slope + alpha^2 bend / 2 is the gain expected of a length alpha.

    gaps: f (p, T + 1, ndx), zero where knots join; Vf: Vxx f; slope, bend (p,); stuck (p,): where there is no policy,
    whatever the regularisation.
    """

    gaps: Array
    Vf: Array
    slope: Array
    bend: Array
    stuck: Array


class Fddp:
    """Solves the problems of a horizon; x0 (B, nx), xs (B, T + 1, nx), us (B, T, nu) are where it starts.

    feasible (B,): whether the knots of this start join, as they do after a search.
    """

    def __init__(
        self, horizon: Horizon, settings: Settings, x0: Array, xs: Array, us: Array, feasible: Array | None = None
    ) -> None:
        self.h, self.settings = horizon, settings
        B, T, n, m = len(x0), horizon.T, horizon.ndx, horizon.nu
        self.room = min(B, SLOTS)
        together = max(1, int(CACHE / (8 * T * (3 * n * n + 3 * n * m))))
        self.together = min(self.room, together - together % WHOLE if together > WHOLE else together)
        self.riccati = Riccati(T, n, m, self.room, self.together, horizon.exact, settings.clip)
        new = np.zeros
        self.all = Slots(
            problems=np.arange(B), x0=x0, xs=xs.copy(), us=us.copy(),
            costates=new((B, T + 1, n) if horizon.exact else (B, 0)), cost=np.full(B, np.nan),
            regularisation=np.full(B, float(settings.regularisation)),
            feasible=new(B, bool) if feasible is None else feasible.copy(), was=new(B, bool), iterations=new(B, int),
        )  # fmt: skip
        self.k, self.K, self.Vx = new((B, T, m)), new((B, T, m, n)), new((B, T + 1, n))
        self.gap, self.outcome = np.full(B, np.nan), np.full(B, ITERATIONS)
        self.rows: list[tuple[Array, Array, Array]] = []  # problems, their iterations, their rows of the log

    def solve(self) -> Solution:
        began, B, begun, count = time.perf_counter(), len(self.all), 0, 0
        slots, h, parts = self.all[:0], self.h, []
        while begun < B or len(slots):
            more = min(B - begun, self.room - len(slots))
            if more:
                slots, begun = slots.joined(self.all[begun : begun + more]), begun + more
                h, parts = self._parts(slots)
            rows, stays = self.iterate(h, parts, slots)
            self.rows.append((slots.problems, slots.iterations.copy(), rows))
            stop = self._interrupted(began, count, slots, rows, begun - int(stays.sum()))
            if stop:
                self.outcome[slots.problems[stays]] = self.outcome[begun:] = stop
                stays[:] = False
                begun = B
            if not stays.all():
                self._leave(slots, rows, ~stays)
                slots = slots[stays]
                h, parts = self._parts(slots)
            slots.iterations += 1
            count += 1
        return self.result(time.perf_counter() - began)

    def _parts(self, slots: Slots) -> tuple[Horizon, list[tuple[slice, Horizon]]]:
        """The horizon of the problems at work, and parts of it that are differentiated together."""
        p = len(slots)
        h = part(self.h, slots.problems) if 0 < p < len(self.all) else self.h
        if p <= self.together:
            return h, [(slice(0, p), h)]
        cuts = [slice(i, min(i + self.together, p)) for i in range(0, p, self.together)]
        return h, [(cut, part(h, cut)) for cut in cuts]

    def _interrupted(self, began: float, count: int, slots: Slots, rows: Array, done: int) -> int:
        """Why everything stops now, or zero."""
        s = self.settings
        if s.callback is not None and s.callback(Progress(count, slots.problems, rows, done, len(self.all))):
            return CALLBACK
        return TIME if s.seconds is not None and time.perf_counter() - began > s.seconds else 0

    def _leave(self, slots: Slots, rows: Array, going: Array) -> None:
        """Store the results of problems that leave their slots."""
        p, gains = slots.problems[going], self.riccati.gains
        (going,) = np.nonzero(going)
        for name in ("xs", "us", "cost", "feasible", "iterations"):
            getattr(self.all, name)[p] = getattr(slots, name)[going]
        self.k[p], self.K[p], self.Vx[p] = gains.k[going], gains.K[going], gains.Vx[going]
        self.gap[p] = np.where(slots.feasible[going], 0.0, rows[going, GAP])

    def iterate(self, h: Horizon, parts: Sequence[tuple[slice, Horizon]], s: Slots) -> tuple[Array, Array]:
        """One iteration: rows of the log, and which problems go on."""
        aims = [self._direction(horizon, s, cut) for cut, horizon in parts]
        aim = aims[0] if len(aims) == 1 else Aim(*(np.concatenate(x) for x in zip(*aims, strict=True)))
        before, stuck = s.xs, aim.stuck
        rows = self._search(h, s, aim)
        if h.exact:
            near = (rows[:, STEP] == 1) & (rows[:, STOP] < NEAR * np.abs(rows[:, COST]))
            s.costates = near[:, None, None] * self._costates(h, aim.gaps, before, s.xs)
        step, r = rows[:, STEP], s.regularisation
        poor = step <= POOR_STEP
        r = np.where(step > GOOD_STEP, np.maximum(r / FACTOR, LEAST_REGULARISATION), r)
        s.regularisation = r = np.where(poor, np.minimum(r * FACTOR, MOST_REGULARISATION), r)
        stuck |= poor & (r == MOST_REGULARISATION)
        converged = s.was & (rows[:, STOP] < self.settings.tolerance) & ~stuck
        self.outcome[s.problems[stuck]], self.outcome[s.problems[converged]] = STUCK, CONVERGED
        return rows, ~(stuck | converged | (s.iterations + 1 >= self.settings.iterations))

    def _direction(self, h: Horizon, s: Slots, cut: slice) -> Aim:
        """Derivatives and the backward pass of some problems; their gains are in `riccati.gains`."""
        xs, us = s.xs[cut], s.us[cut]
        at = h.linearize(xs, us, s.costates[cut] if h.exact and s.costates[cut].any() else None)
        s.cost[cut] = at.cost.sum(-1)
        feasible = s.feasible[cut]
        gaps = None
        if not feasible.all():
            gaps = h.difference(xs, np.concatenate([s.x0[cut][:, None], at.next], 1))
            gaps[feasible] = 0.0
            s.feasible[cut] |= np.abs(gaps).max((1, 2)) <= CLOSED
        gains, stuck = self._backward(h, at, gaps, s, cut)
        if gaps is None:
            return Aim(np.zeros_like(gains.Vx), gains.Vf, gains.slope, -gains.bend, stuck)
        Vf = gains.Vf
        return Aim(gaps, Vf, gains.slope - _dots(gains.Vx, gaps), _dots(gaps, Vf) - gains.bend, stuck)

    def _backward(self, h: Horizon, at: Quadratic, gaps: Array | None, s: Slots, cut: slice) -> tuple[Gains, Array]:
        """Gains, with as much regularisation as they need; and where no regularisation helps."""
        bounds = None
        if self.settings.clip:
            lower = -np.inf if h.u_lower is None else h.u_lower
            upper = np.inf if h.u_upper is None else h.u_upper
            bounds = lower - s.us[cut], upper - s.us[cut]
        r = s.regularisation[cut]
        stuck = np.zeros(len(r), bool)
        while True:
            gains = self.riccati(at, gaps, r, bounds, cut.start)
            failed = (gains.failed != 0) & ~stuck
            if not failed.any():
                return gains, stuck
            r[failed] = np.minimum(r[failed] * FACTOR, MOST_REGULARISATION)
            stuck |= failed & (r == MOST_REGULARISATION)

    def _search(self, h: Horizon, s: Slots, aim: Aim) -> Array:
        """Take the first step that gains enough; returns the rows of the log.

        The expected gain of a step of length alpha is alpha (d1 + alpha d2 / 2); while there are gaps f,
            d1 = sum k.Qu - f.(Vx + Vxx dx),  d2 = sum -k.Quu k + f.Vxx f + 2 f.Vxx dx,  dx = xs (-) new xs.
        """
        p, gains, closing = len(s), self.riccati.gains, not s.feasible.all()
        rows = np.zeros((p, len(COLUMNS)))
        rows[:, COST], rows[:, REGULARISATION], rows[:, STEP] = s.cost, s.regularisation, STEPS[-1]
        rows[:, STOP] = np.abs(aim.slope + 0.5 * aim.bend)
        if closing:
            rows[:, GAP] = np.abs(aim.gaps).max((1, 2))
        left = np.flatnonzero(~aim.stuck)
        for alpha in STEPS:
            if not len(left):
                break
            everyone = len(left) == p
            i = slice(0, p) if everyone else left
            some = h if everyone else part(h, left)
            start = (s.x0, s.xs, s.us, gains.k, gains.K)
            start = (x[:p] for x in start) if everyone else (picked(x, left) for x in start)
            xs, us, cost = some.rollout(
                *start, np.full(len(left), alpha), aim.gaps[i] if closing and alpha < 1 else None, self.settings.clip
            )
            finite = np.isfinite(cost)
            d1, d2, still_open = aim.slope[i], aim.bend[i], ~s.feasible[i]
            if closing:
                more = np.where(still_open & finite, -_dots(aim.Vf[i], some.difference(xs, s.xs[i])), 0.0)
                d1, d2 = d1 + more, d2 - 2 * more
            won, hoped = rows[i, COST] - cost, alpha * (d1 + 0.5 * alpha * d2)
            descends = (hoped >= 0) & ((np.abs(d1) < FLAT) | (won > ENOUGH * hoped))
            good = finite & (descends | ((hoped < 0) & still_open & (won > TOLERATED * hoped)))
            rows[i, GAIN], rows[i, EXPECTED] = won, hoped
            rows[i, STOP] = np.where(finite, np.abs(d1 + 0.5 * d2), rows[i, STOP])
            taken = left[good]
            rows[taken, STEP] = alpha
            self._move(s, taken, good, xs, us, cost, alpha)
            left = left[~good]
        return rows

    @staticmethod
    def _move(s: Slots, taken: Array, good: Array, xs: Array, us: Array, cost: Array, alpha: float) -> None:
        """Go to new states. Arrays are replaced, not written: others still refer to the old ones."""
        if len(taken) == len(s):
            s.xs, s.us, s.cost = xs, us, cost
            s.was, s.feasible = s.feasible, s.feasible | (alpha == 1)
            return
        for name, x in (("xs", xs[good]), ("us", us[good]), ("cost", cost[good]), ("was", s.feasible[taken])):
            new = getattr(s, name).copy()
            new[taken] = x
            setattr(s, name, new)
        if alpha == 1:
            s.feasible = s.feasible.copy()
            s.feasible[taken] = True

    def _costates(self, h: Horizon, gaps: Array, before: Array, after: Array) -> Array:
        """The gradient of the value function at the new states; Vx is that where the gaps lead to."""
        gains, dx = self.riccati.gains, h.difference(before, after) - gaps
        p = len(dx)
        return gains.Vx[:p] + np.matmul(gains.Vxx[:p], dx[..., None])[..., 0]

    def result(self, seconds: float = 0.0) -> Solution:
        most = 1 + max((int(i.max()) for _, i, _ in self.rows), default=-1)
        columns = np.full((len(self.all), most, len(COLUMNS)), np.nan)
        for problems, iterations, rows in self.rows:
            columns[problems, iterations] = rows
        a = self.all
        return Solution(
            self.h, a.xs, a.us, a.cost, self.gap, self.outcome == CONVERGED, self.outcome, a.iterations, self.k, self.K,
            self.Vx, Log(columns), seconds,
        )  # fmt: skip


def picked(x: Array, rows: Array) -> Array:
    """Some rows of an array, in memory that was used before."""
    out = POOL.empty((len(rows), *x.shape[1:]), x.dtype)
    return np.take(x, rows, 0, out, "clip")  # with "raise" it would take other memory first


def _dots(x: Array, y: Array) -> Array:
    """Sums over knots and directions of products (p, T + 1, ndx), (p,)."""
    return np.einsum("ptx,ptx->p", x, y)
