"""Torques and the slopes of weighted torques, for a batch of states."""

from __future__ import annotations

import numpy as np

from ..robot.robot import Robot

Array = np.ndarray


class TorqueSlopes:
    """Products w^T (dtau/dq, dtau/dv, dtau/da), each (N, nv), at states (N, ...) of one robot."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self._run = robot, robot.evaluator.run

    def weighted(self, q: Array, v: Array, a: Array, weights: Array) -> tuple[Array, ...]:
        """tau, then the slopes at w = weights tau."""
        if self.robot.model.has_mimic:  # the tree's torques are not the robot's, which are weighted
            tau = self.robot.inverse_dynamics(q, v, a)
            return tau, *self.by_multipliers(q, v, a, weights * tau)
        return self._run("torque_slopes", (q, v, a, weights))

    def by_multipliers(
        self, q: Array, v: Array, a: Array, multipliers: Array, fext: Array | None = None
    ) -> tuple[Array, ...]:
        """The slopes at w = multipliers."""
        return self.robot.vjp("inverse_dynamics", q, v, a, multipliers, fext=fext)[:3]
