"""What `featherjet bench` measures and prints: a table for each robot, and the same numbers in a report."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from ..lab.bench.contenders import BATCH, PIN_LOOP, WAYS
from ..lab.bench.quantities import CONTACT_QUANTITIES, QUANTITIES
from ..lab.bench.robots import Entrant
from ..lab.bench.timing import TimingSettings
from ..terminal import console, progress
from .output import duration, line, table, ticking

QUIET = 0.9  # share of the time that this process should have the core


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


def measure_contacts(
    report: dict[str, Any], entrants: list[Entrant], fixed: list[Any], settings: TimingSettings
) -> None:
    from ..lab.bench import contacts

    report["robots"] = []
    for e in entrants:
        with progress() as bar:
            tick = ticking(bar, e.title, len(CONTACT_QUANTITIES) * (len(contacts.WAYS) + settings.rounds))
            found = contacts.race(e, fixed, settings, tick)
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
