"""The shapes of an MJCF file, as MuJoCo compiled them: primitives and meshes, with materials and textures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..model.builder import transform
from ..model.io.mjcf import body_frames, compile_file, rotation
from ..model.io.urdf import ROOT_JOINT
from ..model.model import WORLD, Array, Model
from .meshfiles import crisp
from .shape import Colour, Shape
from .urdf_shapes import textured

SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(2, 8)  # mjtGeom
SHOWN_GROUPS = (0, 1, 2)  # MuJoCo's own viewer hides the others, where collision shapes are by custom
PICTURE = 0  # mjtTexture: a flat picture


def mjcf_shapes(model: Model, file: Path) -> list[Shape]:
    """All shapes of a file's bodies but planes and height fields, which are ground.

    Those of groups 0 to 2 are visual, those that collide are collision shapes; many are both.
    """
    mj = compile_file(file)
    names, frames = body_frames(mj, model.joint_names), {f.name: f for f in model.frames}
    ground = 0 if ROOT_JOINT in model.joint_names else WORLD  # what carries the file's world
    found = []
    for g in range(mj.ngeom):
        body = int(mj.geom_bodyid[g])
        joint, T = (ground, np.eye(4)) if body == 0 else (frames[names[body]].joint, frames[names[body]].placement)
        mesh = _solid(mj, g)
        if mesh is None:
            continue
        T = T @ transform(rotation(mj.geom_quat[g]), mj.geom_pos[g])
        shape = Shape(joint, T, *_painted(mj, g, mesh))
        if mj.geom_group[g] in SHOWN_GROUPS:
            found.append(shape)
        if mj.geom_contype[g] or mj.geom_conaffinity[g]:
            found.append(shape._replace(layer="collision"))
    return found


def _solid(mj: Any, g: int) -> Any:
    """The mesh of a geom, or None."""
    import trimesh

    kind, (a, b, c), create = int(mj.geom_type[g]), mj.geom_size[g].tolist(), trimesh.creation
    if kind == SPHERE:
        return create.icosphere(subdivisions=2, radius=a)
    if kind == CAPSULE:
        return create.capsule(radius=a, height=2 * b, count=[16, 16])
    if kind == ELLIPSOID:
        ball = create.icosphere(subdivisions=2)
        ball.apply_scale([a, b, c])
        return ball
    if kind == CYLINDER:
        return crisp(create.cylinder(radius=a, height=2 * b))
    if kind == BOX:
        return crisp(create.box([2 * a, 2 * b, 2 * c]))
    if kind == MESH:
        return trimesh.Trimesh(*_triangles(mj, int(mj.geom_dataid[g])), process=False)
    return None


def _triangles(mj: Any, k: int) -> tuple[Array, Array]:
    """Vertices (n, 3) and faces (m, 3) of a mesh."""
    first, start = mj.mesh_vertadr[k], mj.mesh_faceadr[k]
    return mj.mesh_vert[first : first + mj.mesh_vertnum[k]], mj.mesh_face[start : start + mj.mesh_facenum[k]]


def _painted(mj: Any, g: int, mesh: Any) -> tuple[Any, Colour | None]:
    """A mesh and its colour; None for one with a texture."""
    material = int(mj.geom_matid[g])
    r, g_, b, a = (mj.geom_rgba[g] if material < 0 else mj.mat_rgba[material]).tolist()
    textures = [] if material < 0 else [int(k) for k in np.ravel(mj.mat_texid[material]) if k >= 0]
    pictures = [k for k in textures if mj.tex_type[k] == PICTURE]
    k = int(mj.geom_dataid[g])
    if mj.geom_type[g] != MESH or mj.mesh_texcoordadr[k] < 0 or not pictures:
        return mesh, (r, g_, b, a)
    return _with_texture(mj, k, pictures[0]), None


def _with_texture(mj: Any, k: int, texture: int) -> Any:
    """A mesh with its texture; vertices that faces map differently are repeated."""
    import trimesh
    from PIL import Image

    vertices, faces = _triangles(mj, k)
    start = mj.mesh_faceadr[k]
    corners = mj.mesh_facetexcoord[start : start + mj.mesh_facenum[k]]
    uv = mj.mesh_texcoord[mj.mesh_texcoordadr[k] :][corners.ravel()]
    uv = np.stack([uv[:, 0], 1 - uv[:, 1]], -1)  # MuJoCo counts from the top, trimesh from the bottom
    mesh = trimesh.Trimesh(vertices[faces.ravel()], np.arange(faces.size).reshape(-1, 3), process=False)
    height, width, channels = (int(x[texture]) for x in (mj.tex_height, mj.tex_width, mj.tex_nchannel))
    data = mj.tex_data[mj.tex_adr[texture] :][: height * width * channels].reshape(height, width, channels)
    return textured(mesh, uv, Image.fromarray(data.squeeze()))
