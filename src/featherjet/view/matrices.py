"""Pictures of derivative matrices: the size of each entry, and the zero pattern of a branching tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model.model import WORLD, Array, Model
from ..model.names import coordinate_names
from .backend import literal, require_matplotlib, save_png

PANELS = {
    "inverse_dynamics_derivatives.png": {
        "dtau_dq": r"$\partial\tau/\partial q$",
        "dtau_dv": r"$\partial\tau/\partial v$",
        "dtau_da": r"$\partial\tau/\partial a = M$",
    },
    "forward_dynamics_derivatives.png": {
        "da_dq": r"$\partial a/\partial q$",
        "da_dv": r"$\partial a/\partial v$",
        "da_dtau": r"$\partial a/\partial\tau = M^{-1}$",
    },
}
DECADES = 5  # below the largest entry that colours distinguish
NAMED_DOFS = 24  # robots with at most so many degrees of freedom have each of them named on the axes
ROUNDING = 1e-13  # entries smaller than this, relative to the largest, would be zero in exact arithmetic
LONGEST = 18  # characters of a name on an axis
INK, FAINT, ROUNDING_GREY, DOT = "#22252b", "#c9ccd3", "#e4e5e9", "#31688e"


def save_pictures(model: Model, derivatives: Mapping[str, Array], folder: Path) -> list[Path]:
    """Draw one PNG of the derivatives of inverse dynamics and one of forward dynamics; return their paths."""
    saved = []
    for file, panels in PANELS.items():
        figure = draw(model, {title: derivatives[name] for name, title in panels.items()})
        saved.append(save_png(figure, folder / file, dpi=130))
    return saved


def draw(model: Model, matrices: Mapping[str, Array]) -> Any:
    """A figure with one panel for each (n, nv, nv): root mean square over the states, logarithmic, zeros white."""
    require_matplotlib()
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.figure import Figure

    shades = ListedColormap(colormaps["YlGnBu"](np.linspace(0.12, 1.0, 256)))
    colours = shades.with_extremes(under=ROUNDING_GREY, bad="white")
    figure = Figure(figsize=(4.2 * len(matrices) + 0.7, 5.1), layout="constrained")
    figure.get_layout_engine().set(wspace=0.03, h_pad=0.12)  # type: ignore[union-attr]
    axes = figure.subplots(1, len(matrices), squeeze=False)[0]
    for ax, (title, x) in zip(axes, matrices.items(), strict=True):
        size = np.sqrt((np.abs(x) ** 2).mean(0))
        top = size.max() or 1.0
        real = size[size > ROUNDING * top]
        low = max(real.min(), top * 10.0**-DECADES) if real.size else 0.1
        shown = np.where(size > ROUNDING * top, np.maximum(size, low), size)
        norm = LogNorm(min(low, top / 10), top)
        image = ax.imshow(np.ma.masked_equal(shown, 0), cmap=colours, norm=norm, interpolation="none")
        ax.set_title(title, fontsize=16, color=INK, pad=8)
        label(ax, model, left=ax is axes[0])
        bar = figure.colorbar(image, ax=ax, orientation="horizontal", shrink=0.7, aspect=30, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(which="both", labelsize=8, colors=INK, length=2)
        bar.ax.minorticks_off()
    caption = "{}: root mean square over {} states; white: exactly zero, grey: zero but for rounding"
    figure.supxlabel(caption.format(literal(model.name), len(next(iter(matrices.values())))), fontsize=10, color=INK)
    return figure


def spy_figure(model: Model, derivatives: Mapping[str, Array]) -> Any:
    """Which entries of derivatives (n, nv, nv) are not zero at some of n states, each in a panel named by its share."""
    require_matplotlib()
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    rows = list(PANELS.values())
    figure = Figure(figsize=(4.2 * len(rows[0]) + 0.7, 4.6 * len(rows)), layout="constrained")
    for axes, panels in zip(figure.subplots(len(rows), len(rows[0]), squeeze=False), rows, strict=True):
        for ax, (name, title) in zip(axes, panels.items(), strict=True):
            held = pattern(derivatives[name])
            ax.imshow(held, cmap=ListedColormap(["white", DOT]), vmin=0, vmax=1, interpolation="none")
            ax.set_title(f"{title}:  {held.mean():.0%}", fontsize=14, color=INK, pad=8)
            label(ax, model, left=ax is axes[0])
    figure.supxlabel(f"{literal(model.name)}: entries that are not zero", fontsize=10, color=INK)
    return figure


def pattern(x: Array) -> Array:
    """Where matrices (n, k, l) are more than rounding, relative to the largest entry of each, at any n."""
    size = np.abs(x)
    return (size > ROUNDING * size.max((1, 2), keepdims=True)).any(0)


class Limb(NamedTuple):
    """A stretch of the tree without a branch: its name, and its degrees of freedom from start to stop."""

    name: str
    start: int
    stop: int


def label(ax: Any, model: Model, left: bool) -> None:
    """Separate limbs by thin lines and name them at the top; name degrees of freedom left of the first panel."""
    parts, n = limbs(model), model.nv
    for limb in parts[1:]:
        ax.axhline(limb.start - 0.5, color=FAINT, linewidth=0.7)
        ax.axvline(limb.start - 0.5, color=FAINT, linewidth=0.7)
    for side in ax.spines.values():
        side.set_color(FAINT)
    roomy = [limb for limb in parts if limb.stop - limb.start > n / 28]
    middles, names = (
        [(limb.start + limb.stop - 1) / 2 for limb in roomy],
        [clipped(limb.name) for limb in roomy],
    )
    crowded = any(len(name) > 44 * (limb.stop - limb.start) / n for name, limb in zip(names, roomy, strict=True))
    ax.xaxis.tick_top()
    ax.set_xticks(middles, names, fontsize=9 if len(names) < 12 else 7)
    if crowded:
        ax.tick_params(axis="x", labelrotation=90)
    ax.set_yticks([])
    if left and n <= NAMED_DOFS:
        ax.set_yticks(range(n), [clipped(name) for name in coordinate_names(model)[1]], fontsize=8)
    elif left:
        ax.set_yticks(middles, names, fontsize=8)
    ax.tick_params(length=0, colors=INK, pad=3)


def clipped(name: str) -> str:
    return literal(name if len(name) <= LONGEST else f"{name[: LONGEST - 8]}…{name[-7:]}")


def limbs(model: Model) -> list[Limb]:
    """The tree cut at its branchings; a limb is named by the beginning that its joints' names share."""
    joints = model.joints
    children = [0] * (len(joints) + 1)
    for joint in joints:
        children[joint.parent] += 1  # the world is -1: its children are counted in the last place
    runs: list[list[int]] = []
    for i, joint in enumerate(joints):
        if joint.mimic:
            continue
        if not runs or joint.parent == WORLD or children[joint.parent] > 1 or joint.parent != i - 1:
            runs.append([])
        runs[-1].append(i)
    names = [shared_beginning([joints[i].name for i in run]) for run in runs]
    return [
        Limb(
            name if names.count(name) == 1 else joints[run[0]].name,
            model.v_starts[run[0]],
            model.v_starts[run[-1]] + joints[run[-1]].nv,
        )
        for name, run in zip(names, runs, strict=True)
    ]


def shared_beginning(names: list[str]) -> str:
    """The beginning that all names share, or the first name if they share none."""
    least, most = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    shared = least[:same].rstrip("_-. ")
    return shared if len(shared) > 1 else names[0]
