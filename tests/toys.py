"""Small horizons in NumPy, whose derivatives are written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherjet.control import Quadratic, Values

Array = np.ndarray


@dataclass
class Toy:
    """A horizon on vectors, with costs 1/2 (x - goal).Q (x - goal) + 1/2 u.R u at each knot and Qf at the end.

    A child has `step(x, u)` and `slopes(x, u)`; `bends(x, u, p)` are second derivatives of p.f by [x, u].
    """

    x0: Array
    T: int
    nx: int
    nu: int
    Q: Array
    R: Array
    Qf: Array
    goal: Array
    u_lower: Array | None = None
    u_upper: Array | None = None
    exact: bool = False
    ne: int = 0
    ni: int = 0
    durations: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.ndx, self.batch = self.nx, ()
        self.durations = np.full(self.T, 0.05)
        for name in ("u_lower", "u_upper"):
            x = getattr(self, name)
            setattr(self, name, None if x is None else np.broadcast_to(x, (self.T, self.nu)))

    def step(self, x: Array, u: Array) -> Array:
        raise NotImplementedError

    def slopes(self, x: Array, u: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def second_derivatives(self, x: Array, u: Array, p: Array) -> Array:
        raise NotImplementedError

    def difference(self, x0: Array, x1: Array) -> Array:
        return x1 - x0

    def integrate(self, x: Array, dx: Array) -> Array:
        return x + dx

    def guess(self, x0: Array) -> tuple[Array, Array]:
        return np.repeat(x0[..., None, :], self.T + 1, -2), np.zeros((*x0.shape[:-1], self.T, self.nu))

    def cost(self, xs: Array, us: Array) -> Array:
        e = xs - self.goal
        last = 0.5 * np.einsum("...i,ij,...j->...", e[..., -1:, :], self.Qf, e[..., -1:, :])
        run = 0.5 * np.einsum("...i,ij,...j->...", e[..., :-1, :], self.Q, e[..., :-1, :])
        run += 0.5 * np.einsum("...i,ij,...j->...", us, self.R, us)
        return np.concatenate([run, last], -1)

    def constraints(self, xs: Array, us: Array) -> dict[str, Array]:
        """Values and Jacobians of constraints, by the names of Quadratic."""
        return {}

    def values(self, xs: Array, us: Array) -> Values:
        found = {k: x for k, x in self.constraints(xs, us).items() if k in ("equality", "inequality")}
        return Values(next=self.step(xs[..., :-1, :], us), cost=self.cost(xs, us), **found)

    def linearize(self, xs: Array, us: Array, costates: Array | None = None) -> Quadratic:
        x, n, batch = xs[..., :-1, :], self.nx, xs.shape[:-2]
        Fx, Fu = self.slopes(x, us)
        e = xs - self.goal
        Lx = np.concatenate([e[..., :-1, :] @ self.Q, e[..., -1:, :] @ self.Qf], -2)
        L = np.zeros((*batch, self.T, n + self.nu, n + self.nu))
        L[..., :n, :n], L[..., n:, n:] = self.Q, self.R
        if costates is not None:
            L += self.second_derivatives(x, us, costates[..., 1:, :])
        last = np.broadcast_to(self.Qf, (*batch, 1, n, n))
        return Quadratic(
            next=self.step(x, us), cost=self.cost(xs, us), Fx=Fx, Fu=Fu, Lx=Lx, Lu=us @ self.R,
            Lxx=np.concatenate([L[..., :n, :n], last], -3), Lxu=L[..., :n, n:], Luu=L[..., n:, n:],
            **self.constraints(xs, us),
        )  # fmt: skip

    def rollout(
        self, x0: Array, xs: Array, us: Array, k: Array, K: Array, alpha: Array, gaps: Array | None, clip: bool
    ) -> tuple[Array, Array, Array]:
        alpha = np.asarray(alpha)[..., None]
        new, controls = [x0 if gaps is None else x0 + (alpha - 1) * gaps[..., 0, :]], []
        for t in range(self.T):
            u = us[..., t, :] - alpha * k[..., t, :]
            u = u - np.einsum("...ux,...x->...u", K[..., t, :, :], new[-1] - xs[..., t, :])
            if clip and self.u_lower is not None and self.u_upper is not None:
                u = np.clip(u, self.u_lower[t], self.u_upper[t])
            controls.append(u)
            x = self.step(new[-1], u)
            new.append(x if gaps is None else x + (alpha - 1) * gaps[..., t + 1, :])
        found = np.stack(new, -2), np.stack(controls, -2)
        return *found, self.cost(*found).sum(-1)

    def terms(self, xs: Array, us: Array) -> dict[str, Array]:
        return {"everything": self.cost(xs, us)}

    def take(self, problems: Any) -> Toy:
        raise NotImplementedError


class Linear(Toy):
    """x+ = A x + B u + c."""

    A: Array
    B: Array
    c: Array

    def step(self, x: Array, u: Array) -> Array:
        return x @ self.A.T + u @ self.B.T + self.c

    def slopes(self, x: Array, u: Array) -> tuple[Array, Array]:
        return (np.broadcast_to(F, (*x.shape[:-1], *F.shape)) for F in (self.A, self.B))  # type: ignore[return-value]


class Pendulum(Toy):
    """A pendulum with a torque, from hanging to upright: v+ = v + h (u - 4 sin q), q+ = q + h v+."""

    h = 0.05

    def step(self, x: Array, u: Array) -> Array:
        v = x[..., 1] + self.h * (u[..., 0] - 4.0 * np.sin(x[..., 0]))
        return np.stack([x[..., 0] + self.h * v, v], -1)

    def slopes(self, x: Array, u: Array) -> tuple[Array, Array]:
        Fx, Fu = np.zeros((*x.shape, 2)), np.zeros((*x.shape, 1))
        Fx[..., 1, 0], Fx[..., 1, 1], Fu[..., 1, 0] = -4.0 * self.h * np.cos(x[..., 0]), 1.0, self.h
        Fx[..., 0, :], Fu[..., 0, :] = self.h * Fx[..., 1, :], self.h * Fu[..., 1, :]
        Fx[..., 0, 0] += 1.0
        return Fx, Fu

    def second_derivatives(self, x: Array, u: Array, p: Array) -> Array:
        found = np.zeros((*x.shape[:-1], 3, 3))
        found[..., 0, 0] = 4.0 * self.h * np.sin(x[..., 0]) * (p[..., 1] + self.h * p[..., 0])
        return found


def linear(n: int = 4, m: int = 2, T: int = 30, seed: int = 0, **options: Any) -> Linear:
    """A random stable linear problem."""
    draw = np.random.default_rng(seed).normal
    toy = Linear(draw(size=n), T, n, m, np.eye(n), 0.1 * np.eye(m), 5.0 * np.eye(n), np.zeros(n), **options)
    toy.A, toy.B, toy.c = np.eye(n) + 0.1 * draw(size=(n, n)), 0.3 * draw(size=(n, m)), np.zeros(n)
    return toy


def pendulum(T: int = 60, **options: Any) -> Pendulum:
    Q, Qf = np.diag([0.01, 0.01]), np.diag([200.0, 20.0])
    return Pendulum(np.zeros(2), T, 2, 1, Q, np.array([[0.01]]), Qf, np.array([np.pi, 0.0]), **options)
