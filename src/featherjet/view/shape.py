"""One shape of a robot."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ..model.model import Array

Layer = Literal["visual", "collision"]
Colour = tuple[float, float, float, float]  # red, green, blue, opacity, from 0 to 1


class Shape(NamedTuple):
    """A trimesh.Trimesh on a joint's body (or the world), placed (4, 4) in the joint's frame.

    colour: of the whole shape, or None if the mesh has a texture or colours of its own.
    """

    joint: int
    placement: Array
    mesh: Any
    colour: Colour | None
    layer: Layer = "visual"
