"""A robot's coordinates in another convention: q on other manifolds, and v = B(q) u.

featherjet computes in standard coordinates, Pinocchio's. If a convention has other velocities u, the standard ones are
v = B u with an orthogonal B(q), so that ([KINDR] 'Transformation of Equations of Motion', where a bar marks ours):

    a = B du/dt + c,   c = dB/dt u = Gamma(v, v)         u = B^T v,   tau_u = B^T tau

Gamma is constant for each joint: (dB . d) x = Gamma(B x, B d) along the tangent direction d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, UnknownName
from ..model.joints import JointKind
from ..model.model import Array, Joint, Model, Part
from .charts import CONVENTIONS, Chart

STANDARD = "pinocchio"


@dataclass(frozen=True, eq=False)
class ChartedJoint:
    """An independent joint with its chart, and the places of its entries."""

    joint: Joint
    chart: Chart
    q: slice  # in the convention's q
    standard_q: slice
    v: slice
    dofs: slice  # among the dofs of all joints, mimicking ones included

    def limits(self) -> tuple[Array, Array, Array, Array]:
        """Lower, upper, velocity and effort limits."""
        j = self.joint
        if self.chart.turned and np.isfinite([j.velocity_limit, j.effort_limit]).any():
            raise InputError(
                f"joint {j.name!r} ({j.kind}): its velocity and effort limits are in the body's axes and cannot be "
                "expressed in this convention; see robot.with_convention('pinocchio').limits()"
            )
        return *self.chart.limits(j.lower, j.upper), j.velocity_limit, j.effort_limit


class Block(NamedTuple):
    """A joint's block of B at some configurations."""

    v: slice
    dofs: slice
    B: Array
    gamma: Array


class Coordinates:
    """A model's configuration space in a convention; `configuration` takes it in place of a Model."""

    def __init__(self, model: Model, convention: str) -> None:
        if not isinstance(convention, str) or convention not in CONVENTIONS:
            raise UnknownName("convention", convention, CONVENTIONS)
        self.model, self.convention, self.nv = model, convention, model.nv
        self.joints: list[ChartedJoint] = []
        self.nq = dofs = 0
        for joint, iq, iv in zip(model.joints, model.q_starts, model.v_starts, strict=True):
            if not joint.mimic:
                chart = CONVENTIONS[convention].get(joint.kind.name) or standard_chart(joint.kind)
                q = slice(self.nq, self.nq + chart.manifold.nq)
                standard_q, v = slice(iq, iq + joint.nq), slice(iv, iv + joint.nv)
                self.joints.append(ChartedJoint(joint, chart, q, standard_q, v, slice(dofs, dofs + joint.nv)))
                self.nq = q.stop
            dofs += joint.kind.nv
        self.parts = [Part(j.joint, j.chart.manifold, j.q, j.v) for j in self.joints]

    def joint_limits(self) -> list[tuple[Array, Array, Array, Array]]:
        return [j.limits() for j in self.joints]

    def q_to_standard(self, q: Array) -> Array:
        """A configuration in standard coordinates (..., nq)."""
        out = np.empty((*q.shape[:-1], self.model.nq), q.dtype)
        for j in self.joints:
            out[..., j.standard_q] = j.chart.to_standard(q[..., j.q])
        return out

    def q_from_standard(self, q: Array) -> Array:
        """A configuration in the convention's coordinates, from standard ones."""
        out = np.empty((*q.shape[:-1], self.nq), q.dtype)
        for j in self.joints:
            out[..., j.q] = j.chart.from_standard(q[..., j.standard_q])
        return out

    def to_standard(self, given: Mapping[str, Array]) -> tuple[dict[str, Array], VelocityMap]:
        """q and, if given, v, a (only with v) and tau in standard coordinates, other inputs as they are; and B."""
        out = dict(given) | {"q": self.q_to_standard(given["q"])}
        B = self.velocity_map(out["q"])
        out |= {name: B.to_standard(given[name]) for name in ("v", "a", "tau") if name in given}
        if "a" in given:
            out["a"] = out["a"] + B.rate(out["v"])
        return out, B

    def from_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inverse of `to_standard`."""
        B = self.velocity_map(given["q"])
        out = dict(given) | {"q": self.q_from_standard(given["q"])}
        if "a" in given:
            out["a"] = given["a"] - B.rate(given["v"])
        return out | {name: B.from_standard(out[name]) for name in ("v", "a", "tau") if name in given}

    def positions_to_standard(self, positions: Any) -> Any:
        """Coordinates by joint name, in standard ones; unknown names, and anything but a mapping, stay as they are."""
        if not isinstance(positions, Mapping):
            return positions
        known = {j.joint.name: j for j in self.joints}
        return {name: x if name not in known else position_to_standard(known[name], x) for name, x in positions.items()}

    def velocity_map(self, q: Array) -> VelocityMap:
        """B and its derivative at a standard q."""
        turned = [j for j in self.joints if j.chart.turned]
        return VelocityMap([Block(j.v, j.dofs, j.chart.B(q[..., j.standard_q]), j.chart.gamma) for j in turned])


def position_to_standard(part: ChartedJoint, x: ArrayLike) -> Array:
    """A joint's coordinates (nq,) in standard ones."""
    n = part.chart.manifold.nq
    try:
        own = np.atleast_1d(np.asarray(x, float))
    except (TypeError, ValueError):
        own = np.array([])
    if own.shape != (n,):
        raise InputError(f"joint {part.joint.name!r} ({part.joint.kind}): expected {n} coordinates, got {x!r}")
    return part.chart.to_standard(own)


