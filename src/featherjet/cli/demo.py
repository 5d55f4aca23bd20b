"""`featherjet demo`: compute, verify and draw all derivatives of a robot at random states."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingExtra
from ..jit import cache
from ..robot.loading import load
from ..robot.robot import Robot
from ..terminal import console
from ..verify import Finding
from ..view.matrices import save_pictures
from .check import batches, compare, tolerance, worst
from .output import duration, fail, line, table
from .parsing import ROOTS, add_seed, command, count

Array = np.ndarray
EXAMPLES = """\
examples:
  featherjet demo
  featherjet demo --robot humanoid --out pictures
  featherjet demo --robot my_robot.urdf --root free --size 100

In the pictures each square is an entry of a derivative matrix, coloured by its size; entries that are zero in
every state are white. Joints on different branches of the tree do not affect each other, hence the pattern."""


def add(commands: Any) -> None:
    sub = command(commands, "demo", run, "derive, verify and draw the derivatives of a robot", EXAMPLES)
    sub.add_argument("--out", default="demo", metavar="DIR", help="folder for the pictures (default: demo)")
    sub.add_argument("--robot", default="quadruped", help="a name or a file (default: quadruped)")
    sub.add_argument(
        "--root",
        choices=ROOTS,
        default="fixed",
        help="how the first link is attached to the world (default: fixed)",
    )
    sub.add_argument("--size", type=count, default=1000, metavar="N", help="number of states (default: 1000)")
    add_seed(sub)


def run(args: argparse.Namespace) -> int:
    robot = load(args.robot, args.root)
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    line((robot.name, "bold"), f": {robot.njoints} joints, nv {robot.nv}, {robot.mass:.4g} kg")
    states = random_states(robot, args.size, args.seed)
    if robot.backend == "compiled":
        _, seconds = timed(derive, robot, {name: x[:1].repeat(args.size, 0) for name, x in states.items()})
        where = "later runs load it from disk" if cache.folder() else f"not kept on disk: {cache.why_off()}"
        line(f"machine code ready after {duration(seconds)} ({where})")
    derivatives, seconds = timed(derive, robot, states)
    each = duration(seconds / args.size)
    line(f"{args.size} random states: all derivatives in {duration(seconds)}, {each} each (backend: {robot.backend})")
    line("comparing each of them with complex step ...")
    found = worst(verify(robot, states, derivatives))
    line()
    good = report(derivatives, found)
    line()
    try:
        for path in save_pictures(robot.model, derivatives, folder):
            line("picture: ", (str(path), "bold"))
    except MissingExtra as error:
        line(("missing: ", "yellow"), f"no pictures: {error}")
    line(f"next: featherjet view {args.robot}{'' if args.root == 'fixed' else f' --root {args.root}'}")
    if not good:
        fail("a derivative disagrees with complex step", label="failed: ")
    return 0 if good else 1


def timed(function: Callable[..., Any], *inputs: Any) -> tuple[Any, float]:
    """What a function returns, and the seconds it took."""
    started = time.perf_counter()
    found = function(*inputs)
    return found, time.perf_counter() - started


def random_states(robot: Robot, size: int, seed: int) -> dict[str, Array]:
    """q, v, a, and the tau that goes with them."""
    rng = np.random.default_rng(seed)
    state = {"q": robot.random_configuration(rng, size)}
    state["v"], state["a"] = rng.normal(size=(2, size, robot.nv))
    return state | {"tau": robot.inverse_dynamics(state["q"], state["v"], state["a"])}


def derive(robot: Robot, states: Mapping[str, Array]) -> dict[str, Array]:
    """The six derivative matrices (n, nv, nv), by name."""
    q, v, a, tau = (states[name] for name in ("q", "v", "a", "tau"))
    inverse = robot.inverse_dynamics_derivatives(q, v, a)
    return inverse._asdict() | robot.forward_dynamics_derivatives(q, v, tau)._asdict()


def verify(robot: Robot, states: Mapping[str, Array], derivatives: Mapping[str, Array]) -> Iterator[list[Finding]]:
    """Compare every derivative at every state with complex step, batch by batch."""
    for part in batches(robot, len(states["q"])):
        here = {name: x[part] for name, x in states.items()}
        yield [compare(robot, name, x[part], here, part.start) for name, x in derivatives.items()]


def report(derivatives: Mapping[str, Array], found: list[Finding]) -> bool:
    """Print the shape, size and error of each derivative; return whether all agree with complex step."""
    listing = table(
        "derivative", "shape", ("largest entry", "right"), ("always zero", "right"), ("worst error", "right")
    )
    for finding in found:
        x = derivatives[finding.quantity]
        zero = np.mean((x == 0).all(0))
        shape = " x ".join(map(str, x.shape))
        listing.add_row(finding.quantity, shape, f"{np.abs(x).max():.3g}", f"{zero:.0%}", f"{finding.error:.1e}")
    console().print(listing)
    return all(f.error <= tolerance(f.quantity) for f in found)
