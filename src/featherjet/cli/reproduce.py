"""`featherjet reproduce`: the experiments of the papers, run again beside what the papers say."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import Progress
from rich.text import Text

from ..errors import MissingExtra, UnknownName
from ..terminal import console, progress
from .bench import duration, write
from .output import fail, line, table
from .parsing import command

if TYPE_CHECKING:
    from ..lab.reproduce import Item, Lab, Outcome
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
  featherjet reproduce                           which experiments there are
  featherjet reproduce singh-fig3                one of them
  featherjet reproduce all --out reproduce       all of them, in about ten minutes
  featherjet reproduce all --quick               small robots and short turns, to see that it runs

Methods are compiled in the same way, as straight-line code for one robot in which lanes are samples of a batch, and
compared before they are timed, pinned to one core, taking turns. What is too long to compile is counted alone.
Each item prints tables, the paper's statements beside what was found, and writes ITEM.json and ITEM.png.
[IDSVA] Singh, Russell, Wensing 2021; [RSS18] Carpentier, Mansard 2018; [BP] Guenter, Rose 2000.
Exit code: 0 done, 1 results of methods differ."""


def add(commands: Any) -> None:
    sub = command(commands, "reproduce", run, "run the experiments of the papers again", EXAMPLES)
    sub.add_argument("items", nargs="*", metavar="ITEM", help="names of experiments, or all (default: list them)")
    sub.add_argument("--quick", action="store_true", help="small robots and short turns: a smoke run")
    sub.add_argument("--out", default="reproduce", metavar="DIR", help="folder for JSON and PNG (default: reproduce)")


def run(args: argparse.Namespace) -> int:
    from ..lab.bench.contenders import Disagreement
    from ..lab.bench.run import machine
    from ..lab.reproduce import ITEMS, Lab

    chosen = list(ITEMS) if "all" in args.items else list(dict.fromkeys(args.items))
    for name in chosen:
        if name not in ITEMS:
            raise UnknownName("experiment", name, [*ITEMS, "all"])
    if not chosen:
        listing = table("item", "paper", "what")
        for name, item in ITEMS.items():
            listing.add_row(name, item.where, item.title)
        console().print(listing)
        return 0
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    lab, found_on = Lab(args.quick), machine()
    for name in chosen:
        item = ITEMS[name]
        started = time.process_time()
        with progress() as bar:
            watched(lab, bar, name)
            try:
                outcome = item.run(lab)
            except Disagreement as error:
                fail(str(error), label="failed: ")
                return 1
        show(item, outcome)
        if args.quick:
            line(("note:  ", "dim"), "--quick: robots are small and turns short, so that verdicts mean little")
        path = folder / f"{name}.json"
        report = {"item": name, "paper": item.where, "title": item.title, "quick": args.quick, "machine": found_on}
        report["processor_seconds"] = round(time.process_time() - started, 1)
        write(path, report | outcome.data())
        line("numbers: ", (str(path), "bold"))
        draw(item, outcome, folder / f"{name}.png")
        line()
    return 0


def watched(lab: Lab, bar: Progress, name: str) -> None:
    """Let the lab move a bar."""
    task = bar.add_task(name, total=None)
    lab.plan = lambda steps: bar.update(task, total=steps)
    lab.step = lambda text: bar.update(task, advance=1, description=f"{name}: {text}")


def show(item: Item, outcome: Outcome) -> None:
    """Tables, then what the paper says and what was found."""
    line((item.where, "bold"), f": {item.title}")
    for one in outcome.tables:
        line()
        line((one.title, "italic"))
        console().print(listed(one))
        if one.note:
            line((one.note, "dim"))
    line()
    for claim in outcome.claims:
        line(("paper: ", "dim"), claim.said)
        line(("here:  ", "dim"), claim.found)
        line("       ", (claim.verdict, STYLES[claim.verdict]))
        if claim.why and claim.verdict != "holds":
            line(("why:   ", "dim"), claim.why)
    for remark in outcome.remarks:
        line(("note:  ", "dim"), remark)


def listed(one: Table) -> Any:
    listing = table(*((c.head, "left" if c.form == "text" else "right") for c in one.columns))
    for row in cells(one):
        listing.add_row(*map(Text, row))
    return listing


def cells(one: Table) -> list[list[str]]:
    """All of a table as it is shown."""

    def shown(form: str, x: Any) -> str:
        return "" if x is None else x if isinstance(x, str) else FORMATS[form](x)

    return [[shown(c.form, x) for c, x in zip(one.columns, row, strict=True)] for row in one.rows]


def draw(item: Item, outcome: Outcome, path: Path) -> None:
    from ..lab.reproduce.plots import save_figure
    from ..view.backend import require_matplotlib

    try:
        require_matplotlib()
    except MissingExtra as error:
        line(("missing: ", "yellow"), f"no figure: {error}")
        return
    save_figure(f"{item.where}: {item.title}", outcome.panels, path)
    line("figure: ", (str(path), "bold"))
