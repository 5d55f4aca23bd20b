"""`convert`: states from one convention to another."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..errors import InputError
from ..evaluate.convert import ConvertedState, converted
from .robot import Robot


def convert(
    source: Robot,
    target: Robot,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> ConvertedState:
    """A state of `source` in the coordinates of `target`, the same robot in another convention.

    q (..., nq), v, a, tau (..., nv) are in the convention of `source`; a needs v, since turning axes accelerate.
    """
    if source.joint_names != target.joint_names or source.nv != target.nv:
        raise InputError(f"convert: {source.name!r} and {target.name!r} are not the same robot")
    return converted(source.evaluator, target.evaluator, q, v, a, tau)
