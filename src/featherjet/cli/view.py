"""`featherjet view`: look at robots, transitions and simulations in the browser, and record them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..atomic import refuse_bad_target
from ..errors import InputError
from ..files.npz import described, file_format, read_npz
from ..robot.loading import load
from ..robot.robot import Robot
from ..simulation import trajectory
from ..simulation.trajectory import Trajectory
from ..transitions import Transition
from ..view.show import show
from .output import line
from .parsing import ROOTS, command, port, positive

EXAMPLES = """\
examples:
  featherjet view panda                                a robot with sliders for its joints
  featherjet view my_robot.urdf --root free --open     and open the browser
  featherjet view t.npz                                a transition or a simulation
  featherjet view t.npz other.npz panda                side by side
  featherjet view t.npz --record t.mp4 --speed 0.5     a film; also .gif, .png, .webp, and .html, a page to send
  featherjet view panda --screenshot panda.png
  featherjet view t.npz --port 9000 --host 0.0.0.0     for other machines too

The page shows meshes of URDF and MJCF files, or else bodies as large as their inertia says; layers show collision
shapes, inertias, frames and the centre of mass. Motions have a time slider, curves of torque and energy, traces of the
feet, the ground and forces (red; the robot's weight is as long as the robot is large). It is served until Ctrl-C.
Recording draws with the browser that has the page open, or else with a chromium without a window.
Needs viser: pip install 'featherjet[viewer]'; MP4 needs 'featherjet[video]'."""


def add(commands: Any) -> None:
    sub = command(commands, "view", run, "look at robots and motions in the browser", EXAMPLES)
    what = "a robot (a URDF or MJCF file, or a name), or a saved transition or trajectory (.npz)"
    sub.add_argument("things", metavar="ROBOT|FILE", nargs="+", help=what)
    sub.add_argument("--root", choices=ROOTS, default="fixed", help="how robots are attached to the world")
    sub.add_argument("--port", type=port, default=8080, metavar="N", help="port of the page (default: 8080)")
    sub.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine only)")
    sub.add_argument("--meshes", metavar="FILE", help="URDF or MJCF with the looks (default: the robot's own file)")
    sub.add_argument("--speed", type=positive, default=1.0, metavar="X", help="of playing (default: 1)")
    sub.add_argument("--trace", action="append", default=[], metavar="FRAME", help="draw the way of a frame")
    sub.add_argument("--open", action="store_true", help="open the page in the browser")
    sub.add_argument("--paused", action="store_true", help="do not start playing")
    sub.add_argument("--screenshot", metavar="FILE", help="write a PNG and end")
    sub.add_argument("--record", metavar="FILE", help="write .gif, .png, .webp, .mp4 or .html and end")
    sub.add_argument("--follow", action="store_true", help="in recordings, the camera goes along with the robots")
    sub.add_argument("--overwrite", action="store_true", help="replace a picture or recording that exists")


def load_motion(path: Path) -> Transition | Trajectory:
    """A saved motion, a transition or a trajectory, as its file says."""
    found = read_npz(path)
    if not file_format(found):
        raise InputError(f"{path}: {described(found)}; only saved transitions and trajectories can be shown")
    is_trajectory = file_format(found).startswith(trajectory.KIND)
    return Trajectory.load(path) if is_trajectory else Transition.load(path)


def load_thing(text: str, root: Any) -> Robot | Transition | Trajectory:
    """A robot or a saved motion."""
    return load_motion(Path(text)) if Path(text).suffix.lower() == ".npz" else load(text, root)


def run(args: argparse.Namespace) -> int:
    for path in filter(None, (args.screenshot, args.record)):
        refuse_bad_target(Path(path), args.overwrite)
    viewer = show(
        *(load_thing(text, args.root) for text in args.things), host=args.host, port=args.port, meshes=args.meshes,
        play=not args.paused, speed=args.speed, traces=args.trace,
    )  # fmt: skip
    try:
        if args.screenshot or args.record:
            return write_files(viewer, args)
        serve(viewer, args.open)
    finally:
        viewer.stop()
    return 0


def serve(viewer: Any, opened: bool) -> None:
    """Print the address, open it in the browser if wanted, and keep the page up until Ctrl-C."""
    line(f"{viewer.title}: ", (viewer.url, "bold"), "  (Ctrl-C ends)")
    if opened:
        viewer.open()
    viewer.join()


def write_files(viewer: Any, args: argparse.Namespace) -> int:
    """Write the picture and the recording that are asked for."""
    if args.screenshot:
        viewer.screenshot(args.screenshot, overwrite=args.overwrite)
        line(f"picture: {args.screenshot}")
    if args.record:
        viewer.record(args.record, speed=args.speed, follow=args.follow, overwrite=args.overwrite)
        line(f"recording: {args.record}")
    return 0
