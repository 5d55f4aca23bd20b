"""`featherjet bench`: featherjet beside Pinocchio, MuJoCo and finite differences, in one run."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.progress import Progress
from rich.text import Text

from ..atomic import write_text
from ..errors import InputError, MissingExtra, ModelWarning
from ..lab.bench.checking import Disagreement
from ..lab.bench.contenders import BATCH, PIN_LOOP, WAYS
from ..lab.bench.peers import versions
from ..lab.bench.quantities import CONTACT_QUANTITIES, QUANTITIES
from ..lab.bench.robots import Entrant, defaults, entrant
from ..lab.bench.timing import QUICK, TimingSettings
from ..model.builtin import BUILTIN
from ..robot.loading import robots as known_robots
from ..terminal import console, progress
from .control import show_control
from .frameworks import show_frameworks
from .output import duration, fail, line, table
from .parsing import ROOTS, command, count

SIZES, QUICK_SIZES = (10, 20, 50, 100, 200), (10, 20, 40)
FIRST, FREE = ("panda", "hyq", "talos_full"), ("hyq", "talos_full")  # first uses: robots, and those that move freely
QUIET = 0.9  # share of the time that this process should have the core
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
    if args.first_use:
        return show_sweep(args.robots, args.root) if args.all else show_first_uses(args.robots or FIRST, args.root)
    if args.control:
        return show_control(QUICK if args.quick else TimingSettings(), Path(args.out), args.crocoddyl)
    if args.frameworks:
        return show_frameworks(QUICK if args.quick else TimingSettings(), Path(args.out))
    from ..lab.bench.peak import fma_peak  # imports LLVM, which other commands should not wait for
    from ..lab.bench.run import machine

    entrants, missing = ([], []) if args.scaling or args.simulate else chosen(args)
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    settings = QUICK if args.quick else TimingSettings()
    report: dict[str, Any] = {"machine": machine(), "peers": versions(), "fma_peak": fma_peak()}
    introduce(report, missing)
    try:
        if args.scaling:
            measure_scaling(report, QUICK_SIZES if args.quick else SIZES, settings)
        elif args.simulate:
            measure_steps(report, settings)
        elif contacts := held(args):
            measure_contacts(report, entrants, contacts, settings)
        elif args.order == 2:
            measure_second_order(report, entrants, settings)
        elif args.loops:
            measure_loops(report, entrants, settings)
        else:
            measure_robots(report, entrants, settings)
    except Disagreement as error:
        fail(str(error), label="failed: ")
        return 1
    kinds = {
        "scaling": args.scaling,
        "simulate": args.simulate,
        "contacts": held(args),
        "second_order": args.order == 2,
        "loops": args.loops,
        "bench": True,
    }
    kind = next(name for name, chosen in kinds.items() if chosen)
    path = folder / f"{kind}.json"
    write(path, report)
    line("numbers: ", (str(path), "bold"))
    if kind == "bench":
        draw(report, folder / "bench.png")
    return 0


def show_first_uses(robots: Sequence[str], root: str | None) -> int:
    """Print how long first calls take; exceeded budgets are red."""
    from ..lab.bench.first_use import MEASURED, WARM_LIMIT, CallTimes, first_uses

    roots = {name: root or ("free" if name in FREE else "fixed") for name in robots}
    heads = ("one", "one, warm", "batch", "batch, warm")
    listing = table("robot", "quantity", *((x, "right") for x in heads))
    importing = []

    def shown(t: CallTimes, limit: float) -> Text:
        return Text(f"{t.wall:.3f} ({t.cpu:.3f})", style="red" if t.wall > limit else "")

    with progress() as bar:
        tick = ticking(bar, "first use", len(roots) * len(MEASURED))
        for x in first_uses(list(roots.items())):
            cold, warm = x.limit, WARM_LIMIT
            times = zip((x.one, x.warm_one, x.batch, x.warm_batch), (cold, warm, cold, warm), strict=True)
            listing.add_row(x.robot, x.quantity, *(shown(*t) for t in times))
            importing.append(x.warm_one.importing)
            tick()
    line("seconds until the first result in a new process, and in brackets those of all processors together")
    console().print(listing)
    line(f"importing featherjet: {median(importing):.3f} s")
    return 0


def show_sweep(robots: Sequence[str], root: str | None) -> int:
    """Print the slowest first calls: of all quantities of some robots, or of the dynamics of every known robot."""
    from ..lab.bench.first_use import DYNAMICS, limit, sweep, without_contacts

    names = list(robots or known_robots())
    listing = table("robot", "quantity", ("first call", "right"), ("all processors", "right"), "")
    quantities = without_contacts() if robots else DYNAMICS
    over = busy = total = 0
    with progress() as bar:
        tick = ticking(bar, "first use", len(names))
        for name in names:
            tick()
            try:
                found = sweep(name, "fixed" if name in BUILTIN else root or "fixed", quantities)
            except InputError as error:  # nothing moves, say
                line(("left out: ", "yellow"), str(error), stderr=True)
                continue
            slow = sorted(found, key=lambda q: -found[q].wall / limit(q))
            over += sum(found[q].wall > limit(q) for q in slow)
            busy += sum(found[q].cpu > limit(q) for q in slow)
            total += len(slow)
            for q in slow[: 8 if robots else 1] + [q for q in slow[8:] if not found[q].compiled]:
                style = "red" if found[q].wall > limit(q) else ""
                times = (Text(f"{x:.3f}", style=style) for x in (found[q].wall, found[q].cpu))
                listing.add_row(name, q, *times, "" if found[q].compiled else "NumPy")
    line("seconds until the first result without a cache, the slowest of each robot")
    console().print(listing)
    line(f"{over} of {total} first calls exceed their budget; {busy} would, on one processor that does nothing else")
    return 0


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


def measure_robots(report: dict[str, Any], entrants: list[Entrant], settings: TimingSettings) -> None:
    from ..lab.bench.run import race, turns

    report["robots"] = []
    for e in entrants:
        with progress() as bar:
            tick = ticking(bar, e.title, turns(settings))
            report["robots"].append(race(e, settings, report["fma_peak"], tick))
        line()
        show(report["robots"][-1])
    shares = [q["quiet"] for r in report["robots"] for q in r["quantities"].values()]
    if min(shares) < QUIET:
        line()
        text = f"other programs were running: the benchmark had the core for only {min(shares):.0%} of the time"
        line(("warning: ", "yellow"), text, stderr=True)
    line()


def ticking(bar: Progress, title: str, total: int) -> Any:
    task = bar.add_task(title, total=total)
    return lambda: bar.advance(task)


def show(robot: dict[str, Any]) -> None:
    """Print times and ratios of one robot."""
    line((robot["title"], "bold"), f": {robot['joints']} joints, nv {robot['nv']}, batch {robot['batch']}")
    quantities = robot["quantities"]
    columns: list[Any] = ["per state"]
    for quantity in QUANTITIES.values():
        columns += [(quantity.label, "right"), ("", "right"), ("ratio", "right")]
    listing = table(*columns)
    for way in WAYS:
        cells = []
        for quantity in QUANTITIES:
            cells += figures(quantities[quantity]["ways"].get(way))
        style = "bold" if way == BATCH else "dim" if way == PIN_LOOP else ""
        if any(cells):
            listing.add_row(Text(way, style=style), *cells)
    for title, key, form in (
        ("operations", "operations", "{:,}"),
        ("share of the core's peak", "share_of_peak", "{:.0%}"),
    ):
        row = []
        for quantity in QUANTITIES:
            row += [form.format(quantities[quantity][key]), "", ""]
        listing.add_row(Text(title, style="dim"), *row)
    console().print(listing)
    for way, reason in {k: v for q in quantities.values() for k, v in q["missing"].items()}.items():
        line(("missing: ", "yellow"), f"{way}: {reason}")


def figures(entry: dict[str, Any] | None) -> list[str]:
    """Time, its spread, and the ratio."""
    if not entry:
        return ["", "", ""]
    t = entry["seconds"]
    spread = (t["high"] - t["low"]) / 2 / t["median"]
    ratio = f"{entry['ratio']['median']:.3g}x" if entry["ratio"] else ""
    return [duration(t["median"]), f"±{spread:.0%}", ratio]


def held(args: argparse.Namespace) -> list[Any]:
    """The contacts that --contacts and --surfaces name."""
    from ..contact import PointContact, SurfaceContact

    return [PointContact(x) for x in args.contacts or ()] + [SurfaceContact(x) for x in args.surfaces or ()]


def measure_contacts(
    report: dict[str, Any], entrants: list[Entrant], held: list[Any], settings: TimingSettings
) -> None:
    from ..lab.bench import contacts

    report["robots"] = []
    for e in entrants:
        with progress() as bar:
            tick = ticking(bar, e.title, len(CONTACT_QUANTITIES) * (len(contacts.WAYS) + settings.rounds))
            found = contacts.race(e, held, settings, tick)
        report["robots"].append(found)
        line()
        line((found["title"], "bold"), f": {', '.join(found['frames'])} fixed, batch {found['batch']}")
        columns = []
        for quantity in CONTACT_QUANTITIES.values():
            columns += [(quantity.label, "right"), ("", "right"), ("ratio", "right")]
        listing = table("per state", *columns)
        for way in contacts.WAYS:
            cells = [x for q in CONTACT_QUANTITIES for x in figures(found["quantities"][q]["ways"].get(way))]
            if any(cells):
                listing.add_row(Text(way, style="bold" if way == BATCH else ""), *cells)
        console().print(listing)
    line()


def measure_second_order(report: dict[str, Any], entrants: list[Entrant], settings: TimingSettings) -> None:
    from ..lab.bench import second_order

    report["robots"] = []
    for e in entrants:
        with progress() as bar:
            tick = ticking(bar, e.title, len(second_order.NAMES) + settings.rounds)
            found = second_order.race(e, settings, tick)
        report["robots"].append(found)
        line()
        line((found["title"], "bold"), f": {found['nv']} dofs, batch {found['batch']}, one core")
        listing = table("call", ("us", "right"), "beside", ("us", "right"), ("ratio", "right"))
        for r in found["ratios"]:
            own, base = (f"{1e6 * found['seconds'][r[k]].median:.3g}" for k in ("name", "base"))
            listing.add_row(r["name"], own, r["base"], base, f"{r['ratio']:.2f}")
        console().print(listing)
    line()


def measure_loops(report: dict[str, Any], entrants: list[Entrant], settings: TimingSettings) -> None:
    from ..lab.bench import loops

    report["robots"] = []
    for e in entrants:
        with progress() as bar:
            tick = ticking(bar, e.title, len(loops.CALLS) * (len(loops.WAYS) + settings.rounds))
            found = loops.race(e, settings, tick)
        report["robots"].append(found)
        line()
        line((found["title"], "bold"), f": frame {found['frame']}, batch {found['batch']}")
        listing = table("per call", *((way.removeprefix("featherjet, "), "right") for way in loops.WAYS))
        for call in loops.CALLS:
            ways = found["quantities"][call.name]["ways"]
            cells = [figures(ways.get(way)) for way in loops.WAYS]
            listing.add_row(call.label, *(f"{time} {ratio}".strip() for time, _, ratio in cells))
        console().print(listing)
        for way, reason in {k: v for q in found["quantities"].values() for k, v in q["missing"].items()}.items():
            line(("missing: ", "yellow"), f"{way}: {reason}")
    line("Ratios of a batch are relative to Pinocchio's loop, those of one state to Pinocchio's own call.")
    line()


def measure_steps(report: dict[str, Any], settings: TimingSettings) -> None:
    from ..lab.bench import standing

    with progress() as bar:
        tick = ticking(bar, "steps", len(standing.WAYS) + settings.rounds)
        report["simulate"] = found = standing.race(settings, tick)
    line()
    listing = table("a quadruped on four feet", ("time of a step", "right"), ("steps a second, over MuJoCo's", "right"))
    for way in standing.WAYS:
        time, _, ratio = figures(found["ways"].get(way))
        listing.add_row(way, time, ratio)
    console().print(listing)
    for way, reason in found["missing"].items():
        line(("missing: ", "yellow"), f"{way}: {reason}")
    line()


def measure_scaling(report: dict[str, Any], sizes: tuple[int, ...], settings: TimingSettings) -> None:
    from ..lab.bench.run import scaling

    with progress() as bar:
        tick = ticking(bar, "scaling", 3 * len(sizes) * (settings.rounds + 1))
        report["scaling"] = scaling(sizes, settings, tick)
    line()
    columns = [("robots", "left"), *((f"N = {n}", "right") for n in sizes)]
    exponents = ("time over N", "time over N*d", "operations over N*d")
    listing = table(*columns, *((name, "right") for name in exponents))
    for family, found in report["scaling"].items():
        cells = [f"{duration(row['seconds']['median'])}, d {row['depth']}" for row in found["rows"]]
        powers = [found[key] for key in ("time_over_n", "time_over_nd", "operations_over_nd")]
        listing.add_row(family, *cells, *(f"power {p:.2f}" for p in powers))
    console().print(listing)
    line("Times are of ID derivatives, per state, on one thread; d is the depth of the tree.")
    line()


def write(path: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON, atomically."""
    write_text(path, json.dumps(report, indent=1) + "\n")


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
