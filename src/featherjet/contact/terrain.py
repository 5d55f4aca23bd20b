"""The terrain under a robot: a plane, or a height field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..model.model import Array

FAR = 1e4  # m
CELLS = 12  # of a height field, in each direction: more are not searched for the nearest point
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


@dataclass(frozen=True, eq=False, repr=False)
class HeightField:
    """Heights z (len(x), len(y)) [m] over a grid of increasing x and y, constant beyond its edges.

    Each cell of the grid is two triangles. Distances are those to the nearest point of the surface, so a steep cell is
    a wall; far above the ground (more than CELLS cells) they are those to the plane below.
    """

    x: ArrayLike
    y: ArrayLike
    z: ArrayLike

    def __repr__(self) -> str:
        x, y, z = (np.asarray(a) for a in (self.x, self.y, self.z))
        sides = f"{x[0]:g} <= x <= {x[-1]:g}, {y[0]:g} <= y <= {y[-1]:g}"
        return f"<HeightField {len(x)} x {len(y)}: {sides}, {z.min():g} <= z <= {z.max():g} m>"

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
        found = Nearest((points[:, 2] - height) * n[:, 2], n)
        # The nearest point is no farther than the one straight below, hence in one of the cells around it.
        reach = np.abs(points[:, 2] - height)
        lines = [np.searchsorted(g, [p - reach, p + reach]) for g, p in zip(self._grid, points.T[:2], strict=True)]
        first = np.stack([np.clip(a[0] - 1, 0, len(g) - 2) for a, g in zip(lines, self._grid, strict=True)], -1)
        last = np.stack([np.clip(a[1] - 1, 0, len(g) - 2) for a, g in zip(lines, self._grid, strict=True)], -1)
        width = (last - first).max(-1, initial=0) + 1
        for w in np.unique(width[width <= CELLS]):
            some = np.flatnonzero(width == w)
            distance, normal = self._near(points[some], first[some], int(w), height[some])
            found.distance[some], found.normal[some] = distance, normal
        return found

    @property
    def _grid(self) -> tuple[Array, Array]:
        """The grid, with a line far beyond each edge, where the ground goes on level."""
        x, y = (np.asarray(g) for g in (self.x, self.y))
        return np.array([x[0] - FAR, *x, x[-1] + FAR]), np.array([y[0] - FAR, *y, y[-1] + FAR])

    def _near(self, points: Array, first: Array, width: int, height: Array) -> Nearest:
        """The nearest of all triangles in `width` by `width` cells, which begin at `first`."""
        (x, y), z = self._grid, np.pad(np.asarray(self.z), 1, mode="edge")
        steps = np.arange(width)
        i = np.clip(first[:, 0, None, None] + steps[:, None], 0, len(x) - 2)
        j = np.clip(first[:, 1, None, None] + steps, 0, len(y) - 2)
        i, j = np.broadcast_arrays(i, j)

        def corner(a: int, b: int) -> Array:
            return np.stack([x[i + a], y[j + b], z[i + a, j + b]], -1).reshape(len(points), -1, 3)

        low, high = corner(0, 0), corner(1, 1)
        A = np.concatenate([low, low], 1)
        B, C = np.concatenate([corner(1, 0), high], 1), np.concatenate([high, corner(0, 1)], 1)
        nearest = on_triangles(points[:, None], A, B, C)
        away = points[:, None] - nearest
        squares = (away**2).sum(-1)
        best = squares.argmin(-1)
        rows = np.arange(len(points))
        distance, away = np.sqrt(squares[rows, best]), away[rows, best]
        sign = np.where(points[:, 2] < height, -1.0, 1.0)
        faces = np.cross((B - A)[rows, best], (C - A)[rows, best])
        faces /= np.linalg.norm(faces, axis=-1, keepdims=True)
        far = distance > 1e-9  # closer, the face's own normal is the more exact one
        normal = np.where(far[:, None], sign[:, None] * away / np.where(far, distance, 1.0)[:, None], faces)
        return Nearest(sign * distance, normal)

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


def on_triangles(p: Array, A: Array, B: Array, C: Array) -> Array:
    """The points of triangles ABC nearest to points p; all (..., 3), and they broadcast."""
    dot = lambda a, b: (a * b).sum(-1)  # noqa: E731

    def on_edge(a: Array, b: Array) -> Array:
        along = b - a
        share = np.clip(dot(p - a, along) / dot(along, along), 0.0, 1.0)
        return a + share[..., None] * along

    u, v, w = B - A, C - A, p - A
    uu, uv, vv, wu, wv = dot(u, u), dot(u, v), dot(v, v), dot(w, u), dot(w, v)
    det = uu * vv - uv * uv
    s, t = (vv * wu - uv * wv) / det, (uu * wv - uv * wu) / det
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
    found = A + s[..., None] * u + t[..., None] * v
    least = np.where(inside, dot(p - found, p - found), np.inf)
    for candidate in (on_edge(A, B), on_edge(B, C), on_edge(C, A)):
        square = dot(p - candidate, p - candidate)
        closer = ~inside & (square < least)
        found, least = np.where(closer[..., None], candidate, found), np.where(closer, square, least)
    return found


def axes(n: Array) -> Array:
    """Rows (n, 3, 3): two tangents and the normal, of normals (n, 3)."""
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n), axis=-1)])
    t /= np.linalg.norm(t, axis=-1, keepdims=True)
    return np.stack([t, np.cross(n, t), n], axis=1)
