"""The robots to measure: the default ones, or any by name or file."""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

from ...errors import PhysicsWarning, UnknownName
from ...model.builtin import auto_tree, chain, tree
from ...robot.loading import load
from ...robot.robot import Robot

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
DEFAULT = ("panda", "hyq", "talos_full", "chain100", "chain500")
STAND_INS = {"panda": "arm", "hyq": "quadruped", "talos_full": "humanoid"}
FLOATING = ("hyq", "talos_full")
GENERATED = re.compile(r"(auto|chain|tree)(\d+)(?:x(\d+))?")
SKEW = 0.3  # rad between the axes of a link of auto100
BATCH = 1024
LARGE, LARGE_BATCH = 100, 16  # beyond 100 dofs, batches of 16, so that the results fit into memory


class Entrant(NamedTuple):
    """A robot, its title in reports, and the number of states in a batch."""

    title: str
    robot: Robot
    batch: int


def entrant(name: str, root: str | None = None, batch: int | None = None) -> Entrant:
    """The robot of that name or file; without `root`, some names mean the variant that everybody measures.

    panda is the arm with locked fingers, hyq and talos_full have a free base. chain100, tree100x2 and auto100x2 (see
    `auto_tree`) are generated.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysicsWarning)  # an unphysical inertia takes as long as any other
        robot, title = _robot(name, root)
    return Entrant(title, robot, batch or default_batch(robot.nv))


def _robot(name: str, root: str | None) -> tuple[Robot, str]:
    generated = GENERATED.fullmatch(name)
    if generated:
        family, n, branching = generated[1], int(generated[2]), int(generated[3] or 0)
        if family == "auto":
            model = auto_tree(n, branching=branching or 1, skew=SKEW)
        else:
            model = chain(n) if family == "chain" else tree(n, branching=branching or 2)
        robot = Robot(model, backend="compiled")
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
    """The default robots, and a message for each one that is not installed, whose stand-in is measured instead."""
    found, missing = [], []
    for name in DEFAULT:
        try:
            found.append(entrant(name, batch=batch))
        except UnknownName:
            stand_in = STAND_INS[name]
            missing.append(f"{name} is not installed (pip install 'featherjet[robots]'); measuring {stand_in} instead")
            found.append(entrant(stand_in, batch=batch))
    return found, missing
