"""Copies of one robot in viser's scene, with layers: looks, collision shapes, inertias, frames, centre of mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..math import rotations as so3
from ..model.model import WORLD, Array, Model
from .bodies import body_shapes
from .meshfiles import glb
from .shape import Colour, Shape

COLLISION: Colour = (0.94, 0.55, 0.2, 0.55)
INERTIA: Colour = (0.25, 0.66, 0.45, 0.45)
MASS: Colour = (0.82, 0.29, 0.36, 1.0)
AXES, BALL = 0.12, 0.035  # length of a frame's axes, and radius of the centre of mass, relative to the robot's size
LAYERS = ("visual", "collision", "inertia", "frames", "names", "centre of mass")


class Actor:
    """One robot, or as many copies of it as there are worlds, below `name` in the scene.

    The shapes of one robot hang on frames of the scene, `links`; those of many are drawn in batches.
    """

    def __init__(self, scene: Any, name: str, model: Model, shapes: Sequence[Shape], worlds: int) -> None:
        self.scene, self.name, self.model, self.offsets = scene, name, model, np.zeros((worlds, 3))
        self._shapes = {
            "visual": looks(model, [s for s in shapes if s.layer == "visual"], worlds),
            "collision": [s._replace(colour=COLLISION) for s in shapes if s.layer == "collision"],
            "inertia": inertias(model),
        }
        self.size = max(float(np.ptp(np.concatenate(corners(self._shapes["visual"])), axis=0).max()), 0.1)
        self.links: list[Any] = []
        if worlds == 1:
            self.links = [scene.add_frame(f"{name}/{i}", show_axes=False) for i in range(model.njoints)]
        self._layers: dict[str, list[Any]] = {}
        self._drawn: dict[str, list[tuple[Any, Shape]]] = {layer: [] for layer in self._shapes}
        self._T = self._given = np.broadcast_to(np.eye(4), (worlds, model.njoints, 4, 4))

    @property
    def visual(self) -> list[Shape]:
        """The shapes that one sees by default."""
        return self._shapes["visual"]

    def settle(self, offsets: Array) -> None:
        """Give each robot its place: offsets (worlds, 3) from where its motion is."""
        self.offsets = offsets
        if self.links:
            self.scene.add_frame(f"{self.name}/world", show_axes=False, position=offsets[0])

    def place(self, T: Array) -> None:
        """Move the robots to where their joints' frames are at T (worlds, njoints, 4, 4)."""
        self._given, self._T = T, T.copy()
        self._T[..., :3, 3] += self.offsets[:, None]
        for link, placement in zip(self.links, self._T[0], strict=False):
            link.wxyz, link.position = pose(placement)
        for drawn in self._drawn.values():
            for handle, shape in (x for x in drawn if x[0].visible):
                handle.batched_wxyzs, handle.batched_positions = self._instances(shape)
        for layer in ("frames", "names", "centre of mass"):
            if layer in self._layers and self._layers[layer][0].visible:
                self._move(layer)

    def show_layer(self, layer: str, visible: bool) -> None:
        """Show or hide a layer; it is drawn when it is first shown."""
        if layer not in self._layers:
            if not visible:
                return
            self._layers[layer] = self._draw(layer)
        for handle in self._layers[layer]:
            handle.visible = visible
        if visible:
            self.place(self._given)

    def _draw(self, layer: str) -> list[Any]:
        if layer == "frames":
            wxyz, position = pose(self._T.reshape(-1, 4, 4))
            size = AXES * self.size
            at = f"{self.name}/axes"
            return [self.scene.add_batched_axes(at, wxyz, position, axes_length=size, axes_radius=0.06 * size)]
        if layer == "names":
            names = self.model.joint_names
            return [self.scene.add_label(f"{self.name}/name {i}", name) for i, name in enumerate(names)]
        if layer == "centre of mass":
            import trimesh

            ball = trimesh.creation.icosphere(subdivisions=2, radius=BALL * self.size)
            return [self._batch(f"{self.name}/mass", ball, MASS, *self._masses())]
        return [self._draw_shape(layer, k, shape) for k, shape in enumerate(self._shapes[layer])]

    def _move(self, layer: str) -> None:
        handles = self._layers[layer]
        if layer == "names":
            for handle, T in zip(handles, self._T[0], strict=True):
                handle.position = T[:3, 3]
            return
        found = self._masses() if layer == "centre of mass" else pose(self._T.reshape(-1, 4, 4))
        handles[0].batched_wxyzs, handles[0].batched_positions = (x.astype(np.float32) for x in found)

    def _draw_shape(self, layer: str, k: int, shape: Shape) -> Any:
        owner = "world" if shape.joint == WORLD else shape.joint
        name = f"{self.name}/{owner}/{layer} {k}"
        if not self.links:
            name = f"{self.name}/{layer} {k}"
            handle = self._batch(name, shape.mesh, shape.colour, *self._instances(shape))
            if shape.joint != WORLD:
                self._drawn[layer].append((handle, shape))
            return handle
        wxyz, position = pose(shape.placement)
        if shape.colour is None:
            return self.scene.add_glb(name, glb(shape.mesh), wxyz=wxyz, position=position)
        look = paint(shape.colour)
        return self.scene.add_mesh_simple(name, *triangles(shape.mesh), wxyz=wxyz, position=position, **look)

    def _batch(self, name: str, mesh: Any, colour: Colour | None, wxyz: Array, position: Array) -> Any:
        if colour is None:
            return self.scene.add_batched_glb(name, glb(mesh), wxyz, position, lod="off")
        look = paint(linear(colour))  # batches take light, where single meshes take colours
        look["batched_colors"] = look.pop("color")
        return self.scene.add_batched_meshes_simple(name, *triangles(mesh), wxyz, position, lod="off", **look)

    def _instances(self, shape: Shape) -> tuple[Array, Array]:
        """Quaternions (worlds, 4) and positions (worlds, 3) of a shape in all worlds."""
        if shape.joint == WORLD:
            T = np.tile(shape.placement, (len(self.offsets), 1, 1))
            T[:, :3, 3] += self.offsets
        else:
            T = self._T[:, shape.joint] @ shape.placement
        wxyz, position = pose(T)
        return wxyz.astype(np.float32), position.astype(np.float32)

    def _masses(self) -> tuple[Array, Array]:
        """Where the centres of mass are: no rotation (worlds, 4), and positions (worlds, 3)."""
        masses = np.array([j.body.mass for j in self.model.joints])
        com = np.stack([[*j.body.com, 1.0] for j in self.model.joints])
        at = (self._T @ com[:, :, None])[..., :3, 0]
        mean = (masses[:, None] * at).sum(1) / max(masses.sum(), 1e-12)
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(mean), 1)), mean


