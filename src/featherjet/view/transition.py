"""Torque and energy curves: the numbers that the plot and the viewer show, and the plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..files.csv import coordinate_names
from ..files.whole import written

if TYPE_CHECKING:
    from ..transition.result import Transition
    from .playback import Playback

Array = np.ndarray
SHOWN = 10  # torques that are drawn with a name: those with the largest peaks


class Curves(NamedTuple):
    """t (n,), torques (n, nv), energy rate (n,) and energy until then (n,); `large` are the dofs with a name."""

    t: Array
    tau: Array
    rate: Array
    energy: Array
    names: list[str]
    large: list[int]


def curves(result: Transition | Playback, count: int = 301) -> Curves:
    t = result.times(count)
    tau, rate = result.tau(t), result.energy_rate(t)
    steps = (rate[1:] + rate[:-1]) / 2 * np.diff(t)
    peaks = np.abs(tau).max(0)
    large = sorted(np.argsort(-peaks)[:SHOWN].tolist())
    return Curves(
        t, tau, rate, np.concatenate([[0.0], np.cumsum(steps)]), coordinate_names(result.robot.model)[1], large
    )


def save_plot(result: Transition, path: Path) -> Path:
    """Torques, energy over time, and energy over the solver's iterations, as a PNG."""
    from .matrices import require_matplotlib

    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: the picture is a PNG; give it a name that ends in .png")
    require_matplotlib()
    from matplotlib.figure import Figure

    c = curves(result)
    figure = Figure(figsize=(9, 8), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, height_ratios=[2, 1, 1])
    others = [k for k in range(c.tau.shape[1]) if k not in c.large]
    top.plot(c.t, c.tau[:, others], color="#c9ccd3", linewidth=0.7)
    for k in c.large:
        top.plot(c.t, c.tau[:, k], label=c.names[k], linewidth=1.1)
    top.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    top.set_ylabel("torque [N m, N]")
    middle.fill_between(c.t, c.rate, alpha=0.25)
    middle.plot(c.t, c.rate, linewidth=1.0)
    middle.set_ylabel("weighted sum of\nsquared torques")
    middle.set_xlabel("time [s]")
    total = middle.twinx()
    total.plot(c.t, c.energy, color="#d1495b", linewidth=1.0)
    total.set_ylabel("energy until then", color="#d1495b")
    bottom.semilogy(np.arange(1, len(result.history) + 1), np.maximum(result.history, 1e-300), linewidth=1.0)
    for (name, energy), style in zip(result.baselines().items(), (":", "--"), strict=True):
        bottom.axhline(max(energy, 1e-300), color="#8a8f98", linestyle=style, linewidth=1.0, label=f"of a {name}")
    bottom.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    bottom.set_ylabel("energy")
    bottom.set_xlabel(f"iteration of {result.report.solver}")
    for ax in (top, middle, bottom):
        ax.grid(alpha=0.3)
    figure.suptitle(f"{result.robot.name}: {result.duration:g} s, energy {result.energy:.4g}", fontsize=11)
    with written(path) as beside:
        figure.savefig(beside, format="png", dpi=110, facecolor="white")
    return path
