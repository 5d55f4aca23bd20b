"""Rollouts: the closed-loop motion under a policy, knot by knot in compiled code, for one problem or many at once."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ...evaluate.evaluator import Evaluator
from ...jit.kernel import Kernel
from ...jit.memory import POOL
from ...jit.sequence import InRows, InSequence
from .integrators import move_state_kernel
from .motion import NO_RESTITUTION, PhaseMotion
from .phase import CompiledPhase
from .replay import DIRECT, Direct, Replay
from .rollout_steps import rollout_step

Array = np.ndarray
LARGEST = 1e10  # of a state; beyond, a motion has diverged
GAIN = 5  # where K is among the operands of a step


class Phased(Protocol):
    """What rollouts need of a problem."""

    evaluator: Evaluator
    phases: list[CompiledPhase]
    terminal: CompiledPhase
    T: int
    nx: int
    nv: int
    nu: int
    u_lower: Array | None
    u_upper: Array | None


class PhaseRollout(NamedTuple):
    """The part of a rollout in one phase: its accelerations and forces, the code of a step and its operands but K.

    sequence: the code over all knots, for one problem; costs: where those of its terms go, and constraints.
    """

    phase: CompiledPhase
    dynamics: tuple[Array, Array]
    code: Kernel
    inputs: list[Array]
    fixed: Array
    results: list[Array]
    sequence: InSequence | None
    costs: tuple[Array, ...]


class Rollout:
    """The rollouts of one problem, whose arrays and code stay the same from one to the next; or one of a batch.

    x, u, a: states, controls, accelerations; motions: of each phase and the end, of the last rollout.
    """

    def __init__(self, problem: Phased, batch: tuple[int, ...]) -> None:
        self.problem, self.batch = problem, batch
        T, nx, nu, nv = problem.T, problem.nx, problem.nu, problem.nv
        new = partial(POOL.empty, dtype=np.dtype(float))
        self.raw, self.x = (new((*batch, T + 1, nx)) for _ in range(2))
        self.u, self.a = new((*batch, T, nu)), new((*batch, T, nv))
        for phase in problem.phases:
            if phase.robot.hits:
                self.u[..., phase.at, :] = 0.0
        self.K = np.empty((T, nu * 2 * nv))  # only its shape matters
        ends = np.cumsum([p.knots * p.terms.shapes["costs"][0] for p in problem.phases])
        self.costs = new((*batch, ends[-1]))
        self.steps: Direct | None = None  # those of the last rollout
        self.motions = list[PhaseMotion]()
        self.last_costs = np.zeros(0)  # of the last state
        self._phases = list(zip(problem.phases, map(int, ends), strict=True))
        if not batch:
            self.xs, self.us, self.k = new((T + 1, nx)), new((T, nu)), new((T, nu))
            self.gap, self.lower, self.upper = new((T + 1, 2 * nv)), new((T, nu)), new((T, nu))
            self.parts = [self._part(*p) for p in self._phases]

    def went_through(self, xs: Array, us: Array) -> bool:
        """Whether the last rollout is the motion xs, us."""
        return np.array_equal(xs, self.x) and np.array_equal(us, self.u)

    def _set_inputs(self, xs: Array, us: Array, k: Array, alpha: Array, gaps: Array | None, clip: bool) -> None:
        """Set what a rollout reads. That of a batch reads arrays where they are."""
        p = self.problem
        bounds = [x if clip and x is not None else none for x, none in ((p.u_lower, -np.inf), (p.u_upper, np.inf))]
        if not self.batch:
            self.xs[...], self.us[...] = xs, us
            np.multiply(alpha, k, out=self.k)
            np.multiply(alpha - 1.0, 0.0 if gaps is None else gaps, out=self.gap)
            self.lower[...], self.upper[...] = bounds
            return
        self.xs, self.us = (np.broadcast_to(x, (*self.batch, *x.shape[-2:])) for x in (xs, us))
        self.k = np.broadcast_to(k if (alpha == 1.0).all() else alpha * k, self.us.shape)
        gaps = np.zeros(2 * p.nv) if gaps is None else (alpha - 1.0) * gaps
        self.gap = np.broadcast_to(gaps, (*self.batch, p.T + 1, 2 * p.nv))
        self.lower, self.upper = (np.broadcast_to(x * np.ones(p.nu), self.us.shape) for x in bounds)
        self.parts = [self._part(*p) for p in self._phases]

    def _part(self, phase: CompiledPhase, end: int) -> PhaseRollout:
        """The operands of a phase; end: where its costs end among all."""
        at, knots, hits, rows = phase.at, phase.knots, phase.robot.hits, phase.robot.rows
        new, code = partial(POOL.empty, dtype=np.dtype(float)), rollout_step(phase.robot)
        forces = new((*self.batch, knots, rows))
        x, u, a = self.x[..., at, :], self.u[..., at, :], self.a[..., at, :]
        read = [self.raw, self.gap]
        read += [] if hits else [self.xs, self.us, self.k, self.lower, self.upper]
        inputs = [y[..., at, :] for y in read]
        after = self.raw[..., phase.start + 1 : phase.stop + 1, :]
        results = [x, *([] if hits else [u]), a, *([forces] if rows else []), after]
        fixed = NO_RESTITUTION if hits else phase.dt
        terms = phase.terms.shapes["costs"][0]
        costs = self.costs[..., end - knots * terms : end].reshape(*self.batch, knots, terms)
        constraints = (new((*self.batch, knots, *s)) for s in phase.terms.constraint_shapes.values())
        sequence = None
        if not self.batch:
            whole = inputs if hits else [*inputs[:GAIN], self.K[at], *inputs[GAIN:]]
            sequence = InSequence(code, knots, [*whole, fixed, *results])
        return PhaseRollout(phase, (a, forces), code, inputs, fixed, results, sequence, (costs, *constraints))

    def __call__(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        """See `Horizon.rollout`."""
        self.raw[..., 0, :] = x0
        self._set_inputs(xs, us, k, np.asarray(alpha, float)[..., None, None], gaps, clip)
        self.gain = np.ascontiguousarray(K, float).reshape(*K.shape[:-2], -1)
        with np.errstate(all="ignore"):
            if isinstance(self.steps, Replay):
                self.steps()
            else:  # recording pays if it is done again
                self._take(DIRECT if self.steps is None else Replay())
            cost = self.costs.sum(-1) + self.last_costs.sum((-1, -2))
            diverged = ~(np.abs(self.x).max((-1, -2)) < LARGEST)
        x, u = (self.x, self.u) if self.batch else (self.x.copy(), self.u.copy())
        return x, u, np.where(diverged, np.nan, cost)

    def _take(self, steps: Direct) -> None:
        """Take all steps of a rollout."""
        p, self.steps, self.motions = self.problem, steps, []
        for part in self.parts:
            steps.do(partial(self._follow, part))
            m = part.phase.motion(self.x, self.u, part.dynamics, steps)
            part.phase.term_values(m, part.costs)
            self.motions.append(m)
        move = move_state_kernel(p.evaluator.places)
        steps.run(move, self.raw[..., p.T, :], self.gap[..., p.T, :], out=(self.x[..., p.T, :],))
        last = p.terminal.motion(self.x, self.u, steps=steps)
        self.last_costs = p.terminal.term_values(last)["costs"]
        self.motions.append(last)

    def _follow(self, part: PhaseRollout) -> None:
        """Run the code of a step for knot after knot; it reads what it wrote one knot before."""
        at, hits, gain = part.phase.at, part.phase.robot.hits, self.gain
        if part.sequence is not None:
            if not hits:
                part.sequence.move(GAIN, gain.__array_interface__["data"][0] + at.start * gain.strides[0])
            part.sequence()
            return
        inputs = part.inputs
        if not hits:
            own = np.broadcast_to(gain, (*self.batch, *gain.shape[-2:]))[..., at, :]
            inputs = [*inputs[:GAIN], own, *inputs[GAIN:]]
        for problems in np.ndindex(self.batch[:-1]):
            read, written = ([x[problems] for x in arrays] for arrays in (inputs, part.results))
            InRows(part.code, [*read, part.fixed, *written])()
