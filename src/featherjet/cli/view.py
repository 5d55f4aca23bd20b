"""`featherjet view`: play a transition, or a simulated motion, in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files.npz import read_npz
from ..simulation.trajectory import Trajectory
from ..transition import Transition
from ..view.playback import Playback
from .output import line
from .parsing import command, count

EXAMPLES = """\
examples:
  featherjet view t.npz
  featherjet view t.npz --open                         and open the browser
  featherjet view t.npz --urdf my_robot.urdf           with the meshes of that file
  featherjet view t.npz --port 9000 --host 0.0.0.0     for other machines too

The page has the robot, a time slider, and curves of torque and energy; of a simulation, its ground and contact forces
too (red, a metre for the robot's weight). It is served until Ctrl-C. Robots without meshes are drawn as capsules.
Needs viser: pip install 'featherjet[viewer]'."""


def add(commands: Any) -> None:
    sub = command(commands, "view", run, "play a motion in the browser", EXAMPLES)
    sub.add_argument("file", metavar="FILE", help="a transition, or a simulated trajectory, as saved")
    sub.add_argument("--port", type=count, default=8080, metavar="N", help="of the page (default: 8080)")
    sub.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine only)")
    sub.add_argument("--urdf", metavar="FILE", help="with the robot's meshes (default: the file it was loaded from)")
    sub.add_argument("--open", action="store_true", help="open the page in the browser")
    sub.add_argument("--paused", action="store_true", help="do not play at once")


def load_motion(path: Path) -> Transition | Trajectory:
    """What `featherjet transition` wrote, or `save` of a simulated trajectory."""
    return Trajectory.load(path) if "residual" in read_npz(path) else Transition.load(path)


def run(args: argparse.Namespace) -> int:
    from ..view.viewer import Viewer

    found = load_motion(Path(args.file))
    result = Playback(found) if isinstance(found, Trajectory) else found
    if args.urdf and not Path(args.urdf).is_file():
        raise InputError(f"{args.urdf}: there is no such file")
    urdf = Path(args.urdf or result.source) if args.urdf or Path(result.source).is_file() else None
    viewer = Viewer(result, args.host, args.port, urdf, play=not args.paused)
    try:
        line(f"{result.robot.name}: ", (viewer.url, "bold"), "  (Ctrl-C ends)")
        if args.open:
            webbrowser.open(viewer.url)
        viewer.run()
    except KeyboardInterrupt:
        pass  # the way it is meant to end
    finally:
        viewer.stop()
    return 0
