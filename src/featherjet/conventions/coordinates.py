"""A robot's coordinates in another convention: q on other manifolds, and v = B(q) u.

featherjet computes in standard coordinates, Pinocchio's. If a convention has other velocities u, the standard ones are
v = B(q) u, so that ([KINDR] 'Transformation of Equations of Motion', where a bar marks ours):

    a = B du/dt + c,   c = dB/dt u = Gamma(v, v)         u = B^-1 v,   tau_u = B^T tau

Gamma is the derivative of B: (dB . d) x = Gamma(B x, B d) along the tangent direction d. For charts, B is orthogonal
and Gamma constant for each joint; a user's own velocities (evaluate/velocities.py) have any B.
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
from ..model.model import Array, Model
from ..model.parts import Joint, Part
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


@dataclass(frozen=True, eq=False)
class VelocityBlock:
    """A block of B at some configurations: B and its inverse (..., k, k), and Gamma (..., k, k, k)."""

    v: slice
    dofs: slice
    B: Array
    inverse: Array
    gamma: Array

    def bend(self, v: Array) -> Array:
        """The derivative (..., k, k) of c = Gamma(v, v) by q at constant u, before B is applied.

        v = B u moves by Gamma(v, .), and a constant Gamma does not: K Gamma(v, .).
        """
        return slope(self, v) @ by_second(self, v)


class Rate(NamedTuple):
    """A block of B with what changes at velocities v: Gamma(v, .), K = dc/dv, and dc/dq at constant u."""

    block: VelocityBlock
    dv: Array
    K: Array
    dc: Array


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
        return out | B.state_to_standard(given), B

    def from_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inverse of `to_standard`."""
        B = self.velocity_map(given["q"])
        return dict(given) | {"q": self.q_from_standard(given["q"])} | B.state_from_standard(given)

    def positions_to_standard(self, positions: Any) -> Any:
        """Coordinates by joint name, in standard ones; unknown names, and anything but a mapping, stay as they are."""
        if not isinstance(positions, Mapping):
            return positions
        known = {j.joint.name: j for j in self.joints}
        return {name: x if name not in known else position_to_standard(known[name], x) for name, x in positions.items()}

    def velocity_map(self, q: Array) -> VelocityMap:
        """B and its derivative at a standard q."""
        blocks = []
        for j in self.joints:
            if j.chart.turned:
                B = j.chart.B(q[..., j.standard_q])
                blocks.append(VelocityBlock(j.v, j.dofs, B, np.swapaxes(B, -1, -2), j.chart.gamma))
        return VelocityMap(blocks)


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

    def __init__(self, blocks: list[VelocityBlock]) -> None:
        self.blocks = blocks

    def to_standard(self, u: Array) -> Array:
        """B u (..., nv): a velocity in standard coordinates, or an acceleration without c."""
        return self._vectors(u, lambda b: b.B)

    def from_standard(self, v: Array) -> Array:
        """B^-1 v (..., nv)."""
        return self._vectors(v, lambda b: b.inverse)

    def force_to_standard(self, tau: Array) -> Array:
        """B^-T tau (..., nv)."""
        return self._vectors(tau, lambda b: np.swapaxes(b.inverse, -1, -2))

    def force_from_standard(self, tau: Array) -> Array:
        """B^T tau (..., nv)."""
        return self._vectors(tau, lambda b: np.swapaxes(b.B, -1, -2))

    def state_to_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Those of v, a (only with v) and tau that are given, in standard coordinates."""
        out = {name: self.to_standard(given[name]) for name in ("v", "a") if name in given}
        if "a" in given:
            out["a"] = out["a"] + self.rate(out["v"])
        return out | ({"tau": self.force_to_standard(given["tau"])} if "tau" in given else {})

    def state_from_standard(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The inverse of `state_to_standard`."""
        out = {"v": self.from_standard(given["v"])} if "v" in given else {}
        if "a" in given:
            out["a"] = self.from_standard(given["a"] - self.rate(given["v"]))
        return out | ({"tau": self.force_from_standard(given["tau"])} if "tau" in given else {})

    def rates(self, v: Array) -> list[Rate]:
        """For each block, what changes at standard velocities v."""
        return [Rate(b, by_second(b, v), slope(b, v), b.bend(v)) for b in self.blocks]

    def rate(self, v: Array) -> Array:
        """c = dB/dt u = Gamma(v, v), the acceleration due to turning axes, at standard velocities v."""
        out = np.zeros_like(v)
        for b in self.blocks:
            out[..., b.v] = (by_second(b, v) @ v[..., b.v, None])[..., 0]
        return out

    def along(self, X: Array, axis: int, core: int, motion: bool = False, dofs: bool = False) -> Array:
        """B^T, or B^-1 if `motion`, along one of the last `core` axes of X, counted from the end (-1 is the last).

        That axis has nv entries or, if `dofs`, one for each dof of the tree.
        """
        if core == 1:
            return self.from_standard(X) if motion else self.force_from_standard(X)
        if core > 2 or axis < -2:
            return self._along_any(X, axis, core, motion)
        out = np.array(X)
        source, target = (X, out) if axis == -1 else (np.swapaxes(X, -1, -2), np.swapaxes(out, -1, -2))
        for b in self.blocks:
            part = b.dofs if dofs else b.v
            target[..., part] = source[..., part] @ (np.swapaxes(b.inverse, -1, -2) if motion else b.B)
        return out

    def _along_any(self, X: Array, axis: int, core: int, motion: bool) -> Array:
        """`along` where the other core axes are several: they become one."""
        batch = X.ndim - core
        last = np.moveaxis(X, axis, -1)
        flat = last.reshape(*last.shape[:batch], prod(last.shape[batch:-1]), last.shape[-1])
        return np.moveaxis(self.along(flat, -1, 2, motion).reshape(last.shape), -1, axis)

    def _vectors(self, x: Array, matrix: Callable[[VelocityBlock], Array]) -> Array:
        shapes = [(*b.B.shape[:-2], x.shape[-1]) for b in self.blocks]
        out = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, *shapes)))
        out = out.astype(np.result_type(out, *(b.B for b in self.blocks)), copy=False)
        for b in self.blocks:
            out[..., b.v] = (matrix(b) @ x[..., b.v, None])[..., 0]
        return out


def by_second(b: VelocityBlock, x: Array) -> Array:
    """Gamma(x, .), (..., k, k): the derivative of B u by q at B u = x."""
    return np.einsum("...ijk,...j->...ik", b.gamma, x[..., b.v])


def by_first(b: VelocityBlock, y: Array) -> Array:
    """Gamma(., y), (..., k, k): the derivative of B along y is Gamma(., y) B; dB/dt = Gamma(., v) B."""
    return np.einsum("...ijk,...k->...ij", b.gamma, y[..., b.v])


def slope(b: VelocityBlock, v: Array) -> Array:
    """K = Gamma(., v) + Gamma(v, .), (..., k, k): the derivative of c = Gamma(v, v) by v."""
    return by_first(b, v) + by_second(b, v)


def of_force(b: VelocityBlock, tau: Array) -> Array:
    """tau . Gamma, (..., k, k): the derivative of B^T tau by q, before B is applied on both sides."""
    return np.einsum("...ijk,...i->...jk", b.gamma, tau[..., b.v])
