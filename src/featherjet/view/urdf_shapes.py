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
LARGEST = 1e6  # m
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
        layers: dict[Layer, list[Shape]] = {layer: [] for layer in LAYERS}
        for layer in LAYERS:
            for shape in link.all(layer):
                try:
                    T = frame.placement @ origin(shape)
                    parts = _parts(shape, urdf, materials, lost)
                except ModelError as error:
                    lost.append(str(error))
                    continue
                layers[layer] += [Shape(frame.joint, T, *part, layer) for part in parts]
        if link.all("visual") and not layers["visual"]:  # all were lost
            layers["visual"] = [s._replace(layer="visual") for s in layers["collision"]]
        found += [s for layer in LAYERS for s in layers[layer]]
    return found


def _parts(shape: Element, urdf: Path, materials: dict[str, Element], lost: list[str]) -> list[Part]:
    """The meshes of one <visual> or <collision>, each with its colour; what is wrong with that is added to `lost`."""
    geometry = shape.child("geometry")
    found = [part for child in (geometry.children if geometry else ()) for part in _solid(child, urdf)]
    material, painted = _material(shape, materials), []
    for mesh, own, named in found:
        try:
            painted.append((mesh, own) if named else _painted(mesh, own, material))
        except ModelError as error:
            painted.append((mesh, own))
            lost.append(str(error))
    return painted


def _solid(child: Element, urdf: Path) -> Iterator[tuple[Any, Colour | None, bool]]:
    """The meshes of a child of <geometry>: mesh, colour, whether that is the mesh file's own."""
    import trimesh

    create: Any = trimesh.creation
    if child.tag == "mesh":
        path = locate(child.text("filename"), urdf)
        if path is None:
            raise child.error(f"there is no file {child.text('filename')}")
        scale = np.array(child.vector("scale", [1.0] * 3))
        if not scale.all() or np.abs(scale).max() > LARGEST:
            raise child.error(f"scale={child.text('scale')!r}: must not be zero, nor above {LARGEST:g}")
        for mesh, colour, named in read_mesh(path):
            yield _scaled(mesh, scale), colour, named
    elif child.tag == "box":
        yield crisp(create.box(_sizes(child, "size", child.vector("size")))), PLAIN, False
    elif child.tag == "sphere":
        (radius,) = _sizes(child, "radius", [child.number("radius")])
        yield create.icosphere(subdivisions=2, radius=radius), PLAIN, False
    elif child.tag in ("cylinder", "capsule"):
        radius, length = (_sizes(child, name, [child.number(name)])[0] for name in ("radius", "length"))
        made = create.capsule(radius=radius, height=length)
        if child.tag == "cylinder":
            made = crisp(create.cylinder(radius=radius, height=length))
        yield made, PLAIN, False


def _sizes(child: Element, attribute: str, values: list[float]) -> list[float]:
    """Sizes [m], if there can be something of this size."""
    if min(values) <= 0 or max(values) > LARGEST:
        raise child.error(f"{attribute}={child.text(attribute)!r}: must be positive, and at most {LARGEST:g} m")
    return values


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


def _painted(mesh: Any, colour: Colour | None, material: Element | None) -> Part:
    """A mesh that says nothing of its looks in the colour of the URDF."""
    if material is None:
        return mesh, colour
    rgba = material.child("color")
    if rgba is not None:
        numbers = rgba.numbers("rgba", (3, 4))
        if min(numbers) < 0 or max(numbers) > 1:
            raise rgba.error(f"rgba={rgba.text('rgba')!r}: must be from 0 to 1")
        r, g, b, a = [*numbers, 1.0][:4]
        return mesh, (r, g, b, a)
    return mesh, colour


def textured(mesh: Any, uv: Array, picture: Any) -> Any:
    """A copy of a mesh with texture coordinates uv (n, 2) and a picture of Pillow."""
    from trimesh.visual import TextureVisuals

    copy = mesh.copy()
    copy.visual = TextureVisuals(uv=uv, image=picture)
    return copy
