"""The benchmark as bars: the speed of each contender relative to Pinocchio's loop, robot by robot."""

from __future__ import annotations

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


def save_chart(report: dict[str, Any], path: Path) -> None:
    """Draw one panel per quantity; a bar's length is the speed relative to Pinocchio's loop, on a logarithmic axis."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    robots = report["robots"]
    figure = Figure(figsize=(4.0 * len(QUANTITIES), 1.7 + 1.15 * len(robots)), layout="constrained")
    axes = figure.subplots(1, len(QUANTITIES), sharey=True, squeeze=False)[0]
    height = 0.8 / len(COLOURS)
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        for k, (contender, colour) in enumerate(COLOURS.items()):
            at, length = [], []
            for i, robot in enumerate(robots):
                entry = robot["quantities"][quantity]["ways"].get(contender)
                if entry:
                    at.append(i + (k - (len(COLOURS) - 1) / 2) * height)
                    length.append(speed(entry))
            ax.barh(at, [x - 1 for x in length], height, left=1, color=colour, label=contender)
            for y, x in zip(at, length, strict=True):
                if contender in (BATCH, THREADS):
                    ax.text(x, y, f" {x:.3g}", va="center", fontsize=7, color=INK)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}x"))
        ax.axvline(1.0, color=INK, linewidth=0.8)
        ax.set_title(quantity.replace("_", " "), fontsize=11, color=INK)
        ax.tick_params(colors=INK, labelsize=8)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    axes[0].set_yticks(range(len(robots)), [f"{r['title']}\nnv {r['nv']}" for r in robots])
    axes[0].invert_yaxis()
    baseline = PIN_LOOP if report["peers"]["pinocchio"] else "one state per second"
    figure.supxlabel(f"speed per state, relative to: {baseline}", fontsize=9, color=INK)
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    save_png(figure, path, dpi=130)


def speed(entry: dict[str, Any]) -> float:
    """Speed relative to Pinocchio's loop; without Pinocchio, states per second."""
    return entry["ratio"]["median"] if entry["ratio"] else 1 / entry["seconds"]["median"]
