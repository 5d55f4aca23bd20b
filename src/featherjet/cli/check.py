"""`featherjet check`: compare every derivative of a robot with complex step."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from rich.text import Text

from ..errors import SingularMassMatrix
from ..lab.internals import instruction_set
from ..robot.robot import Robot
from ..terminal import console, progress
from ..verify import CHECKED, SECOND, Finding, check, complex_step
from .output import fail, line, table
from .parsing import add_robot, add_seed, command, count, load_robot, positive

Array = np.ndarray
INVERSE, FORWARD = 1e-11, 1e-9  # forward dynamics has the condition number of the mass matrix
LANES = 20_000  # bodies x directions x states computed at a time, so that large robots fit in memory
EXAMPLES = """\
examples:
  featherjet check panda
  featherjet check my_robot.urdf --root free --samples 100
  featherjet check panda --order 2
  featherjet check --bits
  featherjet check my_robot.urdf --tolerance 1e-8 && echo "good enough"

At random states with random external forces, each derivative is compared with the complex-step derivative of
the dynamics, which is exact to rounding. Errors are relative to the largest entry of the matrix.
--bits computes a fixed suite and prints a hash of all results: processors with fused multiply-add (x86-64-v3, v4,
aarch64) have the same bits.
Exit code 0: all derivatives within tolerance; 1: some are not, or cannot be computed; 2: the robot cannot be
loaded."""


def add(commands: Any) -> None:
    sub = command(commands, "check", run, "verify a robot's derivatives by complex step", EXAMPLES)
    add_robot(sub, needed=False)
    sub.add_argument("--bits", action="store_true", help="print a hash of a fixed suite's results, without ROBOT")
    sub.add_argument("--samples", type=count, default=10, metavar="N", help="random states to try (default: 10)")
    add_seed(sub)
    sub.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives too (default: 1)")
    sub.add_argument(
        "--tolerance", type=positive, metavar="X",
        help=f"for all quantities (default: {INVERSE:g} for derivatives of tau, {FORWARD:g} for those of a)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if args.bits == (args.robot is not None):
        args.parser.error("--bits takes no ROBOT" if args.bits else "the following arguments are required: ROBOT")
    if args.bits:
        return bits()
    robot = load_robot(args)
    singular: SingularMassMatrix | None = None
    try:
        found = worst(watched(robot, args.samples, args.seed, order=args.order))
    except SingularMassMatrix as error:
        singular = error
        found = worst(watched(robot, args.samples, args.seed, False, args.order))
    good = report(found, args.tolerance)
    if singular:
        line()
        fail(f"no forward dynamics, and so no derivatives of it: {singular}", label="failed: ")
    elif good:
        line(("passed: ", "bold green"), f"{robot.name}, {args.samples} states")
    else:
        fail(f"{robot.name}: some derivatives exceed the tolerance", label="failed: ")
    return 0 if good and not singular else 1


def bits() -> int:
    """Print what the results of a fixed suite hash to."""
    from ..lab import bits as suite

    listing, every = table("computed", "hash"), []
    groups = suite.groups()
    with progress() as bar:
        task = bar.add_task("computing", total=len(groups))
        for name, compute in groups:
            every.append(suite.digest(compute()))
            listing.add_row(name, every[-1][:16])
            bar.advance(task)
    console().print(listing)
    line(("all: ", "bold"), suite.digest([np.frombuffer(bytes.fromhex(x), np.uint8) for x in every]))
    if instruction_set() == "x86-64-v2":
        line("x86-64-v2 has no fused multiply-add: other processors round less often, and have other bits")
    return 0


def watched(robot: Robot, samples: int, seed: int, forward: bool = True, order: int = 1) -> Iterator[list[Finding]]:
    """The findings of each batch of random states, under a progress bar; samples are numbered across batches."""
    for part in batches(robot, samples):
        found = check(robot, samples=part.stop - part.start, seed=seed + part.start, forward=forward, order=order)
        yield [f._replace(sample=part.start + f.sample) for f in found]


def batches(robot: Robot, samples: int) -> Iterator[slice]:
    """Slices of the samples that are computed together, under a progress bar."""
    size = max(1, min(64, LANES // (robot.nv * robot.njoints)))
    with progress() as bar:
        task = bar.add_task("complex step", total=samples)
        for start in range(0, samples, size):
            stop = min(start + size, samples)
            yield slice(start, stop)
            bar.advance(task, stop - start)


def compare(robot: Robot, name: str, got: Array, state: Mapping[str, Array], first: int = 0) -> Finding:
    """The worst error of a derivative such as dtau_dq (n, nv, nv) at n states, numbered from `first`."""
    base, by = CHECKED[name]
    true = complex_step(robot, base.name, by, **{i.name: state[i.name] for i in base.inputs})
    scale = np.abs(true).max((-2, -1))
    error = np.abs(got - true).max((-2, -1)) / np.where(scale > 0, scale, 1.0)
    return Finding(name, float(error.max()), first + int(error.argmax()))


def worst(found: Iterable[list[Finding]]) -> list[Finding]:
    """For each quantity the finding with the largest error; NaN counts as infinite."""
    return [max(same, key=badness) for same in zip(*found, strict=True)]


def badness(finding: Finding) -> float:
    return np.inf if np.isnan(finding.error) else finding.error


def tolerance(quantity: str) -> float:
    record = CHECKED[quantity][0] if quantity in CHECKED else SECOND[quantity][0]
    return FORWARD if record.margins else INVERSE


def report(found: list[Finding], wanted: float | None) -> bool:
    """Print the table; return whether all errors are within tolerance."""
    listing = table("derivative", ("worst error", "right"), ("tolerance", "right"), ("at state", "right"), "")
    passed = []
    for f in found:
        allowed = wanted or tolerance(f.quantity)
        passed.append(f.error <= allowed)
        verdict = Text("pass", style="green") if passed[-1] else Text("FAIL", style="bold red")
        listing.add_row(f.quantity, f"{f.error:.1e}", f"{allowed:.0e}", str(f.sample), verdict)
    console().print(listing)
    return all(passed)
