"""One time step: smooth motion by semi-implicit Euler or Runge-Kutta on the manifold, contact by time stepping."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..contact import gauss_seidel
from ..contact.bilateral import Contacts
from ..contact.dynamics import constrained_dynamics
from ..contact.ground import Ground, Meeting
from ..evaluate.evaluator import Evaluator
from ..model.model import Array

PUSH_OUT = 0.2  # share of a penetration that one step removes
GRAVITY = 9.81  # limits this speed to that of a throw as high as the penetration is deep


class Stepped(NamedTuple):
    """The state after a step, the contact forces (k,) during it [N], and their residual [N s]."""

    q: Array
    v: Array
    forces: Array
    residual: float = 0.0
    converged: bool = True


class Smooth:
    """Motion without impacts, free or with bilateral contacts; torques are constant over a step."""

    def __init__(self, evaluator: Evaluator, dt: float, method: str, contacts: Contacts | None = None) -> None:
        self.evaluate, self.dt, self.contacts = evaluator, dt, contacts
        self.advance: Callable[..., tuple[Array, Array]] = {"rk4": self.rk4, "semi-implicit": self.semi_implicit}[
            method
        ]

    def __call__(self, q: Array, v: Array, tau: Array) -> Stepped:
        a, forces = self.acceleration(q, v, tau)
        return Stepped(*self.advance(q, v, tau, a), forces)

    def acceleration(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        if self.contacts is None:
            return self.evaluate("forward_dynamics", q, v, tau), np.zeros(0)
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
    """M du - h dt = W P with Coulomb friction: contacts open, stick, slide and bounce, many in one step.

    Contact laws hold for velocities at the end of the step. A foot lands without penetrating: g + dt gamma_n >= 0. A
    foot bounces (with restitution, and if faster than gravity makes it in two steps) once it has reached the ground, at
    most |gamma_n| dt deep. Each step removes a fifth of a penetration, less of a deep one, so that a foot is thrown no
    higher above the ground than it was below. M, h and W are taken halfway, at the middle of a first solution of the
    step: the axes of v turn, and a rolling ball would otherwise gain speed. In flight the method is of second order.
    """

    def __init__(self, evaluator: Evaluator, dt: float, ground: Ground) -> None:
        self.evaluate, self.dt = evaluator, dt
        self.ground, self.contacts = ground, ground
        self.slow = 2 * dt * float(np.linalg.norm(evaluator.model.gravity))
        self.last = np.zeros(3 * len(ground.feet))

    def __call__(self, q: Array, v: Array, tau: Array) -> Stepped:
        dt = self.dt
        gap = self.ground.gaps(self.evaluate, q)
        first, _, _ = self.attempt(q, v, v, gap, tau)
        after, met, found = self.attempt(q, v, first, gap, tau)
        P = self.last.reshape(-1, 3)
        forces = np.einsum("nij,ni->nj", met.axes, P) / dt
        mean = (v + after) / 2
        flies = not P.any() and (gap + dt * (met.J @ mean)[2::3] > 0).all()
        moved = self.evaluate("integrate", q, dt * (mean if flies else after))
        return Stepped(moved, after, forces.ravel(), found.residual, found.converged)

    def attempt(
        self, q: Array, v: Array, guess: Array, gap: Array, tau: Array
    ) -> tuple[Array, Meeting, gauss_seidel.Percussions]:
        """The velocity after the step from a guess of it, the feet halfway, and the percussions (also in `last`)."""
        halfway = self.evaluate("integrate", q, self.dt / 2 * guess)
        met = self.ground.meet(self.evaluate, halfway)
        J, at = met.J, (halfway, (v + guess) / 2)
        M, h = self.evaluate("mass_matrix", at[0]), self.evaluate("bias", *at)
        solved = np.linalg.solve(M, np.column_stack([tau - h, J.T]))
        free, MinvJT = v + self.dt * solved[:, 0], solved[:, 1:]
        offset, near = self.offsets(gap, (J @ v)[2::3])
        b = J @ free
        b[2::3] += offset
        P, rows = np.zeros(len(J)), np.repeat(near, 3)
        found = gauss_seidel.Percussions(P, 0.0, 0, True)
        if (b[2::3][near] < 0).any():
            G, friction = (J @ MinvJT)[np.ix_(rows, rows)], self.ground.friction[near]
            found = gauss_seidel.solve(G, b[rows], friction, self.last[rows])
            P[rows] = found.P
        self.last = P
        return free + MinvJT @ P, met, found

    def sunk(self, q: Array) -> str:
        """A warning if a foot starts deeper in the ground than time steps would take it, else nothing."""
        gap = self.ground.gaps(self.evaluate, q)
        k = int(np.argmin(gap))
        deep = 2 * GRAVITY * (self.dt / PUSH_OUT) ** 2
        if gap[k] > -deep:
            return ""
        return (
            f"foot {self.ground.names[k]!r} begins {-gap[k]:.3g} m below the ground, which pushes it out. Start "
            "higher; ground.gap(robot, q) gives the height of each foot"
        )

    def offsets(self, gap: Array, approach: Array) -> tuple[Array, Array]:
        """The terms to add to each foot's normal velocity in the contact law, and which feet may be in contact."""
        bounces = (self.ground.restitution > 0) & (approach < -self.slow)
        depth = np.maximum(-gap, 0.0)
        push = np.minimum(PUSH_OUT * depth / self.dt, np.sqrt(2 * GRAVITY * depth))
        lands = np.where(gap > 0, gap / self.dt, -push)
        offset = np.where(bounces, self.ground.restitution * approach, lands)
        return offset, ~(bounces & (gap > 0))
