"""A robot's looks: the shapes of the file it came from."""

from __future__ import annotations

import warnings
from pathlib import Path

from ..errors import ModelWarning
from ..model.io.xmltree import read_bytes, root_tag
from ..model.model import Model
from .mjcf_shapes import mjcf_shapes
from .shape import Shape
from .urdf_shapes import urdf_shapes

NAMED = 3  # files that a warning names


def shapes(model: Model, file: Path | None = None) -> list[Shape]:
    """The visual and collision shapes of a URDF or MJCF file, by default the one that the model came from.

    Bodies without visual shapes look like their collision shapes. A warning names meshes that cannot be found or read.
    """
    file = file or (Path(model.source) if model.source else None)
    if file is None or not file.is_file():
        return []
    lost: list[str] = []
    if root_tag(read_bytes(file)) == "mujoco":
        found = mjcf_shapes(model, file)
    else:
        found = urdf_shapes(model, file, lost)
    lost = [*dict.fromkeys(lost)]
    if lost:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        warnings.warn(
            f"{file}: meshes are missing or broken: {', '.join(lost[:NAMED])}{more}", ModelWarning, stacklevel=3
        )
    seen = {shape.joint for shape in found if shape.layer == "visual"}
    return found + [s._replace(layer="visual") for s in found if s.joint not in seen]
