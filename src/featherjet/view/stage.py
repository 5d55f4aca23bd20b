"""What the viewer shows beside the robots: where they stand, the ground, forces, traces and the camera."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import arrays
from ..errors import InputError, UnknownName
from ..model.model import WORLD, Array
from .actor import Actor, corners
from .playable import Playable
from .shapes import shapes

GROUND, LINES, SECTIONS = (225, 225, 220), (200, 205, 212), (158, 166, 176)
FORCE, TRACE = (209, 73, 91), (239, 177, 24)
SKY, HAZE = (206, 217, 230), (250, 250, 250)  # the backdrop, at the top and at the bottom
CELLS = [x * 10.0**k for k in range(-3, 4) for x in (1, 2, 5)]  # sizes of the ground's cells to choose from [m]
FADE = 12.0  # distance at which the ground ends, relative to the size of all robots together
ARROW = 1.0  # length of the arrow of a force as large as the robot's weight, relative to the robot's size
SHORTEST = 1e-3  # of the arrows that are drawn, relative to the robot's size
ROOM = 1.15  # distance of robots side by side, relative to the room that each takes
FIELD = 0.7  # field of view of the camera [rad], vertical
ASPECT, MARGIN = 1.2, 1.12  # of the picture that robots fill: width by height, and the room around them
VIEW = np.array([0.95, -0.75, 0.35])  # where the camera is, seen from the robot
MOST_TRACED = 16  # robots whose contacts leave traces; those of more would hide them
MOST_GROUNDS = 25  # copies of an uneven ground that are drawn


class Scenery:
    """All robots of some motions, side by side, at any time."""

    def __init__(
        self, scene: Any, motions: Sequence[Playable], meshes: Path | None, spacing: float | None, traces: Sequence[str]
    ) -> None:
        if spacing is not None and spacing != 0:
            spacing = arrays.positive_number("spacing", spacing)
        refuse_unknown_frames(motions, traces)
        self.scene, self.motions = scene, motions
        counts = [m.worlds for m in motions]
        looks = [shapes(m.model, meshes) for m in motions]
        samples = [_sampled(m) for m in motions]
        actors = [
            Actor(scene, f"/robot{k or ''}", m.model, look, m.worlds)
            for k, (m, look) in enumerate(zip(motions, looks, strict=True))
        ]
        boxes = [_boxes(a, T) for a, T in zip(actors, samples, strict=True)]
        spots = _spots(sum(counts), _room(boxes) if spacing is None else spacing)
        for k, at in enumerate(np.split(spots, np.cumsum(counts)[:-1])):
            if len(motions) > 1 and spacing != 0 and not on_ground(motions[k]):
                at[:, 2] = max(0.0, -float(boxes[k][..., 2].min()))  # so that all stand on the same ground
            actors[k].settle(at)
        self.actors = actors
        placed = [b + a.offsets for a, b in zip(actors, boxes, strict=True)]
        self._points = np.concatenate([b.reshape(-1, 3) for b in placed])
        self.low, self.high = self._points.min(0), self._points.max(0)
        self._backdrop()
        self._ground()
        for actor in actors:
            actor.show_layer("visual", True)
        self.arrows = [self._draw_forces(k) for k in range(len(motions))]
        self.traces = [trace for k in range(len(motions)) for trace in self._draw_traces(k, traces)]

    # The camera

    def camera(self) -> tuple[Array, Array]:
        """Where the camera is and what it looks at (3,), so that all robots are in the picture all the time."""
        middle, back = (self.low + self.high) / 2, VIEW / np.linalg.norm(VIEW)
        right = np.cross([0.0, 0.0, 1.0], back) / np.hypot(*back[:2])
        x, y, z = ((self._points - middle) @ np.stack([right, np.cross(back, right), back], -1)).T
        distance = np.max(np.maximum(np.abs(x) / ASPECT, np.abs(y)) / np.tan(FIELD / 2) + z)
        return middle + MARGIN * max(float(distance), 0.1) * back, middle

    def centre(self, t: float) -> Array:
        """The middle (3,) of all robots' joints at time t."""
        found = [_worlds(m, m.placements(min(t, m.duration)))[..., :3, 3] for m in self.motions]
        parts = [(p + a.offsets[:, None]).reshape(-1, 3) for p, a in zip(found, self.actors, strict=True)]
        return np.concatenate(parts).mean(0)

    # Backdrop, ground, forces and traces

    def _backdrop(self) -> None:
        t = np.linspace(0, 1, 256)[:, None, None]
        self.scene.set_background_image(np.tile((1 - t) * SKY + t * HAZE, (1, 2, 1)).astype(np.uint8), format="png")

    def _ground(self) -> None:
        surfaces = [m.contact_forces.surface if m.contact_forces else np.zeros((0, 0, 3)) for m in self.motions]
        uneven = [np.ptp(s[..., 2]) > 1e-9 if s.size else False for s in surfaces]
        for k, (actor, surface) in enumerate(zip(self.actors, surfaces, strict=True)):
            if uneven[k]:
                for i, offset in enumerate(actor.offsets[:MOST_GROUNDS]):
                    self._draw_ground(f"/ground/{k}/{i}", surface + offset)
        if not all(uneven):
            levels = [s[..., 2].mean() for s, rough in zip(surfaces, uneven, strict=True) if s.size and not rough]
            level = float(levels[0]) if levels else min(0.0, float(self.low[2]))
            reach = float(np.max(self.high - self.low))
            cell = max(x for x in CELLS if x <= max(reach / 4, CELLS[0]))
            self.scene.add_grid(
                "/ground", infinite_grid=True, position=(0.0, 0.0, level), cell_size=cell, section_size=5 * cell,
                fade_distance=FADE * reach, shadow_opacity=0.25, cell_color=LINES, section_color=SECTIONS,
            )  # fmt: skip

    def _draw_ground(self, name: str, surface: Array) -> None:
        """Draw ground given by points (k, l, 3)."""
        k, n = surface.shape[:2]
        corner = (np.arange(k - 1)[:, None] * n + np.arange(n - 1)).ravel()
        faces = np.concatenate([corner[:, None] + [0, n, n + 1], corner[:, None] + [0, n + 1, 1]])
        points = surface.reshape(-1, 3)
        self.scene.add_mesh_simple(name, points, faces, color=GROUND, side="double", flat_shading=True)

    def _draw_forces(self, k: int) -> Any:
        """Arrows of contact and external forces of a motion, or None if it has none."""
        contacts = self.motions[k].contact_forces
        if contacts is None or not contacts.names:
            return None
        size = self.actors[k].size
        return self.scene.add_arrows(
            f"/forces{k or ''}", self._arrows_at(k, 0.0), FORCE,
            shaft_radius=0.008 * size, head_radius=0.02 * size, head_length=0.05 * size,
        )  # fmt: skip

    def scale(self, k: int) -> float:
        """The length of an arrow [m] for a force [N] of a motion."""
        return ARROW * self.actors[k].size / max(9.81 * self.motions[k].model.mass, 1e-9)

    def _arrows_at(self, k: int, t: float) -> Array:
        """The forces of a motion at time t as lines (n, 2, 3); those too small to be seen are left out."""
        motion, contacts = self.motions[k], self.motions[k].contact_forces
        assert contacts is not None
        found = contacts.arrows(min(t, motion.duration)).reshape(motion.worlds, -1, 2, 3)
        start = found[..., 0, :] + self.actors[k].offsets[:, None]
        force = self.scale(k) * found[..., 1, :]
        lines = np.stack([start, start + force], -2).reshape(-1, 2, 3)
        seen = np.linalg.norm(force, axis=-1).ravel() > SHORTEST * self.actors[k].size
        return lines[seen].astype(np.float32)

    def _draw_traces(self, k: int, names: Sequence[str]) -> list[Any]:
        """Lines along the ways of contacts, and of the named frames."""
        motion = self.motions[k]
        if motion.duration == 0:
            return []
        t = motion.times(_steps(motion))
        ways = [_way(motion, name, t) for name in names if name in _frames(motion)]
        contacts = motion.contact_forces
        if contacts is not None and contacts.names and motion.worlds <= MOST_TRACED:
            points = contacts.arrows(t)[..., 0, :].reshape(len(t), motion.worlds, -1, 3)
            ways += [points[..., i, :] for i in range(points.shape[-2])]
        lines = [np.stack([w[:-1], w[1:]], -2) + self.actors[k].offsets[:, None] for w in ways]
        if not lines:
            return []
        points = np.concatenate([x.reshape(-1, 2, 3) for x in lines]).astype(np.float32)
        width: Any = {"thickness": 2.0, "thickness_units": "screen"}
        return [self.scene.add_line_segments(f"/traces{k or ''}", points, TRACE, **width)]

    # Motion

    def show(self, t: float) -> None:
        """Move everything to where it is at time t [s]; a motion that has ended stays."""
        for k, (motion, actor) in enumerate(zip(self.motions, self.actors, strict=True)):
            actor.place(_worlds(motion, motion.placements(min(t, motion.duration))))
            if self.arrows[k] is not None and self.arrows[k].visible:
                self.arrows[k].points = self._arrows_at(k, t)


