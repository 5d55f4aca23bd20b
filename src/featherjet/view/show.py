"""`show`: robots, trajectories and transitions side by side in one page."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypedDict

from ..errors import InputError
from .playable import motion_to_show
from .viewer import Viewer


class ViewOptions(TypedDict, total=False):
    """The options of `show`, which every `view` takes."""

    host: str
    port: int
    meshes: str | PathLike[str] | None
    play: bool
    speed: float
    loop: bool
    spacing: float | None
    traces: Sequence[str]


def show(
    *things: object,
    host: str = "127.0.0.1",
    port: int = 8080,
    meshes: str | PathLike[str] | None = None,
    play: bool = True,
    speed: float = 1.0,
    loop: bool = True,
    spacing: float | None = None,
    traces: Sequence[str] = (),
) -> Viewer:
    """Show robots, trajectories and transitions side by side in the browser; see `Robot.view` for the options.

    The page is up until the program ends, or `stop()`; `wait()` keeps a script alive, `open()` opens the browser.
    """
    motions = [motion_to_show(thing) for thing in things]
    if meshes is not None and not Path(meshes).is_file():
        raise InputError(f"{Path(meshes)}: there is no such file")
    viewer = Viewer(motions, host, port, Path(meshes) if meshes else None, play, speed, loop, spacing, traces)
    return viewer.start()
