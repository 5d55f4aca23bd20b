"""Mesh files as meshes with a colour each; they may come from anywhere, and so are limited in what they take."""

from __future__ import annotations

import stat
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
FORMATS = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".off")  # none of them is compressed
MOST_BYTES = 256 << 20  # of a file
MOST_FACES, MOST_PARTS = 5_000_000, 10_000  # of a scene, copies included
MOST_PIXELS = 1024  # of a texture's side, as browsers get it
LARGEST_TEXTURE = 8192**2  # pixels that are unpacked
TEXTURES = ("image", "baseColorTexture", "emissiveTexture", "normalTexture", "occlusionTexture",
            "metallicRoughnessTexture")  # fmt: skip
Part = tuple[Any, Colour | None]


@lru_cache(maxsize=256)
def read_mesh(path: Path) -> tuple[tuple[Any, Colour | None, bool], ...]:
    """The parts of a mesh file [m]: mesh, colour (None: its own texture or colours), whether the file gives its looks.

    A package that is missing raises a MissingExtra that names it; a broken file, a ModelError.
    """
    import trimesh

    if path.suffix.lower() not in FORMATS:
        raise ModelError(f"{path}: meshes are read from {', '.join(FORMATS)} files; save it as one of these")
    if path.stat().st_size > MOST_BYTES:
        raise ModelError(f"{path}: has more than {MOST_BYTES >> 20} MB; make it coarser")
    try:
        scene: Any = trimesh.load(path, force="scene", resolver=beside(path))
        _refuse_large(scene)
        for mesh in scene.geometry.values():
            _shrink_textures(getattr(mesh.visual, "material", None))
        parts = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
        for mesh in parts:
            if mesh.faces.min() < 0 or mesh.faces.max() >= len(mesh.vertices):
                raise ModelError("a triangle has a vertex that does not exist")
            if not np.isfinite(mesh.vertices).all():
                raise ModelError("some vertices are not finite")
            mesh.apply_scale(_metres(mesh))
        found = tuple((mesh, *_look(mesh)) for mesh in parts)
        for mesh, colour, _ in found:
            if colour is None:
                glb(mesh)  # as it will be drawn, so that what cannot be is told here
    except ImportError as error:
        package = PACKAGES.get(error.name or "", error.name or str(error))
        raise MissingExtra(f"reading {path.name}", package, "viewer") from None
    except Exception as error:  # trimesh's readers raise whatever their parsers do
        raise ModelError(f"{path}: cannot be read as a mesh ({error or type(error).__name__})") from None
    if not found:
        raise ModelError(f"{path}: contains no triangles{_why_empty(path)}")
    return found


def beside(path: Path) -> Any:
    """What finds materials and textures for trimesh: regular files of a limited size, in a mesh's folder or below."""
    from trimesh.resolvers import FilePathResolver

    class Resolver(FilePathResolver):
        def get(self, name: str) -> bytes:
            place = self.absolute(name)
            state = place.stat()
            if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_BYTES:
                raise ModelError(f"{name}: is no regular file of at most {MOST_BYTES >> 20} MB")
            return place.read_bytes()

    return Resolver(str(path))


def _refuse_large(scene: Any) -> None:
    """Raise for more faces than browsers draw, with each copy that the scene makes of a mesh."""
    copies = [scene.geometry[scene.graph[node][1]] for node in scene.graph.nodes_geometry]
    faces = sum(len(getattr(mesh, "faces", ())) for mesh in copies)
    if len(copies) > MOST_PARTS or faces > MOST_FACES:
        raise ModelError(
            f"{len(copies)} parts with {faces} faces are more than {MOST_PARTS} with {MOST_FACES}; make it coarser"
        )


def _shrink_textures(material: Any) -> None:
    """Replace a material's textures by what browsers get of them, so that no large picture stays in memory."""
    for name in TEXTURES:
        if (image := getattr(material, name, None)) is not None:
            setattr(material, name, small(image))


def _why_empty(path: Path) -> str:
    """What trimesh passed over when it found nothing in a COLLADA file."""
    if path.suffix.lower() != ".dae":
        return ""
    from collada import Collada
    from collada.common import DaeError

    errors = Collada(str(path), ignore=[DaeError]).errors
    return f" that can be drawn ({'; '.join(str(e) for e in errors[:3])})" if errors else ""


def _metres(mesh: Any) -> float:
    """The unit of a COLLADA file in metres; other formats have none."""
    unit = str(mesh.metadata.get("units", ""))
    return float(unit.split(" * ")[0]) if unit.endswith(" * meters") else 1.0


def _look(mesh: Any) -> tuple[Colour | None, bool]:
    """The colour of a mesh, None if it has a texture or several; and whether its file gives one at all."""
    visual = mesh.visual
    if visual.kind == "texture":
        if picture(visual.material) is not None and visual.uv is not None:
            if np.shape(visual.uv) != (len(mesh.vertices), 2) or not np.isfinite(visual.uv).all():
                raise ModelError("its texture coordinates are not a finite pair for each vertex")
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
            sent.visual.material.baseColorTexture = small(image)
        _glbs[mesh] = sent.export(file_type="glb")
    return _glbs[mesh]


def small(image: Any) -> Any:
    """A picture of at most MOST_PIXELS a side, as a JPEG if it is opaque; one too large to unpack is refused."""
    width, height = image.size
    if width * height > LARGEST_TEXTURE:
        raise ModelError(f"its texture has {width} x {height} pixels; make it smaller")
    if getattr(image, "format", None) == "JPEG" and max(image.size) <= MOST_PIXELS:
        image.load()
        return image
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
    try:
        return next((p for p in places if p.is_file()), None)
    except OSError:  # such as a name that is too long
        return None
