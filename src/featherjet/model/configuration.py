"""The configuration space of a whole model: its joints' manifolds side by side. Arrays (..., nq) and (..., nv)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..display import compact
from ..errors import InputError
from .manifolds import Manifold, on_arrays
from .model import Array, Model
from .parts import Part

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


@dataclass(frozen=True)
class Place:
    """A joint of a configuration space: its number among them, its manifold, and its slices of q and v."""

    index: int
    manifold: Manifold
    q: slice
    v: slice


class Places:
    """The joints of a configuration space one after the other, for algorithms that need no tree."""

    coupling = None

    def __init__(self, space: Space) -> None:
        self.nodes = [Place(k, part.manifold, part.q, part.v) for k, part in enumerate(space.parts)]
        self.nq, self.nv = space.nq, space.nv

    @property
    def units(self) -> list[tuple[int, int]]:
        """(start, size) of the parts of q that must have norm one: quaternions and cosine-sine pairs."""
        return [(x.q.start + part.start, part.stop - part.start) for x in self.nodes for part in x.manifold.units]

    @property
    def digest(self) -> str:
        """A hash of everything that code for this space depends on."""
        return hashlib.sha256(repr([x.manifold for x in self.nodes]).encode()).hexdigest()


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
            out[..., iq] = on_arrays(manifold.normalised, q[..., iq])
    return out


def neutral(space: Space) -> Array:
    """The configuration of no displacement, (nq,)."""
    return np.concatenate([m.neutral() for _, m, _, _ in space.parts])


def integrate(space: Space, q: Array, v: Array) -> Array:
    """q moved along the tangent vector v, (..., nq); both may be complex, for derivatives by complex step."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    out = np.empty((*batch, space.nq), np.result_type(q, v))
    for _, manifold, iq, iv in space.parts:
        out[..., iq] = on_arrays(manifold.integrate, q[..., iq], v[..., iv])
    return out


@compact
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
