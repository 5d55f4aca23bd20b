"""One time step of many worlds: smooth motion by Runge-Kutta or semi-implicit Euler on the manifold, contact by time
stepping."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from ..algorithms.contacts.feet import GRAVITY, PUSH_OUT
from ..algorithms.contacts.solver import SWEEPS
from ..contact.bilateral import Contacts
from ..contact.dynamics import constrained_dynamics
from ..contact.ground import Ground
from ..contact.terrain import Plane
from ..evaluate.evaluator import Evaluator
from ..model.model import Array
from .bounces import Bounces
from .engine import Compiled, Engine, WorldStep
from .laws import JointLaws, Pull
from .reference import Reference

CONVERGED = 1e-9  # residual relative to the largest percussion


class Stepped(NamedTuple):
    """The states after a step, contact forces (..., k) during it [N], their residual [N s], and whether it is small."""

    q: Array
    v: Array
    forces: Array
    residual: Array
    converged: Array


class Smooth:
    """Motion without impacts, free or with bilateral contacts; torques are constant over a step."""

    def __init__(
        self, evaluator: Evaluator, dt: float, method: str, laws: JointLaws, contacts: Contacts | None = None
    ) -> None:
        self.evaluate, self.dt, self.contacts, self.laws = evaluator, dt, contacts, laws
        self.advance: Callable[..., tuple[Array, Array]] = {"rk4": self.rk4, "semi-implicit": self.semi_implicit}[
            method
        ]

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped:
        a, forces = self.acceleration(q, v, tau)
        none = np.zeros(q.shape[:-1])
        end, after = self.advance(q, v, tau, a)
        if self.laws.balanced and self.contacts is None and not tau[..., self.laws.floating].any():
            after = self.engine.balanced(q, v, end, after, np.zeros_like(v), np.array([self.dt]))
        return Stepped(end, after, forces, none, none == 0)

    @cached_property
    def engine(self) -> Engine:
        return engine(self.evaluate, unreachable(self.evaluate), (), True)

    def forget(self, which: Array) -> None:
        """Nothing: these steps remember nothing."""

    def acceleration(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        if not self.laws.free:
            tau = tau + self.laws.pull(q, v).force
        if self.contacts is None:
            return self.evaluate("forward_dynamics", q, v, tau), np.zeros((*q.shape[:-1], 0))
        return constrained_dynamics(self.evaluate, q, v, tau, self.contacts, None, None)

    def semi_implicit(self, q: Array, v: Array, tau: Array, a: Array) -> tuple[Array, Array]:
        """v first, then q with the new v: first order, but the energy stays bounded."""
        v = v + self.dt * a
        return self.evaluate("integrate", q, self.dt * v), v

    def rk4(self, q: Array, v: Array, tau: Array, a: Array) -> tuple[Array, Array]:
        """The classical fourth-order method for x in q(t) = integrate(q, x), with x' = dx/dq1 v (Munthe-Kaas)."""
        dt = self.dt

        def rates(x: Array, u: Array) -> tuple[Array, Array]:
            return self.evaluate("tangent_rate", x, u), self.acceleration(self.evaluate("integrate", q, x), u, tau)[0]

        k1 = v, a
        k2 = rates(dt / 2 * k1[0], v + dt / 2 * k1[1])
        k3 = rates(dt / 2 * k2[0], v + dt / 2 * k2[1])
        k4 = rates(dt * k3[0], v + dt * k3[1])
        x, dv = (dt / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]) for i in (0, 1))
        return self.evaluate("integrate", q, x), v + dv