def looks(model: Model, found: list[Shape], copies: int) -> list[Shape]:
    """Visual shapes, and rounded bodies for the joints that have none."""
    seen = {s.joint for s in found}
    return found + [s for s in body_shapes(model, copies) if s.joint not in seen and (s.joint != WORLD or not found)]


def inertias(model: Model) -> list[Shape]:
    """For each body the ellipsoid of even density that has its mass and inertia; none for a body without volume."""
    import trimesh

    found = []
    for i, joint in enumerate(model.joints):
        body = joint.body
        if not body.mass > 0:
            continue
        moments, axes = np.linalg.eigh((body.inertia + body.inertia.T) / 2)
        squares = 2.5 / body.mass * (moments.sum() - 2 * moments)  # half axes of I_x = m (b^2 + c^2) / 5
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = axes * np.linalg.det(axes), body.com
        ball = trimesh.creation.icosphere(subdivisions=2)
        ball.apply_scale(np.sqrt(np.maximum(squares, 1e-8)))
        found.append(Shape(i, T, ball, INERTIA))
    return found


def corners(shapes: Sequence[Shape]) -> list[Array]:
    """For each shape the corners (8, 3) of its box, in its joint's frame."""
    found = []
    for s in shapes:
        low, high = np.asarray(s.mesh.bounds)
        box = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        found.append(box @ s.placement[:3, :3].T + s.placement[:3, 3])
    return found


def pose(T: Array) -> tuple[Array, Array]:
    """Quaternions w x y z (..., 4) and positions (..., 3) of placements (..., 4, 4)."""
    return so3.quaternion_from_matrix(T[..., :3, :3]), T[..., :3, 3]


def triangles(mesh: Any) -> tuple[Array, Array]:
    return np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces)


def linear(colour: Colour) -> Colour:
    """A colour of the sRGB space as the light that it is."""
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in colour[:3])
    return r, g, b, colour[3]


def paint(colour: Colour) -> dict[str, Any]:
    """A colour as viser takes it."""
    r, g, b, a = (float(np.clip(x, 0, 1)) for x in colour)
    return {"color": (round(255 * r), round(255 * g), round(255 * b)), "opacity": a if a < 1 else None}
