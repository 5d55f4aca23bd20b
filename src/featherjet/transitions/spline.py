"""Clamped B-splines over [0, duration]; the end states determine the two outermost control points on each side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import MissingExtra
from ..forks import unforked

Array = np.ndarray
FIXED = 2  # control points on each side that position and velocity determine


def require_scipy() -> Any:
    """SciPy, or a MissingExtra that says how to install it."""
    try:
        with unforked:
            import scipy.interpolate
            import scipy.optimize
            import scipy.sparse.linalg
    except ImportError:
        raise MissingExtra("optimising a motion", "scipy", "motion") from None
    return scipy


class LocalBasis:
    """The basis functions that are nonzero in each interval, (intervals, rows, degree + 1)."""

    def __init__(self, blocks: Array) -> None:
        self.blocks, self.back = blocks, np.ascontiguousarray(np.swapaxes(blocks, 1, 2))

    def evaluate(self, control: Array, out: Array) -> None:
        """Write rows (intervals * rows, n), interval by interval, from control points (count, n)."""
        count, rows, wide = self.blocks.shape
        step, entry = control.strides
        near = np.lib.stride_tricks.as_strided(control, (count, wide, control.shape[1]), (step, step, entry))
        np.matmul(self.blocks, near, out=out.reshape(count, rows, -1))

    def transposed(self, slopes: Array) -> Array:
        """Turn slopes (intervals * rows, n) by rows into slopes (count, n) by control points."""
        count, rows, wide = self.blocks.shape
        each = self.back @ slopes.reshape(count, rows, -1)
        out = np.zeros((count + wide - 1, slopes.shape[-1]))
        for j in range(wide):
            out[j : j + count] += each[:, j]
        return out


@dataclass(frozen=True)
class Spline:
    """Splines of one degree on equal intervals, with control points (count, n) for n coordinates."""

    degree: int
    intervals: int
    duration: float

    @property
    def count(self) -> int:
        """The number of control points."""
        return self.intervals + self.degree

    @property
    def free(self) -> slice:
        """The control points that the end states do not determine."""
        return slice(FIXED, self.count - FIXED)

    @cached_property
    def knots(self) -> Array:
        """The knots (intervals + 2 degree + 1,) [s]."""
        inner = np.linspace(0.0, self.duration, self.intervals + 1)
        return np.concatenate([np.zeros(self.degree), inner, np.full(self.degree, self.duration)])

    @cached_property
    def greville(self) -> Array:
        """The Greville times (count,): control points on a line at these times make the spline that line."""
        return np.array([self.knots[i + 1 : i + 1 + self.degree].mean() for i in range(self.count)])

    def jets(self, t: Array) -> Array:
        """Values and two derivatives of every basis function at times (N,): (N, 3, count)."""
        basis = require_scipy().interpolate.BSpline(self.knots, np.eye(self.count), self.degree)
        return np.stack([basis(t, nu) for nu in range(3)], 1)

    def local(self, t: Array) -> LocalBasis:
        """Values and two derivatives of the basis at ordered times (N,), the same number in each interval."""
        jets, wide = self.jets(t), self.degree + 1
        each = len(t) // self.intervals
        blocks = [
            jets[i * each : (i + 1) * each, :, i : i + wide].reshape(3 * each, wide) for i in range(self.intervals)
        ]
        return LocalBasis(np.stack(blocks))

    def gauss(self, points: int) -> tuple[Array, Array]:
        """Times and weights (intervals * points,) of Gauss quadrature with `points` points on every interval."""
        x, w = np.polynomial.legendre.leggauss(points)
        h = self.duration / self.intervals
        starts = h * np.arange(self.intervals)[:, None]
        return (starts + h * (x + 1) / 2).ravel(), np.tile(h * w / 2, self.intervals)

    def control(self, ends: Array) -> Array:
        """Control points (count, n) that meet the ends x0, xd0, x1, xd1 (4, n) exactly, on a linear blend between."""
        x0, xd0, x1, xd1 = ends
        step = self.duration / self.intervals / self.degree
        c = np.empty((self.count, ends.shape[1]))
        c[0], c[1], c[-2], c[-1] = x0, x0 + step * xd0, x1 - step * xd1, x1
        s = (self.greville[self.free] / self.duration)[:, None]
        start, end = x0 + s * self.duration * xd0, x1 - (1 - s) * self.duration * xd1
        c[self.free] = (1 - s) * start + s * end
        return c

    def fitted(self, ends: Array, t: Array, x: Array) -> Array:
        """Control points with these ends that fit x (N, n) at times t (N,) best, by least squares."""
        c = self.control(ends)
        B = self.jets(t)[:, 0]
        c[self.free] = 0.0
        c[self.free] = np.linalg.lstsq(B[:, self.free], x - B @ c, rcond=None)[0]
        return c
