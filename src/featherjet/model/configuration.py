"""The configuration space of a whole model: its joints' manifolds side by side. Arrays (..., nq) and (..., nv)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from .manifolds import Manifold
from .model import Array, Model, Part

UNIT_TOLERANCE = 1e-6  # how far a quaternion's (or cosine-sine pair's) norm may be from one


class Space(Protocol):
    """A configuration space: a Model's own, or the same robot's in the coordinates of another convention."""

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    @property
    def parts(self) -> Sequence[Part]: ...

    def joint_limits(self) -> list[tuple[Array, Array, Array, Array]]: ...


def parts(space: Space) -> Sequence[Part]:
    """Each joint that has coordinates of its own, with its manifold and its slices of q and v."""
    return space.parts


def unit_parts(space: Space, name: str, q: Array) -> Array:
    """q with quaternions and cosine-sine pairs of norm one; refuses those that are not nearly so."""
    out = q
    for joint, manifold, iq, _ in space.parts:
        for part in manifold.units:
            norm = np.linalg.norm(q[..., iq][..., part], axis=-1)
            off = np.abs(norm - 1)
            if (off > UNIT_TOLERANCE).any():
                where = tuple(int(i) for i in np.argwhere(off > UNIT_TOLERANCE)[0])
                what = "cosine and sine" if part.stop - part.start == 2 else f"quaternion {manifold.quaternion}"
                at = f" at sample {where}" if where else ""
                raise InputError(
                    f"{name}: joint {joint.name!r}: its {what}, entries {iq.start + part.start} to "
                    f"{iq.start + part.stop - 1}, has norm {norm[where]:.6g}{at}, not 1; normalise it, "
                    "or start from robot.neutral()"
                )
        if manifold.units:
            out = q.copy() if out is q else out
            out[..., iq] = manifold.normalised(q[..., iq])
    return out


def neutral(space: Space) -> Array:
    """The configuration of no displacement, (nq,)."""
    return np.concatenate([m.neutral() for _, m, _, _ in space.parts])


def integrate(space: Space, q: Array, v: Array) -> Array:
    """q moved along the tangent vector v, (..., nq)."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    out = np.empty((*batch, space.nq), np.result_type(q, v))
    for _, manifold, iq, iv in space.parts:
        out[..., iq] = manifold.integrate(q[..., iq], v[..., iv])
    return out


def difference(space: Space, q0: Array, q1: Array) -> Array:
    """The tangent vector at q0 that leads to q1, (..., nv)."""
    batch = np.broadcast_shapes(q0.shape[:-1], q1.shape[:-1])
    out = np.empty((*batch, space.nv), np.result_type(q0, q1))
    for _, manifold, iq, iv in space.parts:
        out[..., iv] = manifold.difference(q0[..., iq], q1[..., iq])
    return out


def interpolate(space: Space, q0: Array, q1: Array, t: Array) -> Array:
    """The geodesic from q0 (t = 0) to q1 (t = 1); t (...) broadcasts against the batch."""
    return integrate(space, q0, np.asarray(t)[..., None] * difference(space, q0, q1))


class Limits(NamedTuple):
    """Lower and upper bounds of q (nq,), and the largest velocity and effort (nv,) of either sign; inf for none."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


def limits(space: Space) -> Limits:
    """The limits of all joints."""
    return Limits(*(np.concatenate(x) for x in zip(*space.joint_limits(), strict=True)))


def random(model: Model, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Configurations drawn between the joints' limits, (*size, nq)."""
    out = np.empty((*size, model.nq))
    for joint, manifold, iq, _ in model.parts:
        out[..., iq] = manifold.random(rng, size, joint.lower, joint.upper)
    return out


def integrate_jacobians(space: Space, q: Array, v: Array) -> tuple[Array, Array]:
    """Jacobians of integrate by q and by v, each (..., nv, nv), between the tangent spaces of both ends."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    v = np.broadcast_to(v, (*batch, space.nv))
    return (
        block_diagonal(space, v, lambda m, x: m.adjoint_inverse(x)),
        block_diagonal(space, v, lambda m, x: m.right_jacobian(x)),
    )


def difference_jacobians(space: Space, q0: Array, q1: Array) -> tuple[Array, Array]:
    """Jacobians of difference by q0 and by q1, each (..., nv, nv)."""
    d = difference(space, q0, q1)
    return (
        block_diagonal(space, d, lambda m, x: -m.right_jacobian_inverse(-x)),
        block_diagonal(space, d, lambda m, x: m.right_jacobian_inverse(x)),
    )


def rate_map(space: Space, q: Array) -> Array:
    """F with dq/dt = F v, (..., nq, nv); [KINDR] F."""
    out = np.zeros((*q.shape, space.nv), q.dtype)
    for _, manifold, iq, iv in space.parts:
        out[..., iq, iv] = manifold.rate_map(q[..., iq])
    return out


def rate_map_inverse(space: Space, q: Array) -> Array:
    """Fbar with v = Fbar dq/dt, (..., nv, nq), blind to changes of norm; [KINDR] Fbar."""
    out = np.zeros((*q.shape[:-1], space.nv, space.nq), q.dtype)
    for _, manifold, iq, iv in space.parts:
        out[..., iv, iq] = manifold.rate_map_inverse(q[..., iq])
    return out


def block_diagonal(space: Space, v: Array, block: Callable[[Manifold, Array], Array]) -> Array:
    """One block for each joint, on zeros."""
    out = np.zeros((*v.shape, space.nv), v.dtype)
    for _, manifold, _, iv in space.parts:
        out[..., iv, iv] = block(manifold, v[..., iv])
    return out
