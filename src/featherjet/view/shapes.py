"""A robot's looks: the shapes of the file it came from, and capsules along the limbs that have none."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import ModelWarning
from ..model.io.xmltree import read_bytes, root_tag
from ..model.model import WORLD, Array, Model
from .mjcf_shapes import mjcf_shapes
from .shape import Colour, Shape
from .urdf_shapes import urdf_shapes

SLENDER = 0.12  # radius of a capsule relative to its length
NAMED = 3  # files that a warning names


class Capsule(NamedTuple):
    """A capsule on a joint's body (or the world), from `start` to `end` (3,) in the joint's frame; radius [m]."""

    joint: int
    start: Array
    end: Array
    radius: float


def shapes(model: Model, file: Path | None = None) -> list[Shape]:
    """The visual and collision shapes of a URDF or MJCF file, by default the one that the model came from.

    Bodies without visual shapes look like their collision shapes. A warning names meshes that cannot be found or read.
    """
    file = file or (Path(model.source) if model.source else None)
    if file is None or not file.is_file():
        return []
    lost: list[str] = []
    if root_tag(read_bytes(file)) == "mujoco":
        found = mjcf_shapes(model, file)
    else:
        found = urdf_shapes(model, file, lost)
    if lost:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        warnings.warn(
            f"{file}: meshes are missing or broken: {', '.join(lost[:NAMED])}{more}", ModelWarning, stacklevel=3
        )
    seen = {shape.joint for shape in found if shape.layer == "visual"}
    return found + [s._replace(layer="visual") for s in found if s.joint not in seen]


def capsules(model: Model) -> list[Capsule]:
    """Capsules from every joint to its children; at the end of a limb, to the farthest frame or past the mass."""
    tips: dict[int, list[Array]] = {i: [] for i in range(model.njoints)}
    roots = []
    for joint in model.joints:
        (roots if joint.parent == WORLD else tips[joint.parent]).append(joint.placement[:3, 3])
    size = max([0.1, *(float(np.linalg.norm(p)) for ps in tips.values() for p in ps)])
    found = [Capsule(WORLD, np.zeros(3), p, 0.04 * size) for p in roots if np.linalg.norm(p) > 0.02 * size]
    for i, ends in tips.items():
        if not ends:
            marks = [f.placement[:3, 3] for f in model.frames if f.joint == i]
            marks.append(2 * model.joints[i].body.com)
            ends = [max(marks, key=lambda p: float(np.linalg.norm(p)))]
        for end in ends:
            length = float(np.linalg.norm(end))
            radius = float(np.clip(SLENDER * length, 0.03 * size, 0.12 * size))
            found.append(Capsule(i, np.zeros(3), end, radius))
    return found


def capsule_shape(c: Capsule, colour: Colour) -> Shape:
    """A capsule as a shape."""
    import trimesh

    along = c.end - c.start
    length = float(np.linalg.norm(along))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turned_to(along), (c.start + c.end) / 2
    mesh = trimesh.creation.capsule(height=length, radius=c.radius, count=[16, 16])  # about its middle
    return Shape(c.joint, T, mesh, colour)


def turned_to(direction: Array) -> Array:
    """A rotation (3, 3) that takes the z axis to a direction (3,)."""
    length = float(np.linalg.norm(direction))
    z = direction / length if length > 1e-12 else np.array([0.0, 0.0, 1.0])
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], -1)
