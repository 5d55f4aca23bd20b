"""The shapes of a URDF: boxes, cylinders, spheres, capsules and meshes, with materials and textures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError
from ..model.io.urdf import origin
from ..model.io.xmltree import Element, parse, read_bytes
from ..model.model import Array, Model
from .meshfiles import Part, crisp, locate, read_mesh
from .shape import Colour, Layer, Shape

PLAIN: Colour = (0.7, 0.7, 0.72, 1.0)
LAYERS: tuple[Layer, ...] = ("visual", "collision")


def urdf_shapes(model: Model, urdf: Path, lost: list[str]) -> list[Shape]:
    """All shapes of a URDF's links that the model has; meshes that are missing or broken are appended to `lost`."""
    robot = parse(read_bytes(urdf), str(urdf))
    frames = {f.name: f for f in model.frames}
    materials = {m.attributes.get("name", ""): m for m in robot.all("material")}
    found = []
    for link in robot.all("link"):
        name = link.attributes.get("name", "")
        frame = frames.get(f"{name}_link") or frames.get(name)
        if frame is None:
            continue
        for layer in LAYERS:
            for shape in link.all(layer):
                T = frame.placement @ origin(shape)
                found += [Shape(frame.joint, T, *part, layer) for part in _parts(shape, urdf, materials, lost)]
    return found


def _parts(shape: Element, urdf: Path, materials: dict[str, Element], lost: list[str]) -> list[Part]:
    """The meshes of one <visual> or <collision>, each with its colour."""
    geometry = shape.child("geometry")
    try:
        found = [part for child in (geometry.children if geometry else ()) for part in _solid(child, urdf)]
    except ModelError as error:
        lost.append(str(error))
        return []
    material = _material(shape, materials)
    return [(mesh, own) if named else _painted(mesh, own, material, urdf) for mesh, own, named in found]


def _solid(child: Element, urdf: Path) -> Iterator[tuple[Any, Colour | None, bool]]:
    """The meshes of a child of <geometry>: mesh, colour, whether that is the mesh file's own."""
    import trimesh

    create: Any = trimesh.creation
    if child.tag == "mesh":
        path = locate(child.text("filename"), urdf)
        if path is None:
            raise ModelError(child.text("filename"))
        scale = np.array(child.vector("scale", [1.0] * 3))
        for mesh, colour, named in read_mesh(path):
            yield _scaled(mesh, scale), colour, named
    elif child.tag == "box":
        yield crisp(create.box(child.vector("size"))), PLAIN, False
    elif child.tag == "sphere":
        yield create.icosphere(subdivisions=2, radius=child.number("radius")), PLAIN, False
    elif child.tag in ("cylinder", "capsule"):
        radius, length = child.number("radius"), child.number("length")
        made = create.capsule(radius=radius, height=length)
        if child.tag == "cylinder":
            made = crisp(create.cylinder(radius=radius, height=length))
        yield made, PLAIN, False


def _scaled(mesh: Any, scale: Array) -> Any:
    if (scale == 1).all():
        return mesh
    copy = mesh.copy()
    copy.apply_scale(scale)
    return copy


def _material(shape: Element, materials: dict[str, Element]) -> Element | None:
    """The <material> of a shape: its own, or the robot's of that name."""
    own = shape.child("material")
    if own is None or own.children:
        return own
    return materials.get(own.attributes.get("name", ""))


def _painted(mesh: Any, colour: Colour | None, material: Element | None, urdf: Path) -> Part:
    """A mesh that says nothing of its looks in the colour or texture of the URDF."""
    if material is None:
        return mesh, colour
    texture, rgba = material.child("texture"), material.child("color")
    uv = getattr(mesh.visual, "uv", None)
    if texture is not None and uv is not None and (path := locate(texture.text("filename"), urdf)):
        return textured(mesh, uv, path), None
    if rgba is not None:
        r, g, b, a = (float(x) for x in [*rgba.text("rgba").split(), "1"][:4])
        return mesh, (r, g, b, a)
    return mesh, colour


def textured(mesh: Any, uv: Array, picture: Any) -> Any:
    """A copy of a mesh with texture coordinates uv (n, 2) and a picture: a path, or an image of Pillow."""
    from PIL import Image
    from trimesh.visual import TextureVisuals

    copy = mesh.copy()
    copy.visual = TextureVisuals(uv=uv, image=Image.open(picture) if isinstance(picture, Path) else picture)
    return copy
