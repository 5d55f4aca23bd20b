"""The Gauss-Newton matrix of the energy, and variables in which it is a multiple of the identity.

    H = sum_k w_k T_k^T W T_k,    T_k = dtau_k/dC = dtau/dx B_k + dtau/dx' B'_k + dtau/dx'' B''_k,

where tau is the torque that remains beside the supports (supports.py). Basis functions of a B-spline overlap only their
neighbours, so H is built interval by interval. `damping` times the mean square of the coordinates is added to it, so
that moving joints of almost no weight is not free.
"""

from __future__ import annotations

import numpy as np

from .energy import TorqueEnergy

Array = np.ndarray


def gauss_newton(energy: TorqueEnergy, control: Array, damping: float) -> Array:
    """H (free * nv, free * nv) of the free control points."""
    spline, nv = energy.spline, energy.robot.nv
    rows, basis = energy.rows(control), spline.jets(energy.times)  # of tau, and of the spline
    count, wide = spline.count, spline.degree + 1
    H = np.zeros((count, nv, count, nv))
    each = len(energy.times) // spline.intervals
    for i in range(spline.intervals):
        here, near = slice(i * each, (i + 1) * each), slice(i, i + wide)
        local = np.swapaxes(basis[here, :, near], 1, 2)[:, None]  # (each, 1, wide, 3)
        T = (local @ rows[here]).reshape(-1, wide * nv)
        H[near, :, near] += (T.T @ T).reshape(wide, nv, wide, nv)
    B = basis[:, 0]
    square = damping / spline.duration * (B.T @ (energy.quadrature[:, None] * B))
    for j in range(nv):
        H[:, j, :, j] += square
    free = H[spline.free][:, :, spline.free]
    return free.reshape(free.shape[0] * nv, -1)


class Scaling:
    """Scaled variables y with control points C = base + T y and T^T H T = unit: E changes by about unit |y|^2."""

    def __init__(self, energy: TorqueEnergy, base: Array, unit: float) -> None:
        self.base, self.free = base, energy.spline.free
        L = np.linalg.cholesky(gauss_newton(energy, base, unit))
        self.T = np.linalg.inv(L).T * np.sqrt(unit)
        self.shape = base[self.free].shape

    def control(self, y: Array) -> Array:
        """All control points (count, nv) from variables (free * nv,)."""
        control = self.base.copy()
        control[self.free] += (self.T @ y).reshape(self.shape)
        return control

    def back(self, slopes: Array) -> Array:
        """Turn slopes (..., free, nv) by free control points into slopes (..., free * nv) by the variables."""
        return slopes.reshape(*slopes.shape[:-2], self.T.shape[0]) @ self.T
