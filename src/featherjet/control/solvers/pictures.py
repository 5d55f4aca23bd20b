"""Pictures of solutions: states, controls against their limits, costs by term, and the solver's way there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...view.backend import literal, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 8  # curves with a name, those that move most
GREY = "#c9ccd3"
NEAR = 0.05  # of a control's range: limits as near as this are drawn


@dataclass(frozen=True)
class Picture:
    """What is drawn of a motion of T knots: times t (T + 1,) [s], states, controls, costs, and the solver's way there.

    limits: lower and upper ones (T, nu) of controls, or None; terms: costs (T + 1,) by name; search: numbers that the
    solver brings down, by name, one for each iteration; names: of coordinates, velocities and controls.
    """

    title: str
    t: Array
    q: Array
    v: Array
    us: Array
    limits: tuple[Array | None, Array | None]
    terms: Mapping[str, Array]
    search: Mapping[str, Array]
    names: tuple[Sequence[str], Sequence[str], Sequence[str]]


def figure_of(picture: Picture) -> Figure:
    """The figure of a picture, five axes below each other."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 11), layout="constrained")
    states, rates, controls, costs, search = figure.subplots(5, 1)
    t = picture.t
    _curves(states, t, picture.q, picture.names[0], "q [m, rad]")
    _curves(rates, t, picture.v, picture.names[1], "v [m/s, rad/s]")
    _controls(controls, picture)
    _costs(costs, picture)
    _search(search, picture)
    for ax in (states, rates, controls, costs):
        ax.set_xlim(t[0], t[-1])
    costs.set_xlabel("time [s]")
    figure.suptitle(literal(picture.title), fontsize=11)
    return figure


def _named(x: Array) -> list[int]:
    """The curves (n, k) that get a name: those that move most."""
    spans = np.ptp(x, axis=0)
    return sorted(k for k in np.argsort(-spans)[:NAMED].tolist() if spans[k] > 0)


def _label(names: Sequence[str], k: int) -> str:
    return literal(names[k]) if k < len(names) else str(k)


def _curves(ax: Any, t: Array, x: Array, names: Sequence[str], label: str) -> None:
    """Curves (n, k), those that move most with names."""
    most = _named(x)
    ax.plot(t, x[:, [k for k in range(x.shape[1]) if k not in most]], color=GREY, linewidth=0.7)
    for k in most:
        ax.plot(t, x[:, k], linewidth=1.0, label=_label(names, k))
    _finish(ax, label)


def _controls(ax: Any, picture: Picture) -> None:
    """Controls as steps, and those limits that they come near."""
    t, us = picture.t, picture.us
    for k in _named(us):
        (line,) = ax.step(t, _repeated_last(us[:, k]), where="post", linewidth=1.0, label=_label(picture.names[2], k))
        for limit in picture.limits:
            if limit is not None and np.abs(us[:, k] - limit[:, k]).min() <= NEAR * np.ptp(us[:, k]):
                ax.step(
                    t, _repeated_last(limit[:, k]), where="post", linestyle=":", linewidth=1.0, color=line.get_color()
                )
    _finish(ax, "u [N, N m]\n(dotted: limits)")


def _repeated_last(x: Array) -> Array:
    """Values of T knots, the last one repeated."""
    return np.concatenate([x, x[-1:]])


def _costs(ax: Any, picture: Picture) -> None:
    """The cost of each knot by term, logarithmic."""
    for name, x in sorted(picture.terms.items(), key=lambda item: -float(np.sum(item[1])))[:NAMED]:
        ax.semilogy(picture.t, np.where(x > 0, x, np.nan), linewidth=1.0, marker=".", markersize=3, label=name)
    _finish(ax, "cost by term")


def _search(ax: Any, picture: Picture) -> None:
    for label, x in picture.search.items():
        ax.semilogy(np.where(x > 0, x, np.nan), linewidth=1.0, marker=".", label=label)
    ax.set_xlabel("iteration")
    _finish(ax, "search")


def _finish(ax: Any, label: str) -> None:
    ax.set_ylabel(label)
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
