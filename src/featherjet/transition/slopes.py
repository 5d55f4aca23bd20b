"""Torques and the slopes of weighted torques, for a batch of states: by the reference, or as machine code."""

from __future__ import annotations

import numpy as np

from ..algorithms.derivatives.slopes import torque_slopes
from ..algorithms.dynamics import coupled
from ..algorithms.scan import Scan
from ..evaluate.reference import Reference
from ..robot.robot import Robot

Array = np.ndarray


class SlopeReference(Reference):
    """`run("torque_slopes", inputs, fixed=...)`. Where joints mimic, multipliers expand as rates, and tau shrinks."""

    def _torque_slopes(self, scan: Scan, q, v, a, weights, fext=None, fixed=False):
        c = self.tree.coupling
        if c is None:
            return torque_slopes(scan, q, v, a, weights, fext, fixed=fixed)
        return tuple(coupled.reduce_vector(c.G, x) for x in torque_slopes(scan, q, v, a, weights, fext, fixed=fixed))


class Slopes:
    """Of one robot: tau (N, nv) and lambda^T (dtau/dq, dtau/dv, dtau/da), each (N, nv), at states (N, ...)."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self._run = robot, robot._specialise(SlopeReference(robot.model))

    def weighted(self, q: Array, v: Array, a: Array, weights: Array) -> tuple[Array, ...]:
        """With lambda = weights tau."""
        if self.robot.model.has_mimic:  # the tree's torques are not the robot's, which are weighted
            return self.given(q, v, a, weights * self.robot.inverse_dynamics(q, v, a))
        return self._run("torque_slopes", dict(q=q, v=v, a=a, weights=weights), fixed=False)

    def given(self, q: Array, v: Array, a: Array, multipliers: Array, fext: Array | None = None) -> tuple[Array, ...]:
        """With lambda as it is given."""
        return self._run("torque_slopes", dict(q=q, v=v, a=a, weights=multipliers, fext=fext), fixed=True)
