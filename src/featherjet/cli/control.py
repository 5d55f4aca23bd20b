"""The table of `featherjet bench --control`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rich.text import Text

from ..atomic import write_text
from ..lab.bench.checking import Disagreement
from ..lab.bench.timing import Settings
from ..terminal import console, progress
from .output import duration, fail, line, table


def show_control(settings: Settings, folder: Path, python: str | None) -> int:
    """Print whole solves beside Crocoddyl's, and write them to a file; bars that are not reached are red."""
    from ..lab.bench.control import VARIABLE, races
    from ..lab.bench.control_problems import PROBLEMS
    from ..lab.bench.run import machine

    python = python or os.environ.get(VARIABLE) or None
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
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "control.json"
    write_text(path, json.dumps(report, indent=1) + "\n")
    line("numbers: ", (str(path), "bold"))
    return 0
