"""Second derivatives of next states, contracted with costates p, for all integrators.

In charts at a knot and at its next state, q (+) w(z) moves by d(dq, dw) = log(exp(-w) exp(dq) exp(w + dw)). With B and
L, its Jacobians by dq and dw, the Baker-Campbell-Hausdorff formula gives the second derivatives

    p.d by (dq, dq): 0     by (dq_i, dw_j): p.[B_i, L_j] / 2     by (dw, dw): the symmetric half of d(p^T L(w))/dw

A step's Hessian is a sum over its stages: each function of the step bends by its own Hessian, contracted with the
multiplier that p leaves for its result, along the slopes of its arguments by z = (q, v, u).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.autodiff import jacobian
from ..jit.kernel import Kernel
from ..model.configuration import Places
from ..model.manifolds import SE2, SE3, SO3, Manifold, is_flat
from .code import compiled
from .dynamics_curvature import dynamics_curvature
from .frame_curvature import transposed
from .motion import Motion
from .runge_kutta import RungeKutta, turned

Array = np.ndarray


def bracket(manifold: Manifold, a: Any, b: Any) -> list[Any]:
    """The commutator [a, b] of two tangent vectors."""
    if isinstance(manifold, SO3):
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    if isinstance(manifold, SE2):
        return [b[2] * a[1] - a[2] * b[1], a[2] * b[0] - b[2] * a[0], 0.0]
    assert isinstance(manifold, SE3)
    spin = SO3()
    first, second = bracket(spin, a[3:], b[:3]), bracket(spin, a[:3], b[3:])
    return [*(x + y for x, y in zip(first, second, strict=True)), *bracket(spin, a[3:], b[3:])]


def move_code(places: Places) -> Kernel:
    """(w, p) -> second derivatives of p.d by (dq, dw) and (dw, dw), (nv, nv) each."""
    nv = places.nv

    def run(w: Array, p: Array) -> list[Array]:
        mixed, bent = np.zeros((nv, nv), object), np.zeros((nv, nv), object)
        for node in places.nodes:
            if is_flat(node.manifold):
                continue
            own, weights, n = w[node.v], p[node.v], node.manifold.nv
            back = np.array(node.manifold.adjoint_inverse(list(own)), object)
            along = np.array(node.manifold.right_jacobian(list(own)), object)
            pulled = [along[0, j].graph.lift(dot(weights, along[:, j])) for j in range(n)]
            slopes = jacobian(pulled, list(own), "forward")
            bent[node.v, node.v] = 0.5 * (slopes + slopes.T)
            mixed[node.v, node.v] = [
                [0.5 * dot(weights, bracket(node.manifold, back[:, i], along[:, j])) for j in range(n)]
                for i in range(n)
            ]
        return [mixed, bent]

    return compiled(run, {"w": (nv,), "p": (nv,)}, ("bent moves", places.digest), "bent moves", [(nv, nv)] * 2)


def rate_code(places: Places) -> Kernel:
    """(w, v, p) -> second derivatives of p.R(w) v by (w, w) and (w, v), (nv, nv) each; see `runge_kutta`."""
    nv = places.nv

    def run(w: Array, v: Array, p: Array) -> list[Array]:
        graph = w[0].graph
        total = graph.lift(dot(p, turned(places, w, v)))
        first = list(jacobian([total], list(w), "reverse")[0])
        second = jacobian(first, [*w, *v], "forward")
        return [second[:, :nv], second[:, nv:]]

    inputs = {"w": (nv,), "v": (nv,), "p": (nv,)}
    return compiled(run, inputs, ("bent rates", places.digest), "bent rates", [(nv, nv)] * 2)


def dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def times(A: Array, x: Array) -> Array:
    """A^T x of each knot."""
    return (x[..., None, :] @ A)[..., 0, :]


def pulled_back(H: Array, slopes: Array) -> Array:
    return transposed(slopes) @ (H @ slopes)


def moved_curvature(m: Motion, w: Array, p: Array, slopes: Array) -> Array | float:
    """The Hessian of p.(q (+) w), where w has these slopes (..., nv, nd), but for what w itself bends by."""
    places = m.size.places
    if all(is_flat(n.manifold) for n in places.nodes):
        return 0.0
    mixed, bent = m.body.code("bent moves", lambda: move_code(places)).values(w, p)
    H = pulled_back(bent, slopes)
    rows = mixed @ slopes
    H[..., : m.size.nv, :] += rows
    H[..., :, : m.size.nv] += transposed(rows)
    return H


def dynamics_slopes(m: Motion) -> Array:
    """da/dz (..., nv, nd)."""
    return np.concatenate([x for x in m.a_slopes if x is not None], -1)


def impact_curvature(m: Motion, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """Of p.next, plus w_a.a + w_f.f of the knot's own costs."""
    return dynamics_curvature(m, w_a + p[..., m.size.nv :], w_f)