def on_ground(motion: Playable) -> bool:
    """Whether a motion has ground of its own."""
    return motion.contact_forces is not None and motion.contact_forces.surface.size > 0


def refuse_unknown_frames(motions: Sequence[Playable], names: Sequence[str]) -> None:
    """Raise unless each name is that of a frame of a robot."""
    if isinstance(names, str):
        raise InputError(f"traces: expected a list of frames, got {names!r}")
    known = list(dict.fromkeys(name for motion in motions for name in _frames(motion)))
    for name in names:
        if name not in known:
            raise UnknownName("frame", name, known)


def _frames(motion: Playable) -> list[str]:
    return [frame.name for frame in motion.model.frames]


def _worlds(motion: Playable, T: Array) -> Array:
    """Placements at one time as (worlds, njoints, 4, 4)."""
    return T.reshape(motion.worlds, motion.model.njoints, 4, 4)


def _steps(motion: Playable) -> int:
    """How many times of a motion are looked at: fewer if there are many worlds."""
    return max(5, min(201, 20_000 // motion.worlds))


def _sampled(motion: Playable) -> Array:
    """Placements (times, worlds, njoints, 4, 4) over the motion."""
    t = motion.times(max(2, min(21, 2000 // motion.worlds)))
    return motion.placements(t).reshape(len(t), motion.worlds, motion.model.njoints, 4, 4)


def _boxes(actor: Actor, T: Array) -> Array:
    """The corners (times, shapes * 8, worlds, 3) of all shapes' boxes, in the world without offsets."""
    found = []
    for shape, box in zip(actor.visual, corners(actor.visual), strict=True):
        at = np.broadcast_to(np.eye(4), T[:, :, 0].shape) if shape.joint == WORLD else T[:, :, shape.joint]
        points = np.einsum("twij,cj->tcwi", at[..., :3, :3], box) + at[:, None, :, :3, 3]
        found.append(points)
    return np.concatenate(found, 1)


def _room(boxes: Sequence[Array]) -> float:
    """The distance at which no robot gets into another's way."""
    spans = [np.ptp(b[..., :2], axis=(0, 1)).max() for b in boxes]
    return ROOM * float(max(spans))


def _spots(count: int, spacing: float) -> Array:
    """Places (count, 3) on a square grid around the origin."""
    columns = int(np.ceil(np.sqrt(count)))
    row, column = np.divmod(np.arange(count), columns)
    rows = (count - 1) // columns + 1
    x, y = (rows - 1) / 2 - row, column - (columns - 1) / 2
    return spacing * np.stack([x, y, np.zeros(count)], -1)


def _way(motion: Playable, name: str, t: Array) -> Array:
    """Where a frame's origin is at times t (n,): (n, worlds, 3)."""
    frame = motion.model.frame(name)
    if frame.joint == WORLD:
        raise InputError(f"traces: frame {name!r} is fixed to the world and leaves no trace")
    T = motion.placements(t).reshape(len(t), motion.worlds, motion.model.njoints, 4, 4)[:, :, frame.joint]
    return (T @ frame.placement)[..., :3, 3]