class TimeStepping:
    """M du - h dt = W P with Coulomb friction: feet open, stick, slide and bounce, joints reach their limits.

    Laws hold for velocities at the end of a step. A foot lands without penetrating: g + dt gamma_n >= 0. Each step
    removes a fifth of a penetration, less of a deep one, so that a foot is thrown no higher above the ground than it
    was below. M, h and W are taken halfway, at the middle of a first solution of the step, and so are the axes of all
    velocities of free and planar joints: what rolls keeps its energy. In flight the method is of second order; unless a
    foot touches the ground, it keeps momentum exactly. Where contacts act it is of first order. Feet with restitution
    bounce at the instant they touch; see `Bounces`.
    """

    def __init__(self, evaluator: Evaluator, dt: float, ground: Ground | None, laws: JointLaws, batch: tuple) -> None:
        self.evaluate, self.dt, self.laws = evaluator, dt, laws
        self.contacts = ground
        self.ground = ground or unreachable(evaluator)
        self.engine = engine(evaluator, self.ground, laws.stops, laws.balanced)
        # Limits cost nothing until a joint reaches one.
        lazy = laws.stops and not laws.rubs
        self.unlimited = engine(evaluator, self.ground, (), laws.balanced) if lazy else None
        weight = evaluator.model.mass * float(np.linalg.norm(evaluator.model.gravity))
        self.tiny = 1e-12 * (weight + 1.0) * dt  # N s
        n, nv = len(self.ground.feet), evaluator.model.nv
        self.fixed = self.ground.table(evaluator, np.zeros(0)) if self.ground.flat else None
        self.last: Array = np.zeros((*batch, 3 * n))
        self.held: Array | None = np.zeros((*batch, len(laws.stops), 2)) if laws.stops else None
        self.none, self.nothing, self.whole = np.zeros(n), np.zeros(nv), np.array([dt])
        self.soft, self.pressed = laws.softness(self.whole), False  # pressed: whether a joint may be at a limit
        self.bounces = Bounces(self, self.ground.restitution) if self.ground.restitution.any() else None

    def afresh(self, batch: tuple[int, ...]) -> TimeStepping:
        """The same steps for other worlds, which know nothing of steps before."""
        found = copy(self)
        found.last, found.pressed = np.zeros((*batch, self.last.shape[-1])), False
        found.held = np.zeros((*batch, len(self.laws.stops), 2)) if self.laws.stops else None
        found.bounces = None if self.bounces is None else Bounces(found, self.ground.restitution)
        return found

    def table(self, q: Array) -> Array:
        return self.ground.table(self.evaluate, q) if self.fixed is None else self.fixed

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped:
        if self.bounces is not None:
            found, P = self.bounces(q, v, tau, pull)
        else:
            found = self.free(q, v, tau, pull, self.table(q), self.none, self.last, self.whole, self.held)
            P = found.P
        self.last, self.held = found.P, found.held
        forces = P / self.dt if self.contacts is not None else np.zeros((*q.shape[:-1], 0))
        converged = self.settled(found.solver_report, P, found.held)
        return Stepped(found.q, found.v, forces, found.solver_report[..., 0], converged)

    def settled(self, report: Array, P: Array, held: Array | None) -> Array:
        """Whether sweeps found percussions (...)."""
        residual = report[..., 0]
        ended = np.isfinite(residual) & (report[..., 2] < SWEEPS)  # those that ended early reached their goal
        converged = ended | (residual <= self.tiny)
        if not converged.all():
            size = np.abs(P).max(-1)
            if held is not None:
                size = np.maximum(size, np.abs(held).max((-1, -2)))
            converged = ended | (residual <= CONVERGED * size + self.tiny)
        return converged

    def free(
        self, q: Array, v: Array, tau: Array, pull: Pull | None, table: Array, away: Array, start: Array, h: Array,
        held: Array | None,
    ) -> WorldStep:  # fmt: skip
        """A step of length h (1,) or (..., 1), without bounces."""
        soft, laws = self.nothing, self.laws
        if not laws.free:
            tau = tau + laws.pull(q, v).force
            soft = self.soft if h is self.whole else laws.softness(h)
            if laws.springs:
                tau = tau - h * laws.stiffness * v
        if pull is not None:
            tau = tau + pull.force - h * pull.stiffness * v
            soft = soft + h * pull.damping + h * h * pull.stiffness
        if self.unlimited is None or held is None:
            stops = laws.ways(q) if laws.stops else None
            return self.engine.step(q, v, tau, soft, table, away, start, h, stops, held)
        found = self.unlimited.step(q, v, tau, soft, table, away, start, h, None, None)
        limited = laws.reached(found.q)
        if self.pressed:
            limited = limited | held.any((-1, -2))
        if not limited.any():
            self.pressed = False
            return WorldStep(*found[:4], held)
        self.pressed = True
        stopped = self.engine.step(q, v, tau, soft, table, away, start, h, laws.ways(q), held)
        free = (*found[:4], np.zeros_like(held))
        return WorldStep(*(chosen(limited, x, y) for x, y in zip(stopped, free, strict=True)))

    def forget(self, which: Array) -> None:
        """Steps before, of some worlds (...)."""
        self.last = np.where(which[..., None], 0.0, self.last)
        if self.held is not None:
            self.held = np.where(which[..., None, None], 0.0, self.held)

    def sunk(self, q: Array) -> str:
        """A warning if a foot starts deeper in the ground than time steps would take it, else nothing."""
        if self.contacts is None:
            return ""
        gap = self.ground.gaps(self.evaluate, q)
        *world, foot = (int(k) for k in np.unravel_index(np.argmin(gap), gap.shape))
        depth = -float(gap.min())
        if depth < 2 * GRAVITY * (self.dt / PUSH_OUT) ** 2:
            return ""
        where = f" in world {world[0] if len(world) == 1 else tuple(world)}" if world else ""
        return (
            f"foot {self.ground.names[foot]!r} begins {depth:.3g} m below the ground{where}, which pushes "
            "it out. Start higher; ground.gap(robot, q) gives the height of each foot"
        )


class Stepping(Protocol):
    """Time steps that know the limits of joints."""

    laws: JointLaws

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped: ...
    def forget(self, which: Array) -> None: ...


class Stopping:
    """Smooth steps, but for worlds where a joint would go beyond a limit: these make a time step."""

    def __init__(self, smooth: Smooth, stepping: Stepping) -> None:
        self.smooth, self.stepping, self.contacts = smooth, stepping, smooth.contacts

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped:
        found = self.smooth(q, v, tau, pull)
        beyond = self.stepping.laws.reached(found.q)
        if not beyond.any():
            return found
        stepped = self.stepping(q, v, tau, pull)
        return Stepped(*(chosen(beyond, x, y) for x, y in zip(stepped, found, strict=True)))

    def forget(self, which: Array) -> None:
        self.stepping.forget(which)


def chosen(which: Array, x: Array | None, y: Array | None) -> Array:
    """The worlds of x where `which` says so, else those of y."""
    assert x is not None
    assert y is not None
    return np.where(which.reshape(which.shape + (1,) * (x.ndim - which.ndim)), x, y)


def engine(evaluator: Evaluator, ground: Ground, stops: tuple[int, ...], balanced: bool) -> Engine:
    """The engine of a robot; balanced: whether free roots keep their momentum."""
    compiled = evaluator.backend == "compiled" and evaluator.tree.coupling is None
    return (Compiled if compiled else Reference)(evaluator, ground, stops, balanced)


class _Of(NamedTuple):
    evaluator: Evaluator


def unreachable(evaluator: Evaluator) -> Ground:
    """A ground that is never reached."""
    return Ground(_Of(evaluator), [evaluator.model.joints[0].name], terrain=Plane(height=-1e9))
