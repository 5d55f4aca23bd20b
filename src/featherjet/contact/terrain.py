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
CELLS = 8  # of a height field, in each direction: of more, only those are searched whose boxes are near
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

    Each cell of the grid is two triangles, which share the edge from its least to its greatest x and y. Distances are
    those to the nearest point of the triangles, so a steep cell is a wall.
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
        grid, z = self._grid(points)
        height, level = self._height(points), np.array([0.0, 0.0, 1.0])
        found = Nearest(np.empty(len(points)), np.broadcast_to(level, points.shape).copy())
        # The nearest point is no farther than the one straight below, hence in one of the cells around it.
        reach = np.abs(points[:, 2] - height)
        lines = [np.searchsorted(g, [p - reach, p + reach]) for g, p in zip(grid, points.T[:2], strict=True)]
        first = np.stack([np.clip(a[0] - 1, 0, len(g) - 2) for a, g in zip(lines, grid, strict=True)], -1)
        last = np.stack([np.clip(a[1] - 1, 0, len(g) - 2) for a, g in zip(lines, grid, strict=True)], -1)
        width = (last - first).max(-1, initial=0) + 1
        width[width > CELLS] = 0
        for w in np.unique(width):
            some = np.flatnonzero(width == w)
            if w:
                steps = np.arange(w)
                i = np.clip(first[some, 0, None, None] + steps[:, None], 0, len(grid[0]) - 2)
                j = np.clip(first[some, 1, None, None] + steps, 0, len(grid[1]) - 2)
                i, j = (a.reshape(len(some), -1) for a in np.broadcast_arrays(i, j))
            else:
                i, j = _cells_near(points[some], first[some], last[some] + 1, *grid, z)
            found.distance[some], found.normal[some] = _of_cells(points[some], i, j, *grid, z, height[some])
        return found

    def _grid(self, points: Array) -> tuple[tuple[Array, Array], Array]:
        """The grid and its heights, with a line far beyond each edge and all points, where the ground goes on level."""
        far = FAR + np.abs(points[:, :2]).max(initial=0.0)
        x, y = (np.array([g[0] - far, *g, g[-1] + far]) for g in (np.asarray(self.x), np.asarray(self.y)))
        return (x, y), np.pad(np.asarray(self.z), 1, mode="edge")

    def surface(self, points: Array) -> Array:
        """The grid points (len(x), len(y), 3)."""
        x, y = np.meshgrid(np.asarray(self.x), np.asarray(self.y), indexing="ij")
        return np.stack([x, y, np.asarray(self.z)], -1)

    def _height(self, points: Array) -> Array:
        """Heights (n,) of the triangles below points."""
        at, share = [], []
        for k, grid in enumerate((np.asarray(self.x), np.asarray(self.y))):
            p = np.clip(points[:, k], grid[0], grid[-1])
            i = np.clip(np.searchsorted(grid, p, side="right") - 1, 0, len(grid) - 2)
            at.append(i)
            share.append((p - grid[i]) / (grid[i + 1] - grid[i]))
        (i, j), (s, t), z = at, share, np.asarray(self.z)
        a, d = z[i, j], z[i + 1, j + 1]
        b = np.where(s >= t, z[i + 1, j], z[i, j + 1])  # the third corner of the point's triangle
        return a + np.maximum(s, t) * (b - a) + np.minimum(s, t) * (d - b)


def _cells_near(points: Array, first: Array, stop: Array, x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Indices i, j (n, m) of cells, among them the one that is nearest to each point; the last is repeated.

    Cells from `first` to `stop` (n, 2) are looked at, and left out if their box is farther than some corner of them.
    """
    top = np.max([z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]], 0)
    low = np.min([z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]], 0)
    near = []
    for p, start, end in zip(points, first, stop, strict=True):
        (i, k), (j, m) = zip(start, end, strict=True)
        u, v, w = x[i : k + 1] - p[0], y[j : m + 1] - p[1], z[i : k + 1, j : m + 1] - p[2]
        corner = ((u * u)[:, None] + v * v + w * w).min()
        du, dv = (np.maximum(np.maximum(g[:-1], -g[1:]), 0) for g in (u, v))
        dw = np.maximum(np.maximum(low[i:k, j:m] - p[2], p[2] - top[i:k, j:m]), 0)
        cells = start + np.argwhere((du * du)[:, None] + dv * dv + dw * dw <= corner * (1 + 1e-12))
        near.append(cells if len(cells) else np.zeros((1, 2), int))  # none is near a point that is NaN
    most = max(map(len, near))
    found = np.stack([c[np.minimum(np.arange(most), len(c) - 1)] for c in near])
    return found[..., 0], found[..., 1]


def _of_cells(points: Array, i: Array, j: Array, x: Array, y: Array, z: Array, height: Array) -> Nearest:
    """Signed distances and normals of points, given cells i, j (n, m) and the height of the ground below each."""

    def corner(a: int, b: int) -> Array:
        return np.stack([x[i + a], y[j + b], z[i + a, j + b]], -1)

    low, high = corner(0, 0), corner(1, 1)
    A = np.concatenate([low, low], 1)
    B, C = np.concatenate([corner(1, 0), high], 1), np.concatenate([high, corner(0, 1)], 1)
    away, faces, inside = from_triangles(points[:, None], A, B, C)
    squares = (away**2).sum(-1)
    rows, best = np.arange(len(points)), squares.argmin(-1)
    distance, away, faces = np.sqrt(squares[rows, best]), away[rows, best], faces[rows, best]
    sign = np.where(points[:, 2] < height, -1.0, 1.0)
    edge = ~inside[rows, best] & (distance > 1e-9)  # closer, the face's own normal is the more exact one
    normal = np.where(edge[:, None], sign[:, None] * away / np.where(edge, distance, 1.0)[:, None], faces)
    return Nearest(sign * distance, normal)


def from_triangles(p: Array, A: Array, B: Array, C: Array) -> tuple[Array, Array, Array]:
    """Vectors to points p from the nearest points of triangles ABC, which are all (..., 3) and broadcast.

    Also the triangles' unit normals, and (...) whether the nearest point is inside.
    """
    normal = np.cross(B - A, C - A)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    dot = lambda a, b: (a * b).sum(-1)  # noqa: E731
    inside, away, least = True, np.zeros(1), np.inf
    for a, b in ((A, B), (B, C), (C, A)):
        along, start = b - a, p - a
        inside = inside & (dot(np.cross(along, start), normal) >= 0)
        share = np.clip(dot(start, along) / dot(along, along), 0.0, 1.0)
        edge = start - share[..., None] * along
        square = dot(edge, edge)
        away, least = np.where((square >= least)[..., None], away, edge), np.minimum(square, least)
    away = np.where(inside[..., None], dot(p - A, normal)[..., None] * normal, away)  # type: ignore[index]
    return away, normal, inside  # type: ignore[return-value]


def axes(n: Array) -> Array:
    """Rows (n, 3, 3): two tangents and the normal, of normals (n, 3)."""
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n), axis=-1)])
    t /= np.linalg.norm(t, axis=-1, keepdims=True)
    return np.stack([t, np.cross(n, t), n], axis=1)
