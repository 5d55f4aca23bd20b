"""The Hessian of p.next at all knots, contracted with costates p, for all integrators; see `algorithms.integrators`.

It is a sum over the stages of a step: each function of the step has its own Hessian, contracted with the multiplier
that p leaves for its result, along the slopes of its arguments by z = (q, v, u).
"""

from __future__ import annotations

import numpy as np

from ...algorithms.frames.curvature import transposed
from ...algorithms.integrators import (
    chart_rates,
    dot,
    is_flat_space,
    move_hessian,
    pulled_back,
    transposed_times,
)
from ...jit.autodiff import jacobian
from ...jit.kernel import Kernel
from ...model.configuration import Places
from .dynamics_hessian import dynamics_hessian
from .kernels import traced_kernel
from .motion import PhaseMotion
from .runge_kutta import RungeKutta, RungeKuttaPoint

Array = np.ndarray


def move_kernel(places: Places) -> Kernel:
    """(w, p) -> second derivatives of p.(q (+) w) by (dq, dw) and (dw, dw), (nv, nv) each."""
    nv = places.nv

    def run(w: Array, p: Array) -> list[Array]:
        graph = w[0].graph
        return move_hessian(places, w, p, lambda y, x: jacobian([graph.lift(k) for k in y], x, "forward"))

    shapes = [(nv, nv)] * 2
    return traced_kernel(run, {"w": (nv,), "p": (nv,)}, ("move Hessian", places.digest), "Hessians of moves", shapes)


def rate_kernel(places: Places) -> Kernel:
    """(w, v, p) -> second derivatives of p.R(w) v by (w, w) and (w, v), (nv, nv) each."""
    nv = places.nv

    def run(w: Array, v: Array, p: Array) -> list[Array]:
        total = w[0].graph.lift(dot(p, chart_rates(places, w, v)))
        first = list(jacobian([total], list(w), "reverse")[0])
        second = jacobian(first, [*w, *v], "forward")
        return [second[:, :nv], second[:, nv:]]

    inputs, shapes = {"w": (nv,), "v": (nv,), "p": (nv,)}, [(nv, nv)] * 2
    return traced_kernel(run, inputs, ("rate Hessian", places.digest), "Hessians of rates", shapes)


def moved_hessian(m: PhaseMotion, w: Array, p: Array, slopes: Array) -> Array | float:
    """The Hessian of p.(q (+) w), where w has slopes (..., nv, nd) and, here, no second derivatives of its own."""
    places, nv = m.size.places, m.size.nv
    if is_flat_space(places):
        return 0.0
    mixed, along_w = m.robot.code("move Hessian", lambda: move_kernel(places)).values(w, p)
    H = pulled_back(along_w, slopes)
    rows = mixed @ slopes
    H[..., :nv, :] += rows
    H[..., :, :nv] += transposed(rows)
    return H


def rates_hessian(m: PhaseMotion, here: RungeKuttaPoint, p: Array) -> Array | float:
    """The Hessian of p.R(w) v at a stage."""
    places = m.size.places
    if is_flat_space(places):
        return 0.0
    ww, wv = m.robot.code("rate Hessian", lambda: rate_kernel(places)).values(here.w, here.v, p)
    mixed = transposed(here.dw) @ wv @ here.dv
    return pulled_back(ww, here.dw) + mixed + transposed(mixed)


def impact_hessian(m: PhaseMotion, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The Hessian (..., nd, nd) of p.next + w_a.a + w_f.f at an impact; w_a, w_f: weights in the knot's own costs."""
    return dynamics_hessian(m, w_a + p[..., m.size.nv :], w_f)


def euler_hessian(m: PhaseMotion, dt: float, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The same for a step of semi-implicit Euler: q (+) w and v + dt a, where w = dt (v + dt a)."""
    nv = m.size.nv
    w = dt * (m.v + dt * m.a)
    along = m.robot.kernel("integrate_jacobians").values(m.q, w)[1]
    weights = dt * (p[..., nv:] + dt * transposed_times(along, p[..., :nv]))
    slopes = dt * dt * np.concatenate([x for x in m.a_slopes if x is not None], -1)
    slopes[..., range(nv), range(nv, 2 * nv)] += dt
    return dynamics_hessian(m, w_a + weights, w_f) + moved_hessian(m, w, p[..., :nv], slopes)


def runge_kutta_hessian(steps: RungeKutta, m: PhaseMotion, dt: float, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The same for a Runge-Kutta step: forward through the stages for slopes, and back for multipliers."""
    nv, nu, tableau = m.size.nv, m.size.nu, steps.tableau
    nd = 2 * nv + nu
    by_q, _, by_u = np.split(np.eye(nd), [nv, 2 * nv])
    points, W, dW = steps.points(m, dt)[:3]
    H = np.zeros((*m.v.shape[:-1], nd, nd)) + moved_hessian(m, W, p[..., :nv], dW)
    whole = transposed_times(m.robot.kernel("integrate_jacobians").values(m.q, W)[1], p[..., :nv])
    of_w = of_v = np.zeros_like(m.v)  # multipliers of the next stage
    for here, share, weight in zip(points[::-1], (0.0, *tableau.shares[::-1]), tableau.weights[::-1], strict=True):
        first = here.at is m
        rate_weights = dt * (weight * whole + share * of_w)
        weights = dt * (weight * p[..., nv:] + share * of_v)
        s = here.at.slopes
        turn = transposed_times(s.a_q, weights)
        own = dynamics_hessian(here.at, weights + w_a if first else weights, w_f if first else None)
        wide_u = np.broadcast_to(by_u, (*m.v.shape[:-1], *by_u.shape))
        slopes = np.concatenate([here.back @ by_q + here.along @ here.dw, here.dv, wide_u], -2)
        H += pulled_back(own, slopes) + moved_hessian(m, here.w, turn, here.dw)
        H += rates_hessian(m, here, rate_weights)
        of_w = transposed_times(here.rate_w, rate_weights) + transposed_times(here.along, turn)
        of_v = transposed_times(here.rate_v, rate_weights) + transposed_times(s.a_v, weights)
    return H
