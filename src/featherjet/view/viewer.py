"""A motion in the browser, by viser: the robot, a time slider, curves of torque and energy."""

from __future__ import annotations

import io
import socket
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtra
from ..math import rotations as so3
from ..model.model import WORLD, Array
from .curves import Curves, curves
from .playable import Playable
from .shapes import Capsule, Mesh, capsules, meshes

LIMB, BASE, GROUND, LINES, FORCE = (96, 132, 176), (120, 120, 125), (225, 225, 220), (190, 190, 185), (209, 73, 91)
ARROW = 1.0  # length [m] of the arrow of a force as large as the robot's weight
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")
FRAMES = 30  # per second, when playing
PADDING = (12, 12, 0, 0)  # of curves [pixels]: top, right, bottom, left


class Viewer:
    """A page on http://host:port that plays a motion; `show(t)` moves the robot, as the page's slider does."""

    def __init__(
        self,
        motion: Playable,
        host: str = "127.0.0.1",
        port: int = 8080,
        urdf: Path | None = None,
        play: bool = True,
    ) -> None:
        try:
            import viser
        except ImportError:
            raise MissingExtra("the viewer", "viser", "viewer") from None
        self.motion, self.contacts = motion, motion.contact_forces
        refuse_bad_address(host, port)
        with redirect_stdout(io.StringIO()):  # viser greets; the command prints the address itself
            self.server = viser.ViserServer(host, port, label=f"featherjet: {motion.model.name}", verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._build(urdf)
        self._panel(play)
        self.show(0.0)

    # The scene

    def _build(self, urdf: Path | None) -> None:
        scene, model = self.server.scene, self.motion.model
        scene.set_up_direction("+z")
        positions = self.motion.placements(self.motion.times(21))[..., :3, 3]
        if self.contacts is None or not self._draw_ground(self.contacts.surface):
            lowest = float(positions[..., 2].min())
            scene.add_grid("/ground", width=6.0, height=6.0, position=(0.0, 0.0, min(0.0, lowest)))
        self.links = [scene.add_frame(f"/robot/{i}", show_axes=False) for i in range(model.njoints)]
        scene.add_frame("/robot/world", show_axes=False)
        found = [] if urdf is None else meshes(model, urdf)
        for k, mesh in enumerate(found):
            self._draw_mesh(k, mesh)
        self.meshed = {mesh.joint for mesh in found}
        for k, capsule in enumerate(capsules(model)):
            if capsule.joint not in self.meshed:
                self._draw_capsule(k, capsule)
        middle, reach = positions.mean((0, 1)), float(np.ptp(positions, axis=(0, 1)).max())
        away = middle + max(reach, 0.5) * np.array([0.95, -0.75, 0.3])
        self.server.initial_camera.look_at, self.server.initial_camera.position = tuple(middle), tuple(away)

    def _draw_ground(self, surface: Array) -> bool:
        """Draw the ground given by points (k, l, 3); False if there are none."""
        if not surface.size:
            return False
        k, n = surface.shape[:2]
        corner = (np.arange(k - 1)[:, None] * n + np.arange(n - 1)).ravel()
        faces = np.concatenate([corner[:, None] + [0, n, n + 1], corner[:, None] + [0, n + 1, 1]])
        edges = (surface[1:], surface[:-1]), (surface[:, 1:], surface[:, :-1])
        grid = np.concatenate([np.stack(ends, -2).reshape(-1, 2, 3) for ends in edges])
        points = surface.reshape(-1, 3)
        self.server.scene.add_mesh_simple("/ground", points, faces, color=GROUND, side="double", flat_shading=True)
        self.server.scene.add_line_segments("/ground/lines", grid, colors=LINES)
        return True

    def _draw_mesh(self, k: int, mesh: Mesh) -> None:
        wxyz, position = _pose(mesh.placement)
        self.server.scene.add_mesh_trimesh(f"/robot/{mesh.joint}/mesh{k}", mesh.mesh, wxyz=wxyz, position=position)

    def _draw_capsule(self, k: int, c: Capsule) -> None:
        import trimesh

        along = c.end - c.start
        length = float(np.linalg.norm(along))
        shape: Any = trimesh.creation.capsule(height=length, radius=c.radius, count=[16, 16])  # about its middle
        owner = "world" if c.joint == WORLD else c.joint
        self.server.scene.add_mesh_simple(
            f"/robot/{owner}/capsule{k}", np.asarray(shape.vertices), np.asarray(shape.faces), wxyz=_upright(along),
            position=(c.start + c.end) / 2, color=BASE if c.joint == WORLD else LIMB,
        )  # fmt: skip

    # The panel

    def _panel(self, play: bool) -> None:
        gui, duration = self.server.gui, self.motion.duration
        self.slider = gui.add_slider("time [s]", min=0.0, max=duration, step=duration / 1000, initial_value=0.0)
        self.playing = gui.add_checkbox("play", initial_value=play)
        gui.add_markdown(f"**{self.motion.model.name}**, {self.motion.caption}")
        c = curves(self.motion)
        self._plot_torques(c)
        self._plot_contact_forces(c.t)
        self._plot_energy(c)
        self.slider.on_update(lambda _: self.show(self.slider.value))

    def _plot_torques(self, c: Curves) -> None:
        coloured = zip(c.largest, COLOURS, strict=False)
        series: Any = tuple({"label": c.names[k], "stroke": colour, "width": 1} for k, colour in coloured)
        self.torques = self.server.gui.add_uplot(
            data=(c.t, *(np.ascontiguousarray(c.tau[:, k]) for k in c.largest)), series=({"label": "t [s]"}, *series),
            title="torque [N m, N]", scales={"x": {"time": False}}, aspect=1.5, padding=PADDING,
        )  # fmt: skip

    def _plot_energy(self, c: Curves) -> None:
        self.energies = self.server.gui.add_uplot(
            data=(c.t, c.energy),
            series=({"label": "t [s]"}, {"label": "energy so far", "stroke": "#d1495b", "width": 1}),
            title="energy", scales={"x": {"time": False}}, aspect=2.0, padding=PADDING,
        )  # fmt: skip

    def _plot_contact_forces(self, t: Array) -> None:
        """Curves of the sizes of contact forces at times t (n,), and an arrow at each contact."""
        self.arrows = None
        if self.contacts is None or not self.contacts.names:
            return
        sizes = np.linalg.norm(self.contacts.arrows(t)[..., 1, :], axis=-1)
        coloured = zip(self.contacts.names, COLOURS, strict=False)
        series: Any = tuple({"label": name, "stroke": colour, "width": 1} for name, colour in coloured)
        self.server.gui.add_uplot(
            data=(t, *np.ascontiguousarray(sizes.T[: len(series)])), series=({"label": "t [s]"}, *series),
            title="contact force [N]", scales={"x": {"time": False}}, aspect=1.3, legend={"show": True},
        )  # fmt: skip
        self.metres_per_newton = ARROW / max(9.81 * self.motion.model.mass, 1e-9)
        self.arrows = self.server.scene.add_line_segments("/forces", self._arrow_lines(0.0), colors=FORCE)

    def _arrow_lines(self, t: float) -> Array:
        """Each contact's force at time t as a line (contacts, 2, 3)."""
        assert self.contacts is not None
        start, force = np.moveaxis(self.contacts.arrows(t), -2, 0)
        return np.stack([start, start + self.metres_per_newton * force], -2).astype(np.float32)

    # Motion

    def show(self, t: float) -> None:
        """Move the robot to where it is at time t [s]."""
        t = float(np.clip(t, 0.0, self.motion.duration))
        placements = self.motion.placements(t)
        with self._lock, self.server.atomic():
            for link, T in zip(self.links, placements, strict=True):
                link.wxyz, link.position = _pose(T)
            if self.arrows is not None:
                self.arrows.points = self._arrow_lines(t)

    def run(self) -> None:
        """Serve until `stop`, and play while `play` is ticked."""
        last = time.monotonic()
        while not self._stop.wait(1 / FRAMES):
            now = time.monotonic()
            if self.playing.value:
                self.slider.value = float((self.slider.value + now - last) % self.motion.duration)
                self.show(self.slider.value)
            last = now

    def stop(self) -> None:
        """End `run` and close the page."""
        self._stop.set()
        with redirect_stdout(io.StringIO()):
            self.server.stop()


def refuse_bad_address(host: str, port: int) -> None:
    """Raise an InputError for an address that viser would wait for endlessly; a port in use is no error."""
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise InputError(f"cannot serve on {host} ({error.strerror or error})") from None
    if not 0 < port < 65536:
        raise InputError(f"port: expected a number from 1 to 65535, got {port}")


def _pose(T: Array) -> tuple[Array, Array]:
    """Quaternion w x y z and position of a placement (4, 4)."""
    return so3.quaternion_from_matrix(T[:3, :3]), T[:3, 3]


def _upright(direction: Array) -> Array:
    """A quaternion w x y z that turns the z axis to a direction (3,)."""
    d = direction / max(float(np.linalg.norm(direction)), 1e-12)
    q = np.array([1 + d[2], -d[1], d[0], 0.0])
    return q / np.linalg.norm(q) if 1 + d[2] > 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
