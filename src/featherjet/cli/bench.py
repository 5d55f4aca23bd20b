"""`featherjet bench`: featherjet beside Pinocchio, MuJoCo and finite differences, in one run."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from ..errors import MissingExtra, ModelWarning
from ..lab.bench.checking import Disagreement
from ..lab.bench.peers import versions
from ..lab.bench.robots import Entrant, defaults, entrant
from ..lab.bench.timing import QUICK, TimingSettings
from .bench_tables import (
    measure_contacts,
    measure_loops,
    measure_robots,
    measure_scaling,
    measure_second_order,
    measure_steps,
)
from .control import show_control
from .first_use import show_first_uses, show_sweep
from .frameworks import show_frameworks
from .output import fail, line, write_report
from .parsing import ROOTS, command, count

SIZES, QUICK_SIZES = (10, 20, 50, 100, 200), (10, 20, 40)
EXAMPLES = """\
examples:
  featherjet bench                               panda, hyq, talos_full, chain100, chain500
  featherjet bench panda --quick                 rough figures in seconds
  featherjet bench --first-use                   how long the first call takes, with and without cached code
  featherjet bench --first-use --all             the slowest first call of every known robot
  featherjet bench --first-use --all talos_full --root free    first calls of every quantity
  featherjet bench my_robot.urdf --root free --batch 256
  featherjet bench chain100 tree100x2            chains and trees of any size
  featherjet bench hyq --contacts lf_foot rf_foot lh_foot rh_foot    dynamics with these points fixed
  featherjet bench talos_full --surfaces left_sole_link right_sole_link    and with these frames fixed
  featherjet bench go2 --root free --loops       what loops around the dynamics call: integrate, frames, ...
  featherjet bench panda --order 2               products and second derivatives beside first derivatives
  featherjet bench --frameworks                  in JAX and the like, beside what else there is; takes minutes
  featherjet bench --simulate                    steps of a standing quadruped beside MuJoCo's
  featherjet bench --control --crocoddyl peer/bin/python    whole solves beside Crocoddyl's
  featherjet bench --scaling                     how the cost grows with the size of the robot

