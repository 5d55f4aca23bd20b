"""`featherjet sample`: write random states, for `featherjet derive`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..files.npz import NpzWriter
from .output import line
from .parsing import add_out, add_robot, add_seed, command, count, load_robot

EXAMPLES = """\
examples:
  featherjet sample quadruped --out states.npz
  featherjet sample panda --size 100000 --fext --out states.npz
  featherjet sample my_robot.urdf --root free --no-tau --out states.npz

Configurations lie within the joint limits; velocities, accelerations and forces are normally distributed; tau
is the torque of these accelerations. --no-tau is for robots without forward dynamics (massless links)."""


def add(commands: Any) -> None:
    sub = command(commands, "sample", run, "write random states of a robot, for `derive`", EXAMPLES)
    add_robot(sub)
    add_out(sub, "the .npz file to write: q (N, nq), v, a, tau (N, nv)")
    sub.add_argument("--size", type=count, default=1000, metavar="N", help="number of states (default: 1000)")
    add_seed(sub)
    sub.add_argument("--fext", action="store_true", help="also write random external forces fext (N, njoints, 6)")
    sub.add_argument(
        "--no-tau", action="store_true", help="leave tau out: `derive` then computes inverse dynamics only"
    )


def run(args: argparse.Namespace) -> int:
    with NpzWriter(Path(args.out), args.overwrite) as out:
        robot = load_robot(args)
        rng = np.random.default_rng(args.seed)
        state = {"q": robot.random_configuration(rng, args.size)}
        state["v"], state["a"] = rng.normal(size=(2, args.size, robot.nv))
        if args.fext:
            state["fext"] = rng.normal(size=(args.size, robot.njoints, 6))
        if not args.no_tau:
            state["tau"] = robot.inverse_dynamics(state["q"], state["v"], state["a"], state.get("fext"))
        out.append(state)
    line(f"{args.out}: {args.size} states of {robot.name}: {', '.join(state)}")
    return 0
