"""`featherjet compile`: compile the code of a robot before a program needs it."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

from ..jit import cache
from ..jit.notices import muted
from ..robot.ahead import tasks
from ..terminal import progress
from .output import line
from .parsing import add_robot, command, load_robot

EXAMPLES = """\
examples:
  featherjet compile panda                                               everything that needs no options
  featherjet compile my_robot.urdf --root free --quantity forward_dynamics forward_dynamics_derivatives
  featherjet compile panda --quantity inverse_dynamics --fext            with external forces

Compiled code stays on disk (featherjet cache info), so programs that use this robot start at once.
In Python: robot.compile("forward_dynamics", ...)."""


def add(commands: Any) -> None:
    sub = command(commands, "compile", run, "compile a robot's code before it is needed", EXAMPLES)
    add_robot(sub)
    sub.add_argument("--quantity", nargs="+", default=[], metavar="NAME", help="what to compile (default: everything)")
    sub.add_argument("--fext", action="store_true", help="with external forces, where a quantity takes them")


def run(args: argparse.Namespace) -> int:
    robot = load_robot(args)
    todo = tasks(robot.evaluator, args.quantity, args.fext, None, "local")
    start = perf_counter()
    with progress() as bar, muted():
        task = bar.add_task("compiling", total=len(todo))
        for name, compile in todo:
            bar.update(task, description=name)
            compile()
            bar.advance(task)
    where = cache.folder()
    kept = f"; the code is in {where}" if where else f"; no code is kept on disk: {cache.why_off()}"
    what = ", ".join(args.quantity) or f"{len(todo)} quantities"
    line(f"{robot.name}: {what} compiled in {perf_counter() - start:.1f} s{kept}")
    return 0
