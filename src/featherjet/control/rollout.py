"""Rollouts: the closed-loop motion under a policy, knot by knot in compiled code, for one problem or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ..evaluate.evaluator import Evaluator
from ..jit.chain import Chain, Link
from ..jit.kernel import Kernel
from ..jit.sequence import in_sequence
from ..math.scalars import where_less
from ..model.configuration import Places
from .code import compiled
from .integrators import advanced
from .motion import NO_RESTITUTION, Body
from .runge_kutta import RungeKutta
from .stage import Segment, Stage

Array = np.ndarray
_steps: WeakKeyDictionary[Body, Kernel] = WeakKeyDictionary()  # windows and parts of a problem share them
LARGEST = 1e10  # of a state; beyond, a motion has diverged


class Staged(Protocol):
    """What rollouts need of a problem."""

    evaluator: Evaluator
    segments: list[Segment]
    terminal: Stage
    T: int
    nx: int
    nv: int
    nu: int
    u_lower: Array | None
    u_upper: Array | None

    def batch_of(self, xs: Array) -> tuple[int, ...]: ...


class Rollout:
    """The rollouts of one problem."""

    def __init__(self, problem: Staged) -> None:
        self.problem = problem
        self.places = problem.evaluator.places

    @cached_property
    def _difference(self) -> Kernel:
        return difference_code(self.places)

    @cached_property
    def _integrate(self) -> Kernel:
        return integrate_code(self.places)

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
        p = self.problem
        batch = p.batch_of(xs)
        T, nu, nv = p.T, p.nu, p.nv
        alpha = np.broadcast_to(np.asarray(alpha, float), batch)[..., None]
        shift = None if gaps is None else np.ascontiguousarray((alpha[..., None] - 1.0) * gaps)
        if shift is None:
            shift = np.zeros((*batch, T + 1, 2 * nv))
        scaled = np.ascontiguousarray(alpha[..., None] * k)
        gain = np.ascontiguousarray(K).reshape(*K.shape[:-2], nu * 2 * nv)
        bounds = (p.u_lower, p.u_upper) if clip else (None, None)
        lower, upper = (
            np.ascontiguousarray(np.broadcast_to(infinite if b is None else b, (*batch, T, nu)))
            for b, infinite in zip(bounds, (-np.inf, np.inf), strict=True)
        )
        raw, new = np.empty((*batch, T + 1, p.nx)), np.empty((*batch, T + 1, p.nx))
        out = np.zeros((*batch, T, nu))
        raw[..., 0, :] = x0
        cost = np.zeros(batch)
        wide = [np.broadcast_to(np.ascontiguousarray(x, float), (*batch, *x.shape[-2:])) for x in (xs, us, gain)]
        with np.errstate(all="ignore"):
            for (s, start, stop), code in zip(p.segments, self.steps, strict=True):
                a, forces = np.empty((*batch, stop - start, nv)), np.empty((*batch, stop - start, s.body.rows))
                at = slice(start, stop)
                inputs = [raw, shift] if s.body.hits else [raw, shift, *wide[:2], scaled, wide[2], lower, upper]
                results = [new[..., at, :], *([] if s.body.hits else [out[..., at, :]]), a]
                results += [forces] if s.body.rows else []
                fixed = NO_RESTITUTION if s.body.hits else s.dt
                follow(code, [x[..., at, :] for x in inputs], fixed, [*results, raw[..., start + 1 : stop + 1, :]])
                m = s.motion(new[..., at, :], out[..., at, :], (a, forces))
                cost = cost + s.values(m).costs.sum((-1, -2))
            new[..., T, :] = self.integrate(raw[..., T, :], shift[..., T, :])
            m = p.terminal.motion(new[..., T:, :], out[..., :0, :])
            cost = cost + p.terminal.values(m).costs.sum((-1, -2))
            bad = ~(np.abs(new).max((-1, -2)) < LARGEST)
        return new, out, np.where(bad, np.nan, cost)


def follow(code: Kernel, inputs: Sequence[Array], fixed: Array, results: Sequence[Array]) -> None:
    """Run the code of a step for knot after knot (..., knots, n); it reads what it wrote one knot before."""
    if inputs[0].ndim == 2:
        in_sequence(code, len(inputs[0]), [*inputs, fixed, *results])
        return
    n = len(inputs)
    for row in zip(*(np.moveaxis(x, -2, 0) for x in (*inputs, *results)), strict=True):
        code.values(*row[:n], fixed, out=row[n:])


# Code


def difference_code(places: Places) -> Kernel:
    """(x0, x1) -> the tangent at x0 that leads to x1."""
    nq, nv = places.nq, places.nv

    def run(x0: Array, x1: Array) -> list[Array]:
        return [np.array([*way(places, x0, x1), *(x1[nq:] - x0[nq:])], object)]

    shapes = {"x0": (nq + nv,), "x1": (nq + nv,)}
    return compiled(run, shapes, ("difference", places.digest), "differences", [(2 * nv,)])


def integrate_code(places: Places) -> Kernel:
    """(x, dx) -> the state that a tangent leads to."""
    nq, nv = places.nq, places.nv

    def run(x: Array, dx: Array) -> list[Array]:
        return [np.array(moved(places, x, dx), object)]

    return compiled(run, {"x": (nq + nv,), "dx": (2 * nv,)}, ("integrate", places.digest), "moves", [(nq + nv,)])


def way(places: Places, x0: Array, x1: Array) -> list[Any]:
    """The tangent from one configuration to another."""
    return [y for p in places.nodes for y in p.manifold.difference(x0[p.q], x1[p.q])]


def moved(places: Places, x: Array, dx: Array) -> list[Any]:
    nq, nv = places.nq, places.nv
    q = [y for p in places.nodes for y in p.manifold.integrate(x[p.q], dx[p.v])]
    return [*q, *(a + b for a, b in zip(x[nq:], dx[nv:], strict=True))]


def policy_step(body: Body) -> Kernel:
    """A knot: (raw, gap, xs, us, k, K, lower, upper, dt) -> state, control, a, forces, raw state of the next knot."""
    places, nu = body.size.places, body.size.nu
    nq, nv, driven = places.nq, places.nv, body.driven.tolist()
    nx, ndx = nq + nv, 2 * nv

    def policy(raw: Any, gap: Any, xs: Any, us: Any, k: Any, K: Any, lower: Any, upper: Any) -> list[Array]:
        x = np.array(moved(places, raw, gap), object)
        dx = [*way(places, xs, x), *(x[nq:] - xs[nq:])]
        u = []
        for i in range(nu):
            total = us[i] - k[i]
            for j in range(ndx):
                total = total - K[i * ndx + j] * dx[j]
            u.append(where_less(upper[i], total, upper[i], where_less(total, lower[i], lower[i], total)))
        tau = np.full(nv, 0.0, object)
        tau[driven] = u
        return [x, np.array(u, object), x[:nq], x[nq:], tau]

    def step(x: Any, a: Any, dt: Any) -> list[Array]:
        return [np.array(advanced(places, x, a, dt[0])[0], object)]

    given = {
        "raw": (nx,), "gap": (ndx,), "xs": (nx,), "us": (nu,), "k": (nu,), "K": (nu * ndx,), "lower": (nu,),
        "upper": (nu,),
    }  # fmt: skip
    key = places.digest, tuple(driven)
    first = compiled(policy, given, ("policy", key), "policies", [(nx,), (nu,), (nq,), (nv,), (nv,)])
    last = compiled(step, {"x": (nx,), "a": (nv,), "dt": (1,)}, ("euler", places.digest), "steps", [(nx,)])
    forces = ("forces",) if body.rows else ()
    links = [
        Link(first, (*given, "x", "u", "q", "v", "tau")),
        Link(body.kernel(body.dynamics), ("q", "v", "tau", "a", *forces)),
    ]
    between: dict[str, tuple[int, ...]] = {"q": (nq,), "v": (nv,), "tau": (nv,)}
    if body.integrator == "euler":
        links.append(Link(last, ("x", "a", "dt", "next")))
    else:
        more, temporaries = RungeKutta(body, body.integrator).links("x", "a")
        links += more
        between |= temporaries
    results = {"x": (nx,), "u": (nu,), "a": (nv,), **({"forces": (body.rows,)} if forces else {}), "next": (nx,)}
    return chained(f"policy_step_{body.integrator}", {**given, "dt": (1,)}, results, between, links, body)


def impact_step(body: Body) -> Kernel:
    """An impact: (raw, gap, restitution) -> state, jump, impulses, raw state of the next knot."""
    places = body.size.places
    nq, nv, nx = places.nq, places.nv, places.nq + places.nv

    def arrive(raw: Any, gap: Any) -> list[Array]:
        x = np.array(moved(places, raw, gap), object)
        return [x, x[:nq], x[nq:]]

    def leave(x: Any, a: Any) -> list[Array]:
        return [np.array([*x[:nq], *(x[nq:] + a)], object)]

    first = compiled(
        arrive, {"raw": (nx,), "gap": (2 * nv,)}, ("arrive", places.digest), "moves", [(nx,), (nq,), (nv,)]
    )
    last = compiled(leave, {"x": (nx,), "a": (nv,)}, ("leave", nq, nv), "jumps", [(nx,)])
    links = [
        Link(first, ("raw", "gap", "x", "q", "v")),
        Link(body.kernel(body.dynamics), ("q", "v", "restitution", "a", "forces")),
        Link(last, ("x", "a", "next")),
    ]
    inputs = {"raw": (nx,), "gap": (2 * nv,), "restitution": (1,)}
    results = {"x": (nx,), "a": (nv,), "forces": (body.rows,), "next": (nx,)}
    return chained("impact_step", inputs, results, {"q": (nq,), "v": (nv,)}, links, body)


def chained(name: str, inputs: Any, results: Any, between: Any, links: list[Link], body: Body) -> Kernel:
    return Chain(name, body.evaluator.compiler.target, inputs, results, between, links, {})
