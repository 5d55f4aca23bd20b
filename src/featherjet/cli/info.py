"""`featherjet info`: a robot's joints, masses and limits, and anything that looks wrong."""

from __future__ import annotations

import argparse
from typing import Any

from rich.text import Text

from ..robot.robot import Robot
from ..terminal import console
from .diagnostics import diagnose
from .outline import outline
from .output import collected_warnings, line, table
from .parsing import add_robot, command, load_robot

EXAMPLES = """\
examples:
  featherjet info panda
  featherjet info talos_full --root free
  featherjet info my_robot.urdf --strict           refuse impossible inertias instead of warning
  featherjet info panda --frames                   also list the frames

A joint without a mark is a child of the one above it; marks show where the tree branches. q and v are the
joint's entries in a configuration and a velocity; mass is that of the body it carries."""


def add(commands: Any) -> None:
    sub = command(
        commands, "info", run, "show a robot's joints, masses and limits, and anything that looks wrong", EXAMPLES
    )
    add_robot(sub)
    sub.add_argument("--frames", action="store_true", help="also list the named frames")


def run(args: argparse.Namespace) -> int:
    with collected_warnings() as warned:
        robot = load_robot(args)
    show(robot)
    if args.frames:
        show_frames(robot)
    found = [*warned, *diagnose(robot)]
    if found:
        line()
    for sentence in found:
        line(("warning: ", "yellow"), sentence)
    return 0


def show(robot: Robot) -> None:
    """Print totals, then the tree of joints."""
    model, gravity = robot.model, " ".join(f"{g:g}" for g in robot.model.gravity)
    totals = f": {robot.njoints} joints, nq {robot.nq}, nv {robot.nv}, {robot.mass:.4g} kg, "
    line((robot.name, "bold"), totals, f"{len(model.frames)} frames, gravity {gravity} m/s^2")
    line()
    listing = table(
        "joint", "kind", "axis", ("limits", "right"), ("q", "right"), ("v", "right"), ("mass [kg]", "right")
    )
    for row in outline(model):
        mass = Text(f"{row.mass:.4g}", style="" if row.mass > 0 else "yellow")
        name = Text.assemble((row.marks, "dim"), row.name)
        listing.add_row(name, row.kind, row.axis, row.limits, row.q, row.v, mass)
    console().print(listing)


def show_frames(robot: Robot) -> None:
    line()
    listing = table("frame", "kind", "on joint")
    for frame in robot.model.frames:
        listing.add_row(frame.name, frame.kind, robot.joint_names[frame.joint] if frame.joint >= 0 else "(world)")
    console().print(listing)
