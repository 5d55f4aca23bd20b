"""The axes of velocities of free and planar joints, which turn during a step; on arrays (..., nv), with Jacobians.

The mathematics is that of the joints' manifolds. It is analytic, so that complex steps differentiate it exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..model.manifolds import on_arrays
from ..model.model import Array, Model

STEP = 1e-40


class Turning:
    """What happens to velocities where axes turn: to the joints whose manifold `turns`, and to no other."""

    def __init__(self, model: Model) -> None:
        self.joints = [(p.joint.kind.manifold, p.v) for p in model.parts if p.joint.kind.manifold.turns]

    def later(self, v: Array, speed: Array, h: Array) -> Array:
        """v in the axes of half a step later, which turn with `speed`."""
        found = v.copy()
        for manifold, at in self.joints:
            found[..., at] = on_arrays(manifold.in_turned_axes, v[..., at], 0.5 * h * speed[..., at])
        return found

    def straight(self, way: Array) -> Array:
        """The motion of which a way in the axes of the middle is made; see `Manifold.straight`."""
        found = way.copy()
        for manifold, at in self.joints:
            found[..., at] = on_arrays(manifold.straight, way[..., at])
        return found

    def still(self, v: Array) -> Array:
        """dv/dt of velocities that are constant in axes that do not turn."""
        found = np.zeros_like(v)
        for manifold, at in self.joints:
            found[..., at] = on_arrays(manifold.still, v[..., at])
        return found

    # Changes along columns (..., nv, K)

    def later_change(self, v: Array, dv: Array, turn: Array, dturn: Array) -> Array:
        """Of v in axes that a motion `turn` has turned."""
        found = dv.copy()
        for manifold, at in self.joints:
            x, y = v[..., at], turn[..., at]
            by_v, by_turn = slope(manifold.in_turned_axes, 0, x, y), slope(manifold.in_turned_axes, 1, x, y)
            found[..., at, :] = by_v @ dv[..., at, :] + by_turn @ dturn[..., at, :]
        return found

    def straight_change(self, way: Array, dway: Array) -> Array:
        found = dway.copy()
        for manifold, at in self.joints:
            found[..., at, :] = slope(manifold.straight, 0, way[..., at]) @ dway[..., at, :]
        return found

    def still_change(self, v: Array, dv: Array) -> Array:
        found = np.zeros_like(dv)
        for manifold, at in self.joints:
            found[..., at, :] = slope(manifold.still, 0, v[..., at]) @ dv[..., at, :]
        return found


def slope(function: Callable[..., Sequence[Any]], which: int, *x: Array) -> Array:
    """The Jacobian (..., n, n) of a function of vectors (..., n) by one of them."""
    wide = [y[..., None, :].astype(complex) for y in x]
    wide[which] = wide[which] + 1j * STEP * np.eye(x[which].shape[-1])
    return np.swapaxes(np.imag(on_arrays(function, *wide)) / STEP, -1, -2)
