"""Distances, signs and normals of terrains, against all of their triangles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import featherjet as fj
from featherjet.errors import InputError

FAR = 20.0  # m


def triangles(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """All triangles (n, 3, 3) of a height field, and those of the level ground around it."""
    x, y = (np.array([g[0] - FAR, *g, g[-1] + FAR]) for g in (x, y))
    z = np.pad(z, 1, mode="edge")
    found = []
    for i in range(len(x) - 1):
        for j in range(len(y) - 1):
            a, b, c, d = ([x[i + k], y[j + m], z[i + k, j + m]] for k, m in ((0, 0), (1, 0), (0, 1), (1, 1)))
            found += [[a, b, d], [a, d, c]]
    return np.array(found)


def brute_force(p: np.ndarray, corners: np.ndarray) -> tuple[float, np.ndarray]:
    """The signed distance of a point and the nearest point: the best of all faces, edges and corners."""
    best, nearest = np.inf, p
    for triangle in corners:
        for part in map(np.array, (part for k in (1, 2, 3) for part in combinations(triangle, k))):
            sides = (part[1:] - part[0]).T
            weights = np.linalg.lstsq(sides, p - part[0], rcond=None)[0] if len(part) > 1 else np.zeros(0)
            point = part[0] + sides @ weights
            if (weights >= 0).all() and weights.sum() <= 1 and (distance := np.linalg.norm(p - point)) < best:
                best, nearest = distance, point
    for a, b, c in corners:  # the one above or below it
        s, t = np.linalg.solve(np.array([b - a, c - a]).T[:2], p[:2] - a[:2])
        if min(s, t) >= 0 and s + t <= 1:
            return np.copysign(best, p[2] - (a + s * (b - a) + t * (c - a))[2]), nearest
    raise AssertionError("there is ground everywhere")


def field(rng: np.random.Generator) -> tuple[fj.HeightField, np.ndarray]:
    """A rough field of uneven cells, and its triangles."""
    x, y = np.cumsum(rng.uniform(0.02, 0.3, 4)), np.cumsum(rng.uniform(0.02, 0.3, 3))
    z = rng.uniform(-0.4, 0.4, (4, 3))
    return fj.HeightField(x, y, z), triangles(x, y, z)


@pytest.mark.parametrize("seed", range(4))
def test_height_fields_are_their_triangles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    terrain, corners = field(rng)
    points = rng.uniform([-0.3, -0.3, -1.0], [1.0, 0.9, 1.0], (20, 3))
    points[:4, 2] *= 8  # far above and below
    distance, normal = terrain.nearest(points)
    for p, found, n in zip(points, distance, normal, strict=True):
        true, nearest = brute_force(p, corners)
        assert abs(found - true) < 1e-9
        assert np.abs(n - (p - nearest) / true).max() < 1e-9


def test_a_saddle_is_two_triangles() -> None:
    """Where a bilinear patch would be half as high as the ridge, their common edge is a valley."""
    terrain = fj.HeightField([0, 1], [0, 1], [[0, 1], [1, 0]])
    distance, normal = terrain.nearest(np.array([[0.5, 0.5, 0.1], [0.5, 0.5, -0.1], [0.75, 0.25, 0.5]]))
    assert np.abs(distance - np.array([0.1 / np.sqrt(3), -0.1, 0.0])).max() < 1e-9
    assert np.abs(normal[2] - np.array([-1, 1, 1]) / np.sqrt(3)).max() < 1e-9


def test_many_fine_cells_below_a_high_point() -> None:
    """More cells than are searched one by one: the nearest is a peak, not the ground straight below."""
    x = np.linspace(-1, 1, 101)
    z = np.zeros((101, 101))
    z[80, 50] = 0.9
    distance, normal = fj.HeightField(x, x, z).nearest(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, np.nan]]))
    away = np.array([-x[80], 0.0, 0.1])
    assert abs(distance[0] - np.linalg.norm(away)) < 1e-9
    assert np.abs(normal[0] - away / np.linalg.norm(away)).max() < 1e-9
    assert np.isnan(distance[1])


class Tilted:
    """A terrain of a user's own, which returns a tuple."""

    def __init__(self, *found: object) -> None:
        self.found = found

    def nearest(self, points: np.ndarray) -> object:
        return self.found or (points[:, 2], np.tile([0.0, 0.0, 1.0], (len(points), 1)))


def test_terrains_of_ones_own() -> None:
    robot = fj.load("arm")
    q = robot.neutral()
    plain, own = (fj.Ground(robot, ["tool"], terrain=t) for t in (fj.Plane(), Tilted()))  # type: ignore[arg-type]
    assert plain.gap(robot, q) == own.gap(robot, q)
    motions = [robot.simulate(q, np.zeros(7), contacts=g, dt=1e-3, duration=0.01) for g in (plain, own)]
    assert (motions[0].q == motions[1].q).all()
    for found in ((1.0,), (np.zeros(2), np.zeros(3)), ("a", "b"), (np.zeros(1), np.zeros((1, 3)))):
        with pytest.raises(InputError, match=r"distances \(n,\) and normals \(n, 3\)"):
            fj.Ground(robot, ["tool"], terrain=Tilted(*found))  # type: ignore[arg-type]
