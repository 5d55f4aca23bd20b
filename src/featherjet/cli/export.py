"""`featherjet export`: machine code of a robot for C and C++ programs."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

from ..algorithms.frames.jacobians import VIEWPOINTS
from .output import line
from .parsing import add_robot, command, load_robot

EXAMPLES = """\
examples:
  featherjet export panda --quantity inverse_dynamics forward_dynamics --out panda_c
  featherjet export my_robot.urdf --root free --quantity inverse_dynamics_derivatives --target aarch64 --out code
  featherjet export panda --quantity frame_placement jacobian --frame panda_hand --dtype float32 --out code

Targets: native, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, riscv64, armv7, cortex-m7, wasm32.
The folder gets an object, C and C++ headers, an example that checks itself, and a CMake file:
  cc panda_c/panda_example.c panda_c/panda.o -o example && ./example

In Python: robot.export("inverse_dynamics", ..., out="panda_c"); contacts can be exported there too."""


def add(commands: Any) -> None:
    sub = command(commands, "export", run, "write a robot's machine code for C and C++ programs", EXAMPLES)
    add_robot(sub)
    sub.add_argument("--quantity", nargs="+", required=True, metavar="NAME", help="what to export (docs/quantities.md)")
    sub.add_argument("--target", default="native", metavar="NAME", help="for which machine (below; default: native)")
    sub.add_argument("--dtype", default="float64", metavar="TYPE", help="float64 (default) or float32")
    sub.add_argument("--name", metavar="PREFIX", help="prefix of all names in C (default: the robot's name)")
    sub.add_argument("--fext", action="store_true", help="with external forces, where a quantity takes them")
    sub.add_argument("--frame", metavar="NAME", help="the frame of quantities of frames")
    sub.add_argument("--viewpoint", choices=VIEWPOINTS, default="local", help="in which axes they are given")
    sub.add_argument("--batch", action="store_true", help="also functions of many states at a time")
    sub.add_argument("--out", required=True, metavar="DIR", help="the folder to write to")
    sub.add_argument("--overwrite", action="store_true", help="replace files that exist")


def run(args: argparse.Namespace) -> int:
    robot = load_robot(args)
    start = perf_counter()
    paths = robot.export(
        *args.quantity, out=args.out, target=args.target, dtype=args.dtype, name=args.name, fext=args.fext,
        frame=args.frame, viewpoint=args.viewpoint, batch=args.batch, overwrite=args.overwrite,
    )  # fmt: skip
    size = paths[0].stat().st_size / 1024
    line(f"{args.out}: {', '.join(p.name for p in paths)} ({size:.0f} KB of code, {perf_counter() - start:.1f} s)")
    return 0
