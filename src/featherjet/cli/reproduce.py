"""`featherjet reproduce`: run the experiments of the papers again and compare with what the papers say."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import Progress
from rich.text import Text

from ..errors import InputError, MissingExtra, UnknownName
from ..terminal import console, progress
from .output import duration, fail, line, table, write_report
from .parsing import command

if TYPE_CHECKING:
    from ..lab.reproduce import Experiment, ExperimentResult, Lab
    from ..lab.reproduce.report import Table

FORMATS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "time": duration,
    "count": lambda x: f"{x:,.0f}",
    "ratio": lambda x: f"{x:.2f}x",
    "error": lambda x: f"{x:.1e}" if x else "0",
}
STYLES = {"holds": "green", "holds, but not in size": "yellow", "does not hold": "red", "not tested": "dim"}
EXAMPLES = """\
examples:
  featherjet reproduce                           list the experiments
  featherjet reproduce singh-fig3                run one of them
  featherjet reproduce all --out reproduce       run all of them, in about a quarter of an hour
  featherjet reproduce singh-fig5 --robot atlas=atlas_v4.urdf
                                                 with your file of a robot that no package brings
  featherjet reproduce all --quick               small robots and short turns, to see that everything runs

All methods are compiled alike: small robots as straight-line code for one robot, with states in vector lanes; chains
and trees of 50 to 500 joints as loops, one state at a time. Their results are compared; then they are timed in turns,
by the processor time of one core. Straight-line code that is too long to compile is only counted.
singh-fig7 also measures from which size the method fdsva should take AZA on this host, and keeps that in the cache.
Each experiment prints tables and the paper's claims beside what was found, and writes ITEM.json and ITEM.png.
[IDSVA] Singh, Russell, Wensing 2021; [RSS18] Carpentier, Mansard 2018; [BP] Guenter, Rose 2000.
Exit code: 0 done, 1 methods disagree."""


def add(commands: Any) -> None:
    sub = command(commands, "reproduce", run, "run the experiments of the papers again", EXAMPLES)
    sub.add_argument("items", nargs="*", metavar="ITEM", help="names of experiments, or all (default: list them)")
    sub.add_argument("--quick", action="store_true", help="small robots and short turns, to see that everything runs")
    sub.add_argument(
        "--robot", action="append", default=[], metavar="NAME=FILE", dest="robots",
        help="a URDF or MJCF file of one of the papers' robots: lwr, ur3, baxter, hyq, atlas or talos_full",
    )  # fmt: skip
    sub.add_argument("--out", default="reproduce", metavar="DIR", help="folder for JSON and PNG (default: reproduce)")


def run(args: argparse.Namespace) -> int:
    from ..lab.bench.checking import Disagreement
    from ..lab.bench.run import machine
    from ..lab.reproduce import EXPERIMENTS, Lab
    from ..lab.reproduce.report import RULE

    chosen = list(EXPERIMENTS) if "all" in args.items else list(dict.fromkeys(args.items))
    for name in chosen:
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS, "`all` runs every one of them")
    if not chosen:
        listing = table("item", "paper", "what")
        for name, experiment in EXPERIMENTS.items():
            listing.add_row(name, experiment.where, experiment.title)
        console().print(listing)
        return 0
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    lab, host = Lab(args.quick, files=named_files(args.robots)), machine()
    for name in lab.files:
        lab.robot(name)  # a file that cannot be read is reported at once
    for name in chosen:
        experiment = EXPERIMENTS[name]
        started = time.process_time()
        with progress() as bar:
            show_progress(lab, bar, name)
            try:
                outcome = experiment.run(lab)
            except Disagreement as error:
                fail(str(error), label="failed: ")
                return 1
        outcome.remarks += [f"{robot}, where it occurs, is from {path}." for robot, path in lab.files.items()]
        show(experiment, outcome)
        line(("rule:  ", "dim"), RULE)
        if args.quick:
            line(("note:  ", "dim"), "--quick uses small robots and short turns, so that verdicts mean little")
        path = folder / f"{name}.json"
        report = {
            "item": name,
            "paper": experiment.where,
            "title": experiment.title,
            "quick": args.quick,
            "machine": host,
        }
        report["processor_seconds"] = round(time.process_time() - started, 1)
        write_report(path, report | outcome.data())
        line("numbers: ", (str(path), "bold"))
        draw(experiment, outcome, folder / f"{name}.png")
        line()
    return 0


def named_files(given: Sequence[str]) -> dict[str, str]:
    """The files of NAME=FILE arguments, by name."""
    from ..lab.reproduce.lab import ROOTS

    files: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise InputError(f"--robot {text}: expected NAME=FILE, as in atlas=atlas_v4.urdf")
        if name not in ROOTS:
            raise UnknownName("robot of the papers", name, ROOTS)
        files[name] = path
    return files


def show_progress(lab: Lab, bar: Progress, name: str) -> None:
    """Move a bar as the lab goes on."""
    task = bar.add_task(name, total=None)
    lab.plan = lambda steps: bar.update(task, total=steps)
    lab.step = lambda text: bar.update(task, advance=1, description=f"{name}: {text}")


def show(experiment: Experiment, outcome: ExperimentResult) -> None:
    """Print tables, then the paper's claims beside what was found."""
    line((experiment.where, "bold"), f": {experiment.title}")
    for found in outcome.tables:
        line()
        line((found.title, "italic"))
        console().print(listed(found))
        if found.note:
            line((found.note, "dim"))
    line()
    for claim in outcome.claims:
        line(("paper: ", "dim"), claim.said)
        line(("here:  ", "dim"), claim.found)
        line("       ", (claim.verdict, STYLES[claim.verdict]))
        if claim.why and claim.verdict != "holds":
            line(("why:   ", "dim"), claim.why)
    for remark in outcome.remarks:
        line(("note:  ", "dim"), remark)


def listed(found: Table) -> Any:
    listing = table(*((c.head, "left" if c.form == "text" else "right") for c in found.columns))
    for row in cells(found):
        listing.add_row(*map(Text, row))
    return listing


def cells(found: Table) -> list[list[str]]:
    """All cells of a table as text."""

    def shown(form: str, x: Any) -> str:
        return "" if x is None else x if isinstance(x, str) else FORMATS[form](x)

    return [[shown(c.form, x) for c, x in zip(found.columns, row, strict=True)] for row in found.rows]


def draw(experiment: Experiment, outcome: ExperimentResult, path: Path) -> None:
    from ..lab.reproduce.plots import save_figure
    from ..view.backend import require_matplotlib

    try:
        require_matplotlib()
    except MissingExtra as error:
        line(("missing: ", "yellow"), f"no figure: {error}")
        return
    save_figure(f"{experiment.where}: {experiment.title}", outcome.panels, path)
    line("figure: ", (str(path), "bold"))
