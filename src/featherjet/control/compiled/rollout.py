"""Rollouts: the closed-loop motion under a policy, knot by knot in compiled code, for one problem or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ...algorithms.integrators import moved_state, state_difference
from ...evaluate.evaluator import Evaluator
from ...jit.chain import Chain, Link
from ...jit.kernel import Kernel
from ...jit.memory import POOL
from ...jit.sequence import InRows, InSequence
from ...math.scalars import where_less
from .integrators import difference_kernel, euler_kernel, move_state_kernel
from .kernels import traced_kernel
from .motion import NO_RESTITUTION, PhaseMotion, PhaseRobot
from .phase import CompiledPhase, Segment
from .replay import DIRECT, Direct, Replay
from .runge_kutta import RungeKutta

Array = np.ndarray
_steps: WeakKeyDictionary[PhaseRobot, Kernel] = WeakKeyDictionary()  # windows and parts of a problem share them
LARGEST = 1e10  # of a state; beyond, a motion has diverged
GAIN = 5  # where K is among the operands of a step
NOTHING: list[PhaseMotion] = []  # is known of a motion


class Staged(Protocol):
    """What rollouts need of a problem."""

    evaluator: Evaluator
    segments: list[Segment]
    terminal: CompiledPhase
    T: int
    nx: int
    nv: int
    nu: int
    u_lower: Array | None
    u_upper: Array | None

    def batch_of(self, xs: Array) -> tuple[int, ...]: ...

    def integrate(self, x: Array, dx: Array) -> Array: ...


class Rollout:
    """The rollouts of one problem."""

    def __init__(self, problem: Staged) -> None:
        self.problem = problem
        self.places = problem.evaluator.places

    @cached_property
    def _difference(self) -> Kernel:
        return difference_kernel(self.places)

    @cached_property
    def _integrate(self) -> Kernel:
        return move_state_kernel(self.places)

    @property
    def state_space(self) -> list[Kernel]:
        """The code of differences and moves."""
        return [self._difference, self._integrate]

    def difference(self, x0: Array, x1: Array) -> Array:
        return self._difference.values(x0, x1)[0]

    def integrate(self, x: Array, dx: Array) -> Array:
        return self._integrate.values(x, dx)[0]

    @cached_property
    def steps(self) -> list[Kernel]:
        """The code of a step of each segment."""
        out = []
        for s in self.problem.segments:
            body = s.stage.body
            if body not in _steps:
                _steps[body] = impact_step(body) if body.hits else policy_step(body)
            out.append(_steps[body])
        return out

    def __call__(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        batch = self.problem.batch_of(xs)
        plan = Plan(self.problem, self.steps, batch) if batch else self._alone
        return plan(x0, xs, us, k, K, alpha, gaps, clip)

    def known(self, xs: Array, us: Array) -> list[PhaseMotion]:
        """What the last rollout of one problem has found at each stage, if it went through these states; else none."""
        plan: Plan | None = self.__dict__.get("_alone")
        if plan is None or not (np.array_equal(xs, plan.x) and np.array_equal(us, plan.u)):
            return NOTHING
        return plan.motions

    @cached_property
    def _alone(self) -> Plan:
        """The plan of one problem, which is used again and again."""
        return Plan(self.problem, self.steps, ())


class Leg(NamedTuple):
    """A segment on its way: accelerations and forces, the code of a step and its operands but K.

    sequence: the code over all knots, for one problem; costs: where those of its terms go.
    """

    segment: Segment
    known: tuple[Array, Array]
    code: Kernel
    inputs: list[Array]
    fixed: Array
    results: list[Array]
    sequence: InSequence | None
    out: tuple[Array, ...]


class Plan:
    """The rollouts of one problem, whose arrays and code stay the same from one to the next; or one of a batch."""

    def __init__(self, problem: Staged, steps: Sequence[Kernel], batch: tuple[int, ...]) -> None:
        self.problem, self.batch = problem, batch
        T, nx, nu, nv = problem.T, problem.nx, problem.nu, problem.nv
        new = partial(POOL.empty, dtype=np.dtype(float))
        self.raw, self.x = (new((*batch, T + 1, nx)) for _ in range(2))
        self.u, self.a = new((*batch, T, nu)), new((*batch, T, nv))
        for s in problem.segments:
            if s.stage.body.hits:
                self.u[..., s.knots, :] = 0.0
        self.K = np.empty((T, nu * 2 * nv))  # only its shape matters
        ends = np.cumsum([s.stage.knots * s.stage.form.shapes["costs"][0] for s in problem.segments])
        self.costs = new((*batch, ends[-1]))
        self.track: Direct | None = None  # that of the last rollout
        self.motions = list[PhaseMotion]()  # of each stage, likewise
        self.last_costs = np.zeros(0)  # of the last state
        self._segments = list(zip(problem.segments, steps, map(int, ends), strict=True))
        if not batch:
            self.xs, self.us, self.k = new((T + 1, nx)), new((T, nu)), new((T, nu))
            self.gap, self.lower, self.upper = new((T + 1, 2 * nv)), new((T, nu)), new((T, nu))
            self.legs = [self._leg(*s) for s in self._segments]

    def _give(self, xs: Array, us: Array, k: Array, alpha: Array, gaps: Array | None, clip: bool) -> None:
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
        self.legs = [self._leg(*s) for s in self._segments]

    def _leg(self, segment: Segment, code: Kernel, end: int) -> Leg:
        stage, start, stop = segment
        at, hits, rows, form = segment.knots, stage.body.hits, stage.body.rows, stage.form
        new = partial(POOL.empty, dtype=np.dtype(float))
        forces = new((*self.batch, stage.knots, rows))
        x, u, a = self.x[..., at, :], self.u[..., at, :], self.a[..., at, :]
        given = [self.raw, self.gap]
        given += [] if hits else [self.xs, self.us, self.k, self.lower, self.upper]
        inputs = [y[..., at, :] for y in given]
        results = [x, *([] if hits else [u]), a, *([forces] if rows else []), self.raw[..., start + 1 : stop + 1, :]]
        fixed = NO_RESTITUTION if hits else stage.dt
        terms = form.shapes["costs"][0]
        costs = self.costs[..., end - stage.knots * terms : end].reshape(*self.batch, stage.knots, terms)
        limited = (new((*self.batch, stage.knots, *s)) for s in form.limited.values())
        sequence = None
        if not self.batch:
            whole = inputs if hits else [*inputs[:GAIN], self.K[at], *inputs[GAIN:]]
            sequence = InSequence(code, stage.knots, [*whole, fixed, *results])
        return Leg(segment, (a, forces), code, inputs, fixed, results, sequence, (costs, *limited))

    def __call__(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        self.raw[..., 0, :] = x0
        self._give(xs, us, k, np.asarray(alpha, float)[..., None, None], gaps, clip)
        self.gain = np.ascontiguousarray(K, float).reshape(*K.shape[:-2], -1)
        with np.errstate(all="ignore"):
            if isinstance(self.track, Replay):
                self.track()
            else:  # recording pays if it is done again
                self._take(DIRECT if self.track is None else Replay())
            cost = self.costs.sum(-1) + self.last_costs.sum((-1, -2))
            diverged = ~(np.abs(self.x).max((-1, -2)) < LARGEST)
        x, u = (self.x, self.u) if self.batch else (self.x.copy(), self.u.copy())
        return x, u, np.where(diverged, np.nan, cost)

    def _take(self, track: Direct) -> None:
        """Take all steps of a rollout."""
        p, self.track, self.motions = self.problem, track, []
        for leg in self.legs:
            track.do(partial(self._follow, leg))
            stage, at = leg.segment.stage, leg.segment.knots
            m = stage.motion(self.x[..., at, :], self.u[..., at, :], leg.known, track)
            stage.values(m, leg.out)
            self.motions.append(m)
        track.run(
            move_state_kernel(p.evaluator.places),
            self.raw[..., p.T, :],
            self.gap[..., p.T, :],
            out=(self.x[..., p.T, :],),
        )
        last = p.terminal.motion(self.x[..., p.T :, :], self.u[..., :0, :], track=track)
        self.last_costs = p.terminal.values(last).costs
        self.motions.append(last)

    def _follow(self, leg: Leg) -> None:
        """Run the code of a step for knot after knot; it reads what it wrote one knot before."""
        at, hits, gain = leg.segment.knots, leg.segment.stage.body.hits, self.gain
        if leg.sequence is not None:
            if not hits:
                leg.sequence.move(GAIN, gain.__array_interface__["data"][0] + at.start * gain.strides[0])
            leg.sequence()
            return
        inputs = leg.inputs
        if not hits:
            own = np.broadcast_to(gain, (*self.batch, *gain.shape[-2:]))[..., at, :]
            inputs = [*inputs[:GAIN], own, *inputs[GAIN:]]
        for problems in np.ndindex(self.batch[:-1]):
            given, found = ([x[problems] for x in arrays] for arrays in (inputs, leg.results))
            InRows(leg.code, [*given, leg.fixed, *found])()


# Code


def policy_step(body: PhaseRobot) -> Kernel:
    """A knot: (raw, gap, xs, us, k, K, lower, upper, dt) -> state, control, a, forces, raw state of the next knot."""
    places, nu = body.size.places, body.size.nu
    nq, nv, driven = places.nq, places.nv, body.driven.tolist()
    nx, ndx = nq + nv, 2 * nv

    def policy(raw: Any, gap: Any, xs: Any, us: Any, k: Any, K: Any, lower: Any, upper: Any) -> list[Array]:
        x = np.array(moved_state(places, raw, gap), object)
        dx = state_difference(places, xs, x)
        u = []
        for i in range(nu):
            total = us[i] - k[i]
            for j in range(ndx):
                total = total - K[i * ndx + j] * dx[j]
            u.append(where_less(upper[i], total, upper[i], where_less(total, lower[i], lower[i], total)))
        tau = np.full(nv, 0.0, object)
        tau[driven] = u
        return [x, np.array(u, object), x[:nq], x[nq:], tau]

    given = {
        "raw": (nx,), "gap": (ndx,), "xs": (nx,), "us": (nu,), "k": (nu,), "K": (nu * ndx,), "lower": (nu,),
        "upper": (nu,),
    }  # fmt: skip
    key = places.digest, tuple(driven)
    first = traced_kernel(policy, given, ("policy", key), "policies", [(nx,), (nu,), (nq,), (nv,), (nv,)])
    forces = ("forces",) if body.rows else ()
    links = [
        Link(first, (*given, "x", "u", "q", "v", "tau")),
        Link(body.kernel(body.dynamics), ("q", "v", "tau", "a", *forces)),
    ]
    between: dict[str, tuple[int, ...]] = {"q": (nq,), "v": (nv,), "tau": (nv,)}
    if body.integrator == "euler":
        links.append(Link(euler_kernel(places), ("x", "a", "dt", "next")))
    else:
        more, temporaries = RungeKutta(body, body.integrator).links("x", "a")
        links += more
        between |= temporaries
    results = {"x": (nx,), "u": (nu,), "a": (nv,), **({"forces": (body.rows,)} if forces else {}), "next": (nx,)}
    return chained(f"policy_step_{body.integrator}", {**given, "dt": (1,)}, results, between, links, body)


def impact_step(body: PhaseRobot) -> Kernel:
    """An impact: (raw, gap, restitution) -> state, jump, impulses, raw state of the next knot."""
    places = body.size.places
    nq, nv, nx = places.nq, places.nv, places.nq + places.nv

    def arrive(raw: Any, gap: Any) -> list[Array]:
        x = np.array(moved_state(places, raw, gap), object)
        return [x, x[:nq], x[nq:]]

    def leave(x: Any, a: Any) -> list[Array]:
        return [np.array([*x[:nq], *(x[nq:] + a)], object)]

    first = traced_kernel(
        arrive, {"raw": (nx,), "gap": (2 * nv,)}, ("arrive", places.digest), "moves", [(nx,), (nq,), (nv,)]
    )
    last = traced_kernel(leave, {"x": (nx,), "a": (nv,)}, ("leave", nq, nv), "jumps", [(nx,)])
    links = [
        Link(first, ("raw", "gap", "x", "q", "v")),
        Link(body.kernel(body.dynamics), ("q", "v", "restitution", "a", "forces")),
        Link(last, ("x", "a", "next")),
    ]
    inputs = {"raw": (nx,), "gap": (2 * nv,), "restitution": (1,)}
    results = {"x": (nx,), "a": (nv,), "forces": (body.rows,), "next": (nx,)}
    return chained("impact_step", inputs, results, {"q": (nq,), "v": (nv,)}, links, body)


def chained(name: str, inputs: Any, results: Any, between: Any, links: list[Link], body: PhaseRobot) -> Kernel:
    return Chain(name, body.evaluator.compiler.target, inputs, results, between, links, {})
