"""Pictures of solutions: states, controls against their limits, costs by term, and the solver's way there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..model.names import coordinate_names
from ..view.backend import refuse_other_formats, require_matplotlib, save_png
from .solution import Solution

NAMED = 8  # curves with a name, those that move most
GREY, RED = "#c9ccd3", "#d1495b"


def save_plot(solution: Solution, path: Path, overwrite: bool = True) -> Path:
    """Draw a solution of one problem as a PNG."""
    if solution.batch:
        raise InputError(f"solution: {solution.batch} problems are too many for a plot; take one, such as solution[0]")
    refuse_other_formats(path)
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 11), layout="constrained")
    states, rates, controls, costs, search = figure.subplots(5, 1)
    t, T = solution.t, solution.horizon.T
    names = _names(solution)
    nv = solution.horizon.ndx // 2
    nq = solution.horizon.nx - nv
    _curves(states, t, solution.xs[:, :nq], names[0], "q [m, rad]")
    _curves(rates, t, solution.xs[:, nq:], names[1], "v [m/s, rad/s]")
    _controls(controls, t, solution, names[2])
    _costs(costs, t, solution)
    _search(search, solution)
    for ax in (states, rates, controls, costs):
        ax.set_xlim(t[0], t[-1])
    costs.set_xlabel("time [s]")
    figure.suptitle(f"{T} knots, cost {float(solution.cost):.6g}, {solution.message}", fontsize=11)
    return save_png(figure, path, overwrite=overwrite)


def _names(solution: Solution) -> tuple[list[str], list[str], list[str]]:
    """Names of coordinates, velocities and controls, as far as the horizon knows a robot."""
    robot: Any = getattr(solution.horizon, "robot", None)
    q, v = ([], []) if robot is None else coordinate_names(robot.model)
    return list(q), list(v), list(v)[len(v) - solution.horizon.nu :] if v else []


def _curves(ax: Any, t: Array, x: Array, names: list[str], label: str) -> list[int]:
    """Curves (n, k), those that move most with names; returns these."""
    spans = np.ptp(x, axis=0)
    most = sorted(k for k in np.argsort(-spans)[:NAMED].tolist() if spans[k] > 0)
    ax.plot(t, x[:, [k for k in range(x.shape[1]) if k not in most]], color=GREY, linewidth=0.7)
    for k in most:
        ax.plot(t, x[:, k], linewidth=1.0, label=names[k] if k < len(names) else str(k))
    _finish(ax, label)
    return most


def _controls(ax: Any, t: Array, solution: Solution, names: list[str]) -> None:
    """Controls as steps, and the limits of those that come near them."""
    us = np.concatenate([solution.us, solution.us[-1:]])
    spans = np.ptp(us, axis=0)
    for k in np.argsort(-spans)[:NAMED].tolist():
        (line,) = ax.step(t, us[:, k], where="post", linewidth=1.0, label=names[k] if k < len(names) else str(k))
        for limit in (solution.horizon.u_lower, solution.horizon.u_upper):
            if limit is not None and np.abs(solution.us[:, k] - limit[:, k]).min() <= 0.05 * max(spans[k], 1e-300):
                bound = np.concatenate([limit[:, k], limit[-1:, k]])
                ax.step(t, bound, where="post", linestyle=":", linewidth=1.0, color=line.get_color())
    _finish(ax, "u [N, N m]\n(dotted: limits)")


def _costs(ax: Any, t: Array, solution: Solution) -> None:
    """The cost of each knot by term, logarithmic."""
    terms = solution.horizon.terms(solution.xs, solution.us)
    for name, x in sorted(terms.items(), key=lambda item: -float(np.sum(item[1])))[:NAMED]:
        ax.semilogy(t, np.where(x > 0, x, np.nan), linewidth=1.0, marker=".", markersize=3, label=name)
    _finish(ax, "cost by term")


def _search(ax: Any, solution: Solution) -> None:
    """How far the cost is above the best at each iteration, the largest gap, and what the solver waits for."""
    log = solution.log
    best = float(solution.cost)
    for x, label in ((log["cost"] - best, "cost - best"), (log["gap"], "gap"), (log["stop"], "expected gain")):
        ax.semilogy(np.where(x > 0, x, np.nan), linewidth=1.0, marker=".", label=label)
    ax.set_xlabel("iteration")
    _finish(ax, "search")


def _finish(ax: Any, label: str) -> None:
    ax.set_ylabel(label)
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
