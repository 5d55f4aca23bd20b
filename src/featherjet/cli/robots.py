"""`featherjet robots`: list the robots that can be named."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..model.io.catalog import BUILT_IN, nicknames
from ..robot.loading import robots
from ..terminal import console
from .output import line, table
from .parsing import command

EXAMPLES = """\
examples:
  featherjet robots                list all
  featherjet robots talos          only names that contain talos

Every command, and featherjet.load in Python, takes these names, and the shorter ones beside them.
For more robots: pip install 'featherjet[robots]', or 'featherjet[descriptions]', which fetches them when used."""


def add(commands: Any) -> None:
    sub = command(commands, "robots", run, "list the robots that can be named", EXAMPLES)
    sub.add_argument("part", nargs="?", default="", metavar="PART", help="show only names that contain this")


def run(args: argparse.Namespace) -> int:
    others = nicknames()
    part = args.part.lower().replace("-", "_")
    known = {k: x for k, x in robots().items() if any(part in name.lower() for name in (k, *others.get(k, ())))}
    if not known:
        line(f"no robot has {args.part!r} in its name", stderr=True)
        return 1
    listing = table("robot", "also", "from")
    for name, origin in known.items():
        parts = Path(origin).parts
        listing.add_row(name, ", ".join(others.get(name, ())), origin if len(parts) < 4 else str(Path(*parts[-3:])))
    console().print(listing)
    if all(origin == BUILT_IN for origin in robots().values()):
        line("more come with example-robot-data: pip install 'featherjet[robots]'", stderr=True)
    return 0
