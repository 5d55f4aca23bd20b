"""What a robot without a file looks like: rounded bodies as large as their inertia says, and hubs at its hinges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.model import WORLD, Array, Model
from .meshfiles import crisp
from .shape import Colour, Shape

LIMB: Colour = (0.38, 0.52, 0.69, 1.0)
BASE: Colour = (0.47, 0.47, 0.49, 1.0)
HUB: Colour = (0.17, 0.19, 0.23, 1.0)
THIN, THICK = 0.03, 0.1  # least and largest radius of a body's edges, relative to the robot's longest link
WIDE, FAT = (
    0.35,
    0.25,
)  # half of a body's box at most, relative to its joints' and to the longest distance: inertias lie
WIDER, OUT = 0.9, 0.2  # a hub's radius, and how far it stands out, relative to the radius of its body's edges
STEM = 0.8  # a base's radius, relative to that of its robot's edges
FINEST, TRIANGLES = 3, 1_500_000  # subdivisions of spheres, as many as keep all robots below so many triangles


def body_shapes(model: Model, copies: int = 1) -> list[Shape]:
    """For each body a rounded hull of its joints and of the box that has its inertia; for each hinge a hub.

    A root that is not at the world's origin stands on a base. copies: of the robot; those of many are coarser.
    """
    fine = next((k for k in range(FINEST, 1, -1) if 20 * 4**k * model.njoints * copies < TRIANGLES), 1)
    longest = max([0.1, *(float(np.linalg.norm(j.placement[:3, 3])) for j in model.joints)])
    found, radii = [], []
    for i, joint in enumerate(model.joints):
        points, axes, radius = _body(model, i, longest)
        found.append(Shape(i, np.eye(4), hull(points, axes, radius, fine), LIMB))
        radii.append(radius)
        along = np.abs(points @ joint.axis).max() > 0.7 * np.linalg.norm(points, axis=1).max()
        if joint.kind.has_axis and not joint.kind.slides and not along:
            parent = radius if joint.parent == WORLD else radii[joint.parent]
            found.append(_hub(found[-1], joint.axis, radius, max(radius, parent), 6 * 2**fine))
    for joint, radius in zip(model.joints, radii, strict=True):
        start = joint.placement[:3, 3]
        if joint.parent == WORLD and np.linalg.norm(start) > 0.02 * longest:
            found.append(
                Shape(WORLD, np.eye(4), hull(np.stack([0 * start, start]), np.eye(3), STEM * radius, fine), BASE)
            )
    return found


def _body(model: Model, i: int, longest: float) -> tuple[Array, Array, float]:
    """Points (n, 3) within a body, the axes (3, 3) of its box, and the radius of its edges."""
    body = model.joints[i].body
    ends = [j.placement[:3, 3] for j in model.joints if j.parent == i]
    if not ends:  # at the end of a limb, to the farthest frame
        marks = [np.zeros(3), *(f.placement[:3, 3] for f in model.frames if f.joint == i)]
        ends = [max(marks, key=lambda p: float(np.linalg.norm(p)))]
    points, axes, half = [np.zeros(3), *ends], np.eye(3), np.zeros(3)
    if body.mass > 0:
        moments, axes = np.linalg.eigh((body.inertia + body.inertia.T) / 2)
        squares = 1.5 / body.mass * (moments.sum() - 2 * moments)  # half sides of I_x = m (b^2 + c^2) / 3
        most = max(WIDE * float(np.linalg.norm(np.ptp([*points, body.com], axis=0))), FAT * longest)
        half = np.minimum(np.sqrt(np.maximum(squares, 0)), most)
    radius = float(np.clip(half.min(), THIN * longest, THICK * longest))
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), -1).reshape(-1, 3)
    corners = body.com + signs * np.maximum(half - radius, 0) @ axes.T
    return np.concatenate([points, corners]) if body.mass > 0 else np.stack(points), axes, radius


def hull(points: Array, axes: Array, radius: float, fine: int) -> Any:
    """The convex hull of balls around points (n, 3): what lies farthest in each direction of a sphere.

    The sphere's symmetry planes are turned to `axes` (3, 3), so that flat sides across them come out flat.
    """
    import trimesh

    sphere = trimesh.creation.icosphere(subdivisions=fine)
    directions = np.asarray(sphere.vertices) @ axes.T
    sphere.vertices = points[np.argmax(directions @ points.T, 1)] + radius * directions
    if np.linalg.det(axes) < 0:
        sphere.invert()
    return sphere


def _hub(body: Shape, axis: Array, own: float, radius: float, sections: int) -> Shape:
    """A cylinder about a hinge, which stands out on both sides of its body and of its parent.

    own, radius: the radius of the body's edges, and the larger one of its own and its parent's.
    """
    import trimesh

    T = np.eye(4)
    T[:3, :3] = turned_to(axis)
    x, y, z = (body.mesh.vertices @ T[:3, :3]).T
    near = z[np.hypot(x, y) < WIDER * own]
    low, high = (float(near.min()), float(near.max())) if len(near) else (-own, own)
    T[:3, 3] = (low + high) / 2 * T[:3, 2]
    mesh = trimesh.creation.cylinder(
        radius=WIDER * radius, height=high - low + 2 * (radius - own + OUT * radius), sections=sections
    )
    return Shape(body.joint, T, crisp(mesh), HUB)


def turned_to(direction: Array) -> Array:
    """A rotation (3, 3) that takes the z axis to a direction (3,)."""
    length = float(np.linalg.norm(direction))
    z = direction / length if length > 1e-12 else np.array([0.0, 0.0, 1.0])
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], -1)
