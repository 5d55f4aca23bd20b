"""Bounces at the instants they happen, on batches of worlds; Poisson's law of restitution.

A step ends where the first foot touches the ground: the instant is found by regula falsi on the steps themselves. The
impact follows, and the rest of the step.

An impact compresses first: percussions Pc that obey the contact laws without restitution. It then restores: normal
percussions grow to (1 + e) Pc, and friction, with this much to press it, brakes the feet most. This creates no energy:
T changes by P . (gamma- + gamma+) / 2, which for P = (1 + e) Pc is (1 + e) Pc . (gamma_c - (1 - e) / 2 G Pc) <= 0,
since Pc . gamma_c <= 0 by the laws; and friction that brakes most leaves no more energy than these tangential
percussions do. If feet have different e, the second part is shortened, P = Pc + s (P - Pc), until that holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..evaluate.evaluator import Evaluator
from ..model.model import Array
from .engine import Engine, WorldStep
from .laws import Pull

AWAY = 1e9  # added to the height of feet that the laws of resting contact do not concern
TOUCH = 1e-9  # m: a foot this close touches
EVENTS = 8  # most impacts of a world in one step; then feet come to rest
SEARCH = 60  # most trials for an instant


class Bounce(NamedTuple):
    """An impact of some worlds (indices): velocities before it, after compression, and after restitution."""

    worlds: Array
    before: Array
    compressed: WorldStep
    restored: WorldStep


class Passage(NamedTuple):
    """What some worlds did until their next impact: where they began, how long it took, and the impact, if any.

    away (k, n): what was added to heights, table: the planes below feet; hits (k,): the foot that ended it, or -1.
    """

    worlds: Array
    q: Array
    v: Array
    spent: Array
    away: Array
    table: Array
    hits: Array
    impact: Bounce | None


class Between(Protocol):
    """Steps without bounces; see `steps.TimeStepping`."""

    evaluate: Evaluator
    dt: float
    engine: Engine
    last: Array
    held: Array | None

    def table(self, q: Array) -> Array: ...
    def free(
        self, q: Array, v: Array, tau: Array, pull: Pull | None, table: Array, away: Array, start: Array, h: Array,
        held: Array | None,
    ) -> WorldStep: ...  # fmt: skip


class Bounces:
    """Steps with bounces."""

    def __init__(self, steps: Between, restitution: Array) -> None:
        self.steps, self.e = steps, restitution
        self.gravity = g = float(np.linalg.norm(steps.evaluate.model.gravity))
        with np.errstate(divide="ignore"):
            # A foot comes to rest when all its further bounces would take less than a step: 2 e v / (g (1 - e)) < dt.
            self.slow = np.where(restitution > 0, g * steps.dt * (1 - restitution) / (2 * restitution), np.inf)

    def __call__(
        self, q: Array, v: Array, tau: Array, pull: Pull | None, log: list[Passage] | None = None
    ) -> tuple[WorldStep, Array]:
        """The step, and all percussions during it; log: takes what happened, worlds being one axis."""
        batch = q.shape[:-1]

        def flat(x: Array, core: int = 1) -> Array:
            own = x.shape[x.ndim - core :]
            return np.broadcast_to(x, (*batch, *own)).reshape(-1, *own)

        q, v, tau = flat(q).copy(), flat(v).copy(), flat(tau)
        pull = None if pull is None else Pull(*map(flat, pull))
        last = flat(self.steps.last).copy()
        held = None if self.steps.held is None else flat(self.steps.held, 2).copy()
        left, total, report = np.full(len(q), self.steps.dt), np.zeros_like(last), np.zeros((len(q), 4))
        world = np.arange(len(q))
        for event in range(EVENTS + 1):
            some = world[left[world] > 0]
            if not len(some):
                break
            pulls = None if pull is None else Pull(*(x[some] for x in pull))
            part = _Part(self, q[some], v[some], tau[some], pulls, last[some], None if held is None else held[some])
            found, spent, P = part.until_impact(left[some], event == EVENTS)
            if log is not None:
                past = (some, q[some], v[some], spent, part.away, part.table)
                impact = part.impact and part.impact._replace(worlds=some[part.impact.worlds])
                log.append(Passage(*past, part.hits, impact))
            q[some], v[some], last[some] = found.q, found.v, found.P
            if held is not None:
                held[some] = found.held
            left[some] -= spent
            total[some] += P
            report[some] = np.maximum(report[some], found.solver_report)
            if part.impact is not None:
                hit = some[part.impact.worlds]
                for step in (part.impact.compressed, part.impact.restored):
                    report[hit] = np.maximum(report[hit], step.solver_report)
        shaped = lambda x: x.reshape(*batch, *x.shape[1:])  # noqa: E731
        step = WorldStep(shaped(q), shaped(v), shaped(last), shaped(report), None if held is None else shaped(held))
        return step, shaped(total)

    def impact(self, q: Array, v: Array, table: Array, touching: Array) -> tuple[WorldStep, WorldStep]:
        """Compression, and restitution after it, in an impact of the feet that touch."""
        engine, e = self.steps.engine, self.e
        height = np.where(touching, 0.0, AWAY)
        compressed = engine.impact("compression", q, v, table, height, np.zeros((len(q), 3 * len(e))))
        P = compressed.P.reshape(len(q), -1, 3)
        normal = np.broadcast_to(table[..., :3], P.shape)
        more = P + (e * (P * normal).sum(-1))[..., None] * normal
        restored = engine.impact("restitution", q, v, table, height, more.reshape(len(q), -1))
        share = self._share(q, v, compressed.v, restored.v)[:, None]
        after = compressed.v + share * (restored.v - compressed.v)
        return compressed, WorldStep(
            q, after, compressed.P + share * (restored.P - compressed.P), restored.solver_report
        )

    def _share(self, q: Array, before: Array, compressed: Array, restored: Array) -> Array:
        """How much of the restitution creates no energy; along it, the energy is a square function."""
        energy = lambda v: self.steps.evaluate("kinetic_energy", q, v)  # noqa: E731
        most, low, high = energy(before), energy(compressed), energy(restored)
        middle = energy((compressed + restored) / 2)
        a, b = 2 * (high + low - 2 * middle), 4 * middle - 3 * low - high
        c = np.minimum(low - most, 0.0)
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(b + root > 0, -2 * c / (b + root), 1.0)
        return np.where(high <= most * (1 + 1e-14), 1.0, np.clip(share, 0.0, 1.0))


class _Part:
    """Worlds that go on to their next impact."""

    def __init__(
        self, bounces: Bounces, q: Array, v: Array, tau: Array, pull: Pull | None, last: Array, held: Array | None
    ) -> None:
        self.b, self.q, self.v, self.tau, self.pull, self.last, self.held = bounces, q, v, tau, pull, last, held
        self.steps = bounces.steps
        self.table = self.steps.table(q)
        self.away, self.hits = np.zeros_like(last[:, ::3]), np.full(len(q), -1)
        self.impact: Bounce | None = None

    def until_impact(self, left: Array, at_rest: bool) -> tuple[WorldStep, Array, Array]:
        """The state at the next impact, after it; or after all the time that is left. The time spent, percussions."""
        steps, b = self.steps, self.b
        height, rate = steps.engine.approach(self.q, self.v, self.table)
        speed = np.sqrt(rate**2 + 2 * b.gravity * np.maximum(height, 0.0))  # with which it will meet the ground
        bouncing = (speed > b.slow) & (not at_rest)
        touched = np.asarray((bouncing & (height <= TOUCH) & (rate < 0)).any(-1))
        self.away = away = np.where(bouncing, AWAY, 0.0)  # the laws of rest do not concern these feet
        whole = self._step(slice(None), left, away)
        spent, P = left.copy(), whole.P.copy()
        found = WorldStep(*(None if x is None else x.copy() for x in whole))  # type: ignore[arg-type]
        if not bouncing.any():
            return found, spent, P
        ends = self._heights(found.q, slice(None))
        hits = bouncing & (ends < 0) & ~touched[:, None]
        for k in np.flatnonzero(hits.any(-1)):
            self._stop_at(int(k), left[k], away[k], hits[k], found, spent, P)
            heights = self._heights(found.q[k], k)
            self.hits[k] = np.where(hits[k], heights, np.inf).argmin()
        if touched.any():
            for x, y in ((found.q, self.q), (found.v, self.v), (found.P, self.last), (found.held, self.held)):
                if x is not None and y is not None:
                    x[touched] = y[touched]
            spent[touched], P[touched], found.solver_report[touched] = 0.0, 0.0, 0.0
        collide = np.flatnonzero(hits.any(-1) | touched)
        if len(collide):
            table = self._table(collide)
            height, rate = steps.engine.approach(found.q[collide], found.v[collide], table)
            before = found.v[collide]
            impact = Bounce(collide, before, *b.impact(found.q[collide], before, table, height <= TOUCH))
            found.v[collide] = impact.restored.v
            P[collide] += impact.restored.P
            self.impact = impact
        return found, spent, P

    def _table(self, which: Any) -> Array:
        return self.table if self.table.ndim == 2 else self.table[which]

    def _heights(self, q: Array, which: Any) -> Array:
        return self.steps.engine.approach(q, np.zeros_like(self.v[which]), self._table(which))[0]

    def _step(self, which: Any, h: Array, away: Array) -> WorldStep:
        pull = None if self.pull is None else Pull(*(x[which] for x in self.pull))
        held = None if self.held is None else self.held[which]
        q, v, tau = self.q[which], self.v[which], self.tau[which]
        return self.steps.free(q, v, tau, pull, self._table(which), away, self.last[which], h[..., None], held)

    def _stop_at(self, k: int, left: float, away: Array, hits: Array, found: WorldStep, spent: Array, P: Array) -> None:
        """Shorten the step of world k to the instant when the first of some feet touches; Illinois' regula falsi."""

        def lowest(h: float) -> tuple[WorldStep, float]:
            step = self._step(k, np.asarray(h), away)
            return step, float(self._heights(step.q, k)[hits].min())

        low, high = 0.0, float(left)
        start = float(self._heights(self.q[k], k)[hits].min())
        above, below = max(start, TOUCH), float(self._heights(found.q[k], k)[hits].min())
        step, h, side = None, high, 0
        for _ in range(SEARCH):
            h = low + (high - low) * above / (above - below)
            step, height = lowest(h)
            if abs(height) <= 0.5 * TOUCH:
                break
            if height > 0:
                low, above, below = h, height, below / 2 if side > 0 else below
                side = 1
            else:
                high, below, above = h, height, above / 2 if side < 0 else above
                side = -1
        assert step is not None
        for x, y in zip(found, step, strict=True):
            if x is not None and y is not None:
                x[k] = y
        spent[k], P[k] = h, step.P
