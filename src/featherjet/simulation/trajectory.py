"""A motion that was computed: kept in a file, drawn, played."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..model.model import Array, Model

ARRAYS = ("t", "q", "v", "tau", "forces", "residual")
TOLD = ("contacts", "robot", "complete")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States at times t (n,) [s]: q (n, nq), v (n, nv).

    tau (n, nv), forces (n, k) and residual (n,) are those of the step that begins at t; the last ones are repeated.
    Forces are the contacts' [N, N m]: of a Ground, three in world axes for each foot (the mean over the step); of
    Contacts, as `constrained_dynamics` tells them. residual [N s] is how far the percussions of a Ground are from
    solving their problem. `robot` is its name, `model` the robot itself. complete: False if it was interrupted.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    forces: Array
    residual: Array
    contacts: tuple[str, ...] = ()
    robot: str = ""
    model: Model | None = None
    complete: bool = True

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        cut = "" if self.complete else ", interrupted"
        return f"<Trajectory of {self.robot}: {len(self)} states, {self.t[-1]:g} s{cut}>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Into an .npz file with everything in it, the robot included; whole or not at all."""
        from ..transition import modelfile

        path = Path(path)
        beside = path.with_name(path.name + ".part")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        told: dict[str, Any] = {name: getattr(self, name) for name in TOLD}
        told["model"] = "" if self.model is None else modelfile.dumps(self.model)
        try:
            with open(beside, "wb") as file:
                np.savez(file, **arrays, **told)
            os.replace(beside, path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
        finally:
            beside.unlink(missing_ok=True)
        return path

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """From a file that `save` wrote."""
        from ..cli.npzfile import read_npz
        from ..transition import modelfile

        found = read_npz(Path(path))
        if missing := [name for name in (*ARRAYS, *TOLD, "model") if name not in found]:
            raise InputError(f"{path}: no trajectory, since it holds no {missing[0]!r}")
        n = len(found["t"])
        if odd := [name for name in ARRAYS if len(found[name]) != n]:
            raise InputError(f"{path}: {odd[0]!r} has {len(found[odd[0]])} rows, but there are {n} times")
        names = tuple(str(name) for name in found["contacts"])
        arrays = {name: found[name] for name in ARRAYS}
        model = modelfile.loads(str(found["model"])) if str(found["model"]) else None
        return Trajectory(
            **arrays, contacts=names, robot=str(found["robot"]), model=model, complete=bool(found["complete"])
        )

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """A PNG over time: coordinates, velocities, torques and, if there are contacts, the size of their forces."""
        from ..cli.pictures import require_matplotlib

        require_matplotlib()
        from matplotlib.figure import Figure

        panels = {"q": self.q, "v": self.v, "tau": self.tau}
        if self.contacts:
            panels["contact forces [N]"] = self._sizes()
        figure = Figure(figsize=(8, 2.1 * len(panels)), layout="constrained")
        for ax, (title, x) in zip(figure.subplots(len(panels), 1, sharex=True), panels.items(), strict=True):
            lines = ax.plot(self.t, x, linewidth=0.9)
            ax.set_ylabel(title)
            ax.grid(alpha=0.3)
            if x is not self.q and self.contacts and title.startswith("contact"):
                ax.legend(lines, self.contacts, fontsize=7, loc="upper right")
        figure.supxlabel(f"{self.robot}: time [s]", fontsize=9)
        figure.savefig(path, format="png", dpi=110, facecolor="white")
        return Path(path)

    def _sizes(self) -> Array:
        """|force| of each contact, (n, contacts)."""
        width = self.forces.shape[1] // len(self.contacts)
        cuts = np.arange(len(self.contacts)) * width
        return np.stack([np.linalg.norm(self.forces[:, at : at + 3], axis=1) for at in cuts], -1)
