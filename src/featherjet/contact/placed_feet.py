"""Feet at given configurations: the Jacobian of their lowest points, and how it changes along the degrees of freedom.

A dof j moves everything beyond it by its motion S_j, so a motion S_i beyond it (i's joint is j's, or comes after it)
changes by S_j x S_i. A foot's lowest point is its centre plus a vector that is fixed in the world. So
    d(J u)_k/dq_j   = [S_j x (v_k - v_before_j)] at the lowest point + w_k x (the centre's way along j)
    d(J^T F)_i/dq_j = S_j . (S_i x* f_i) where j moves i's joint, + sum over feet of w_i . (way along j x F)
with v_k the velocity of the foot's body, v_before_j that of the body before j's joint, and f_i all forces beyond i.
Motions are at the world's origin, linear then angular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..model.model import Array
from ..model.tree import Coupling, Tree


class Paths:
    """Which dofs of a tree move what, as ones and zeros. feet (n, dofs): the feet; joints (j, i): i's joint, or an i
    whose joint comes after j's."""

    def __init__(self, tree: Tree, joints: list[int]) -> None:
        self.feet = np.stack([tree.moves(joint) for joint in joints])
        own = [node.index for node in tree.nodes for _ in node.dofs]
        self.joints = np.stack([tree.moves(joint) for joint in own], -1)
        same = np.equal.outer(own, own)
        self.before = np.where(same, 0.0, self.joints)  # (i, j): i's joint comes before j's
        self.coupling: Coupling | None = tree.coupling


@dataclass(frozen=True, eq=False)
class PlacedFeet:
    """Feet at configurations q: their centres (..., n, 3), axes (..., n, 3, 3) with two tangents and the normal as
    rows, radii (..., n), and the motion of each dof of the tree, columns (..., dofs, 6)."""

    paths: Paths
    centres: Array
    axes: Array
    radii: Array
    columns: Array

    @cached_property
    def lowest(self) -> Array:
        """The feet's lowest points (..., n, 3)."""
        return self.centres - self.radii[..., None] * self.axes[..., 2, :]

    @cached_property
    def J(self) -> Array:
        """The Jacobian (..., 3 n, nv) of the lowest points, in the feet's axes."""
        return self._reduced(self._in_axes(self._ways(self.lowest)))

    @cached_property
    def _ways_of_centres(self) -> Array:
        return self._ways(self.centres)

    def moved(self, u: Array) -> Array:
        """d(J u)/dq (..., 3 n, nv) at fixed velocities u (..., nv)."""
        lin, ang = self.columns[..., :3], self.columns[..., 3:]
        weighted = (u if self.paths.coupling is None else u @ self.paths.coupling.G.T)[..., None] * self.columns
        bodies = self.paths.feet @ weighted  # (..., n, 6)
        beyond = bodies[..., None, :] - (self.paths.before.T @ weighted)[..., None, :, :]  # (..., n, dofs, 6)
        v, w = beyond[..., :3], beyond[..., 3:]
        lin, ang = lin[..., None, :, :], ang[..., None, :, :]
        rate = cross(ang, v) + cross(lin, w) + cross(cross(ang, w), self.lowest[..., None, :])
        rate = rate * self.paths.feet[..., None] + cross(bodies[..., None, 3:], self._ways_of_centres)
        return self._reduced(self._in_axes(rate))

    def pushed(self, F: Array) -> Array:
        """d(J^T F)/dq (..., nv, nv) at fixed forces F (..., n, 3) in world axes."""
        lin, ang = self.columns[..., :3], self.columns[..., 3:]
        f = self.paths.feet.T @ np.concatenate([F, cross(self.lowest, F)], -1)  # on all beyond each dof
        force, moment = f[..., :3], f[..., 3:]
        turned = np.concatenate([cross(ang, force), cross(ang, moment) + cross(lin, force)], -1)
        found = (turned @ np.swapaxes(self.columns, -1, -2)) * self.paths.joints.T
        levers = cross(self._ways_of_centres, F[..., None, :])  # (..., n, dofs, 3)
        turns = ang[..., None, :, :] * self.paths.feet[..., None]
        found = found + (turns @ np.swapaxes(levers, -1, -2)).sum(-3)
        c = self.paths.coupling
        return found if c is None else c.G.T @ found @ c.G

    def _ways(self, points: Array) -> Array:
        """How each dof moves points of the feet (..., n, 3): (..., n, dofs, 3)."""
        lin, ang = self.columns[..., None, :, :3], self.columns[..., None, :, 3:]
        return (lin + cross(ang, points[..., None, :])) * self.paths.feet[..., None]

    def _in_axes(self, ways: Array) -> Array:
        """Vectors (..., n, dofs, 3) as rows (..., 3 n, dofs) in the feet's axes."""
        found = self.axes @ np.swapaxes(ways, -1, -2)
        return found.reshape(*found.shape[:-3], -1, found.shape[-1])

    def _reduced(self, rows: Array) -> Array:
        c = self.paths.coupling
        return rows if c is None else rows @ c.G


def cross(a: Array, b: Array) -> Array:
    """a x b over the last axis; NumPy's own is several times slower on small arrays."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    first = ay * bz - az * by
    found = np.empty((*first.shape, 3))
    found[..., 0], found[..., 1], found[..., 2] = first, az * bx - ax * bz, ax * by - ay * bx
    return found
