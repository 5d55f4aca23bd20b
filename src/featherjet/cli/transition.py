"""`featherjet transition`: find the motion between two states that takes the least torque."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import Any

from ..atomic import refuse_bad_target, refuse_own_input
from ..contact import PointContact
from ..errors import InputError
from ..robot.robot import Robot
from ..terminal import progress
from ..transitions import Target, Transition
from ..transitions import transition as plan
from ..transitions.checks import ROOT_FORCES
from ..transitions.limits import LIMITED
from ..transitions.solve import SOLVERS
from .output import fail, line
from .parsing import add_out, add_robot, command, count, load_robot, positive
from .statefile import read_state

EXAMPLES = """\
A state is a JSON file; joints that are not named are neutral and at rest:
  {"q": [0, 0.5, 0, -1.2, 0, 0.8, 0], "v": [0, 0, 0, 0, 0, 0, 0]}
  {"q": {"joint2": 0.5, "joint4": -1.2, "joint6": 0.8}}
A clip of sampled motion has a time step [s]; the transition leaves its last sample, or arrives at its first:
  {"q": [[...], [...], ...], "dt": 0.01}
Either may also be an .npz file of arrays with the same names.

examples:
  featherjet transition arm --from a.json --to b.json --duration 1.2 --out t.npz
  featherjet transition arm --from a.json --to b.json --duration 1.2 --limit velocity --limit effort --out t.npz
  featherjet transition humanoid --from stand.json --to crouch.json --duration 1 --root-forces unactuated \\
      --support left_foot --support right_foot --out t.npz --bvh t.bvh
  featherjet view t.npz                                play it in the browser
  featherjet plot t.npz                                draw its curves as a PNG

Ctrl-C ends the search and writes the best motion so far.
Exit code 0: converged; 1: not converged, or conditions are violated; 2: an error; 130: interrupted."""


def add(commands: Any) -> None:
    sub = command(
        commands, "transition", run, "find the motion between two states that takes the least torque", EXAMPLES
    )
    add_robot(sub)
    sub.add_argument("--from", dest="start", required=True, metavar="FILE", help="state or clip to leave from")
    sub.add_argument("--to", dest="end", required=True, metavar="FILE", help="state or clip to arrive at")
    sub.add_argument("--duration", required=True, type=positive, metavar="SECONDS", help="duration of the motion")
    add_out(sub, "the .npz file to write")
    sub.add_argument("--csv", metavar="FILE", help="also write a table")
    sub.add_argument("--bvh", metavar="FILE", help="also write a motion-capture file")
    sub.add_argument(
        "--weight",
        action="append",
        default=[],
        type=joint_weight,
        metavar="JOINT=W",
        help="weight of a joint's squared torque",
    )
    sub.add_argument(
        "--root-forces",
        choices=ROOT_FORCES,
        default="actuated",
        help="forces on a floating base: counted like torques, penalised, or zero",
    )
    sub.add_argument("--root-weight", type=positive, default=1.0, metavar="W", help="weight of penalised root forces")
    sub.add_argument("--support", action="append", default=[], metavar="FRAME", help="a frame that stands still")
    sub.add_argument(
        "--point-support", action="append", default=[], metavar="FRAME", help="a frame whose origin stands still"
    )
    sub.add_argument(
        "--target",
        action="append",
        default=[],
        type=frame_target,
        metavar="FRAME=T,X,Y,Z",
        help="position [m] of a frame at time T [s]",
    )
    sub.add_argument("--limit", action="append", default=[], choices=LIMITED, help="keep these limits of the model")
    sub.add_argument("--degree", type=count, default=5, metavar="N", help="degree of the spline (default: 5)")
    sub.add_argument("--intervals", type=count, default=12, metavar="N", help="intervals between knots (default: 12)")
    sub.add_argument("--solver", choices=SOLVERS, default="auto", help="the solver to use (default: auto)")
    sub.add_argument(
        "--tolerance",
        type=positive,
        default=1e-3,
        metavar="X",
        help="relative change of the energy at which the search ends (default: 1e-3)",
    )
    sub.add_argument("--iterations", type=count, default=500, metavar="N", help="iterations at most (default: 500)")


def joint_weight(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected JOINT=W, got {text!r}") from None


def frame_target(text: str) -> Target:
    name, _, rest = text.rpartition("=")
    try:
        t, x, y, z = (float(word) for word in rest.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected FRAME=T,X,Y,Z, got {text!r}") from None
    return Target(name, t, position=(x, y, z))


def run(args: argparse.Namespace) -> int:
    files = [Path(path) for path in (args.out, args.csv, args.bvh) if path]
    for path in files:
        refuse_bad_target(path, args.overwrite)
        refuse_own_input(path, Path(args.start), Path(args.end), Path(args.robot))
    if len({path.resolve() for path in files}) < len(files):
        raise InputError("--out, --csv and --bvh: give each its own file")
    robot = load_robot(args)
    start, end = (read_state(robot, Path(x)) for x in (args.start, args.end))
    result = search(args, robot, start, end)
    save(result, Path(args.out), args.overwrite)
    for path, write in ((args.csv, result.to_csv), (args.bvh, result.to_bvh)):
        if path:
            write(path, overwrite=args.overwrite)
    return report(result, args.out)


def save(result: Transition, path: Path, overwrite: bool) -> None:
    """Write a motion; if somebody has put a file there meanwhile, beside it, so that no search is in vain."""
    try:
        result.save(path, overwrite=overwrite)
    except InputError as error:
        beside = path.with_name(f"{path.stem}-{secrets.token_hex(4)}{path.suffix}")
        result.save(beside, overwrite=False)
        raise InputError(f"{error}; the motion is in {beside}") from None


def search(args: argparse.Namespace, robot: Robot, start: Any, end: Any) -> Transition:
    """Find the motion, under a progress bar."""
    with progress() as bar:
        task = bar.add_task(robot.name, total=args.iterations)

        def show(iteration: int, energy: float) -> None:
            bar.update(task, completed=iteration, description=f"{robot.name}: energy {energy:.5g}")

        return plan(
            robot, start, end, args.duration, weights=dict(args.weight), root_forces=args.root_forces,
            root_weight=args.root_weight, supports=[*args.support, *map(PointContact, args.point_support)],
            targets=args.target, limits=args.limit, degree=args.degree, intervals=args.intervals, solver=args.solver,
            tolerance=args.tolerance, max_iterations=args.iterations, callback=show,
        )  # fmt: skip


def report(result: Transition, out: str) -> int:
    """Print how the search went; return the exit code."""
    r = result.report
    line((result.robot.name, "bold"), f": {result.duration:g} s, energy {result.energy:.6g}")
    s = result.setting
    free = s.root_forces != "unactuated" and not (s.supports or s.targets or s.bounds)
    for name, energy in result.baselines().items():
        line(f"  {result.energy / energy:.1%} of a {name}'s{'' if free else ', which ignores conditions'}")
    line(f"  {r.solver}: {r.message}; {r.iterations} iterations, {r.seconds:.1f} s")
    if not free:
        line(f"  conditions kept to {r.violation:.1g}", f", supports to {r.drift:.1g} m or rad" if s.supports else "")
    asked = {b.quantity for b in s.bounds}
    for quantity, joints in ((k, x) for k, x in result.beyond_limits().items() if k not in asked):
        who = joints[0] if len(joints) == 1 else f"{len(joints)} joints"
        line(f"  beyond the robot's {quantity} limits: {who}; --limit {quantity} keeps them")
    line(f"{out}: written")
    if r.interrupted:
        fail("interrupted: the best motion so far was kept", label="")
        return 130
    return 0 if r.success else 1
