"""Runge-Kutta methods on the manifold of configurations [Munthe-Kaas 1999], for next states and their Jacobians.

In the chart q (+) w around a knot's q, a motion is dw/dt = R(w) v, dv/dt = a(q (+) w, v, u), where R is the inverse of
the right Jacobian of (+). Stages move (w, v) from (0, v) by shares of dt; controls are constant over a step.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..jit.autodiff import jacobian
from ..jit.chain import Link
from ..jit.kernel import Kernel
from .code import compiled
from .motion import Body, Motion

Array = np.ndarray


class Tableau(NamedTuple):
    """shares: of dt from each stage to the next; weights: of the stages in the step."""

    shares: tuple[float, ...]
    weights: tuple[float, ...]


TABLEAUX = {"rk2": Tableau((0.5,), (0.0, 1.0)), "rk4": Tableau((0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))}


class RungeKutta:
    """The steps of a robot in a phase."""

    def __init__(self, body: Body, name: str) -> None:
        self.body, self.name, self.tableau = body, name, TABLEAUX[name]

    @cached_property
    def rates(self) -> Kernel:
        """(w, v) -> R(w) v and its Jacobians by w and v."""
        places = self.body.size.places
        n = places.nv

        def run(w: Array, v: Array) -> list[Array]:
            found = turned(places, w, v)
            graph = w[0].graph
            J = jacobian([graph.lift(x) for x in found], [*w, *v], "forward")
            return [np.array(found, object), J[:, :n], J[:, n:]]

        return compiled(run, {"w": (n,), "v": (n,)}, ("rates", places.digest), "rates", [(n,), (n, n), (n, n)])

    def next(self, m: Motion, dt: float) -> Array:
        """States after steps from those of a motion."""
        move = self.body.kernel("integrate")
        w, v, at = np.zeros_like(m.v), m.v, m
        W, V = np.zeros_like(m.v), np.zeros_like(m.v)
        for share, weight in zip((*self.tableau.shares, 0.0), self.tableau.weights, strict=True):
            rate = self.rates.values(w, v)[0]
            W, V = W + weight * dt * rate, V + weight * dt * at.a
            if share:
                w, v = share * dt * rate, m.v + share * dt * at.a
                at = Motion(self.body, np.concatenate([move.values(m.q, w)[0], v], -1), m.u)
        return np.concatenate([move.values(m.q, W)[0], m.v + V], -1)

    def linear(self, m: Motion, dt: float, next: Array, Fx: Array, Fu: Array) -> None:
        """Write next states and their Jacobians."""
        body = self.body
        nv, nu = body.size.nv, body.size.nu
        move, turns = body.kernel("integrate"), body.kernel("integrate_jacobians")
        by_q, by_v, by_u = np.split(np.eye(2 * nv + nu), [nv, 2 * nv])
        w, v, at = np.zeros_like(m.v), m.v, m
        dw, dv = np.zeros((*m.v.shape, 2 * nv + nu)), np.broadcast_to(by_v, (*m.v.shape, 2 * nv + nu))
        W, V, dW, dV = np.zeros_like(w), m.v, np.zeros_like(dw), dv
        for share, weight in zip((*self.tableau.shares, 0.0), self.tableau.weights, strict=True):
            rate, rate_w, rate_v = self.rates.values(w, v)
            back, along = turns.values(m.q, w)
            s = at.a_slopes
            assert s.v is not None
            assert s.u is not None
            da = s.q @ (back @ by_q + along @ dw) + s.v @ dv + s.u @ by_u
            dr = rate_w @ dw + rate_v @ dv
            W, V = W + weight * dt * rate, V + weight * dt * at.a
            dW, dV = dW + weight * dt * dr, dV + weight * dt * da
            if share:
                w, v = share * dt * rate, m.v + share * dt * at.a
                dw, dv = share * dt * dr, by_v + share * dt * da
                at = Motion(body, np.concatenate([move.values(m.q, w)[0], v], -1), m.u)
        back, along = turns.values(m.q, W)
        F = np.concatenate([back @ by_q + along @ dW, dV], -2)
        next[...] = np.concatenate([move.values(m.q, W)[0], V], -1)
        Fx[...], Fu[...] = F[..., : 2 * nv], F[..., 2 * nv :]

    def links(self, x: str, a: str) -> tuple[list[Link], dict[str, tuple[int, ...]]]:
        """The links of a chain from a state and its accelerations to "next", after those that compute them.

        They also need "v", "tau" and "dt", and temporary arrays, which are returned.
        """
        body, places = self.body, self.body.size.places
        nq, nv, stages = places.nq, places.nv, len(self.tableau.weights)
        forces = ("spare forces",) if body.rows else ()
        between: dict[str, tuple[int, ...]] = {"w0": (nv,)} | ({"spare forces": (body.rows,)} if forces else {})
        links, names = [], [a]
        for k, share in enumerate(self.tableau.shares):
            new = {f"r{k}": (nv,), f"w{k + 1}": (nv,), f"q{k + 1}": (nq,), f"v{k + 1}": (nv,), f"a{k + 1}": (nv,)}
            between |= new
            v = "v" if k == 0 else f"v{k}"
            links.append(Link(self._stage(share), (x, f"w{k}", v, names[-1], "dt", *list(new)[:4])))
            dynamics = body.kernel(body.dynamics)
            links.append(Link(dynamics, (f"q{k + 1}", f"v{k + 1}", "tau", f"a{k + 1}", *forces)))
            names.append(f"a{k + 1}")
        rates = [f"r{k}" for k in range(stages - 1)]
        links.append(Link(self._last(), (x, f"w{stages - 1}", f"v{stages - 1}", *rates, *names, "dt", "next")))
        return links, between

    def _stage(self, share: float) -> Kernel:
        """(x, w, v, a, dt) -> rate, and w, q, v of the next stage."""
        places = self.body.size.places
        nq, nv = places.nq, places.nv

        def run(x: Any, w: Any, v: Any, a: Any, dt: Any) -> list[Array]:
            rate = turned(places, w, v)
            after = [share * dt[0] * r for r in rate]
            return [np.array(y, object) for y in (rate, after, moved(places, x, after), x[nq:] + share * dt[0] * a)]

        inputs = {"x": (nq + nv,), "w": (nv,), "v": (nv,), "a": (nv,), "dt": (1,)}
        return compiled(run, inputs, ("stage", share, places.digest), "stages", [(nv,), (nv,), (nq,), (nv,)])

    def _last(self) -> Kernel:
        """(x, w and v of the last stage, rates of the others, accelerations of all, dt) -> next."""
        places, b = self.body.size.places, self.tableau.weights
        nq, nv, stages = places.nq, places.nv, len(b)

        def run(x: Any, w: Any, v: Any, dt: Any, **rest: Any) -> list[Array]:
            rates = [*(rest[f"r{k}"] for k in range(stages - 1)), np.array(turned(places, w, v), object)]
            W = sum(c * dt[0] * r for c, r in zip(b, rates, strict=True))
            V = x[nq:] + sum(c * dt[0] * rest[f"a{k}"] for k, c in enumerate(b))
            return [np.array([*moved(places, x, W), *V], object)]

        inner = {f"r{k}": (nv,) for k in range(stages - 1)} | {f"a{k}": (nv,) for k in range(stages)}
        inputs = {"x": (nq + nv,), "w": (nv,), "v": (nv,), **inner, "dt": (1,)}
        return compiled(run, inputs, (self.name, places.digest), "steps", [(nq + nv,)])


def turned(places: Any, w: Any, v: Any) -> list[Any]:
    """R(w) v."""
    found: list[Any] = []
    for p in places.nodes:
        J = p.manifold.right_jacobian_inverse(list(w[p.v]))
        found += [sum((a * b for a, b in zip(row, v[p.v], strict=True)), 0.0) for row in J]
    return found


def moved(places: Any, x: Any, w: Any) -> list[Any]:
    """q (+) w."""
    return [y for p in places.nodes for y in p.manifold.integrate(x[p.q], list(w[p.v]))]