def euler_curvature(m: Motion, dt: float, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The same: q (+) w and v + dt a, where w = dt (v + dt a)."""
    nv = m.size.nv
    w = dt * (m.v + dt * m.a)
    along = m.body.kernel("integrate_jacobians").values(m.q, w)[1]
    weights = dt * (p[..., nv:] + dt * times(along, p[..., :nv]))
    slopes = dt * dt * dynamics_slopes(m)
    slopes[..., range(nv), range(nv, 2 * nv)] += dt
    return dynamics_curvature(m, w_a + weights, w_f) + moved_curvature(m, w, p[..., :nv], slopes)


class Stage:
    """A stage of a Runge-Kutta step: where it is in the chart around the knot, and the slopes of that by z."""

    def __init__(self, at: Motion, w: Array, v: Array, dw: Array, dv: Array, turns: tuple[Array, ...]) -> None:
        self.at, self.w, self.v, self.dw, self.dv = at, w, v, dw, dv
        self.back, self.along = turns


def runge_kutta_curvature(steps: RungeKutta, m: Motion, dt: float, p: Array, w_a: Array, w_f: Array | None) -> Array:
    """The same: forward through the stages for slopes, and back for multipliers."""
    body, nv, tableau = steps.body, m.size.nv, steps.tableau
    move, turns = body.kernel("integrate"), body.kernel("integrate_jacobians")
    by_q, by_v, by_u = np.split(np.eye(2 * nv + m.size.nu), [nv, 2 * nv])
    w, v, at = np.zeros_like(m.v), m.v, m
    dw, dv = np.zeros((*m.v.shape, len(by_q.T))), np.broadcast_to(by_v, (*m.v.shape, len(by_q.T)))
    W, dW, stages = w, dw, []
    for share, weight in zip((*tableau.shares, 0.0), tableau.weights, strict=True):
        rate, rate_w, rate_v = steps.rates.values(w, v)
        stages.append(Stage(at, w, v, dw, dv, turns.values(m.q, w)))
        (a_q, a_v, a_u), here = at.a_slopes, stages[-1]
        assert a_v is not None
        assert a_u is not None
        da = a_q @ (here.back @ by_q + here.along @ dw) + a_v @ dv + a_u @ by_u
        dr = rate_w @ dw + rate_v @ dv
        W, dW = W + weight * dt * rate, dW + weight * dt * dr
        if share:
            w, v = share * dt * rate, m.v + share * dt * at.a
            dw, dv = share * dt * dr, by_v + share * dt * da
            at = Motion(body, np.concatenate([move.values(m.q, w)[0], v], -1), m.u)
    H = np.zeros((*m.v.shape[:-1], len(by_q.T), len(by_q.T))) + moved_curvature(m, W, p[..., :nv], dW)
    whole = times(turns.values(m.q, W)[1], p[..., :nv])
    of_w = of_v = np.zeros_like(m.v)  # multipliers of the next stage
    for here, share, weight in zip(stages[::-1], (0.0, *tableau.shares[::-1]), tableau.weights[::-1], strict=True):
        first = here.at is m
        rate_weights = dt * (weight * whole + share * of_w)
        weights = dt * (weight * p[..., nv:] + share * of_v)
        s, (_, rate_w, rate_v) = here.at.slopes, steps.rates.values(here.w, here.v)
        turn = times(s.a_q, weights)
        own = dynamics_curvature(here.at, weights + w_a if first else weights, w_f if first else None)
        wide_u = np.broadcast_to(by_u, (*m.v.shape[:-1], *by_u.shape))
        slopes = np.concatenate([here.back @ by_q + here.along @ here.dw, here.dv, wide_u], -2)
        H += pulled_back(own, slopes) + moved_curvature(m, here.w, turn, here.dw)
        H += bent_rates(m, here, rate_weights)
        of_w = times(rate_w, rate_weights) + times(here.along, turn)
        of_v = times(rate_v, rate_weights) + times(s.a_v, weights)
    return H


def bent_rates(m: Motion, here: Stage, p: Array) -> Array | float:
    """The Hessian of p.R(w) v at a stage."""
    places = m.size.places
    if all(is_flat(n.manifold) for n in places.nodes):
        return 0.0
    ww, wv = m.body.code("bent rates", lambda: rate_code(places)).values(here.w, here.v, p)
    mixed = transposed(here.dw) @ wv @ here.dv
    return pulled_back(ww, here.dw) + mixed + transposed(mixed)
