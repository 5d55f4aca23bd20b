"""`featherjet plot`: draw curves of a transition or a simulation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..atomic import refuse_bad_target, refuse_own_input
from .output import line
from .parsing import command
from .view import load_motion

EXAMPLES = """\
examples:
  featherjet plot t.npz                                writes t.png
  featherjet plot t.npz --out curves.png --overwrite

A transition's plot shows torque and energy; a simulation's, coordinates, velocities, torques and contact forces.
Needs matplotlib: pip install 'featherjet[plots]'."""


def add(commands: Any) -> None:
    sub = command(commands, "plot", run, "draw the curves of a motion", EXAMPLES)
    sub.add_argument("file", metavar="FILE", help="a saved transition or simulated trajectory")
    sub.add_argument("--out", metavar="FILE", help="the PNG to write (default: beside the file)")
    sub.add_argument("--overwrite", action="store_true", help="replace the picture if it exists")


def run(args: argparse.Namespace) -> int:
    path = Path(args.out) if args.out else Path(args.file).with_suffix(".png")
    refuse_bad_target(path, args.overwrite)
    refuse_own_input(path, Path(args.file))
    load_motion(Path(args.file)).plot(path, overwrite=args.overwrite)
    line(f"picture: {path}")
    return 0
