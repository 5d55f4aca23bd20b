"""`featherjet plot`: draw a transition, a simulation, or the zeros in a robot's derivatives."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..atomic import refuse_bad_target, refuse_own_input
from ..errors import InputError
from ..robot.loading import load
from .output import line
from .parsing import ROOTS, command
from .view import load_motion

EXAMPLES = """\
examples:
  featherjet plot t.npz                                writes t.png
  featherjet plot t.npz --what torques                 against their limits
  featherjet plot t.npz --what phase                   velocities over positions
  featherjet plot s.npz --what contacts                forces of the feet, and their cones of friction
  featherjet plot t.npz --out curves.png --overwrite
  featherjet plot talos --what sparsity --root free    which entries of the derivatives are zero

A transition's curves are torque and energy; a simulation's, coordinates, velocities, torques and contact forces.
Needs matplotlib: pip install 'featherjet[plots]'."""
KINDS = ("curves", "torques", "phase", "contacts", "sparsity")


def add(commands: Any) -> None:
    sub = command(commands, "plot", run, "draw the curves of a motion", EXAMPLES)
    sub.add_argument("file", metavar="FILE", help="a saved transition or simulated trajectory, or a robot")
    sub.add_argument("--what", choices=KINDS, default="curves", help="what to draw (default: curves)")
    sub.add_argument("--root", choices=ROOTS, default="fixed", help="how a robot is attached to the world")
    sub.add_argument("--out", metavar="FILE", help="the PNG to write (default: beside the file)")
    sub.add_argument("--overwrite", action="store_true", help="replace the picture if it exists")


def run(args: argparse.Namespace) -> int:
    sparsity = args.what == "sparsity"
    beside = Path(Path(args.file).stem + ".png") if sparsity else Path(args.file).with_suffix(".png")
    path = Path(args.out) if args.out else beside
    refuse_bad_target(path, args.overwrite)
    refuse_own_input(path, Path(args.file))
    if sparsity:
        load(args.file, args.root).plot_sparsity(path, overwrite=args.overwrite)
    else:
        motion: Any = load_motion(Path(args.file))
        if args.what == "contacts" and not hasattr(motion, "split"):
            raise InputError(f"{args.file}: --what contacts draws simulations; this is a transition")
        motion.plot(path, what=args.what, overwrite=args.overwrite)
    line(f"picture: {path}")
    return 0
