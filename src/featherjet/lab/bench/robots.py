"""Which robots are measured: those of the record, or whatever is named."""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from ...errors import PhysicsWarning, UnknownName
from ...model.builtin import chain, tree
from ...robot.loading import load
from ...robot.robot import Robot

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
DEFAULT = ("panda", "hyq", "talos_full", "chain100", "chain500")
STAND_INS = {"panda": "arm", "hyq": "quadruped", "talos_full": "humanoid"}
FLOATING = ("hyq", "talos_full")
MADE = re.compile(r"(chain|tree)(\d+)(?:x(\d+))?")
BATCH = 1024
LARGE, LARGE_BATCH = 100, 16  # beyond so many dofs a batch is so small, for the results to fit the memory


class Entrant(NamedTuple):
    """A robot, what to call it, and how many states it is given at a time."""

    title: str
    robot: Robot
    batch: int


def entrant(name: str, root: str | None = None, batch: int | None = None) -> Entrant:
    """The robot of that name or file; without a root, some names mean what everybody measures.

    panda is the arm with locked fingers, hyq and talos_full float; chain100 and tree100x2 are made to size.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysicsWarning)  # a doubtful inertia takes as long as any other
        robot, title = _robot(name, root)
    return Entrant(title, robot, batch or default_batch(robot.nv))


def _robot(name: str, root: str | None) -> tuple[Robot, str]:
    made = MADE.fullmatch(name)
    if made:
        n, branching = int(made[2]), int(made[3] or 2)
        robot = Robot(chain(n) if made[1] == "chain" else tree(n, branching), "compiled")
        return robot, robot.name
    if root is None and name in FLOATING:
        return load(name, "free", backend="compiled"), f"{name}, free base"
    if root is None and name == "panda":
        robot = load(name, backend="compiled").lock(dict.fromkeys(FINGERS, 0.0))
        return robot, "panda, fingers locked"
    robot = load(name, root or "fixed", backend="compiled")  # type: ignore[arg-type]
    return robot, robot.name


def default_batch(nv: int) -> int:
    return BATCH if nv <= LARGE else LARGE_BATCH


def defaults(batch: int | None = None) -> tuple[list[Entrant], list[str]]:
    """The robots of the record, and those that are not installed, with what stands in for them."""
    found, missing = [], []
    for name in DEFAULT:
        try:
            found.append(entrant(name, batch=batch))
        except UnknownName:
            stand_in = STAND_INS[name]
            missing.append(f"{name} is not installed (pip install 'featherjet[robots]'); {stand_in} instead")
            found.append(entrant(stand_in, batch=batch))
    return found, missing
