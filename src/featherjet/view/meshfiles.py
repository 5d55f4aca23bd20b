"""Mesh files (STL, OBJ, DAE, glTF and what else trimesh reads) as meshes with a colour each."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import MissingExtra, ModelError
from .recording import pillow
from .shape import Colour

PACKAGES = {"collada": "pycollada", "PIL": "pillow"}  # what trimesh imports, and how to install it
MOST_PIXELS = 1024  # of a texture's side
Part = tuple[Any, Colour | None]


@lru_cache(maxsize=256)
def read_mesh(path: Path) -> tuple[tuple[Any, Colour | None, bool], ...]:
    """The parts of a mesh file [m]: mesh, colour (None: its own texture or colours), whether the file gives its looks.

    A package that is missing raises a MissingExtra that names it; a broken file, a ModelError.
    """
    import trimesh

    try:
        scene: Any = trimesh.load(path, force="scene")
    except ImportError as error:
        package = PACKAGES.get(error.name or "", error.name or str(error))
        raise MissingExtra(f"reading {path.name}", package, "viewer") from None
    except Exception as error:  # trimesh's readers raise whatever their parsers do
        raise ModelError(f"{path}: cannot be read as a mesh ({error or type(error).__name__})") from None
    parts = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
    if not parts:
        raise ModelError(f"{path}: contains no triangles")
    for mesh in parts:
        mesh.apply_scale(_metres(mesh))
    return tuple((mesh, *_look(mesh)) for mesh in parts)


def _metres(mesh: Any) -> float:
    """The unit of a COLLADA file in metres; other formats have none."""
    unit = str(mesh.metadata.get("units", ""))
    return float(unit.split(" * ")[0]) if unit.endswith(" * meters") else 1.0


def _look(mesh: Any) -> tuple[Colour | None, bool]:
    """The colour of a mesh, None if it has a texture or several; and whether its file gives one at all."""
    visual = mesh.visual
    if visual.kind == "texture":
        if picture(visual.material) is not None and visual.uv is not None:
            return None, True
        return _colour(visual.material.main_color), True
    if visual.kind in ("vertex", "face"):
        colours = np.unique(np.asarray(visual.face_colors), axis=0)
        return (_colour(colours[0]), True) if len(colours) == 1 else (None, True)
    return (0.7, 0.7, 0.72, 1.0), False


def picture(material: Any) -> Any:
    """The texture of a material, or None."""
    return getattr(material, "baseColorTexture", None) or getattr(material, "image", None)


_glbs: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def glb(mesh: Any) -> bytes:
    """A mesh with its texture as binary glTF, as browsers read it; the texture is made small enough to send."""
    if mesh not in _glbs:
        material: Any = getattr(mesh.visual, "material", None)
        sent = mesh.copy()
        if (image := picture(material)) is not None:
            sent.visual.material = material.to_pbr() if hasattr(material, "to_pbr") else material
            sent.visual.material.baseColorTexture = _small(image)
        _glbs[mesh] = sent.export(file_type="glb")
    return _glbs[mesh]


def _small(image: Any) -> Any:
    """A picture of at most MOST_PIXELS a side, as a JPEG if it is opaque."""
    image = image.copy()
    image.thumbnail((MOST_PIXELS, MOST_PIXELS))
    if image.mode in ("RGBA", "LA", "PA") and image.getchannel("A").getextrema()[0] < 255:
        return image
    data = BytesIO()
    image.convert("RGB").save(data, format="JPEG", quality=90)
    return pillow().open(data)


def _colour(rgba: Any) -> Colour:
    r, g, b, a = (float(x) / 255 for x in rgba)
    return r, g, b, a


def crisp(mesh: Any) -> Any:
    """A mesh whose flat sides along its axes meet at edges, however smoothly browsers shade it."""
    import trimesh

    side = np.where(np.abs(mesh.face_normals) > 0.999, mesh.face_normals, 0).round() @ [1, 2, 3]
    corners = np.stack([mesh.faces.ravel(), np.repeat(side, 3).astype(int)], -1)
    kept, faces = np.unique(corners, axis=0, return_inverse=True)
    return trimesh.Trimesh(mesh.vertices[kept[:, 0]], faces.reshape(-1, 3), process=False)


def locate(filename: str, robot: Path) -> Path | None:
    """A file that a robot's file refers to, or None; package:// is searched for in all folders above."""
    name = unquote(filename.split("://", 1)[-1]) if "://" in filename else filename
    folders = robot.resolve().parents
    places = [Path(name)] if Path(name).is_absolute() else [folder / name for folder in folders]
    if filename.startswith("package://"):  # any folder above may be the package
        inside = Path(*Path(name).parts[1:])
        places += [folder / inside for folder in folders]
    return next((p for p in places if p.is_file()), None)
