"""`featherjet demo`: all derivatives of a robot at random states, verified, counted and drawn."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..loading import load
from ..robot import Robot
from ..verify import Finding
from .check import FORWARD, INVERSE, watched, worst
from .output import console, fail, line, table
from .parsing import add_seed, command, count
from .pictures import require_matplotlib, save_pictures

Array = np.ndarray
EXAMPLES = """\
examples:
  featherjet demo
  featherjet demo --robot humanoid --out pictures
  featherjet demo --robot my_robot.urdf --root free --size 100

In the pictures each square is an entry of a derivative matrix, coloured by its size; entries that are zero in every
state stay white. Two joints on different branches of the tree do not feel each other, hence the pattern."""


def add(commands: Any) -> None:
    sub = command(commands, "demo", run, "derive, verify and draw the derivatives of a robot", EXAMPLES)
    sub.add_argument("--out", default="demo", metavar="DIR", help="folder for the pictures (default: demo)")
    sub.add_argument("--robot", default="quadruped", help="a name or a file (default: quadruped)")
    sub.add_argument("--root", choices=("fixed", "free", "planar"), default="fixed", help="as in `info`")
    sub.add_argument("--size", type=count, default=1000, metavar="N", help="number of states (default: 1000)")
    add_seed(sub)


def run(args: argparse.Namespace) -> int:
    require_matplotlib()
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    robot = load(args.robot, args.root)
    line((robot.name, "bold"), f": {robot.njoints} joints, nv {robot.nv}, {robot.mass:.4g} kg")
    started = time.perf_counter()
    derivatives = derive(robot, args.size, args.seed)
    seconds = time.perf_counter() - started
    line(f"{args.size} random states, all derivatives in {seconds:.2f} s (backend: {robot.backend})")
    line("verifying each of them by complex step ...")
    found = worst(watched(robot, args.size, args.seed))
    line()
    good = report(derivatives, found)
    line()
    for path in save_pictures(robot.model, derivatives, folder):
        line("picture: ", (str(path), "bold"))
    if not good:
        fail("a derivative disagrees with complex step", label="failed: ")
    return 0 if good else 1


def derive(robot: Robot, size: int, seed: int) -> dict[str, Array]:
    """The six derivative matrices (size, nv, nv) at random states, by name."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, size)
    v, a = rng.normal(size=(2, size, robot.nv))
    tau = robot.inverse_dynamics(q, v, a)
    inverse = robot.inverse_dynamics_derivatives(q, v, a)
    return inverse._asdict() | robot.forward_dynamics_derivatives(q, v, tau)._asdict()


def report(derivatives: Mapping[str, Array], found: list[Finding]) -> bool:
    """Print what each derivative is like; whether all agree with complex step."""
    listing = table("derivative", "shape", ("largest entry", "right"), ("always zero", "right"), ("worst error", "right"))
    for finding in found:
        x = derivatives[finding.quantity]
        zero = np.mean((x == 0).all(0))
        shape = " x ".join(map(str, x.shape))
        listing.add_row(finding.quantity, shape, f"{np.abs(x).max():.3g}", f"{zero:.0%}", f"{finding.error:.1e}")
    console().print(listing)
    return all(f.error <= (INVERSE if f.quantity.startswith("dtau") else FORWARD) for f in found)
