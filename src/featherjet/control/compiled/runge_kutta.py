"""Compiled Runge-Kutta steps at all knots: next states, and their Jacobians; see `algorithms.integrators`.

Stages move (w, v) from (0, v) by shares of dt; controls are constant over a step.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.integrators import TABLEAUX, chart_rates, moved
from ...jit.autodiff import jacobian
from ...jit.chain import Link
from ...jit.kernel import Kernel
from .kernels import traced_kernel
from .motion import PhaseMotion
from .robot import PhaseRobot

Array = np.ndarray


class RungeKuttaPoint(NamedTuple):
    """A stage of a step: its place (w, v) in the chart around the knot, and slopes by z = (q, v, u).

    at: the motion there; dw, dv (..., nv, nd): slopes; back, along: Jacobians of q (+) w by q and w; rate_w, rate_v: of
    R(w) v.
    """

    at: PhaseMotion
    w: Array
    v: Array
    dw: Array
    dv: Array
    back: Array
    along: Array
    rate_w: Array
    rate_v: Array


class RungeKutta:
    """The steps of a robot in a phase."""

    def __init__(self, robot: PhaseRobot, name: str) -> None:
        self.robot, self.name, self.tableau = robot, name, TABLEAUX[name]

    @cached_property
    def rates(self) -> Kernel:
        """(w, v) -> R(w) v and its Jacobians by w and v."""
        places = self.robot.size.places
        n = places.nv

        def run(w: Array, v: Array) -> list[Array]:
            rates = chart_rates(places, w, v)
            graph = w[0].graph
            J = jacobian([graph.lift(x) for x in rates], [*w, *v], "forward")
            return [np.array(rates, object), J[:, :n], J[:, n:]]

        return traced_kernel(run, {"w": (n,), "v": (n,)}, ("rates", places.digest), "rates", [(n,), (n, n), (n, n)])

    def next(self, m: PhaseMotion, dt: float) -> Array:
        """States after steps from those of a motion."""
        move = self.robot.kernel("integrate")
        w, v, at = np.zeros_like(m.v), m.v, m
        W, V = np.zeros_like(m.v), np.zeros_like(m.v)
        for share, weight in zip((*self.tableau.shares, 0.0), self.tableau.weights, strict=True):
            rate = self.rates.values(w, v)[0]
            W, V = W + weight * dt * rate, V + weight * dt * at.a
            if share:
                w, v = share * dt * rate, m.v + share * dt * at.a
                at = PhaseMotion(self.robot, np.concatenate([move.values(m.q, w)[0], v], -1), m.u)
        return np.concatenate([move.values(m.q, W)[0], m.v + V], -1)

    def points(self, m: PhaseMotion, dt: float) -> tuple[list[RungeKuttaPoint], Array, Array, Array, Array]:
        """The stages of steps from a motion's states; w of the whole step and dw (..., nv, nd), next v and dv."""
        robot, nv, nd = self.robot, m.size.nv, 2 * m.size.nv + m.size.nu
        move, turns = robot.kernel("integrate"), robot.kernel("integrate_jacobians")
        by_q, by_v, by_u = np.split(np.eye(nd), [nv, 2 * nv])
        w, v, at = np.zeros_like(m.v), m.v, m
        dw, dv = np.zeros((*m.v.shape, nd)), np.broadcast_to(by_v, (*m.v.shape, nd))
        points, W, V, dW, dV = [], np.zeros_like(w), m.v, np.zeros_like(dw), dv
        for share, weight in zip((*self.tableau.shares, 0.0), self.tableau.weights, strict=True):
            rate, rate_w, rate_v = self.rates.values(w, v)
            back, along = turns.values(m.q, w)
            points.append(RungeKuttaPoint(at, w, v, dw, dv, back, along, rate_w, rate_v))
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
                at = PhaseMotion(robot, np.concatenate([move.values(m.q, w)[0], v], -1), m.u)
        return points, W, dW, V, dV

    def linear(self, m: PhaseMotion, dt: float, next: Array, Fx: Array, Fu: Array) -> None:
        """Write next states and their Jacobians."""
        robot, ndx = self.robot, 2 * m.size.nv
        _, W, dW, V, dV = self.points(m, dt)
        back, along = robot.kernel("integrate_jacobians").values(m.q, W)
        by_q = np.eye(m.size.nv, dW.shape[-1])
        F = np.concatenate([back @ by_q + along @ dW, dV], -2)
        next[...] = np.concatenate([robot.kernel("integrate").values(m.q, W)[0], V], -1)
        Fx[...], Fu[...] = F[..., :ndx], F[..., ndx:]

    def links(self, x: str, a: str) -> tuple[list[Link], dict[str, tuple[int, ...]]]:
        """The links of a chain from a state and its accelerations to "next", after those that compute them.

        They also need "v", "tau" and "dt", and temporary arrays, which are returned.
        """
        robot, places = self.robot, self.robot.size.places
        nq, nv, stages = places.nq, places.nv, len(self.tableau.weights)
        forces = ("spare forces",) if robot.rows else ()
        between: dict[str, tuple[int, ...]] = {"w0": (nv,)} | ({"spare forces": (robot.rows,)} if forces else {})
        links, names = [], [a]
        for k, share in enumerate(self.tableau.shares):
            new = {f"r{k}": (nv,), f"w{k + 1}": (nv,), f"q{k + 1}": (nq,), f"v{k + 1}": (nv,), f"a{k + 1}": (nv,)}
            between |= new
            v = "v" if k == 0 else f"v{k}"
            links.append(Link(self._stage(share), (x, f"w{k}", v, names[-1], "dt", *list(new)[:4])))
            dynamics = robot.kernel(robot.dynamics)
            links.append(Link(dynamics, (f"q{k + 1}", f"v{k + 1}", "tau", f"a{k + 1}", *forces)))
            names.append(f"a{k + 1}")
        rates = [f"r{k}" for k in range(stages - 1)]
        links.append(Link(self._last(), (x, f"w{stages - 1}", f"v{stages - 1}", *rates, *names, "dt", "next")))
        return links, between

    def _stage(self, share: float) -> Kernel:
        """(x, w, v, a, dt) -> rate, and w, q, v of the next stage."""
        places = self.robot.size.places
        nq, nv = places.nq, places.nv

        def run(x: Any, w: Any, v: Any, a: Any, dt: Any) -> list[Array]:
            rate = chart_rates(places, w, v)
            after = [share * dt[0] * r for r in rate]
            return [np.array(y, object) for y in (rate, after, moved(places, x, after), x[nq:] + share * dt[0] * a)]

        inputs = {"x": (nq + nv,), "w": (nv,), "v": (nv,), "a": (nv,), "dt": (1,)}
        return traced_kernel(run, inputs, ("stage", share, places.digest), "stages", [(nv,), (nv,), (nq,), (nv,)])

    def _last(self) -> Kernel:
        """(x, w and v of the last stage, rates of the others, accelerations of all, dt) -> next."""
        places, b = self.robot.size.places, self.tableau.weights
        nq, nv, stages = places.nq, places.nv, len(b)

        def run(x: Any, w: Any, v: Any, dt: Any, **rest: Any) -> list[Array]:
            rates = [*(rest[f"r{k}"] for k in range(stages - 1)), np.array(chart_rates(places, w, v), object)]
            W = sum(c * dt[0] * r for c, r in zip(b, rates, strict=True))
            V = x[nq:] + sum(c * dt[0] * rest[f"a{k}"] for k, c in enumerate(b))
            return [np.array([*moved(places, x, W), *V], object)]

        inner = {f"r{k}": (nv,) for k in range(stages - 1)} | {f"a{k}": (nv,) for k in range(stages)}
        inputs = {"x": (nq + nv,), "w": (nv,), "v": (nv,), **inner, "dt": (1,)}
        return traced_kernel(run, inputs, (self.name, places.digest), "steps", [(nq + nv,)])
