"""`featherjet check`: every derivative of one robot against complex step."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from rich.text import Text

from ..errors import SingularMassMatrix
from ..robot import Robot
from ..verify import Finding, check, complex_step
from .output import console, fail, line, progress, table
from .parsing import add_robot, add_seed, command, count, load_robot, positive

INVERSE, FORWARD = 1e-11, 1e-9  # forward dynamics carry the condition number of the mass matrix
LANES = 20_000  # bodies x directions x states to compute at a time, so that large robots fit the memory
EXAMPLES = """\
examples:
  featherjet check panda
  featherjet check my_robot.urdf --root free --samples 100
  featherjet check my_robot.urdf --tolerance 1e-8 && echo "good enough"

Each derivative is compared, at random states with random external forces, with the complex-step derivative of the
dynamics themselves, which is exact to rounding. Errors are relative to the largest entry of the matrix. Exit code:
0 all within tolerance, 1 some are not or cannot be had, 2 the robot could not be loaded."""


def add(commands: Any) -> None:
    sub = command(commands, "check", run, "verify a robot's derivatives by complex step", EXAMPLES)
    add_robot(sub)
    sub.add_argument("--samples", type=count, default=10, metavar="N", help="random states to try (default: 10)")
    add_seed(sub)
    sub.add_argument(
        "--tolerance", type=positive, metavar="X",
        help=f"for all quantities (default: {INVERSE:g} for those of tau, {FORWARD:g} for those of a)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    robot = load_robot(args)
    singular: SingularMassMatrix | None = None
    try:
        found = worst(watched(robot, args.samples, args.seed))
    except SingularMassMatrix as error:
        singular = error
        found = [inverse_only(robot, args.samples, args.seed, by) for by in "qva"]
    good = report(found, args.tolerance)
    if singular:
        line()
        fail(f"no forward dynamics, so no derivatives of it: {singular}", label="failed: ")
    elif good:
        line(("passed: ", "bold green"), f"{robot.name}, {args.samples} states")
    else:
        fail(f"{robot.name}: some derivatives are further off than the tolerance", label="failed: ")
    return 0 if good and not singular else 1


def watched(robot: Robot, samples: int, seed: int) -> Iterator[list[Finding]]:
    """Findings of one batch of states after the other, under a progress bar; samples count through."""
    size = max(1, min(64, LANES // (robot.nv * robot.njoints)))
    with progress() as bar:
        task = bar.add_task("complex step", total=samples)
        for start in range(0, samples, size):
            n = min(size, samples - start)
            yield [f._replace(sample=start + f.sample) for f in check(robot, n, seed + start)]
            bar.advance(task, n)


def worst(batches: Iterable[list[Finding]]) -> list[Finding]:
    """For each quantity the finding of the largest error; a NaN is the worst of all."""
    return [max(same, key=badness) for same in zip(*batches, strict=True)]


def badness(finding: Finding) -> float:
    return np.inf if np.isnan(finding.error) else finding.error


def inverse_only(robot: Robot, samples: int, seed: int, by: str) -> Finding:
    """The derivative of inverse dynamics by q, v or a, for a robot that has no forward dynamics."""
    found = Finding(f"dtau_d{by}", 0.0, 0)
    for sample in range(samples):
        rng = np.random.default_rng(seed + sample)
        state = dict(q=robot.random_configuration(rng), fext=rng.normal(size=(robot.njoints, 6)))
        state |= dict(zip("va", rng.normal(size=(2, robot.nv)), strict=True))
        got = robot.inverse_dynamics_derivatives(**state)["qva".index(by)]
        true = complex_step(robot, "inverse_dynamics", by, **state)
        error = np.abs(got - true).max() / (np.abs(true).max() or 1.0)
        found = max(found, Finding(found.quantity, float(error), sample), key=badness)
    return found


def report(found: list[Finding], tolerance: float | None) -> bool:
    """Print the table; whether all are within tolerance."""
    listing = table("derivative", ("worst error", "right"), ("tolerance", "right"), ("at state", "right"), "")
    passed = []
    for f in found:
        allowed = tolerance or (INVERSE if f.quantity.startswith("dtau") else FORWARD)
        passed.append(f.error <= allowed)
        verdict = Text("pass", style="green") if passed[-1] else Text("FAIL", style="bold red")
        listing.add_row(f.quantity, f"{f.error:.1e}", f"{allowed:.0e}", str(f.sample), verdict)
    console().print(listing)
    return all(passed)
