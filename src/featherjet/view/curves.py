"""Curves over time: the numbers that plots and the viewer show, and the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.model import Array
from ..model.names import coordinate_names
from .backend import literal, require_matplotlib
from .playable import Playable

NAMED_TORQUES = 10  # curves of a transition's plot that are named: those with the largest peaks
NAMED_CURVES = 8  # curves of a panel that are named: those that move most
GREY, RED = "#c9ccd3", "#d1495b"
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")
CURSOR = "#22252b"


class Curves(NamedTuple):
    """Torques tau (n, nv), energy rate (n,) and accumulated energy (n,) at times t (n,) [s].

    names (nv) are those of the degrees of freedom; `largest` are the indices of those with the largest torques.
    """

    t: Array
    tau: Array
    rate: Array
    energy: Array
    names: list[str]
    largest: list[int]


def curves(motion: Playable, count: int = 301) -> Curves:
    """The curves of a motion at `count` times; of its first world, if it has many."""
    t = motion.times(count)
    tau, rate = motion.tau(t), motion.energy_rate(t)
    tau, rate = tau.reshape(len(t), -1, tau.shape[-1])[:, 0], rate.reshape(len(t), -1)[:, 0]
    steps = (rate[1:] + rate[:-1]) / 2 * np.diff(t)
    energy = np.concatenate([[0.0], np.cumsum(steps)])
    largest = sorted(np.argsort(-np.abs(tau).max(0))[:NAMED_TORQUES].tolist())
    return Curves(t, tau, rate, energy, coordinate_names(motion.model)[1], largest)


class TimePanel(NamedTuple):
    """One panel of a plot: curves (n, k) over time, with up to k names."""

    title: str
    values: Array
    names: Sequence[str]


def motion_panels(motion: Playable) -> tuple[Array, list[TimePanel]]:
    """What the viewer draws of a motion beside it, and at which times (n,) [s]: torques, contact forces and energy.

    What is zero all the time is left out.
    """
    c = curves(motion)
    found = [TimePanel("torque [N m, N]", c.tau[:, c.largest], [c.names[k] for k in c.largest])]
    contacts = motion.contact_forces
    if contacts is not None and contacts.names:
        force = contacts.arrows(c.t)[..., 1, :].reshape(len(c.t), motion.worlds, -1, 3)[:, 0]
        found.append(TimePanel("contact force [N]", np.linalg.norm(force, axis=-1), contacts.names))
    found.append(TimePanel("energy", c.energy[:, None], ["energy so far"]))
    return c.t, [panel for panel in found if panel.values.any()]


def panels_figure(title: str, t: Array, panels: Sequence[TimePanel]) -> Any:
    """Panels below each other over times t (n,) [s]."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.2 * len(panels)), layout="constrained")
    for ax, panel in zip(figure.subplots(len(panels), 1, sharex=True), panels, strict=True):
        spans = np.ptp(panel.values, axis=0)
        most = np.argsort(-spans)[:NAMED_CURVES].tolist()
        named = sorted(k for k in most if spans[k] > 0 and k < len(panel.names))
        _draw_named(ax, t, panel.values, panel.names, named)
        ax.set_ylabel(panel.title)
        ax.grid(alpha=0.3)
    figure.suptitle(literal(title), fontsize=11)
    figure.supxlabel("time [s]", fontsize=9)
    return figure


class SearchRecord(NamedTuple):
    """How a solver found a motion: its energy at every iteration (n,), and the energies of motions to compare with."""

    solver: str
    energies: Array
    baselines: Mapping[str, float]


def energy_figure(title: str, motion: Playable, search: SearchRecord) -> Any:
    """Torques, energy over time, and energy over the solver's iterations."""
    require_matplotlib()
    from matplotlib.figure import Figure

    c = curves(motion)
    figure = Figure(figsize=(9, 8), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, height_ratios=[2, 1, 1])
    _draw_named(top, c.t, c.tau, c.names, c.largest)
    top.set_ylabel("torque [N m, N]")
    _draw_energy(middle, c)
    _draw_search(bottom, search)
    for ax in (top, middle, bottom):
        ax.grid(alpha=0.3)
    figure.suptitle(literal(title), fontsize=11)
    return figure


def _draw_named(ax: Any, t: Array, x: Array, names: Sequence[str], named: list[int]) -> None:
    """Curves (n, k): those in `named` in colour with a legend, the others grey."""
    others = [k for k in range(x.shape[1]) if k not in named]
    ax.plot(t, x[:, others], color=GREY, linewidth=0.7)
    for k in named:
        ax.plot(t, x[:, k], label=literal(names[k]), linewidth=1.0)
    if named:
        _legend(ax)


def _draw_energy(ax: Any, c: Curves) -> None:
    """The energy rate, and on an axis of its own the energy accumulated so far."""
    ax.fill_between(c.t, c.rate, alpha=0.25)
    ax.plot(c.t, c.rate, linewidth=1.0)
    ax.set_ylabel("weighted sum of\nsquared torques")
    ax.set_xlabel("time [s]")
    total = ax.twinx()
    total.plot(c.t, c.energy, color=RED, linewidth=1.0)
    total.set_ylabel("energy so far", color=RED)


def _draw_search(ax: Any, search: SearchRecord) -> None:
    """Energy over iterations, logarithmic, with the baselines as horizontal lines."""
    ax.semilogy(np.arange(1, len(search.energies) + 1), np.maximum(search.energies, 1e-300), linewidth=1.0)
    for (name, energy), style in zip(search.baselines.items(), (":", "--"), strict=True):
        ax.axhline(max(energy, 1e-300), color="#8a8f98", linestyle=style, linewidth=1.0, label=f"of a {name}")
    _legend(ax)
    ax.set_ylabel("energy")
    ax.set_xlabel(f"iteration of {search.solver}")


def _legend(ax: Any) -> None:
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
