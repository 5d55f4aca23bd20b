"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from ..arrays import shortened
from ..robot.loading import load
from ..robot.robot import Robot
from .output import fail

MOST = 10**12  # of anything that is counted
ROOTS = ("fixed", "free", "planar")


class Parser(argparse.ArgumentParser):
    """argparse that keeps the line breaks of the examples, and whose errors are one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **settings)

    def refuse(self, unknown: list[str]) -> NoReturn:
        """Leave because of arguments that this command does not have; the nearest option that it has is named."""
        options = re.findall(r"--[a-z][a-z-]*", self.format_help())
        close = get_close_matches(unknown[0].partition("=")[0], options, n=1)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{f'; did you mean: {close[0]}' if close else ''}")

    def error(self, message: str) -> NoReturn:
        fail(f"{message} (see: {self.prog} --help)")
        self.exit(2)


def command(commands: Any, name: str, run: Any, brief: str, epilog: str) -> argparse.ArgumentParser:
    """A subcommand; `brief` is its line in the overview and the head of its own help."""
    sub = commands.add_parser(name, help=brief, description=brief[0].upper() + brief[1:] + ".", epilog=epilog)
    sub.add_argument("--debug", action="store_true", help="show the traceback of an error")
    sub.set_defaults(run=run, parser=sub)
    return sub


def add_robot(sub: argparse.ArgumentParser, needed: bool = True) -> None:
    """ROBOT and how to load it."""
    number = None if needed else "?"
    sub.add_argument(
        "robot", metavar="ROBOT", nargs=number, help="a URDF or MJCF file, or a name (see: featherjet robots)"
    )
    sub.add_argument(
        "--root",
        choices=ROOTS,
        default="fixed",
        help="how the first link is attached to the world (default: fixed)",
    )
    sub.add_argument("--mimic", action="store_true", help="couple mimic joints of a URDF to the joints they mimic")
    sub.add_argument("--strict", action="store_true", help="refuse physically impossible inertias instead of warning")


def add_seed(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--seed", type=nonnegative, default=0, metavar="N", help="seed of the random states (default: 0)")


def add_out(sub: argparse.ArgumentParser, what: str) -> None:
    """--out and --overwrite."""
    sub.add_argument("--out", required=True, metavar="FILE", help=what)
    sub.add_argument("--overwrite", action="store_true", help="replace the file if it exists")


def load_robot(args: argparse.Namespace) -> Robot:
    return load(args.robot, args.root, mimic=args.mimic, strict=args.strict)


def nonnegative(text: str) -> int:
    """A whole number, zero included."""
    return _number(text, int, lambda x: x >= 0, "a whole number")


def count(text: str) -> int:
    """A positive whole number."""
    return _number(text, int, lambda x: 0 < x <= MOST, f"a positive whole number up to {MOST:.0e}")


def port(text: str) -> int:
    """A number of a network port."""
    return _number(text, int, lambda x: 0 < x < 65536, "a port from 1 to 65535")


def positive(text: str) -> float:
    """A positive finite number."""
    return _number(text, float, lambda x: x > 0 and math.isfinite(x), "a positive number")


def _number(text: str, kind: Any, holds: Any, what: str) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not holds(value):
        raise argparse.ArgumentTypeError(f"expected {what}, got {shortened(text)}")
    return value
