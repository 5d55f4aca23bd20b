"""Rules of `integrate` and `difference` where velocities are a user's own: u = B(q)^-1 v with the same q.

    integrate_u(q, du) = integrate(q, B(q) du),        difference_u(q0, q1) = B(q0)^-1 difference(q0, q1)

The tangent space of a result has the B of that result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..model.model import Array
from .coordinates import VelocityMap, by_second
from .rules import Call, Entering, Results, axes


@dataclass(frozen=True)
class Along(Entering):
    """The rule of a quantity along the tangent vector dv."""

    rule: Callable[..., Results] = axes

    def entered(self, at: Call) -> dict[str, Array]:
        return at.inputs | {"dv": at.B.to_standard(at.inputs["dv"])}

    def __call__(self, at: Call, *results: Array) -> Results:
        return self.rule(at, *results)


def between(X: Array, start: VelocityMap, end: VelocityMap) -> Array:
    """B_end^-1 X B_start."""
    return end.along(start.along(X, -1, 2), -2, 2, motion=True)


def integrate_jacobians(at: Call, by_q: Array, by_dv: Array) -> Results:
    """B_end^-1 (J_q + J_dv Gamma(dv, .)) B and B_end^-1 J_dv B."""
    end, by_q = at.coordinates.velocity_map(at.value("integrate")[0]), np.array(by_q)
    for b in at.B.blocks:
        by_q[..., b.v] += by_dv[..., b.v] @ by_second(b, at.inputs["dv"])
    return between(by_q, at.B, end), between(by_dv, at.B, end)


def difference_jacobians(at: Call, by_q0: Array, by_q1: Array) -> Results:
    """B0^-1 (J_0 - Gamma(dv, .)) B0 and B0^-1 J_1 B1."""
    end, by_q0 = at.coordinates.velocity_map(at.inputs["q1"]), np.array(by_q0)
    (dv,) = at.value("difference")
    for b in at.B.blocks:
        by_q0[..., b.v, b.v] -= by_second(b, dv)
    return between(by_q0, at.B, at.B), between(by_q1, end, at.B)


def vjp(of: str, jacobians: Callable[..., Results]) -> Callable[..., Results]:
    """w^T times the Jacobians."""

    def rule(at: Call, *_: Array) -> Results:
        w = at.inputs["w"][..., None, :]
        return tuple((w @ J)[..., 0, :] for J in jacobians(at, *at.value(of)))

    return rule


def jvp(of: str, jacobians: Callable[..., Results], directions: Sequence[str]) -> Callable[..., Results]:
    """The Jacobians times directions."""

    def rule(at: Call, *_: Array) -> Results:
        first, second = (
            J @ at.inputs[d][..., None] for J, d in zip(jacobians(at, *at.value(of)), directions, strict=True)
        )
        return ((first + second)[..., 0],)

    return rule
