"""The energy of a motion, the integral of squared torques, and its exact gradient.

    E = sum_k w_k tau_k^T W tau_k  ~  integral of sum_i W_i tau_i^2 dt

over Gauss points k with quadrature weights w_k. By the chain rule, with C the control points and B, B', B'' the spline
basis at the Gauss points,

    dE/dC = 2 sum_k w_k [B_k, B'_k, B''_k]^T [gx, gx', gx'']_k,
    (gq, gv, ga)_k = tau_k^T W (dtau/dq, dtau/dv, dtau/da)_k,

where the chart turns gq, gv, ga into gx, gx', gx''. [BP] prints this gradient as 2 times the integral of
sum_i dtau_i/dq_j + dtau_i/dqd_j + dtau_i/dqdd_j: the factor tau_i, which the derivative of tau_i^2 brings, is missing
there, and so are the basis functions that each of the three terms belongs to.

Where frames support the robot, tau is what remains after they have pushed as well as they can (supports.py); at that
optimum E has the same gradient as if their forces were constant, with a multiplier in the place of W tau where torques
must vanish.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..robot import Robot
from .chart import Chart
from .spline import Spline
from .supports import Supports

Array = np.ndarray
BLOCK = 2 << 20  # bytes of derivatives to compute at a time: they are still in the cache when they are multiplied


class Energy:
    """E and dE/dC at control points C (count, nv), in arrays that are kept between calls."""

    def __init__(
        self, robot: Robot, chart: Chart, spline: Spline, weights: Array, points: int, supports: Supports | None = None
    ) -> None:
        self.robot, self.chart, self.spline, self.supports = robot, chart, spline, supports
        self.weights = weights
        self.times, self.quadrature = spline.gauss(points)
        n, nv = len(self.times), robot.nv
        self._weights = self.quadrature[:, None] * weights
        self._basis = spline.jets(self.times).reshape(3 * n, spline.count)
        self._basis_back = np.ascontiguousarray(2 * self._basis.T)
        self._jets, self._slopes = np.empty((n, 3, nv)), np.empty((n, 3, nv))
        self._q, self._tau, self._multipliers = np.empty((n, robot.nq)), np.empty((n, nv)), np.empty((n, nv))
        count = -(-n * 24 * nv**2 // BLOCK)
        size = -(-n // count)
        self._blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        self._matrices = np.empty((size, nv, 3 * nv))  # side by side: one product serves all three

    def __call__(self, control: Array) -> tuple[float, Array]:
        """E and its gradient (count, nv)."""
        nv = self.robot.nv
        np.matmul(self._basis, control, out=self._jets.reshape(-1, nv))
        tape = self.chart.lift(self._jets, self._q)
        state = self._q, self._jets[:, 1], self._jets[:, 2]
        energy, fext = self._torques(*state)
        self._multiply(state, fext)
        self.chart.pull(tape, self._slopes)
        return energy, self._basis_back @ self._slopes.reshape(-1, nv)

    def rows(self, control: Array) -> Array:
        """sqrt(w W) times the derivatives of what is left of tau by x, x', x'': (N, nv, 3, nv), for Gauss-Newton."""
        robot, n, nv = self.robot, len(self.times), self.robot.nv
        jets = (self._basis @ control).reshape(n, 3, nv)
        q = np.empty((n * nv, robot.nq))
        tape = self.chart.lift(np.repeat(jets, nv, 0), q)
        self.chart.lift(jets, q[:n])
        state = q[:n], jets[:, 1], jets[:, 2]
        fext, weights = None, self.weights
        if self.supports is not None:
            weights = self.supports.weights
            fext = self.supports.carry(q[:n], robot.inverse_dynamics(*state)).fext
        T = np.concatenate(robot.inverse_dynamics_derivatives(*state, fext), -1)
        if self.supports is not None:
            T = self.supports.remaining(q[:n]) @ T
        T *= np.sqrt(self.quadrature[:, None, None] * weights[:, None])
        slopes = T.reshape(n * nv, 3, nv)
        self.chart.pull(tape, slopes)
        return slopes.reshape(n, nv, 3, nv)

    def _torques(self, q: Array, v: Array, a: Array) -> tuple[float, Array | None]:
        """The energy and the supports' forces; leaves w W tau (or multipliers) in `_multipliers`."""
        tau = self.robot.inverse_dynamics(q, v, a, out=self._tau)
        if self.supports is None:
            np.multiply(tau, self._weights, out=self._multipliers)
            return float(np.vdot(self._multipliers, tau)), None
        carried = self.supports.carry(q, tau)
        np.multiply(carried.multipliers, self.quadrature[:, None], out=self._multipliers)
        return float(self.quadrature @ carried.energy), carried.fext

    def _multiply(self, state: tuple[Array, ...], fext: Array | None) -> None:
        """Slopes (gq, gv, ga) = multipliers^T (dtau/dq, dtau/dv, dtau/da), block by block."""
        n, nv = self._multipliers.shape
        slopes, rows = self._slopes.reshape(n, 1, 3 * nv), self._multipliers[:, None]
        for block in self._blocks:
            matrices = self._matrices[: block.stop - block.start]
            parts: Any = tuple(matrices[:, :, k * nv : (k + 1) * nv] for k in range(3))
            forces = None if fext is None else fext[block]
            q, v, a = (x[block] for x in state)
            self.robot.inverse_dynamics_derivatives(q, v, a, forces, out=parts)
            np.matmul(rows[block], matrices, out=slopes[block])
