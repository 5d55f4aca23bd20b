"""The table of `featherjet bench --frameworks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from ..lab.bench.checking import Disagreement
from ..lab.bench.timing import TimingSettings
from ..terminal import console, progress
from .output import duration, fail, line, table, write_report


def show_frameworks(settings: TimingSettings, folder: Path) -> int:
    """Print duels of featherjet in other frameworks, and write them to a file; bars that are not reached are red."""
    from ..lab.bench.frameworks import Absent, outcomes
    from ..lab.bench.run import machine

    report: dict[str, Any] = {"machine": machine(), "duels": []}
    listing = table("framework", "what", ("time", "right"), "beside", ("time", "right"), ("ratio", "right"), "bar")
    try:
        with progress() as bar:
            task = bar.add_task("frameworks", total=None)
            for x in outcomes(settings):
                bar.advance(task)
                report["duels"].append(x._asdict())
                if isinstance(x, Absent):
                    listing.add_row(x.framework, x.title, Text(f"missing: {x.reason}", style="yellow"))
                    continue
                style = "" if x.reached else "red"
                limit = f"{'>=' if x.faster else '<='} {x.bar:g}{'x' if x.other else ' us'}"
                own, beside = Text(duration(x.ours.median), style), duration(x.other.median) if x.other else ""
                ratio = Text(f"{x.ratio:.3g}" if x.other else "", style)
                listing.add_row(x.framework, x.title, own, x.beside, beside, ratio, limit)
    except Disagreement as error:
        fail(str(error), label="failed: ")
        return 1
    line("processor time of a call on one core, compilation left out")
    console().print(listing)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "frameworks.json"
    write_report(path, report)
    line("numbers: ", (str(path), "bold"))
    return 0
