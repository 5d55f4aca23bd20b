"""Panels of a figure: curves over the size of a robot, bars, and matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...view.backend import save_png

INK = "#22252b"
COLOURS = (
    "#1b6ca8", "#f2a65a", "#3c9d5d", "#b5495b", "#7d5ba6", "#8a8f98", "#0d3b66", "#c9a227", "#4a95c9", "#d97fae",
)  # fmt: skip
STYLES = ("-", "-.", "--")
DPI = 100


class Panel(Protocol):
    """Part of a figure: draws itself on axes, and returns its numbers."""

    title: str

    def draw(self, ax: Any) -> None: ...

    def data(self) -> dict[str, Any]: ...


@dataclass
class LinePanel:
    """Curves {name: (x, y)}, on logarithmic axes unless all values are close to `level`; `marked` shows each point.

    With `alike`, every that many curves form a group: groups differ in line style, members of a group in colour.
    """

    title: str
    x: str
    y: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    marked: bool = False
    level: float | None = None  # a line to compare with
    alike: int | None = None

    def draw(self, ax: Any) -> None:
        for k, (name, (x, y)) in enumerate(self.curves.items()):
            group, member = divmod(k, self.alike or len(COLOURS))
            look = {"color": COLOURS[member], "linestyle": STYLES[group], "marker": "o" if self.marked else None}
            ax.plot(x, y, markersize=3, linewidth=1.2, label=name, **look)
        ax.set_xscale("log")
        heights = [y for _, ys in self.curves.values() for y in ys]
        if self.level is None or max(heights) > 5 * min(heights):
            ax.set_yscale("log")
            label_without_powers(ax.yaxis)
        sizes = sorted({x for xs, _ in self.curves.values() for x in xs})
        if all(float(x).is_integer() for x in sizes):
            ax.set_xticks(spaced(sizes), labels=[f"{x:g}" for x in spaced(sizes)])
            ax.set_xticks([], minor=True)
        if self.level is not None:
            ax.axhline(self.level, color=INK, linewidth=0.7)
        ax.set_xlabel(self.x, fontsize=8)
        ax.set_ylabel(self.y, fontsize=8)
        ax.legend(fontsize=7, frameon=False)

    def data(self) -> dict[str, Any]:
        curves = {k: {"x": list(map(float, x)), "y": list(map(float, y))} for k, (x, y) in self.curves.items()}
        return {"title": self.title, "x": self.x, "y": self.y, "curves": curves}


@dataclass
class Bars:
    """Groups of bars {name: heights}, one height per group; NaN where there is none."""

    title: str
    groups: Sequence[str]
    y: str
    bars: Mapping[str, Sequence[float]]
    log: bool = True

    def draw(self, ax: Any) -> None:
        width = 0.8 / len(self.bars)
        for k, (name, heights) in enumerate(self.bars.items()):
            at = np.arange(len(self.groups)) + (k - (len(self.bars) - 1) / 2) * width
            ax.bar(at, heights, width, color=COLOURS[k % len(COLOURS)], label=name)
        ax.set_xticks(range(len(self.groups)), self.groups, fontsize=7, rotation=20 if len(self.groups) > 5 else 0)
        if self.log:
            ax.set_yscale("log")
            label_without_powers(ax.yaxis)
        ax.set_ylabel(self.y, fontsize=8)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}  # beside the bars there is no room
        ax.legend(fontsize=7, frameon=False, ncols=2 if max(map(len, self.bars)) < 35 else 1, **below)

    def data(self) -> dict[str, Any]:
        bars = {k: [None if np.isnan(x) else float(x) for x in heights] for k, heights in self.bars.items()}
        return {"title": self.title, "y": self.y, "groups": list(self.groups), "bars": bars}


@dataclass
class MatrixPanel:
    """The magnitudes of a matrix' entries on a logarithmic scale; exact zeros are white."""

    title: str
    entries: np.ndarray
    low: float
    high: float

    def draw(self, ax: Any) -> None:
        from matplotlib.colors import LogNorm

        size = np.ma.masked_equal(np.abs(self.entries), 0)
        image = ax.imshow(size, cmap="viridis", norm=LogNorm(self.low, self.high), interpolation="none")
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7)
        bar.ax.tick_params(labelsize=7)
        bar.set_label("size of the entry; white: exactly zero", fontsize=7)
        ax.set_xlabel(f"{self.entries.shape[1]} columns", fontsize=8)
        ax.set_ylabel(f"{self.entries.shape[0]} rows", fontsize=8)
        ax.set_xticks([])
        ax.set_yticks([])

    def data(self) -> dict[str, Any]:
        largest, nonzeros = float(np.abs(self.entries).max()), int((self.entries != 0).sum())
        return {"title": self.title, "largest": largest, "other_than_zero": nonzeros}


def label_without_powers(axis: Any) -> None:
    """Write 200, not 2 x 10^2, unless numbers are very large or small; add ticks between few powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_view_interval()
    if low < 1e-3 or high > 1e6:
        return
    if high / low < 100:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
    axis.set_minor_formatter("")


def spaced(sizes: Sequence[float], apart: float = 1.26) -> list[float]:
    """The sizes whose labels fit on a logarithmic axis."""
    found: list[float] = []
    for x in sizes:
        if not found or x > apart * found[-1]:
            found.append(x)
    return found


def save_figure(title: str, panels: Sequence[Panel], path: Path) -> None:
    """Write all panels side by side as a PNG, the whole file or nothing."""
    from matplotlib.figure import Figure

    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(6.5, 4.3 * across), 3.4 * down + 0.4), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        panel.draw(ax)
        ax.set_title(panel.title, fontsize=9, color=INK)
        ax.tick_params(colors=INK, labelsize=7, which="both")
        for side in () if isinstance(panel, MatrixPanel) else ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    figure.suptitle(title, fontsize=10, color=INK)
    save_png(figure, path, dpi=DPI)
