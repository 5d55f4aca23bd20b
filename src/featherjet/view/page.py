"""Curves beside the player of a page that needs nothing else: drawings that know no server, and a cursor."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from ..model.model import Array
from .curves import COLOURS, CURSOR, TimePanel

WIDTH, HEIGHT = 300, 130  # of a drawing, in its own units
STYLE = """
@media (min-width: 800px) { #root { width: calc(100vw - 330px); } }
@media (max-width: 799px) { #curves { display: none; } }
[data-playback-scene-tree][style*="right"] { right: calc(330px + 1em) !important; }
#root { height: 100vh; position: relative; overflow: hidden; }
#curves { position: fixed; top: 0; right: 0; bottom: 0; width: 330px; box-sizing: border-box; padding: 10px 14px;
  overflow-y: auto; border-left: 1px solid #dee2e6; background: #fff; color: #22252b;
  font: 12px system-ui, sans-serif; }
#curves h1 { font-size: 14px; margin: 2px 0 10px; }
#curves figure { margin: 0 0 14px; }
#curves figcaption { font-weight: 600; margin-bottom: 3px; }
#curves svg { width: 100%; height: auto; display: block; }
#curves text { font-size: 9px; fill: #868e96; }
#curves polyline { fill: none; stroke-width: 1.2; vector-effect: non-scaling-stroke; }
#curves span { margin-right: 9px; white-space: nowrap; }
#curves b { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 3px; }
"""
# The player has a slider, which the player moves; cursors follow it.
SCRIPT = """
const root = document.getElementById('root');
new MutationObserver(() => {
  const slider = root.querySelector('[role=slider]');
  if (!slider) return;
  const share = slider.getAttribute('aria-valuenow') / slider.getAttribute('aria-valuemax');
  for (const line of document.querySelectorAll('#curves .now')) {
    const x = +line.dataset.from + share * line.dataset.width;
    line.setAttribute('x1', x);
    line.setAttribute('x2', x);
  }
}).observe(root, {subtree: true, attributes: true, attributeFilter: ['aria-valuenow']});
"""
LEFT, RIGHT, TOP, BOTTOM = 38, 4, 6, 16  # room around the curves


def titled(page: str, title: str) -> str:
    """A player's page with a title of its own."""
    return page.replace("<title>Viser</title>", f"<title>featherjet: {html.escape(title)}</title>", 1)


def with_curves(page: str, title: str, t: Array, panels: Sequence[TimePanel]) -> str:
    """A player's page with panels of curves over times t (n,) [s] beside it."""
    drawn = "".join(_figure(t, panel) for panel in panels)
    aside = f'<style>{STYLE}</style><aside id="curves"><h1>{html.escape(title)}</h1>{drawn}</aside>'
    head, body, rest = page.rpartition("</body>")
    return f'{head}{aside}<script type="module">{SCRIPT}</script>{body}{rest}'


def _figure(t: Array, panel: TimePanel) -> str:
    shown = list(zip(panel.names, COLOURS, panel.values.T, strict=False))
    values = np.stack([x for *_, x in shown])
    low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1.0, high + 1.0
    x = LEFT + (WIDTH - LEFT - RIGHT) * (t - t[0]) / (t[-1] - t[0])
    lines = []
    for _, colour, values in shown:
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - values) / (high - low)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        lines.append(f'<polyline points="{points}" stroke="{colour}"/>')
    keys = "".join(f'<span><b style="background:{c}"></b>{html.escape(name)}</span>' for name, c, _ in shown)
    return (
        f"<figure><figcaption>{html.escape(panel.title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{_axes(low, high, float(t[-1] - t[0]))}{"".join(lines)}'
        f'<line class="now" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{CURSOR}" '
        f'data-from="{LEFT}" data-width="{WIDTH - LEFT - RIGHT}"/></svg>{keys}</figure>'
    )


def _axes(low: float, high: float, duration: float) -> str:
    """The frame, and numbers at its ends."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    frame = f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#ced4da"/>'
    zero = TOP + (bottom - TOP) * high / (high - low)
    if low < 0 < high:
        frame += f'<path d="M{LEFT} {zero:.1f}H{right}" stroke="#e9ecef"/>'
    ends = ((high, TOP + 8), (low, bottom))
    numbers = "".join(f'<text x="{LEFT - 4}" y="{y}" text-anchor="end">{value:.4g}</text>' for value, y in ends)
    seconds = f'<text x="{LEFT}" y="{HEIGHT - 4}">0</text>'
    seconds += f'<text x="{right}" y="{HEIGHT - 4}" text-anchor="end">{duration:.3g} s</text>'
    return frame + numbers + seconds
