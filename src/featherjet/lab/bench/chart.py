"""The benchmark as bars: the speed of each contender, relative to Pinocchio's loop if there is one, robot by robot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ...view.backend import save_png
from .contenders import BATCH, BOUND, DIFFERENCES, MUJOCO, PIN_CALL, PIN_LOOP, SINGLE, THREADS
from .quantities import QUANTITIES

COLOURS = {
    BATCH: "#1b6ca8",
    THREADS: "#0d3b66",
    SINGLE: "#7fb7de",
    BOUND: "#4a95c9",
    PIN_CALL: "#f2a65a",
    MUJOCO: "#8a8f98",
    DIFFERENCES: "#c9ccd3",
}
INK = "#22252b"
COLUMNS = 2  # of panels: more are too small to read on a page


def save_chart(report: dict[str, Any], path: Path) -> None:
    """Draw one panel per quantity, with a bar for each contender on a logarithmic axis.

    A bar's length is the speed relative to Pinocchio's loop; where no robot was timed with it, states per second.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    robots = report["robots"]
    rows = -(-len(QUANTITIES) // COLUMNS)
    figure = Figure(figsize=(9.0, 1.0 + rows * (0.5 + 0.95 * len(robots))), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, sharey=True).ravel()
    height = 0.8 / len(COLOURS)
    relative = any(entry["ratio"] for entry in entries(report))
    base = 1.0 if relative else 10.0 ** math.floor(math.log10(min(speed(x, relative) or 1 for x in entries(report))))
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        for k, (contender, colour) in enumerate(COLOURS.items()):
            at, length = [], []
            for i, robot in enumerate(robots):
                entry = robot["quantities"][quantity]["ways"].get(contender)
                if entry and (found := speed(entry, relative)):
                    at.append(i + (k - (len(COLOURS) - 1) / 2) * height)
                    length.append(found)
            if at:
                ax.barh(at, [x - base for x in length], height, left=base, color=colour, label=contender)
            for y, x in zip(at, length, strict=True):
                if contender in (BATCH, THREADS):
                    ax.text(x, y, f" {x:.3g}", va="center", fontsize=8, color=INK)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}x" if relative else f"{x:.0e}"))
        ax.axvline(base, color=INK, linewidth=0.8)
        ax.set_title(quantity.replace("_", " "), fontsize=12, color=INK)
        ax.tick_params(colors=INK, labelsize=9)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    axes[0].set_yticks(range(len(robots)), [f"{r['title']}\nnv {r['nv']}" for r in robots])
    axes[0].invert_yaxis()
    what = f"speed per state, relative to: {PIN_LOOP}" if relative else "states per second"
    figure.supxlabel(what, fontsize=10, color=INK)
    shown = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=3, fontsize=9, frameon=False)
    save_png(figure, path, dpi=130)


def entries(report: dict[str, Any]) -> list[dict[str, Any]]:
    """What was measured of the contenders that the chart shows."""
    ways = [q["ways"] for robot in report["robots"] for q in robot["quantities"].values()]
    return [entry for found in ways for name, entry in found.items() if entry and name in COLOURS]


def speed(entry: dict[str, Any], relative: bool) -> float | None:
    """Speed relative to Pinocchio's loop, None if that was not timed; or states per second."""
    if relative:
        return entry["ratio"]["median"] if entry["ratio"] else None
    return 1 / entry["seconds"]["median"]
