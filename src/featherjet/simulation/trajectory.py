"""A simulated motion: saved, loaded, plotted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import arrays
from ..conventions.coordinates import STANDARD, Coordinates
from ..errors import FeatherjetError, InputError
from ..model.io import saved
from ..model.model import Array, Model, require_name
from ..model.names import coordinate_names

KIND, VERSION = "featherjet trajectory", "1"
ARRAYS = ("t", "q", "v", "tau", "forces", "residual", "arrows")
FACTS = ("surface", "contacts", "rows", "robot", "convention", "complete")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States q (n, nq), v (n, nv) at times t (n,) [s], with torques and contact forces.

    tau (n, nv), forces (n, k) and residual (n,) belong to the step that begins at t; the last ones are repeated.
    forces [N, N m]: with a Ground, three per foot in world axes (the mean over the step); with Contacts, those of
    `constrained_dynamics`; `split` names them.
    residual [N s]: the error of a Ground's percussions.
    arrows (n, contacts, 2, 3): the points where forces act [m], and the forces, in the world.
    surface (k, l, 3): a grid of the ground, for drawing.
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

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        cut = "" if self.complete else ", interrupted"
        return f"<Trajectory of {self.robot}: {len(self)} states, {self.t[-1]:g} s{cut}>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything, including the robot, to an .npz file; atomically."""
        from ..files.npz import write_npz

        entries: dict[str, Any] = {name: getattr(self, name) for name in (*ARRAYS, *FACTS)}
        model = "" if self.model is None else saved.dumps(self.model)
        return write_npz(Path(path), {"format": f"{KIND} {VERSION}", "model": model, **entries})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Read a file that `save` wrote."""
        from ..files.npz import read_npz, require_arrays, require_format

        found = read_npz(Path(path))
        try:
            require_format(found, KIND, VERSION)
            require_arrays(found, KIND, (*ARRAYS, *FACTS, "model"))
            return _checked(found)
        except FeatherjetError as error:
            raise InputError(f"{path}: {error}") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: damaged {KIND} file ({error})") from None

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Plot coordinates, velocities, torques and the sizes of contact forces over time, as a PNG."""
        from ..view.curves import TimePanel, save_panels

        shown = self.standard()
        q_names, v_names = ([], []) if shown.model is None else coordinate_names(shown.model)
        panels = [
            TimePanel("q [m, rad]", shown.q, q_names),
            TimePanel("v [m/s, rad/s]", shown.v, v_names),
            TimePanel("tau [N, N m]", shown.tau, v_names),
        ]
        if shown.contacts:
            sizes = [np.linalg.norm(f[:, :3], axis=1) for f in shown.split().values()]
            panels.append(TimePanel("contact force [N]", np.stack(sizes, -1), shown.contacts))
        cut = "" if shown.complete else ", interrupted"
        return save_panels(Path(path), f"{shown.robot}: {shown.t[-1]:g} s{cut}", shown.t, panels)

    def split(self) -> dict[str, Array]:
        """Forces by contact: (n, 3) for points and feet; (n, 6), force then moment, for surfaces."""
        parts = np.split(self.forces, np.cumsum(self.rows)[:-1], axis=1)
        return dict(zip(self.contacts, parts, strict=True)) if self.contacts else {}

    def standard(self) -> Trajectory:
        """The same motion in the standard convention, Pinocchio's."""
        if self.model is None or self.convention == STANDARD:
            return self
        given = {"q": self.q, "v": self.v, "tau": self.tau}
        found = Coordinates(self.model, self.convention).to_standard(given)[0]
        tau = np.array(found["tau"])
        tau[-1] = tau[-2:][0]  # repeats the last step's
        return replace(self, q=found["q"], v=found["v"], tau=tau, convention=STANDARD)


def _checked(found: dict[str, Array]) -> Trajectory:
    """The trajectory of a file, if its arrays fit each other and the robot."""
    model = saved.loads(str(found["model"])) if str(found["model"]) else None
    convention, contacts = str(found["convention"]), tuple(map(str, found["contacts"]))
    space = model if model is None or convention == STANDARD else Coordinates(model, convention)
    rows = tuple(map(int, found["rows"]))
    cores = {"t": (), "forces": (sum(rows),), "residual": (), "arrows": (found["arrows"].shape[1:2] or (0,)) + (2, 3)}
    if space is not None:
        cores |= {"q": (space.nq,), "v": (space.nv,), "tau": (space.nv,)}
    n = arrays.finite("t", found["t"], (), "times").size
    for name in (*ARRAYS, "surface"):
        if found[name].dtype.kind not in "fiu" or (name != "surface" and not found[name].ndim):
            raise InputError(f"array {name!r}: expected rows of real numbers")
        if name != "surface" and len(found[name]) != n:
            raise InputError(f"array {name!r} has {len(found[name])} rows; expected {n}, as many as 't'")
        if name in cores and found[name].shape != (n, *cores[name]):
            raise InputError(f"array {name!r}: expected shape {(n, *cores[name])}, got {found[name].shape}")
    if len(contacts) != len(rows) or min(rows, default=0) < 0 or not n:
        raise InputError("there are no states, or contacts and rows do not fit")
    for what, name in (("robot", str(found["robot"])), *(("contact", c) for c in contacts)):
        require_name(what, name)
    return Trajectory(
        **{name: found[name] for name in (*ARRAYS, "surface")}, contacts=contacts, rows=rows, robot=str(found["robot"]),
        model=model, convention=convention, complete=bool(found["complete"].item()),
    )  # fmt: skip
