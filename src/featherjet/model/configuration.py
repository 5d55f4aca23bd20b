"""The configuration space of a whole model: its joints' manifolds side by side. Arrays (..., nq) and (..., nv)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from ..conventions.coordinates import Coordinates
from .manifolds import Manifold
from .model import Array, Joint, Model

Space: TypeAlias = Model | Coordinates  # a model in its own coordinates, or in those of another convention


def parts(model: Space) -> Iterator[tuple[Joint, Manifold, slice, slice]]:
    """Each joint that has coordinates of its own, with its slices of q and v."""
    if isinstance(model, Coordinates):
        yield from ((part.joint, part.chart.manifold, part.own, part.v) for part in model.parts)
        return
    for joint, iq, iv in zip(model.joints, model.q_starts, model.v_starts, strict=True):
        if not joint.mimic:
            manifold = joint.kind.manifold
            yield joint, manifold, slice(iq, iq + manifold.nq), slice(iv, iv + manifold.nv)


def neutral(model: Space) -> Array:
    """The configuration of no displacement, (nq,)."""
    return np.concatenate([m.neutral() for _, m, _, _ in parts(model)])


def integrate(model: Space, q: Array, v: Array) -> Array:
    """q moved along the tangent vector v, (..., nq)."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    out = np.empty((*batch, model.nq), np.result_type(q, v))
    for _, manifold, iq, iv in parts(model):
        out[..., iq] = manifold.integrate(q[..., iq], v[..., iv])
    return out


def difference(model: Space, q0: Array, q1: Array) -> Array:
    """The tangent vector at q0 that leads to q1, (..., nv)."""
    batch = np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1])
    out = np.empty((*batch, model.nv), np.result_type(q0, q1))
    for _, manifold, iq, iv in parts(model):
        out[..., iv] = manifold.difference(q0[..., iq], q1[..., iq])
    return out


def interpolate(model: Space, q0: Array, q1: Array, t: Array) -> Array:
    """The geodesic from q0 (t = 0) to q1 (t = 1); t (...) broadcasts against the batch."""
    return integrate(model, q0, np.asarray(t)[..., None] * difference(model, q0, q1))


class Limits(NamedTuple):
    """Lower and upper bounds of q (nq,), and the largest velocity and effort (nv,) of either sign; inf for none."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


def limits(model: Space) -> Limits:
    """The limits of all joints."""
    if isinstance(model, Coordinates):
        each = [part.limits() for part in model.parts]
    else:
        each = [(j.lower, j.upper, j.velocity_limit, j.effort_limit) for j, *_ in parts(model)]
    return Limits(*(np.concatenate(x) for x in zip(*each, strict=True)))


def random(model: Model, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Configurations drawn between the joints' limits, (*size, nq)."""
    out = np.empty((*size, model.nq))
    for joint, manifold, iq, _ in parts(model):
        out[..., iq] = manifold.random(rng, size, joint.lower, joint.upper)
    return out


def integrate_jacobians(model: Space, q: Array, v: Array) -> tuple[Array, Array]:
    """Jacobians of integrate by q and by v, each (..., nv, nv), between the tangent spaces of both ends."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    v = np.broadcast_to(v, (*batch, model.nv))
    return (
        block_diagonal(model, v, lambda m, x: m.adjoint_inverse(x)),
        block_diagonal(model, v, lambda m, x: m.right_jacobian(x)),
    )


def difference_jacobians(model: Space, q0: Array, q1: Array) -> tuple[Array, Array]:
    """Jacobians of difference by q0 and by q1, each (..., nv, nv)."""
    d = difference(model, q0, q1)
    return (
        block_diagonal(model, d, lambda m, x: -m.right_jacobian_inverse(-x)),
        block_diagonal(model, d, lambda m, x: m.right_jacobian_inverse(x)),
    )


def rate_map(model: Space, q: Array) -> Array:
    """F with dq/dt = F v, (..., nq, nv); [KINDR] F."""
    out = np.zeros((*q.shape, model.nv), q.dtype)
    for _, manifold, iq, iv in parts(model):
        out[..., iq, iv] = manifold.rate_map(q[..., iq])
    return out


def rate_map_inverse(model: Space, q: Array) -> Array:
    """Fbar with v = Fbar dq/dt, (..., nv, nq), blind to changes of norm; [KINDR] Fbar."""
    out = np.zeros((*q.shape[:-1], model.nv, model.nq), q.dtype)
    for _, manifold, iq, iv in parts(model):
        out[..., iv, iq] = manifold.rate_map_inverse(q[..., iq])
    return out


def block_diagonal(model: Space, v: Array, block: Callable[[Manifold, Array], Array]) -> Array:
    """One block for each joint, on zeros."""
    out = np.zeros((*v.shape, model.nv), v.dtype)
    for _, manifold, _, iv in parts(model):
        out[..., iv, iv] = block(manifold, v[..., iv])
    return out