def standard_chart(kind: JointKind) -> Chart:
    """The chart of a joint that keeps its standard coordinates."""
    return Chart(kind.manifold, lambda q: q, lambda q: q)


class VelocityMap:
    """v = B u at some configurations; B is the identity outside its blocks. Every result is a new array."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks

    def to_standard(self, u: Array) -> Array:
        """B u (..., nv): a velocity or force in standard coordinates, or an acceleration without c."""
        return self._vectors(u, lambda b, x: (b.B @ x[..., None])[..., 0])

    def from_standard(self, v: Array) -> Array:
        """B^T v (..., nv)."""
        return self._vectors(v, lambda b, x: (np.swapaxes(b.B, -1, -2) @ x[..., None])[..., 0])

    def rate(self, v: Array) -> Array:
        """c = dB/dt u = Gamma(v, v), the acceleration due to turning axes, at standard velocities v."""
        out = np.zeros_like(v)
        for b in self.blocks:
            out[..., b.v] = (by_second(b, v) @ v[..., b.v, None])[..., 0]
        return out

    def along(self, X: Array, axis: int, core: int, dofs: bool = False) -> Array:
        """B^T along one of the last `core` axes of X, counted from the end (-1 is the last).

        That axis has nv entries or, if `dofs`, one for each dof of the tree.
        """
        if core == 1:
            return self.from_standard(X)
        if core > 2 or axis < -2:
            return self._along_any(X, axis, core)
        out = np.array(X)
        source, target = (X, out) if axis == -1 else (np.swapaxes(X, -1, -2), np.swapaxes(out, -1, -2))
        for b in self.blocks:
            part = b.dofs if dofs else b.v
            target[..., part] = source[..., part] @ b.B
        return out

    def _along_any(self, X: Array, axis: int, core: int) -> Array:
        """`along` where the other core axes are several: they become one."""
        batch = X.ndim - core
        last = np.moveaxis(X, axis, -1)
        flat = last.reshape(*last.shape[:batch], prod(last.shape[batch:-1]), last.shape[-1])
        return np.moveaxis(self.along(flat, -1, 2).reshape(last.shape), -1, axis)

    def _vectors(self, x: Array, turn: Callable[[Block, Array], Array]) -> Array:
        shapes = [(*b.B.shape[:-2], x.shape[-1]) for b in self.blocks]
        out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, *shapes)))
        out = out.astype(np.result_type(out, *(b.B for b in self.blocks)), copy=False)
        for b in self.blocks:
            out[..., b.v] = turn(b, x[..., b.v])
        return out


def by_second(b: Block, x: Array) -> Array:
    """Gamma(x, .), (..., k, k): the derivative of B u by q at B u = x."""
    return np.einsum("ijk,...j->...ik", b.gamma, x[..., b.v])


def by_first(b: Block, y: Array) -> Array:
    """Gamma(., y), (..., k, k): the derivative of B along y is Gamma(., y) B; dB/dt = Gamma(., v) B."""
    return np.einsum("ijk,...k->...ij", b.gamma, y[..., b.v])


def of_force(b: Block, tau: Array) -> Array:
    """tau . Gamma, (..., k, k): the derivative of B^T tau by q, before B is applied on both sides."""
    return np.einsum("ijk,...i->...jk", b.gamma, tau[..., b.v])
