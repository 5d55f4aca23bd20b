"""The panel beside the robots: time, sliders of joints, layers, curves with a cursor, and buttons that save."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..display import markup
from ..errors import FeatherjetError
from ..model.model import Array
from .actor import LAYERS
from .curves import COLOURS, CURSOR, TimePanel, motion_panels
from .playable import Playable
from .pose import Pose
from .stage import Scenery

TITLE = '<div style="padding: 0 0.75rem 0.5rem; font-size: 0.875rem; max-width: 95%"><b>{}</b>, {}</div>'
ASPECT = 1.6  # of curves: width by height
PADDING = (12, 12, 0, 0)  # of curves [pixels]: top, right, bottom, left
STEEP = 1e3  # heights of a plot that a cursor rises over one sample
SPEEDS = ("1/8", "1/4", "1/2", "1", "2", "4")


class Owner(Protocol):
    """What the panel needs of its viewer."""

    server: Any
    motions: tuple[Playable, ...]
    stage: Scenery
    duration: float

    def show(self, t: float) -> None: ...

    def screenshot(self, path: Path) -> Any: ...

    def record(self, path: Path, fps: float) -> Path: ...


class Controls:
    """The controls of a viewer."""

    def __init__(self, viewer: Owner, play: bool, speed: float, loop: bool) -> None:
        self.viewer, self.gui, self.stage = viewer, viewer.server.gui, viewer.stage
        self.slider: Any = None
        self.playing: Any = None
        self.curves: list[Any] = []
        self.sliders: list[Any] = []
        self._t, self._speed, self._quiet = 0.0, speed, False
        if viewer.duration > 0:
            self._time(play, speed, loop)
        for motion in viewer.motions:
            self.gui.add_html(str(markup(TITLE, motion.model.name, motion.caption)))
        if len(viewer.motions) == 1 and isinstance(viewer.motions[0], Pose) and viewer.motions[0].worlds == 1:
            self._joints(viewer.motions[0])
        self._layers()
        if viewer.duration > 0:
            self._curves(*motion_panels(max(viewer.motions, key=lambda m: m.duration)))
        self._files()

    # Time

    def _time(self, play: bool, speed: float, loop: bool) -> None:
        gui, duration = self.gui, self.viewer.duration
        self.slider = gui.add_slider("time [s]", min=0.0, max=duration, step=duration / 1000, initial_value=0.0)
        self.playing = gui.add_checkbox("play", initial_value=play)
        self.looping = gui.add_checkbox("loop", initial_value=loop)
        label = f"{speed:g}"
        choices = SPEEDS if label in SPEEDS else (*SPEEDS, label)
        self.speed = gui.add_dropdown("speed", choices, initial_value=label)
        self.speed.on_update(lambda _: self._set_speed(self.speed.value))
        self.slider.on_update(lambda _: self._moved())

    def _set_speed(self, label: str) -> None:
        above, _, below = label.partition("/")
        self._speed = float(above) / float(below or 1)

    def _moved(self) -> None:
        """The slider has moved: by the user if it is elsewhere than `point_at` put it."""
        if not self._quiet and abs(self.slider.value - self._t) > self.viewer.duration / 5000:
            self.viewer.show(float(self.slider.value))

    def advance(self, seconds: float) -> None:
        """Play on, if the motion plays."""
        if self.playing is None or not self.playing.value or self._quiet:
            return
        t, duration = self._t + seconds * self._speed, self.viewer.duration
        if t > duration:
            t = t % duration if self.looping.value else duration
            self.playing.value = self.looping.value
        self.viewer.show(t)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time stands still for a recording, and returns to where it was."""
        t, self._quiet = self._t, True
        try:
            yield
        finally:
            self._quiet = False
            self.viewer.show(t)

    # Sliders of joints

    def _joints(self, pose: Pose) -> None:
        sliders = pose.sliders()
        with self.gui.add_folder("Joints"):
            for s in sliders:
                step = (s.upper - s.lower) / 1000
                slider = self.gui.add_slider(s.name, min=s.lower, max=s.upper, step=step, initial_value=s.value)
                slider.on_update(lambda _: self._move_joints(pose))
                self.sliders.append(slider)
            reset = self.gui.add_button("Reset")
            reset.on_click(lambda _: self._set_joints(pose, [s.value for s in sliders]))
            random = self.gui.add_button("Random")
            rng = np.random.default_rng(0)
            random.on_click(lambda _: self._set_joints(pose, [rng.uniform(s.lower, s.upper) for s in sliders]))

    def _move_joints(self, pose: Pose) -> None:
        if not self._quiet:
            pose.move([slider.value for slider in self.sliders])
            self.viewer.show(0.0)

    def _set_joints(self, pose: Pose, values: list[float]) -> None:
        self._quiet = True
        for slider, value in zip(self.sliders, values, strict=True):
            slider.value = value
        self._quiet = False
        self._move_joints(pose)

    # Layers

    def _layers(self) -> None:
        with self.gui.add_folder("Layers"):
            for layer in LAYERS:
                if layer == "names" and not all(a.links for a in self.stage.actors):
                    continue
                box = self.gui.add_checkbox(layer, initial_value=layer == "visual")
                box.on_update(lambda _, box=box, layer=layer: self._show_layer(layer, box.value))
            for name, handles in (("forces", self.stage.arrows), ("traces", self.stage.traces)):
                drawn = [h for h in handles if h is not None]
                if drawn:
                    box = self.gui.add_checkbox(name, initial_value=True)
                    box.on_update(lambda _, box=box, drawn=drawn: self._show(drawn, box.value))

    def _show_layer(self, layer: str, visible: bool) -> None:
        for actor in self.stage.actors:
            actor.show_layer(layer, visible)

    def _show(self, handles: list[Any], visible: bool) -> None:
        for handle in handles:
            handle.visible = visible
        self.viewer.show(self._t)

    # Curves

    def _curves(self, t: Array, panels: list[TimePanel]) -> None:
        self._times = t
        if panels:
            with self.gui.add_folder("Curves"):
                for panel in panels:
                    self._plot(panel)

    def _plot(self, panel: TimePanel) -> None:
        """Add a plot of curves over time; its cursor is a series, too, a steep line on a scale of its own."""
        shown = list(zip(panel.names, COLOURS, panel.values.T, strict=False))
        series: Any = [{"label": name, "stroke": colour, "width": 1} for name, colour, _ in shown]
        cursor: Any = {"label": "now", "stroke": CURSOR, "width": 1, "scale": "now", "points": {"show": False}}
        data = [self._times, *(np.ascontiguousarray(x) for *_, x in shown), self._cursor(0.0)]
        plot = self.gui.add_uplot(
            data=tuple(data), series=({"label": "t [s]"}, *series, cursor), title=panel.title, aspect=ASPECT,
            scales={"x": {"time": False}, "now": {"range": (0, 1), "auto": False}}, padding=PADDING,
        )  # fmt: skip
        self.curves.append(plot)

    def _cursor(self, t: float) -> Array:
        """The values of the cursor's series: below its scale before time t, above it after."""
        step = self._times[1] - self._times[0]
        t = min(t, self._times[-1] - step / STEEP * 2)  # so that the line crosses the whole scale at the end, too
        return np.clip(STEEP / step * (self._times - t), -STEEP, STEEP)

    def point_at(self, t: float) -> None:
        """Move the cursors of the curves, and the slider, to time t [s]."""
        self._t = t
        if self.slider is not None and not self._quiet and self.slider.value != t:
            self.slider.value = t
        for plot in self.curves:
            plot.data = (*plot.data[:-1], self._cursor(t))

    # Files

    def _files(self) -> None:
        with self.gui.add_folder("Save", expand_by_default=False):
            kinds = [("Screenshot", "png"), ("Page (HTML)", "html")]
            if self.viewer.duration > 0:
                kinds += [("GIF", "gif"), ("MP4", "mp4")]
            for label, suffix in kinds:
                button = self.gui.add_button(label)
                button.on_click(lambda event, suffix=suffix: self._save(event, suffix))

    def _save(self, event: Any, suffix: str) -> None:
        """Make a file and hand it to the browser that asked for it."""
        name = f"{self.viewer.motions[0].model.name}.{suffix}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, f"file.{suffix}")
                if suffix == "png":
                    self.viewer.screenshot(path)
                else:
                    self.viewer.record(path, fps=20.0)
                event.client.send_file_download(name, path.read_bytes())
        except FeatherjetError as error:
            event.client.add_notification("featherjet", str(error))
