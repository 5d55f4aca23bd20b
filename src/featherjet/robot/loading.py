"""`load`: a Robot from a file or a name."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import IO, Literal

from .robot import Robot


def load(
    robot: str | bytes | PathLike[str] | IO[str] | IO[bytes],
    root: Literal["fixed", "free", "planar"] = "fixed",
    *,
    mimic: bool = False,
    strict: bool = False,
    gravity: Sequence[float] | None = None,
    backend: str | None = None,
) -> Robot:
    """A robot from a URDF or MJCF file, or by name: built in, or from example-robot-data or robot_descriptions.

    robot:   a path, a name, the text of a file (it starts with "<"), or a file that is open.
    root:    the joint between the first link and the world: "fixed", "free" (floating base) or "planar".
    mimic:   couple URDF's mimicking joints to their leaders; by default they are independent, as in Pinocchio.
    strict:  raise an error for impossible inertias and for what acts elsewhere but not here, instead of warnings.
    gravity: (3,) [m/s^2]; by default the file's, or 9.81 downwards.
    backend: "compiled" (the default), or "numpy" for the reference.
    """
    from ..model.io.catalog import load_model

    return Robot(load_model(robot, root, mimic=mimic, strict=strict, gravity=gravity), backend=backend)


def robots() -> dict[str, str]:
    """The robots that `load` knows by name, and where they come from."""
    from ..model.io.catalog import robots

    return robots()
