"""The table of `featherjet bench --control`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from ..lab.bench.checking import Disagreement
from ..lab.bench.timing import TimingSettings
from ..settings import setting
from ..terminal import console, progress
from .output import duration, fail, line, table, write_report

MANY = 0.4  # of the time of problems one by one, for many at once
HERTZ = 100.0


def show_control(settings: TimingSettings, folder: Path, python: str | None) -> int:
    """Print whole solves beside Crocoddyl's, and write them to a file; bars that are not reached are red."""
    from ..lab.bench.control import VARIABLE, races
    from ..lab.bench.control_problems import PROBLEMS
    from ..lab.bench.run import machine

    python = python or setting(VARIABLE) or None
    report: dict[str, Any] = {"machine": machine(), "solves": []}
    heads = ("knots", "iterations", "featherjet", "Crocoddyl", "ratio", "bar", "costs differ", "first use")
    listing = table("problem", *((x, "right") for x in heads))
    try:
        with progress() as bar:
            task = bar.add_task("optimal control", total=len(PROBLEMS))
            for x in races(settings, python):
                bar.advance(task)
                report["solves"].append({**x._asdict(), "ratio": x.ratio, "bar": x.bar})
                same = x.their_iterations in (None, x.iterations)
                count = f"{x.iterations}" if same else f"{x.iterations} ({x.their_iterations})"
                cells = [str(x.knots), count, duration(x.ours.median)]
                if x.theirs is None or x.ratio is None:
                    listing.add_row(x.problem, *cells, "", "", "", "", f"{x.first:.2f} s")
                    continue
                ratio = Text(f"{x.ratio:.2f}", "" if x.ratio >= x.bar else "red")
                rest = (duration(x.theirs.median), ratio, f">= {x.bar:g}", f"{x.difference:.0e}", f"{x.first:.2f} s")
                listing.add_row(x.problem, *cells, *rest)
    except Disagreement as error:
        fail(str(error), label="failed: ")
        return 1
    line("processor time of whole solves on one core, medians; iterations of Crocoddyl in brackets where they differ")
    if python is None:
        line(f"Crocoddyl did not run: --crocoddyl or {VARIABLE} names a Python that has it")
    console().print(listing)
    try:
        show_modes(settings, report)
    except Disagreement as error:
        fail(str(error), label="failed: ")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "control.json"
    write_report(path, report)
    line("numbers: ", (str(path), "bold"))
    return 0


def show_modes(settings: TimingSettings, report: dict[str, Any]) -> None:
    """Print a table of batches, receding horizons and exact Hessians, and add them to the report."""
    from ..lab.bench.control_modes import hessians, many, receding

    listing = table("beside whole solves", ("measured", "right"), ("bar", "right"), "")
    batch = many(settings)
    ratio = Text(f"{batch.ratio.median:.2f}", "" if batch.ratio.median <= MANY else "red")
    times = f"{duration(batch.together)} a problem, {duration(batch.alone)} alone"
    listing.add_row(f"{batch.problems} arms at once / one by one", ratio, f"<= {MANY:g}", times)
    steps = receding()
    rate = 1.0 / steps.median
    spread = f"median {duration(steps.median)}, 90 % {duration(steps.most)}, longest {duration(steps.longest)}"
    title = f"MPC of a trot, {steps.knots} knots, an iteration a step"
    listing.add_row(title, Text(f"{rate:.0f} Hz", "" if rate >= HERTZ else "red"), f">= {HERTZ:g} Hz", spread)
    both = hessians(settings)
    gain = both.seconds[0].median / both.seconds[1].median
    counts = f"{both.iterations[0]} -> {both.iterations[1]} iterations"
    spent = f"{duration(both.seconds[0].median)} -> {duration(both.seconds[1].median)}"
    title = "swing-up, Gauss-Newton / exact Hessians"
    listing.add_row(title, Text(f"{gain:.2f}", "" if gain > 1 else "red"), "> 1", f"{counts}, {spent}")
    console().print(listing)
    report["modes"] = {"batch": batch._asdict(), "mpc": steps._asdict(), "hessians": both._asdict()}
