"""A transition in the browser: the robot, a time slider, torque and energy curves. With viser."""

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
from ..model.model import WORLD
from ..transition.result import Transition
from .playback import Playback
from .shapes import Capsule, capsules, meshes
from .transition import curves

Array = np.ndarray
LIMB, BASE, GROUND, LINES, FORCE = (96, 132, 176), (120, 120, 125), (225, 225, 220), (190, 190, 185), (209, 73, 91)
ARROW = 1.0  # length of a force as large as the robot's weight [m]
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")
FRAMES = 30  # a second, when playing
PADDING = (12, 12, 0, 0)  # of curves [pixels]: top, right, bottom, left


class Viewer:
    """A page on http://host:port. `show(t)` moves the robot, as the page's slider does."""

    def __init__(
        self,
        result: Transition | Playback,
        host: str = "127.0.0.1",
        port: int = 8080,
        urdf: Path | None = None,
        play: bool = True,
    ) -> None:
        try:
            import viser
        except ImportError:
            raise MissingExtra("the viewer", "viser", "viewer") from None
        self.result, self.motion = result, result if isinstance(result, Playback) else None
        refuse_bad_address(host, port)
        with redirect_stdout(io.StringIO()):  # it greets; we say where the page is ourselves
            self.server = viser.ViserServer(host, port, label=f"featherjet: {result.robot.name}", verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._build(urdf)
        self._panel(play)
        self.show(0.0)

    # The scene

    def _build(self, urdf: Path | None) -> None:
        scene, robot = self.server.scene, self.result.robot
        scene.set_up_direction("+z")
        placements = robot.forward_kinematics(self.result.q(self.result.times(21)))
        low = float(placements[..., 2, 3].min())
        if self.motion is None or not self._ground(self.motion.trajectory.surface):
            scene.add_grid("/ground", width=6.0, height=6.0, position=(0.0, 0.0, min(0.0, low)))
        self.links = [scene.add_frame(f"/robot/{i}", show_axes=False) for i in range(robot.njoints)]
        scene.add_frame("/robot/world", show_axes=False)
        found = [] if urdf is None else meshes(robot.model, urdf)
        for k, mesh in enumerate(found):
            name = f"/robot/{mesh.joint}/mesh{k}"
            wxyz, position = _pose(mesh.placement)
            scene.add_mesh_trimesh(name, mesh.mesh, wxyz=wxyz, position=position)
        self.meshed = {mesh.joint for mesh in found}
        for k, capsule in enumerate(capsules(robot.model)):
            if capsule.joint not in self.meshed:
                self._capsule(k, capsule)
        middle, reach = placements[..., :3, 3].mean((0, 1)), float(np.ptp(placements[..., :3, 3], axis=(0, 1)).max())
        away = middle + max(reach, 0.5) * np.array([0.95, -0.75, 0.3])
        self.server.initial_camera.look_at, self.server.initial_camera.position = tuple(middle), tuple(away)

    def _ground(self, surface: Array) -> bool:
        """The ground of a simulation, by points (k, l, 3); whether there is one."""
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

    def _capsule(self, k: int, c: Capsule) -> None:
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
        gui, r, T = self.server.gui, self.result, self.result.duration
        self.slider = gui.add_slider("time [s]", min=0.0, max=T, step=T / 1000, initial_value=0.0)
        self.playing = gui.add_checkbox("play", initial_value=play)
        gui.add_markdown(f"**{r.robot.name}**, {r.caption}")
        c = curves(r)
        coloured = zip(c.large, COLOURS, strict=False)
        series: Any = tuple({"label": c.names[k], "stroke": colour, "width": 1} for k, colour in coloured)
        self.torques = gui.add_uplot(
            data=(c.t, *(np.ascontiguousarray(c.tau[:, k]) for k in c.large)), series=({"label": "t [s]"}, *series),
            title="torque [N m, N]", scales={"x": {"time": False}}, aspect=1.5, padding=PADDING,
        )  # fmt: skip
        self._forces(c.t)
        self.energies = gui.add_uplot(
            data=(c.t, c.energy),
            series=({"label": "t [s]"}, {"label": "energy until then", "stroke": "#d1495b", "width": 1}),
            title="energy", scales={"x": {"time": False}}, aspect=2.0, padding=PADDING,
        )  # fmt: skip
        self.slider.on_update(lambda _: self.show(self.slider.value))

    def _forces(self, t: Array) -> None:
        """Forces of a simulation's contacts: curves of their sizes, and an arrow at each contact."""
        self.arrows = None
        if self.motion is None or not self.motion.trajectory.contacts:
            return
        sizes = np.linalg.norm(self.motion.arrows(t)[..., 1, :], axis=-1)
        coloured = zip(self.motion.trajectory.contacts, COLOURS, strict=False)
        series: Any = tuple({"label": name, "stroke": colour, "width": 1} for name, colour in coloured)
        self.server.gui.add_uplot(
            data=(t, *np.ascontiguousarray(sizes.T[: len(series)])), series=({"label": "t [s]"}, *series),
            title="contact force [N]", scales={"x": {"time": False}}, aspect=1.3, legend={"show": True},
        )  # fmt: skip
        self.metres = ARROW / max(9.81 * self.motion.robot.mass, 1e-9)  # for a newton
        self.arrows = self.server.scene.add_line_segments("/forces", self._segments(0.0), colors=FORCE)

    def _segments(self, t: float) -> Array:
        """Each contact's force at time t as a line (contacts, 2, 3)."""
        assert self.motion is not None
        start, force = np.moveaxis(self.motion.arrows(t), -2, 0)
        return np.stack([start, start + self.metres * force], -2).astype(np.float32)

    # Motion

    def show(self, t: float) -> None:
        """The robot at time t."""
        placements = self.result.robot.forward_kinematics(self.result.q(float(np.clip(t, 0.0, self.result.duration))))
        with self._lock, self.server.atomic():
            for link, T in zip(self.links, placements, strict=True):
                link.wxyz, link.position = _pose(T)
            if self.arrows is not None:
                self.arrows.points = self._segments(float(np.clip(t, 0.0, self.result.duration)))

    def run(self) -> None:
        """Serve, and play while `play` is ticked, until `stop`."""
        last = time.monotonic()
        while not self._stop.wait(1 / FRAMES):
            now = time.monotonic()
            if self.playing.value:
                self.slider.value = float((self.slider.value + now - last) % self.result.duration)
                self.show(self.slider.value)
            last = now

    def stop(self) -> None:
        self._stop.set()
        with redirect_stdout(io.StringIO()):
            self.server.stop()


def refuse_bad_address(host: str, port: int) -> None:
    """viser would wait for ever; if only the port is taken, it takes the next one."""
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
    """A quaternion w x y z that turns z into a direction."""
    d = direction / max(float(np.linalg.norm(direction)), 1e-12)
    q = np.array([1 + d[2], -d[1], d[0], 0.0])
    return q / np.linalg.norm(q) if 1 + d[2] > 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
