"""A simulated motion: saved, loaded, plotted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import arrays
from ..conventions.coordinates import STANDARD, Coordinates
from ..errors import FeatherjetError, InputError, UnknownName
from ..forks import unforked
from ..model.checks import require_name
from ..model.io import saved
from ..model.model import Array, Model
from ..model.names import coordinate_names
from ..view.playable import Playable, motion_to_show

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Unpack

    from ..view.show import ViewOptions
    from ..view.viewer import Viewer

KIND, VERSION = "featherjet trajectory", "1"
ARRAYS = ("t", "q", "v", "tau", "forces", "residual", "arrows")
FACTS = ("surface", "contacts", "rows", "robot", "convention", "complete")
PLOTS = ("curves", "torques", "phase", "contacts")
LATER = ("friction",)  # facts that older files lack


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States q (..., n, nq), v (..., n, nv) at times t (n,) [s], with torques and contact forces.

    Axes that lead are worlds; `trajectory[k]` is world k. tau (..., n, nv), forces (..., n, k) and residual (..., n)
    belong to the step that begins at t; the last ones are repeated.
    forces [N, N m]: with a Ground, three per foot in world axes (the mean over the step); with Contacts, those of
    `constrained_dynamics`; `split` names them.
    residual [N s]: the error of a Ground's percussions.
    arrows (..., n, contacts, 2, 3): the points where forces act [m], and the forces, in the world.
    surface (k, l, 3): a grid of the ground, for drawing.
    friction: the coefficient of each foot of a Ground, for drawing; empty if there is none.
    robot: its name; model: the robot itself; convention: that of q, v and tau; complete: False if interrupted.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    forces: Array
    residual: Array
    arrows: Array
    surface: Array
    contacts: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()  # of `forces`, for each contact
    robot: str = ""
    model: Model | None = None
    convention: str = STANDARD
    complete: bool = True
    friction: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        cut = "" if self.complete else ", interrupted"
        worlds = "".join(f"{n} x " for n in self.worlds)
        return f"<Trajectory of {self.robot}: {worlds}{len(self)} states, {self.t[-1]:g} s{cut}>"

    @property
    def worlds(self) -> tuple[int, ...]:
        """The shape of the axes that lead: () for one world."""
        return self.q.shape[:-2]

    def __getitem__(self, which: Any) -> Trajectory:
        """The motion of one world, or of some; the index is that of the leading axes."""
        if not self.worlds:
            raise InputError("trajectory: it has one world; index its arrays, such as trajectory.q, for states")
        index = which if isinstance(which, tuple) else (which,)
        if len(index) > len(self.worlds) or any(k is None or k is Ellipsis for k in index):
            raise InputError(f"trajectory: expected an index of worlds {self.worlds}, got {which!r}")
        parts = {name: getattr(self, name)[index] for name in ARRAYS if name != "t"}
        return replace(self, **parts)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write everything, including the robot, to an .npz file; atomically."""
        with unforked:
            from ..files.npz import write_npz

        entries: dict[str, Any] = {name: getattr(self, name) for name in (*ARRAYS, *FACTS, *LATER)}
        model = "" if self.model is None else saved.dumps(self.model)
        return write_npz(arrays.path_of(path), {"format": f"{KIND} {VERSION}", "model": model, **entries}, overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Read a file that `save` wrote."""
        with unforked:
            from ..files.npz import read_npz, require_arrays, require_format

        found = read_npz(arrays.path_of(path))
        try:
            require_format(found, KIND, VERSION)
            require_arrays(found, KIND, (*ARRAYS, *FACTS, "model"))
            return _checked(found)
        except FeatherjetError as error:
            raise InputError(f"{path}: {error}") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: damaged {KIND} file ({error})") from None

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        what: Literal["curves", "torques", "phase", "contacts"] = "curves",
        overwrite: bool = True,
    ) -> Figure:
        """A matplotlib figure of the motion, written as a PNG if there is a path.

        what: "curves", coordinates, velocities, torques and sizes of contact forces over time; "torques", against
        their limits; "phase", velocities over positions; "contacts", forces of the feet in their cones of friction.
        """
        with unforked:
            from ..view.backend import drawn, refuse_other_formats
            from ..view.charts import contacts_figure, phase_figure, torques_figure

        refuse_other_formats(path)
        if self.worlds:
            raise InputError(
                f"trajectory: {self.worlds} worlds are too many for a plot; take one, such as trajectory[0]"
            )
        shown = self.standard()
        cut = "" if shown.complete else ", interrupted"
        title = f"{shown.robot}: {shown.t[-1]:g} s{cut}"
        if what == "curves":
            figure = curves_figure(shown, title)
        elif what == "contacts":
            figure = contacts_figure({name: f[:, :3] for name, f in shown.split().items()}, shown.friction, title)
        elif shown.model is None:
            raise InputError(f"trajectory: cannot draw {what!r} without its robot's model")
        elif what == "torques":
            figure = torques_figure(shown.model, shown.t, shown.tau, title)
        elif what == "phase":
            figure = phase_figure(shown.model, shown.q, shown.v, title)
        else:
            raise UnknownName("plot", what, PLOTS)
        return drawn(figure, path, overwrite)

    def view(self, **options: Unpack[ViewOptions]) -> Viewer:
        """Play the motion in the browser, many worlds side by side; see `Robot.view` for the options."""
        with unforked:
            from ..view.show import show

        return show(self, **options)

    def split(self) -> dict[str, Array]:
        """Forces by contact: (..., n, 3) for points and feet; (..., n, 6), force then moment, for surfaces."""
        parts = np.split(self.forces, np.cumsum(self.rows)[:-1], axis=-1)
        return dict(zip(self.contacts, parts, strict=True)) if self.contacts else {}

    def standard(self) -> Trajectory:
        """The same motion in the standard convention, Pinocchio's."""
        if self.model is None or self.convention == STANDARD:
            return self
        given = {"q": self.q, "v": self.v, "tau": self.tau}
        found = Coordinates(self.model, self.convention).to_standard(given)[0]
        tau = np.array(found["tau"])
        tau[..., -1, :] = tau[..., -2:, :][..., 0, :]  # repeats the last step's
        return replace(self, q=found["q"], v=found["v"], tau=tau, convention=STANDARD)


@motion_to_show.register(Trajectory)
def _(motion: Trajectory) -> Playable:
    with unforked:
        from .playback import Playback

    return Playback(motion)


def curves_figure(motion: Trajectory, title: str) -> Figure:
    """Coordinates, velocities, torques and sizes of contact forces over time, as a matplotlib figure."""
    with unforked:
        from ..view.curves import TimePanel, panels_figure

    q_names, v_names = ([], []) if motion.model is None else coordinate_names(motion.model)
    panels = [
        TimePanel("q [m, rad]", motion.q, q_names),
        TimePanel("v [m/s, rad/s]", motion.v, v_names),
        TimePanel("tau [N, N m]", motion.tau, v_names),
    ]
    if motion.contacts:
        sizes = [np.linalg.norm(f[:, :3], axis=1) for f in motion.split().values()]
        panels.append(TimePanel("contact force [N]", np.stack(sizes, -1), motion.contacts))
    return panels_figure(title, motion.t, panels)


def _checked(found: dict[str, Array]) -> Trajectory:
    """The trajectory of a file, if its arrays fit each other and the robot."""
    model = saved.loads(str(found["model"])) if str(found["model"]) else None
    convention, contacts = str(found["convention"]), tuple(map(str, found["contacts"]))
    space = model if model is None or convention == STANDARD else Coordinates(model, convention)
    rows = tuple(map(int, found["rows"]))
    cores = {"forces": (sum(rows),), "residual": (), "arrows": (found["arrows"].shape[-3:-2] or (0,)) + (2, 3)}
    if space is not None:
        cores |= {"q": (space.nq,), "v": (space.nv,), "tau": (space.nv,)}
    t = arrays.finite("t", found["t"], (), "times")
    worlds = found["q"].shape[:-2]
    for name in (*ARRAYS, "surface"):
        if found[name].dtype.kind not in "fiu" or (name != "surface" and not found[name].ndim):
            raise InputError(f"array {name!r}: expected rows of real numbers")
        want = (*worlds, t.size, *cores[name]) if name in cores else None
        if want is not None and found[name].shape != want:
            raise InputError(f"array {name!r}: expected shape {want}, got {found[name].shape}")
    n = t.size
    if t.ndim != 1 or found["q"].shape[-2:-1] != (n,) or found["v"].shape[:-1] != (*worlds, n):
        raise InputError(f"arrays 'q' and 'v': expected {n} rows, as many as 't'")
    if len(contacts) != len(rows) or min(rows, default=0) < 0 or not n:
        raise InputError("there are no states, or contacts and rows do not fit")
    friction = tuple(map(float, found.get("friction", ())))
    if friction and (len(friction) != len(contacts) or not np.isfinite(friction).all()):
        raise InputError(f"array 'friction': expected a number for each of {len(contacts)} contacts")
    for what, name in (("robot", str(found["robot"])), *(("contact", c) for c in contacts)):
        require_name(what, name)
    return Trajectory(
        **{name: found[name] for name in (*ARRAYS, "surface")}, contacts=contacts, rows=rows, robot=str(found["robot"]),
        model=model, convention=convention, complete=bool(found["complete"].item()), friction=friction,
    )  # fmt: skip
