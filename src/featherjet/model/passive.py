"""The joints' own forces as functions of their state: dampers, springs and dry friction."""

from __future__ import annotations

from typing import Any

import numpy as np

from .model import Array, Model

SLIP = 0.01  # rad/s or m/s


class PassiveJoints:
    """What joints take from the torques on them, p(q, v) = damping v + stiffness (q - spring) + friction s(v).

    Arrays (nv,) over degrees of freedom; scalar: those that are their own coordinate, q[at], and may have springs. Dry
    friction is smooth: s(v) = v / sqrt(v^2 + slip^2), 0.7 at the speed `slip` [rad/s, m/s] and nearly one far above.
    """

    def __init__(self, model: Model, slip: float = SLIP) -> None:
        nv = model.nv
        self.slip = slip
        self.damping, self.stiffness, self.rest, self.friction = np.zeros((4, nv))
        self.at, self.scalar = np.zeros(nv, int), np.zeros(nv, bool)
        for joint, _, q, v in model.parts:
            self.damping[v], self.friction[v] = joint.damping, joint.friction
            self.at[v], self.scalar[v] = q.start, joint.kind.nq == joint.kind.nv == 1
            if joint.kind.nq == joint.kind.nv == 1:
                self.stiffness[v], self.rest[v] = joint.stiffness, joint.spring

    def force(self, q: Array, v: Array | None) -> Array:
        """The torques p (..., nv) that joints take; at rest if v is None. q and v may be complex."""
        found: Any = self.stiffness * np.where(self.scalar, q[..., self.at] - self.rest, 0.0)
        if v is None:
            return found
        return found + self.damping * v + self.friction * v / np.sqrt(v * v + self.slip**2)

    @property
    def by_q(self) -> Array:
        """The diagonal of dp/dq."""
        return self.stiffness

    def by_v(self, v: Array) -> Array:
        """The diagonal of dp/dv (..., nv)."""
        return self.damping + self.friction * self.slip**2 / np.sqrt(v * v + self.slip**2) ** 3

    def bend(self, v: Array) -> Array:
        """The second derivatives of p by v (..., nv), each by its own."""
        return -3.0 * self.friction * self.slip**2 * v / np.sqrt(v * v + self.slip**2) ** 5
