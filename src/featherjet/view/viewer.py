"""Robots in the browser, by viser: at rest with sliders, or moving; pictures and recordings of them."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..atomic import atomic_write
from ..display import markup
from ..errors import FeatherjetError, InputError, MissingExtra
from ..model.model import Array
from ..terminal import watched
from .browser import headless
from .curves import motion_panels
from .gate import Gate, guarded_server
from .page import titled, with_curves
from .panel import Controls
from .playable import Playable
from .recording import refuse_other_recordings, save_film, save_picture
from .stage import FIELD, Scenery

FRAMES = 30  # per second, when playing
PATIENCE = 120.0  # seconds to wait for a browser; a loaded machine may need many
SIZE = (960, 600)  # of pictures [pixels]: width and height


class Viewer:
    """A page on http://host:port that shows motions side by side; `show(t)` goes to time t, as the page's slider does.

    `url` is its address with a token: nobody without it, and no page of somebody else's, sees the robots or moves them.

    meshes: a URDF or MJCF file with the robots' looks, in place of the files they came from.
    play, speed, loop: whether it plays at once, how fast, and again and again.
    spacing: the distance of robots side by side [m]; 0 draws them where their motions are, None makes room for each.
    traces: frames whose ways are drawn; those of contacts always are.
    """

    def __init__(
        self,
        motions: Playable | Sequence[Playable],
        host: str = "127.0.0.1",
        port: int = 8080,
        meshes: Path | None = None,
        play: bool = True,
        speed: float = 1.0,
        loop: bool = True,
        spacing: float | None = None,
        traces: Sequence[str] = (),
    ) -> None:
        try:
            import viser  # noqa: F401
        except ImportError:
            raise MissingExtra("the viewer", "viser", "viewer") from None
        self.motions = tuple(motions) if isinstance(motions, Sequence) else (motions,)
        if not self.motions:
            raise InputError("there is nothing to view; give a robot, a trajectory or a transition")
        speed = arrays.positive_number("speed", speed)
        refuse_bad_address(host, port)
        self.title = ", ".join(dict.fromkeys(m.model.name for m in self.motions))
        logging.getLogger("websockets.server").setLevel(logging.CRITICAL)  # browsers open connections they do not use
        self._gate = Gate(host)
        with redirect_stdout(io.StringIO()):  # viser greets; `wait` prints the address itself
            self.server = guarded_server(self._gate, host, port, label=f"featherjet: {self.title}")
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self.server.get_port()}"
        self.url = f"{self.address}/?token={self._gate.token}"
        self._lock, self._stop = threading.RLock(), threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self._set_up(meshes, spacing, traces, play, speed, loop)
        except BaseException:
            self.stop()
            raise

    def _set_up(
        self, meshes: Path | None, spacing: float | None, traces: Sequence[str], play: bool, speed: float, loop: bool
    ) -> None:
        scene = self.server.scene
        scene.set_up_direction("+z")
        self.stage = Scenery(scene, self.motions, meshes, spacing, traces)
        self.duration = max(m.duration for m in self.motions)
        self.server.initial_camera.fov = FIELD
        self.look(*self.stage.camera())
        self.panel = Controls(self, play, speed, loop)
        self.server.gui.main_panel.dock_right()  # beside the picture, so that it hides nothing
        self.show(0.0)

    def __repr__(self) -> str:
        return f"<Viewer of {self.title}: {self.address}>"  # without the token: reprs end in logs

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        return markup('<iframe src="{}" width="100%" height="600" style="border:none"></iframe>', self.url)

    # Motion

    def show(self, t: float) -> None:
        """Go to time t [s]."""
        t = float(np.clip(t, 0.0, self.duration))
        with self._lock, self.server.atomic():
            self.stage.show(t)
            self.panel.point_at(t)

    def look(self, position: ArrayLike, target: ArrayLike) -> None:
        """Put the camera at a position (3,) and let it look at a target (3,) [m]."""
        at = [arrays.finite(name, x, (3,), "x y z") for name, x in (("position", position), ("target", target))]
        clients = self.server.get_clients().values()
        for camera in (self.server.initial_camera, *(client.camera for client in clients)):
            camera.position, camera.look_at = at

    def run(self) -> None:
        """Serve until `stop`, and play while `play` is ticked."""
        last = time.monotonic()
        while not self._stop.wait(1 / FRAMES):
            now = time.monotonic()
            self.panel.advance(now - last)
            last = now

    def start(self) -> Viewer:
        """`run` in a thread of its own, which ends with the program."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.run, daemon=True, name="featherjet viewer")
            self._thread.start()
        return self

    def wait(self) -> None:
        """Print the address and keep the page up until Ctrl-C."""
        print(f"{self.title}: {self.url}  (Ctrl-C ends)", flush=True)
        try:
            self.start().join()
        except KeyboardInterrupt:
            self.stop()

    def join(self) -> None:
        """Return when `stop` is called, or raise KeyboardInterrupt."""
        while not self._stop.wait(0.5):
            pass

    def open(self) -> Viewer:
        """Open the page in the browser."""
        webbrowser.open(self._once())
        return self

    def _once(self) -> str:
        """The page's address with a token that counts once, since others can read a browser's command line."""
        return f"{self.address}/?token={self._gate.ticket()}"

    def stop(self) -> None:
        """End `run` and close the page."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)
        with redirect_stdout(io.StringIO()):
            self.server.stop()

    # Pictures and recordings

    def screenshot(
        self,
        path: str | PathLike[str] | None = None,
        t: float | None = None,
        size: tuple[int, int] = SIZE,
        overwrite: bool = True,
    ) -> Array:
        """A picture (height, width, 3) of the robots, at time t if given; written as a PNG if there is a path.

        It is drawn by a browser that has the page open, or else by a chromium without a window.
        """
        if path is not None and arrays.path_of(path).suffix.lower() != ".png":
            raise InputError(f"{path}: pictures are PNG files; give it a name that ends in .png")
        with self._camera(size) as shoot:
            if t is not None:
                self.show(t)
            pixels = shoot()
        if path is not None:
            save_picture(arrays.path_of(path), pixels, overwrite)
        return pixels

    def record(
        self,
        path: str | PathLike[str],
        fps: float = 30.0,
        size: tuple[int, int] = SIZE,
        speed: float = 1.0,
        follow: bool = False,
        overwrite: bool = True,
    ) -> Path:
        """Write the motion as .gif, .png (animated), .webp, .mp4, or .html: a page that needs nothing else.

        size: width and height [pixels]. speed: 0.5 is slow motion. follow: whether the camera goes along with the
        robots. Pictures are drawn by a browser, as in `screenshot`; a page is written without one.
        """
        path, fps, speed = (
            arrays.path_of(path),
            arrays.positive_number("fps", fps),
            arrays.positive_number("speed", speed),
        )
        refuse_other_recordings(path)
        count = max(1, round(self.duration / speed * fps))
        times = np.arange(count) * speed / fps
        with self.panel.paused():
            if path.suffix.lower() == ".html":
                text = self._page(times, fps)
                with atomic_write(path, overwrite) as file:
                    file.write(text.encode())
                return path
            with self._camera(size) as shoot:
                shots = (self._shot(shoot, t, follow) for t in times)
                return save_film(path, watched("recording", shots, count), fps, overwrite)

    def as_html(self, fps: float = 30.0) -> str:
        """A page with the motion that needs nothing else: no server, no network."""
        times = np.arange(max(1, round(self.duration * fps))) / fps
        with self.panel.paused():
            return self._page(times, fps)

    def _page(self, times: Array, fps: float) -> str:
        with self._lock:
            self.stage.show(0.0)
            serializer = self.server.get_scene_serializer()
            for t in times if len(times) > 1 else ():
                self.stage.show(float(t))
                serializer.insert_sleep(1 / fps)
            page = titled(serializer.as_html(), self.title)
        longest = max(self.motions, key=lambda m: m.duration)
        t, panels = motion_panels(longest) if longest.duration > 0 else (times, [])
        return with_curves(page, f"{longest.model.name}, {longest.caption}", t, panels) if panels else page

    def _shot(self, shoot: Callable[..., Array], t: float, follow: bool) -> Array:
        self.show(t)
        return shoot(self.stage.centre(t) - self.stage.centre(0.0) if follow else np.zeros(3))

    @contextmanager
    def _camera(self, size: tuple[int, int]) -> Iterator[Callable[..., Array]]:
        """A function that takes a picture, the camera moved by a vector (3,)."""
        width, height = size
        clients = list(self.server.get_clients().values())
        if clients:
            yield lambda move=None: _photograph(clients[0], width, height, move)
            return
        with headless(self._once(), width + 400, max(height, 400)) as (process, _):
            client = next(iter(watched("starting a browser", self._ready(process), 1)))
            yield lambda move=None: _photograph(client, width, height, move)

    def _ready(self, process: Any) -> Iterator[Any]:
        """The browser, as soon as it shows everything."""
        client = self._connected(process)
        self._settled(client)
        yield client

    def _connected(self, process: Any) -> Any:
        """The first browser that has the page open."""
        until = time.monotonic() + PATIENCE
        while not (clients := self.server.get_clients()):
            if process.poll() is not None or time.monotonic() > until:
                raise FeatherjetError("the browser that should draw the picture does not open the page")
            time.sleep(0.05)
        return next(iter(clients.values()))

    def _settled(self, client: Any) -> None:
        """Wait until pictures no longer change: meshes and textures have arrived."""
        until, before, same = time.monotonic() + PATIENCE, None, 0
        while same < 2 and time.monotonic() < until:
            now = _photograph(client, 160, 100)
            steady = before is not None and np.ptp(now) > 0 and np.array_equal(now, before)
            same, before = same + 1 if steady else 0, now
            time.sleep(0.1)


def _photograph(client: Any, width: int, height: int, move: Array | None = None) -> Array:
    """What a browser's camera sees, moved by a vector (3,), on white: (height, width, 3) of bytes."""
    camera = client.camera
    at = np.asarray(camera.position) + (0.0 if move is None else move)
    try:
        found = client.get_render(
            height, width, wxyz=camera.wxyz, position=at, fov=camera.fov, transport_format="png", timeout=PATIENCE
        )
    except TimeoutError:
        raise FeatherjetError(
            f"the browser has not drawn the picture within {PATIENCE:g} s; show fewer robots, or draw with a browser "
            "that uses the graphics card: open the page in it first"
        ) from None
    colour, cover = found[..., :3].astype(float), found[..., 3:].astype(float) / 255
    return np.round(colour * cover + 255 * (1 - cover)).astype(np.uint8)


def refuse_bad_address(host: str, port: int) -> None:
    """Raise an InputError for an address that viser would wait for endlessly; a port in use is no error."""
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise InputError(f"cannot serve on {host} ({error.strerror or error})") from None
    if not 0 < port < 65536:
        raise InputError(f"port: expected a number from 1 to 65535, got {port}")
