"""`featherjet plot`: torque and energy curves of a transition."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..transition import Transition
from .output import line
from .parsing import command

EXAMPLES = """\
examples:
  featherjet plot t.npz                                writes t.png
  featherjet plot t.npz --out curves.png

Needs matplotlib: pip install 'featherjet[plots]'."""


def add(commands: Any) -> None:
    sub = command(commands, "plot", run, "draw torque and energy of a transition", EXAMPLES)
    sub.add_argument("file", metavar="FILE", help="what `featherjet transition` wrote")
    sub.add_argument("--out", metavar="FILE", help="the PNG to write (default: beside the file)")


def run(args: argparse.Namespace) -> int:
    path = Path(args.out) if args.out else Path(args.file).with_suffix(".png")
    Transition.load(args.file).plot(path)
    line(f"picture: {path}")
    return 0
