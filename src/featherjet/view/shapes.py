"""A robot's looks: the meshes of its URDF, and capsules along the limbs that have none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from ..errors import FeatherjetError, ModelError
from ..model.io.urdf import origin
from ..model.io.xmltree import Element, parse, read_bytes
from ..model.model import WORLD, Array, Model

SLENDER = 0.12  # radius of a capsule relative to its length


class Capsule(NamedTuple):
    """A capsule on a joint's body (or the world), from `start` to `end` (3,) in the joint's frame; radius [m]."""

    joint: int
    start: Array
    end: Array
    radius: float


class Mesh(NamedTuple):
    """A trimesh.Trimesh on a joint's body, placed (4, 4) in the joint's frame."""

    joint: int
    placement: Array
    mesh: Any


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


def meshes(model: Model, urdf: Path) -> list[Mesh]:
    """The visual shapes of a URDF, or its collision shapes where those cannot be read; empty for other files."""
    try:
        robot = parse(read_bytes(urdf), str(urdf))
    except ModelError:
        return []
    found = []
    for link in robot.all("link"):
        frame = next((f for f in model.frames if f.name == link.attributes.get("name")), None)
        if frame is None or frame.joint == WORLD:
            continue
        for tag in ("visual", "collision"):
            here = [m for shape in link.all(tag) for m in _solids(shape, urdf)]
            if here:
                found += [Mesh(frame.joint, frame.placement @ T, mesh) for T, mesh in here]
                break
    return found


def _solids(shape: Element, urdf: Path) -> Iterator[tuple[Array, Any]]:
    """The placement (4, 4) and mesh of one <visual> or <collision>, if it can be read."""
    import trimesh

    geometry = shape.child("geometry")
    try:
        for child in () if geometry is None else geometry.children:
            if child.tag == "mesh":
                path = locate(child.text("filename"), urdf)
                if path is None:
                    continue
                mesh = trimesh.load(path, force="mesh")
                mesh.apply_scale(child.vector("scale", [1.0] * 3))  # type: ignore[union-attr]
            elif child.tag == "box":
                mesh = trimesh.creation.box(child.vector("size"))
            elif child.tag == "sphere":
                mesh = trimesh.creation.icosphere(radius=child.number("radius"))
            elif child.tag == "cylinder":
                mesh = trimesh.creation.cylinder(child.number("radius"), child.number("length"))
            else:
                continue
            yield origin(shape), mesh
    except (FeatherjetError, ValueError, OSError, ImportError, KeyError, AttributeError, NotImplementedError):
        return  # skip a shape that cannot be read: the motion can be shown without it


def locate(filename: str, urdf: Path) -> Path | None:
    """The file of a mesh, or None; package:// is searched for beside the URDF and in all folders above it."""
    name = unquote(filename.split("://", 1)[-1]) if "://" in filename else filename
    places = [Path(name)] if Path(name).is_absolute() else [folder / name for folder in urdf.resolve().parents]
    if filename.startswith("package://"):  # any folder above may be the package
        inside = Path(*Path(name).parts[1:])
        places += [folder / inside for folder in urdf.resolve().parents]
    return next((p for p in places if p.is_file()), None)
