"""`featherjet view`: play a transition or a simulation in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files.npz import file_format, read_npz
from ..simulation import trajectory
from ..simulation.playback import Playback
from ..simulation.trajectory import Trajectory
from ..transition import Transition
from .output import line
from .parsing import command, port

EXAMPLES = """\
examples:
  featherjet view t.npz
  featherjet view t.npz --open                         and open the browser
  featherjet view t.npz --urdf my_robot.urdf           with the meshes of that file
  featherjet view t.npz --port 9000 --host 0.0.0.0     for other machines too

The page shows the robot, a time slider, and curves of torque and energy; for a simulation also the ground and contact
forces (red; the robot's weight is one metre long). It is served until Ctrl-C. Robots without meshes are drawn as
capsules.
Needs viser: pip install 'featherjet[viewer]'."""


def add(commands: Any) -> None:
    sub = command(commands, "view", run, "play a motion in the browser", EXAMPLES)
    sub.add_argument("file", metavar="FILE", help="a saved transition or simulated trajectory")
    sub.add_argument("--port", type=port, default=8080, metavar="N", help="port of the page (default: 8080)")
    sub.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine only)")
    sub.add_argument(
        "--urdf", metavar="FILE", help="URDF with the robot's meshes (default: the file it was loaded from)"
    )
    sub.add_argument("--open", action="store_true", help="open the page in the browser")
    sub.add_argument("--paused", action="store_true", help="do not start playing")


def load_motion(path: Path) -> Transition | Trajectory:
    """A saved motion, a transition or a trajectory, as its file says."""
    is_trajectory = file_format(read_npz(path)).startswith(trajectory.KIND)
    return Trajectory.load(path) if is_trajectory else Transition.load(path)


def run(args: argparse.Namespace) -> int:
    from ..view.viewer import Viewer

    found = load_motion(Path(args.file))
    motion = Playback(found) if isinstance(found, Trajectory) else found
    if args.urdf and not Path(args.urdf).is_file():
        raise InputError(f"{args.urdf}: there is no such file")
    urdf = Path(args.urdf or motion.source) if args.urdf or Path(motion.source).is_file() else None
    viewer = Viewer(motion, args.host, args.port, urdf, play=not args.paused)
    try:
        line(f"{motion.model.name}: ", (viewer.url, "bold"), "  (Ctrl-C ends)")
        if args.open:
            webbrowser.open(viewer.url)
        viewer.run()
    finally:
        viewer.stop()
    return 0
