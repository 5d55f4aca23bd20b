"""`featherjet info`: a robot's joints, masses and limits, and anything that looks wrong."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from rich.text import Text

from ..robot.robot import Robot
from ..terminal import console
from ..view.browser import has_screen
from .diagnostics import diagnose
from .outline import outline
from .output import collected_warnings, line, table
from .parsing import add_robot, command, load_robot
from .view import serve

DRIVES = {
    "velocity_limit": "velocity", "effort_limit": "effort", "armature": "armature", "damping": "damping",
    "friction": "friction", "stiffness": "stiffness",
}  # fmt: skip
EXAMPLES = """\
examples:
  featherjet info panda
  featherjet info talos_full --root free
  featherjet info my_robot.urdf --strict           refuse impossible inertias instead of warning
  featherjet info panda --frames                   also list the frames
  featherjet info panda --view                     and look at it in the browser

A joint without a mark is a child of the one above it; marks show where the tree branches. q and v are the
joint's entries in a configuration and a velocity; mass is that of the body it carries. The second table has
what joints share: limits of velocity and effort (none: unlimited), armature, damping, friction and stiffness,
in SI units. Damping, friction and stiffness act in simulations, and in the dynamics of robot.with_joint_laws().
--view serves a page with the robot until Ctrl-C, and opens it where there is a screen; `featherjet view` has more
options. It needs viser: pip install 'featherjet[viewer]'."""


def add(commands: Any) -> None:
    sub = command(
        commands, "info", run, "show a robot's joints, masses and limits, and anything that looks wrong", EXAMPLES
    )
    add_robot(sub)
    sub.add_argument("--frames", action="store_true", help="also list the named frames")
    sub.add_argument("--view", action="store_true", help="also show the robot in the browser")


def run(args: argparse.Namespace) -> int:
    with collected_warnings() as warned:
        robot = load_robot(args)
    show(robot)
    show_drives(robot)
    if args.frames:
        show_frames(robot)
    found = [*warned, *diagnose(robot)]
    line()
    if not any(joint.body.defects for joint in robot.model.joints):
        line(f"inertias: all {robot.njoints} are physically possible")
    for sentence in found:
        line(("warning: ", "yellow"), sentence)
    if args.view:
        line()
        look(robot)
    return 0


def look(robot: Robot) -> None:
    """Show the robot in the browser until Ctrl-C."""
    viewer = robot.view()
    try:
        serve(viewer, has_screen())
    finally:
        viewer.stop()


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


def show_drives(robot: Robot) -> None:
    """Print what drives and brakes the joints, one row for all joints that share it; nothing if there is nothing."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for joint in robot.model.joints:
        values = (number(getattr(joint, name)) for name in DRIVES)
        groups.setdefault(tuple(values), []).append(joint.name)
    used = [k for k in range(len(DRIVES)) if any(cells[k] not in ("0", "none") for cells in groups)]
    if not used:
        return
    line()
    listing = table("joints", *((list(DRIVES.values())[k], "right") for k in used))
    for cells, names in groups.items():
        listing.add_row(", ".join(names), *(cells[k] for k in used))
    console().print(listing)


def number(x: Any) -> str:
    """One number for all degrees of freedom, or their range; "none" if infinite."""
    low, high = (f"{x:.4g}" if np.isfinite(x) else "none" for x in (np.min(x), np.max(x)))
    return low if low == high else f"{low} to {high}"


def show_frames(robot: Robot) -> None:
    line()
    listing = table("frame", "kind", "on joint")
    for frame in robot.model.frames:
        listing.add_row(frame.name, frame.kind, robot.joint_names[frame.joint] if frame.joint >= 0 else "(world)")
    console().print(listing)
