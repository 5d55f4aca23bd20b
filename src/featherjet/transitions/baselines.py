"""Motions to compare with: they join the same end states and ignore dynamics.

linear blend   (1 - t/T) A(t) + (t/T) B(t), where A leaves the start and B reaches the end, both at constant velocity.
               The blend's own velocity jumps at both ends, so the motion that is measured is the spline with its
               control points on the blend, whose ends have the right velocity.
minimum jerk   the polynomial of degree five with the velocities of the end states and zero acceleration there.
"""

from __future__ import annotations

import numpy as np

from .spline import Spline

Array = np.ndarray


def minimum_jerk(spline: Spline, ends: Array) -> Array:
    """Control points (count, n) of the quintic with ends x0, xd0, x1, xd1 (4, n)."""
    T = spline.duration
    x0, v0, x1, v1 = ends
    d = x1 - x0
    c3 = 10 * d - (6 * v0 + 4 * v1) * T
    c4 = -15 * d + (8 * v0 + 7 * v1) * T
    c5 = 6 * d - 3 * (v0 + v1) * T
    t, _ = spline.gauss(spline.degree + 1)
    s = (t / T)[:, None]
    return spline.fitted(ends, t, x0 + v0 * T * s + s**3 * (c3 + s * (c4 + s * c5)))


def baselines(spline: Spline, control: Array) -> dict[str, Array]:
    """Control points (count, n) of both, by name, between the ends of the motion with the given control points."""
    c = control
    step = spline.duration / spline.intervals / spline.degree
    ends = np.stack([c[0], (c[1] - c[0]) / step, c[-1], (c[-1] - c[-2]) / step])
    return {"linear blend": spline.control(ends), "minimum jerk": minimum_jerk(spline, ends)}
