"""Write the badges of the README, from the project file and the wheel: no service, nothing that is not so.

python tools/badges.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/assets"
PER_LETTER, PADDING = 6.6, 10
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<rect width="{left}" height="20" rx="3" fill="#555"/><rect x="{cut}" width="{right}" height="20" rx="3" fill="#3f51b5"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left_middle}" y="14">{name}</text><text x="{right_middle}" y="14">{value}</text></g></svg>
"""


def facts() -> dict[str, str]:
    """What the badges say."""
    project = (ROOT / "pyproject.toml").read_text()
    found = {k: re.search(rf'^{k} = "(.+)"$', project, re.M) for k in ("version", "license", "requires-python")}
    values = {k: m[1] if m else "" for k, m in found.items()}
    python = values["requires-python"].replace(">=", "") + "+"
    return {"version": values["version"], "python": python, "wheel": "pure Python", "license": values["license"]}


def badge(name: str, value: str) -> str:
    left, right = (round(PER_LETTER * len(text) + PADDING) for text in (name, value))
    return SVG.format(
        name=name, value=value, width=left + right, left=left + 3, cut=left, right=right,
        left_middle=left / 2, right_middle=left + right / 2,
    )  # fmt: skip


def main() -> None:
    for name, value in facts().items():
        (FOLDER / f"{name}.svg").write_text(badge(name, value))


if __name__ == "__main__":
    main()
