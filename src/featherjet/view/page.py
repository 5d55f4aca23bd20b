"""Curves beside the player of a page that needs nothing else: drawings that know no server, and a cursor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..display import Markup, markup, together
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
    return page.replace("<title>Viser</title>", markup("<title>featherjet: {}</title>", title), 1)


def with_curves(page: str, title: str, t: Array, panels: Sequence[TimePanel]) -> str:
    """A player's page with panels of curves over times t (n,) [s] beside it."""
    drawn = together(_figure(t, panel) for panel in panels)
    aside = markup('<style>{}</style><aside id="curves"><h1>{}</h1>{}</aside>', Markup(STYLE), title, drawn)
    script = markup('<script type="module">{}</script>', Markup(SCRIPT))
    head, body, rest = page.rpartition("</body>")
    return head + aside + script + body + rest


def _figure(t: Array, panel: TimePanel) -> Markup:
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
        lines.append(markup('<polyline points="{}" stroke="{}"/>', points, colour))
    keys = together(markup('<span><b style="background:{}"></b>{}</span>', colour, name) for name, colour, _ in shown)
    cursor = markup(
        '<line class="now" x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}" data-from="{}" data-width="{}"/>',
        LEFT, LEFT, TOP, HEIGHT - BOTTOM, CURSOR, LEFT, WIDTH - LEFT - RIGHT,
    )  # fmt: skip
    return markup(
        '<figure><figcaption>{}</figcaption><svg viewBox="0 0 {} {}">{}{}{}</svg>{}</figure>',
        panel.title, WIDTH, HEIGHT, _axes(low, high, float(t[-1] - t[0])), together(lines), cursor, keys,
    )  # fmt: skip


def _axes(low: float, high: float, duration: float) -> Markup:
    """The frame, and numbers at its ends."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [markup('<path d="M{} {}V{}H{}" fill="none" stroke="#ced4da"/>', LEFT, TOP, bottom, right)]
    if low < 0 < high:
        zero = TOP + (bottom - TOP) * high / (high - low)
        parts.append(markup('<path d="M{} {}H{}" stroke="#e9ecef"/>', LEFT, f"{zero:.1f}", right))
    texts = [(LEFT - 4, TOP + 8, "end", f"{high:.4g}"), (LEFT - 4, bottom, "end", f"{low:.4g}")]
    texts += [(LEFT, HEIGHT - 4, "start", "0"), (right, HEIGHT - 4, "end", f"{duration:.3g} s")]
    parts += [markup('<text x="{}" y="{}" text-anchor="{}">{}</text>', *text) for text in texts]
    return together(parts)
