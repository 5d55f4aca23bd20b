"""The energy of a motion, the integral of squared torques, and its exact gradient.

    E = sum_k w_k tau_k^T W tau_k  ~  integral of sum_i W_i tau_i^2 dt

over Gauss points k with quadrature weights w_k. By the chain rule, with C the control points and B, B', B'' the spline
basis at the Gauss points,

    dE/dC = 2 sum_k w_k [B_k, B'_k, B''_k]^T [gx, gx', gx'']_k,
    (gq, gv, ga)_k = tau_k^T W (dtau/dq, dtau/dv, dtau/da)_k,

where the chart turns gq, gv, ga into gx, gx', gx''. The products of tau^T W with the three matrices of
robot.inverse_dynamics_derivatives are summed along the tree (slopes.py), in one compiled batch for all points, without
forming the matrices.

[BP] prints this gradient as 2 times the integral of sum_i dtau_i/dq_j + dtau_i/dqd_j + dtau_i/dqdd_j. It omits the
factor tau_i, from the derivative of tau_i^2, and the basis functions that multiply each of the three terms.

Where frames support the robot, tau is the torque that remains under their best forces (supports.py). At that optimum E
has the same gradient as if these forces were constant, with a multiplier instead of W tau where torques must be zero.
"""

from __future__ import annotations

import numpy as np

from ..robot.robot import Robot
from .chart import FlatChart
from .slopes import TorqueSlopes
from .spline import Spline
from .supports import Supports

Array = np.ndarray


class TorqueEnergy:
    """The integral E of squared torques, and dE/dC, at control points C (count, nv) of a spline."""

    def __init__(
        self,
        robot: Robot,
        chart: FlatChart,
        spline: Spline,
        weights: Array,
        points: int,
        supports: Supports | None = None,
    ) -> None:
        self.robot, self.chart, self.spline, self.supports = robot, chart, spline, supports
        self.weights = weights
        self.times, self.quadrature = spline.gauss(points)
        self._slopes, self._basis = TorqueSlopes(robot), spline.local(self.times)
        self._weights = self.quadrature[:, None] * weights
        self._jets, self._by = (np.empty((len(self.times), 3, robot.nv)) for _ in range(2))
        self._q = np.empty((len(self.times), robot.nq))

    def __call__(self, control: Array) -> tuple[float, Array]:
        """E and its gradient (count, nv)."""
        nv = self.robot.nv
        self._basis.evaluate(control, self._jets.reshape(-1, nv))
        tape = self.chart.lift(self._jets, self._q)
        energy, slopes = self._energy_and_slopes(self._q, self._jets[:, 1], self._jets[:, 2])
        for k, x in enumerate(slopes):
            self._by[:, k] = x
        self.chart.pull(tape, self._by)
        return energy, 2 * self._basis.transposed(self._by.reshape(-1, nv))

    def _energy_and_slopes(self, q: Array, v: Array, a: Array) -> tuple[float, tuple[Array, ...]]:
        """The energy, and half its slopes by q, v, a at every point."""
        if self.supports is None:
            tau, *slopes = self._slopes.weighted(q, v, a, self._weights)
            return float(np.vdot(self._weights * tau, tau)), tuple(slopes)
        carried = self.supports.carry(q, self.robot.inverse_dynamics(q, v, a))
        multipliers = self.quadrature[:, None] * carried.multipliers
        slopes = self._slopes.by_multipliers(q, v, a, multipliers, carried.fext)
        return float(self.quadrature @ carried.energy), slopes

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """The torques (N, nv) that joints apply, beside the forces of the supports."""
        tau = self.robot.inverse_dynamics(q, v, a)
        return tau if self.supports is None else self.supports.carry(q, tau).tau

    def torque_slopes(self, q: Array, v: Array, a: Array, exact: bool = True) -> Array:
        """Derivatives (N, nv, 3, nv) of `torques` by q, v, a."""
        if self.supports is None:
            return np.stack(self.robot.inverse_dynamics_derivatives(q, v, a), 2)
        return self.supports.torque_slopes(q, v, a, exact)

    def rows(self, control: Array) -> Array:
        """Derivatives (N, nv, 3, nv) of sqrt(w W) times `torques` by x, x', x'', for Gauss-Newton."""
        n, nv = len(self.times), self.robot.nv
        jets = np.empty((n, 3, nv))
        self._basis.evaluate(control, jets.reshape(-1, nv))
        q = np.empty((n * nv, self.robot.nq))
        tape = self.chart.lift(np.repeat(jets, nv, 0), q)
        self.chart.lift(jets, q[:n])
        T = self.torque_slopes(q[:n], jets[:, 1], jets[:, 2], exact=False)
        T *= np.sqrt(self.quadrature[:, None] * self.weights)[:, :, None, None]
        slopes = T.reshape(n * nv, 3, nv)
        self.chart.pull(tape, slopes)
        return slopes.reshape(n, nv, 3, nv)
