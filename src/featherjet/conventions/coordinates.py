"""A model in the coordinates of another convention: positions, velocities, accelerations and forces, both ways.

With our velocities v = B(q) u, power being the same in both, and B orthogonal ([KINDR] 'Transformation of Equations of
Motion', where our quantities wear a bar):

    a = B du/dt + c,   c = dB/dt u = Gamma(v, v)         u = B^T v,   tau_u = B^T tau

Gamma, a constant of each joint, tells how B turns: (dB . d) x = Gamma(B x, B d) along the tangent direction d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, UnknownName
from ..model.joints import JointKind
from ..model.model import Array, Joint, Model
from .charts import CONVENTIONS, Chart


@dataclass(frozen=True, eq=False)
class Part:
    """A joint with coordinates of its own: how they are written, and where they stand."""

    joint: Joint
    chart: Chart
    own: slice  # in the convention's q
    plain: slice  # in ours
    v: slice
    dofs: slice  # among the dofs of all joints, mimicking ones included

    def limits(self) -> tuple[Array, Array, Array, Array]:
        """Lower, upper, velocity and effort limits."""
        j = self.joint
        if self.chart.turned and np.isfinite([j.velocity_limit, j.effort_limit]).any():
            raise InputError(
                f"joint {j.name!r} ({j.kind}): its velocity and effort limits are in the body's axes, and have no "
                "counterpart in the convention's; see robot.with_convention('pinocchio').limits()"
            )
        return *self.chart.limits(j.lower, j.upper), j.velocity_limit, j.effort_limit


class Block(NamedTuple):
    """A joint's share of B at some configurations."""

    v: slice
    dofs: slice
    B: Array
    gamma: Array


class Coordinates:
    """A model's configuration space as a convention writes it; takes a Model's place in `configuration`."""

    def __init__(self, model: Model, convention: str) -> None:
        if not isinstance(convention, str) or convention not in CONVENTIONS:
            raise UnknownName("convention", convention, CONVENTIONS)
        self.model, self.convention, self.nv = model, convention, model.nv
        self.parts: list[Part] = []
        self.nq = dofs = 0
        for joint, iq, iv in zip(model.joints, model.q_starts, model.v_starts, strict=True):
            if not joint.mimic:
                chart = CONVENTIONS[convention].get(joint.kind.name) or unchanged(joint.kind)
                own = slice(self.nq, self.nq + chart.manifold.nq)
                plain, v = slice(iq, iq + joint.nq), slice(iv, iv + joint.nv)
                self.parts.append(Part(joint, chart, own, plain, v, slice(dofs, dofs + joint.nv)))
                self.nq = own.stop
            dofs += joint.kind.nv

    def plain_q(self, q: Array) -> Array:
        """Our coordinates of a configuration."""
        out = np.empty((*q.shape[:-1], self.model.nq), q.dtype)
        for part in self.parts:
            out[..., part.plain] = part.chart.plain(q[..., part.own])
        return out

    def own_q(self, q: Array) -> Array:
        """The convention's coordinates of our configuration q."""
        out = np.empty((*q.shape[:-1], self.nq), q.dtype)
        for part in self.parts:
            out[..., part.own] = part.chart.own(q[..., part.plain])
        return out

    def plain(self, given: Mapping[str, Array]) -> tuple[dict[str, Array], Turning]:
        """q and what is given of v, a, tau (a with v) in our coordinates; the rest as it is. And B there."""
        out = dict(given) | {"q": self.plain_q(given["q"])}
        B = self.turning(out["q"])
        out |= {name: B.plain(given[name]) for name in ("v", "a", "tau") if name in given}
        if "a" in given:
            out["a"] = out["a"] + B.rate(out["v"])
        return out, B

    def own(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The other way round: ours as the convention's."""
        B = self.turning(given["q"])
        out = dict(given) | {"q": self.own_q(given["q"])}
        if "a" in given:
            out["a"] = given["a"] - B.rate(given["v"])
        return out | {name: B.own(out[name]) for name in ("v", "a", "tau") if name in given}

    def turning(self, q: Array) -> Turning:
        """B and its derivative, at our q."""
        turned = [part for part in self.parts if part.chart.turned]
        return Turning([Block(p.v, p.dofs, p.chart.B(q[..., p.plain]), p.chart.gamma) for p in turned])


def unchanged(kind: JointKind) -> Chart:
    """The chart of a joint that a convention writes as we do."""
    return Chart(kind.manifold, lambda q: q, lambda q: q)


class Turning:
    """v = B u at some configurations; away from its blocks B is the identity.

    Vectors are (..., nv), matrices (..., m, nv) or (..., nv, nv); all are new arrays.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    def plain(self, u: Array) -> Array:
        """B u: a velocity, acceleration or force of the convention's, but for c, as ours."""
        return self._vectors(u, lambda b, x: (b.B @ x[..., None])[..., 0])

    def own(self, v: Array) -> Array:
        """B^T v: ours as the convention's."""
        return self._vectors(v, lambda b, x: (np.swapaxes(b.B, -1, -2) @ x[..., None])[..., 0])

    def rate(self, v: Array) -> Array:
        """c = dB/dt u = Gamma(v, v), the acceleration that comes from turning axes alone; v is ours."""
        out = np.zeros_like(v)
        for b in self.blocks:
            out[..., b.v] = (by_second(b, v) @ v[..., b.v, None])[..., 0]
        return out

    def columns(self, X: Array) -> Array:
        """X B."""
        out = np.array(X)
        for b in self.blocks:
            out[..., b.v] = X[..., b.v] @ b.B
        return out

    def rows(self, X: Array) -> Array:
        """B^T X."""
        return np.swapaxes(self.columns(np.swapaxes(X, -1, -2)), -1, -2)

    def similar(self, X: Array) -> Array:
        """B^T X B, which as B is orthogonal is also B^-1 X B^-T."""
        return self.rows(self.columns(X))

    def _vectors(self, x: Array, turn: Callable[[Block, Array], Array]) -> Array:
        shapes = [(*b.B.shape[:-2], x.shape[-1]) for b in self.blocks]
        out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, *shapes)))
        out = out.astype(np.result_type(out, *(b.B for b in self.blocks)), copy=False)
        for b in self.blocks:
            out[..., b.v] = turn(b, x[..., b.v])
        return out


def by_second(b: Block, x: Array) -> Array:
    """Gamma(x, .), (..., k, k): how B u changes with q where it is x."""
    return np.einsum("ijk,...j->...ik", b.gamma, x[..., b.v])


def by_first(b: Block, y: Array) -> Array:
    """Gamma(., y): how B turns along y; dB/dt = Gamma(., v) B."""
    return np.einsum("ijk,...k->...ij", b.gamma, y[..., b.v])


def of_force(b: Block, tau: Array) -> Array:
    """tau . Gamma: how B^T tau changes with q, before B is applied on both sides."""
    return np.einsum("ijk,...i->...jk", b.gamma, tau[..., b.v])
