"""Clamped B-splines over [0, duration] whose two outermost control points on each side are given by the end states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import MissingExtra

Array = np.ndarray
FIXED = 2  # control points on each side that position and velocity determine


def require_scipy() -> Any:
    """SciPy, or the error that says how to get it."""
    try:
        import scipy.interpolate
        import scipy.optimize
        import scipy.sparse.linalg
    except ImportError:
        raise MissingExtra("optimising a motion", "scipy", "motion") from None
    return scipy


class LocalBasis:
    """Basis functions in each interval, (intervals, rows, degree + 1): all others are zero there."""

    def __init__(self, blocks: Array) -> None:
        self.blocks, self.back = blocks, np.ascontiguousarray(np.swapaxes(blocks, 1, 2))

    def evaluate(self, control: Array, out: Array) -> None:
        """From control points (count, n) the rows (intervals * rows, n), interval by interval."""
        count, rows, wide = self.blocks.shape
        step, entry = control.strides
        near = np.lib.stride_tricks.as_strided(control, (count, wide, control.shape[1]), (step, step, entry))
        np.matmul(self.blocks, near, out=out.reshape(count, rows, -1))

    def transposed(self, slopes: Array) -> Array:
        """From slopes (intervals * rows, n) by rows those by control points, (count, n)."""
        count, rows, wide = self.blocks.shape
        each = self.back @ slopes.reshape(count, rows, -1)
        out = np.zeros((count + wide - 1, slopes.shape[-1]))
        for j in range(wide):
            out[j : j + count] += each[:, j]
        return out


@dataclass(frozen=True)
class Spline:
    """The splines of one degree on equal intervals; control points (count, n) for n coordinates."""

    degree: int
    intervals: int
    duration: float

    @property
    def count(self) -> int:
        """Control points."""
        return self.intervals + self.degree

    @property
    def free(self) -> slice:
        """The control points that the ends leave free."""
        return slice(FIXED, self.count - FIXED)

    @cached_property
    def knots(self) -> Array:
        inner = np.linspace(0.0, self.duration, self.intervals + 1)
        return np.concatenate([np.zeros(self.degree), inner, np.full(self.degree, self.duration)])

    @cached_property
    def greville(self) -> Array:
        """The times (count,) at which control points on a straight line would lie on it."""
        return np.array([self.knots[i + 1 : i + 1 + self.degree].mean() for i in range(self.count)])

    def jets(self, t: Array) -> Array:
        """Values and two derivatives of every basis function at times (N,): (N, 3, count)."""
        basis = require_scipy().interpolate.BSpline(self.knots, np.eye(self.count), self.degree)
        return np.stack([basis(t, nu) for nu in range(3)], 1)

    def local(self, t: Array) -> LocalBasis:
        """Values and two derivatives of the basis at times (N,), equally many in each interval, in order."""
        jets, wide = self.jets(t), self.degree + 1
        each = len(t) // self.intervals
        blocks = [
            jets[i * each : (i + 1) * each, :, i : i + wide].reshape(3 * each, wide) for i in range(self.intervals)
        ]
        return LocalBasis(np.stack(blocks))

    def gauss(self, points: int) -> tuple[Array, Array]:
        """Times and weights (intervals * points,) of Gauss quadrature on every interval."""
        x, w = np.polynomial.legendre.leggauss(points)
        h = self.duration / self.intervals
        starts = h * np.arange(self.intervals)[:, None]
        return (starts + h * (x + 1) / 2).ravel(), np.tile(h * w / 2, self.intervals)

    def control(self, ends: Array) -> Array:
        """Control points (count, n) with the ends x0, xd0, x1, xd1 (4, n) met exactly, on a straight line between."""
        x0, xd0, x1, xd1 = ends
        step = self.duration / self.intervals / self.degree
        c = np.empty((self.count, ends.shape[1]))
        c[0], c[1], c[-2], c[-1] = x0, x0 + step * xd0, x1 - step * xd1, x1
        s = (self.greville[self.free] / self.duration)[:, None]
        start, end = x0 + s * self.duration * xd0, x1 - (1 - s) * self.duration * xd1
        c[self.free] = (1 - s) * start + s * end
        return c

    def fitted(self, ends: Array, t: Array, x: Array) -> Array:
        """Control points with these ends that come nearest to x (N, n) at times t (N,)."""
        c = self.control(ends)
        B = self.jets(t)[:, 0]
        c[self.free] = 0.0
        c[self.free] = np.linalg.lstsq(B[:, self.free], x - B @ c, rcond=None)[0]
        return c
