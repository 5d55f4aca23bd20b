"""The terrain under a robot: a plane, or a height field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..model.model import Array

CELL, REACH = 0.25, 4  # of a plane's drawing: the size of its squares [m], and how many around the feet


class Nearest(NamedTuple):
    """Distances (n,) of points above the ground, negative below it, and the ground's unit normals (n, 3)."""

    distance: Array
    normal: Array


class Terrain(Protocol):
    """Anything that computes distances of points above it; a `surface`, as below, makes it drawable."""

    def nearest(self, points: Array) -> Nearest:
        """For points (n, 3) in the world [m]."""
        ...


@dataclass(frozen=True)
class Plane:
    """The plane normal . x = height; the ground is below it."""

    normal: ArrayLike = (0.0, 0.0, 1.0)
    height: float = 0.0

    def __post_init__(self) -> None:
        n = arrays.finite("normal", self.normal, (3,), "x y z")
        if n.shape != (3,) or np.linalg.norm(n) < 1e-9:
            raise InputError(f"normal: expected a vector x y z other than zero, got {self.normal!r}")
        if arrays.finite("height", self.height, (), "a number").shape:
            raise InputError(f"height: expected a number, got {self.height!r}")

    def nearest(self, points: Array) -> Nearest:
        n = np.asarray(self.normal, float)
        n = n / np.linalg.norm(n)
        return Nearest(points @ n - self.height, np.broadcast_to(n, points.shape))

    def surface(self, points: Array) -> Array:
        """A grid (k, l, 3) of the plane, below and around points (n, 3)."""
        s, t, n = axes(self.nearest(points[:1]).normal)[0]
        lines = [
            np.arange(np.floor(x.min() / CELL) - REACH, np.ceil(x.max() / CELL) + REACH + 1) * CELL
            for x in (points @ s, points @ t)
        ]
        a, b = np.meshgrid(*lines, indexing="ij")
        return a[..., None] * s + b[..., None] * t + self.height * n


@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights z (len(x), len(y)) [m] over a grid of increasing x and y, bilinear between, constant beyond its edges.

    Distances are to the tangent plane below a point: exact for slopes, approximate at edges and in ditches narrower
    than a foot.
    """

    x: ArrayLike
    y: ArrayLike
    z: ArrayLike

    def __post_init__(self) -> None:
        grid = []
        for name in "xy":
            a = np.asarray(getattr(self, name))
            a = arrays.finite(name, a, a.shape[-1:], "grid coordinates")
            if a.ndim != 1 or len(a) < 2 or (np.diff(a) <= 0).any():
                raise InputError(f"{name}: expected at least two increasing numbers")
            grid.append(a)
        shape = (len(grid[0]), len(grid[1]))
        z = arrays.finite("z", self.z, shape, "heights over x and y")
        if z.shape != shape:
            raise InputError(f"z: expected shape {shape}, got {z.shape}")
        for name, a in zip("xyz", (*grid, z), strict=True):
            object.__setattr__(self, name, a)

    def nearest(self, points: Array) -> Nearest:
        height, slope = self._height(points)
        n = np.concatenate([-slope, np.ones((len(points), 1))], -1)
        n /= np.linalg.norm(n, axis=-1, keepdims=True)
        return Nearest((points[:, 2] - height) * n[:, 2], n)

    def surface(self, points: Array) -> Array:
        """The grid points (len(x), len(y), 3)."""
        x, y = np.meshgrid(np.asarray(self.x), np.asarray(self.y), indexing="ij")
        return np.stack([x, y, np.asarray(self.z)], -1)

    def _height(self, points: Array) -> tuple[Array, Array]:
        """Heights (n,) and slopes (n, 2) below points."""
        at, share, width, inside = [], [], [], []
        for k, grid in enumerate((np.asarray(self.x), np.asarray(self.y))):
            p = np.clip(points[:, k], grid[0], grid[-1])
            i = np.clip(np.searchsorted(grid, p, side="right") - 1, 0, len(grid) - 2)
            at.append(i)
            width.append(grid[i + 1] - grid[i])
            share.append((p - grid[i]) / width[-1])
            inside.append((points[:, k] >= grid[0]) & (points[:, k] <= grid[-1]))
        (i, j), (s, t), z = at, share, np.asarray(self.z)
        a, b, c, d = z[i, j], z[i + 1, j], z[i, j + 1], z[i + 1, j + 1]
        height = (1 - s) * (1 - t) * a + s * (1 - t) * b + (1 - s) * t * c + s * t * d
        along_x = ((1 - t) * (b - a) + t * (d - c)) / width[0] * inside[0]
        along_y = ((1 - s) * (c - a) + s * (d - b)) / width[1] * inside[1]
        return height, np.stack([along_x, along_y], -1)


def axes(n: Array) -> Array:
    """Rows (n, 3, 3): two tangents and the normal, of normals (n, 3)."""
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n), axis=-1)])
    t /= np.linalg.norm(t, axis=-1, keepdims=True)
    return np.stack([t, np.cross(n, t), n], axis=1)