Without --root, panda is the arm with its fingers locked, and hyq and talos_full have a free base.
"Batch in the cache" has as many states as fit 512 KB: it computes without waiting for memory, but the call is
shared by fewer. "Large batch" is the batch up to 64 times over: to wake a thread takes longer than a short batch.
Everything except "all threads" runs on one core, in turns. Times are per state: processor time
on one core, wall time on all; medians over the rounds, with half the distance between the quartiles. All results
are compared first; if they differ by more than 1e-8 (1e-6 in forward dynamics of more than 100 dofs, whose mass
matrix is ill-conditioned; in float32 2e-5, and 1e-2 in forward dynamics), nothing is timed. Ratios are relative
to a Python loop over Pinocchio that stores its results. MuJoCo differentiates numerically and has no da/dtau.
Exit code: 0 done, 1 results differ."""


def add(commands: Any) -> None:
    sub = command(
        commands, "bench", run, "measure featherjet beside Pinocchio, MuJoCo and finite differences", EXAMPLES
    )
    sub.add_argument("robots", nargs="*", metavar="ROBOT", help="names or files (default: see below)")
    sub.add_argument("--root", choices=ROOTS, help="joint between the world and the first link")
    sub.add_argument("--quick", action="store_true", help="fewer and shorter rounds, less precise")
    sub.add_argument("--batch", type=count, metavar="N", help="states per batch (default: 1024; 16 for large robots)")
    sub.add_argument("--out", default="bench", metavar="DIR", help="folder for JSON and chart (default: bench)")
    sub.add_argument("--contacts", nargs="+", metavar="FRAME", help="measure dynamics with these points fixed instead")
    sub.add_argument("--surfaces", nargs="+", metavar="FRAME", help="the same with these frames fixed: flat feet")
    sub.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: measure second derivatives instead")
    sub.add_argument("--loops", action="store_true", help="measure configurations, frames and regressors instead")
    sub.add_argument("--simulate", action="store_true", help="measure steps of a standing quadruped instead")
    sub.add_argument("--scaling", action="store_true", help="measure how ID derivatives scale with size instead")
    sub.add_argument("--frameworks", action="store_true", help="measure featherjet in JAX and the like instead")
    sub.add_argument("--control", action="store_true", help="measure optimal control beside Crocoddyl's instead")
    sub.add_argument("--crocoddyl", metavar="PYTHON", help="with --control: a Python that has Crocoddyl")
    sub.add_argument("--first-use", action="store_true", help="measure first calls in new processes instead")
    sub.add_argument(
        "--all", action="store_true", help="with --first-use: all robots, or all quantities of those named"
    )


def run(args: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of files: `featherjet info` has them
        return measured(args)


def measured(args: argparse.Namespace) -> int:
    """Measure what is asked for, print it, and write it; returns the exit code."""
    settings, folder = QUICK if args.quick else TimingSettings(), Path(args.out)
    if args.first_use:
        return show_sweep(args.robots, args.root) if args.all else show_first_uses(args.robots, args.root)
    if args.control:
        return show_control(settings, folder, args.crocoddyl)
    if args.frameworks:
        return show_frameworks(settings, folder)
    from ..lab.bench.peak import fma_peak  # imports LLVM, which other commands should not wait for
    from ..lab.bench.run import machine

    kind, contacts = kind_of(args), fixed_contacts(args)
    entrants, missing = ([], []) if kind in ("scaling", "simulate") else chosen(args)
    folder.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"machine": machine(), "peers": versions(), "fma_peak": fma_peak()}
    introduce(report, missing)
    measure = {
        "scaling": lambda: measure_scaling(report, QUICK_SIZES if args.quick else SIZES, settings),
        "simulate": lambda: measure_steps(report, settings),
        "contacts": lambda: measure_contacts(report, entrants, contacts, settings),
        "second_order": lambda: measure_second_order(report, entrants, settings),
        "loops": lambda: measure_loops(report, entrants, settings),
        "bench": lambda: measure_robots(report, entrants, settings),
    }
    try:
        measure[kind]()
    except Disagreement as error:
        fail(str(error), label="failed: ")
        return 1
    path = folder / f"{kind}.json"
    write_report(path, report)
    line("numbers: ", (str(path), "bold"))
    if kind == "bench":
        draw(report, folder / "bench.png")
    return 0


def kind_of(args: argparse.Namespace) -> str:
    """What is asked for, by the name of the file that gets its numbers."""
    asked = {
        "scaling": args.scaling,
        "simulate": args.simulate,
        "contacts": args.contacts or args.surfaces,
        "second_order": args.order == 2,
        "loops": args.loops,
    }
    return next((kind for kind, wanted in asked.items() if wanted), "bench")


def chosen(args: argparse.Namespace) -> tuple[list[Entrant], list[str]]:
    """The robots that were named, or the default ones, and messages about those that are missing."""
    if args.robots:
        return [entrant(name, args.root, args.batch) for name in args.robots], []
    return defaults(args.batch)


def introduce(report: dict[str, Any], missing: list[str]) -> None:
    m, peak = report["machine"], report["fma_peak"] / 1e9
    line(f"featherjet {m['featherjet']} on {m['cpu']}, {m['cores']} cores")
    line(f"{m['lanes']} doubles per register (FEATHERJET_CPU={m['instruction_set']})")
    line(f"one core does at most {peak:.3g}e9 fused multiply-adds per second")
    for name, version in report["peers"].items():
        line(f"{name}: {version}" if version else f"{name}: missing (not installed)")
    report["missing"] = missing
    for what in missing:
        line(("missing: ", "yellow"), what)


def fixed_contacts(args: argparse.Namespace) -> list[Any]:
    """The contacts that --contacts and --surfaces name."""
    from ..contact import PointContact, SurfaceContact

    return [PointContact(x) for x in args.contacts or ()] + [SurfaceContact(x) for x in args.surfaces or ()]


def draw(report: dict[str, Any], path: Path) -> None:
    from ..lab.bench.chart import save_chart
    from ..view.backend import require_matplotlib

    try:
        require_matplotlib()
    except MissingExtra as error:
        line(("missing: ", "yellow"), f"no chart: {error}")
        return
    save_chart(report, path)
    line("chart: ", (str(path), "bold"))
