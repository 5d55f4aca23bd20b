"""What people look at in a motion: torques against their limits, phase portraits, and foot forces in their cones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..model import configuration
from ..model.model import Array, Model
from ..model.names import coordinate_names
from .backend import literal, require_matplotlib

MOST_PANELS = 24  # of a figure
COLUMNS = 4
STILL = 0.05  # least span of a phase portrait's axis, relative to that of the joint that moves most
BLUE, RED, FAINT, CONE = "#4269d0", "#d1495b", "#8a8f98", "#e8f0e4"


def torques_figure(model: Model, t: Array, tau: Array, title: str) -> Any:
    """Torques (n, nv) over times t (n,), a panel for each dof that moves them, with effort limits and excess in red.

    Of more than MOST_PANELS dofs, those nearest to their limits are drawn.
    """
    limit = configuration.limits(model).effort
    peak = np.abs(tau).max(0)
    driven = np.flatnonzero(peak > 0) if (peak > 0).any() else np.arange(model.nv)
    share = np.where(np.isfinite(limit), peak / np.maximum(limit, 1e-300), 0.0)
    chosen = sorted(driven[np.argsort(-share[driven], kind="stable")][:MOST_PANELS].tolist())
    names = [literal(name) for name in coordinate_names(model)[1]]
    figure, axes = _panels(len(chosen), title, "time [s]", "torque [N m, N]")
    for ax, k in zip(axes, chosen, strict=True):
        ax.plot(t, tau[:, k], color=BLUE, linewidth=1.0)
        ax.set_title(f"{names[k]}, {share[k]:.0%}" if np.isfinite(limit[k]) else names[k], fontsize=8)
        if np.isfinite(limit[k]):
            ax.plot(t, np.where(np.abs(tau[:, k]) > limit[k], tau[:, k], np.nan), color=RED, linewidth=1.6)
            for side in (-1, 1):
                ax.axhline(side * limit[k], color=RED, linestyle="--", linewidth=0.8)
    return figure


def phase_figure(model: Model, q: Array, v: Array, title: str) -> Any:
    """Velocity over position of joints with one degree of freedom, from q (n, nq) and v (n, nv), with limits.

    Of more than MOST_PANELS joints, those that move most are drawn.
    """
    found = [(part.joint, _position(part.joint.kind.nq, q[:, part.q]), v[:, part.v][:, 0]) for part in model.parts
             if part.joint.kind.nv == 1]  # fmt: skip
    if not found:
        raise InputError(f"robot {model.name!r} has no joint with one degree of freedom to draw a phase portrait of")
    spans = np.array([np.ptp(x) for _, x, _ in found])
    chosen = sorted(np.argsort(-spans, kind="stable")[:MOST_PANELS].tolist())
    fastest = max(float(np.ptp(u)) for *_, u in found)
    figure, axes = _panels(len(chosen), title, "position [rad, m]", "velocity [rad/s, m/s]")
    for ax, (joint, x, u) in zip(axes, (found[k] for k in chosen), strict=True):
        ax.plot(x, u, color=BLUE, linewidth=1.0)
        ax.plot(x[:1], u[:1], "o", color=BLUE, markersize=4)  # the start
        ax.set_title(literal(joint.name), fontsize=8)
        _widen(ax.set_xlim, x, STILL * spans.max())
        _widen(ax.set_ylim, u, STILL * fastest)
        bounds = (*joint.lower, *joint.upper) if joint.kind.nq == 1 else ()
        _draw_near(ax.axvline, bounds, ax.get_xlim())
        _draw_near(ax.axhline, (*joint.velocity_limit, *-joint.velocity_limit), ax.get_ylim())
    return figure


def contacts_figure(forces: Mapping[str, Array], friction: Sequence[float], title: str) -> Any:
    """Horizontal over vertical force (n, 3) of each contact, with the cone of friction on level ground."""
    if not forces:
        raise InputError("the motion has no contacts to draw the forces of")
    figure, axes = _panels(len(forces), title, "horizontal force [N]", "vertical force [N]")
    top = max(float(np.abs(f[:, 2]).max()) for f in forces.values()) or 1.0
    for k, (ax, (name, f)) in enumerate(zip(axes, forces.items(), strict=True)):
        signed = np.sign(f[:, 0]) * np.hypot(f[:, 0], f[:, 1])
        if friction:
            edge = friction[k] * top
            ax.fill([-edge, 0, edge], [top, 0, top], color=CONE)
            ax.plot([-edge, 0, edge], [top, 0, top], color=FAINT, linewidth=0.8)
        ax.plot(signed, f[:, 2], ".", color=BLUE, markersize=2)
        ax.set_title(literal(name), fontsize=8)
    return figure


def _panels(count: int, title: str, below: str, left: str) -> tuple[Any, list[Any]]:
    """A figure with so many panels in rows of up to COLUMNS."""
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(5.0, 2.6 * columns), 0.8 + 1.8 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.remove()
    for ax in axes[:count]:
        ax.grid(alpha=0.3)
        ax.tick_params(labelsize=7)
        ax.locator_params(nbins=4)
    figure.suptitle(literal(title), fontsize=11)
    figure.supxlabel(below, fontsize=9)
    figure.supylabel(left, fontsize=9)
    return figure, axes[:count]


def _position(nq: int, q: Array) -> Array:
    """The coordinate (n,) of a joint; of cosine and sine the angle, without jumps."""
    return q[:, 0] if nq == 1 else np.unwrap(np.arctan2(q[:, 1], q[:, 0]))


def _widen(set_limits: Any, x: Array, least: float) -> None:
    """Let an axis span at least so much, so that a joint that stands still does not show its rounding errors."""
    if np.ptp(x) < least:
        middle = (x.min() + x.max()) / 2
        set_limits(middle - least / 2, middle + least / 2)


def _draw_near(line: Any, values: Sequence[float], seen: tuple[float, float]) -> None:
    """Draw limits that are not far from what is seen."""
    room = seen[1] - seen[0]
    for x in values:
        if np.isfinite(x) and seen[0] - room <= x <= seen[1] + room:
            line(x, color=RED, linestyle="--", linewidth=0.8)
