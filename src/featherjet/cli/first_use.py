"""What `featherjet bench --first-use` prints: how long first calls take in a new process."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.text import Text

from ..errors import InputError
from ..model.builtin import BUILTIN
from ..robot.loading import robots as known_robots
from ..terminal import console, progress
from .output import line, table, ticking

FIRST, FREE = ("panda", "hyq", "talos_full"), ("hyq", "talos_full")  # robots, and those of them that move freely


def show_first_uses(robots: Sequence[str], root: str | None) -> int:
    """Print how long first calls of robots, or of `FIRST`, take; exceeded budgets are red."""
    from ..lab.bench.first_use import MEASURED, WARM_LIMIT, CallTimes, first_uses

    roots = {name: root or ("free" if name in FREE else "fixed") for name in robots or FIRST}
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
