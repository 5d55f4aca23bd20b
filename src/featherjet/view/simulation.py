"""A simulated motion as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files.csv import coordinate_names
from ..files.whole import written
from ..model.model import Array
from .matrices import require_matplotlib

if TYPE_CHECKING:
    from ..simulation.trajectory import Trajectory

SHOWN = 8  # curves of a panel that have a name: those that move most


def save_plot(motion: Trajectory, path: Path) -> Path:
    """Coordinates, velocities, torques and the size of contact forces over time, as a PNG; in our coordinates."""
    require_matplotlib()
    from matplotlib.figure import Figure

    motion = motion.standard()
    of_q, of_v = ([], []) if motion.model is None else coordinate_names(motion.model)
    panels = [
        ("q [m, rad]", motion.q, of_q), ("v [m/s, rad/s]", motion.v, of_v), ("tau [N, N m]", motion.tau, of_v),
    ]  # fmt: skip
    if motion.contacts:
        sizes = [np.linalg.norm(f[:, :3], axis=1) for f in motion.split().values()]
        panels.append(("contact force [N]", np.stack(sizes, -1), list(motion.contacts)))
    figure = Figure(figsize=(9, 2.2 * len(panels)), layout="constrained")
    for ax, panel in zip(figure.subplots(len(panels), 1, sharex=True), panels, strict=True):
        _draw(ax, motion.t, *panel)
    cut = "" if motion.complete else ", interrupted"
    figure.suptitle(f"{motion.robot}: {motion.t[-1]:g} s{cut}", fontsize=11)
    figure.supxlabel("time [s]", fontsize=9)
    with written(path) as beside:
        figure.savefig(beside, format="png", dpi=110, facecolor="white")
    return path


def _draw(ax: Any, t: Array, title: str, x: Array, names: list[str]) -> None:
    """Curves (n, k); the names of those that move most, in their order, the others grey."""
    spans = np.ptp(x, axis=0)
    named = sorted(k for k in np.argsort(-spans)[:SHOWN].tolist() if spans[k] > 0 and k < len(names))
    others = [k for k in range(x.shape[1]) if k not in named]
    ax.plot(t, x[:, others], color="#c9ccd3", linewidth=0.7)
    for k in named:
        ax.plot(t, x[:, k], linewidth=1.0, label=names[k])
    if named:
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    ax.set_ylabel(title)
    ax.grid(alpha=0.3)
