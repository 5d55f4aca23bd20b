"""Placements, velocities and Jacobians of frames and of points on bodies."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.frames.jacobians import VIEWPOINTS
from ..algorithms.quantities import quantity as record
from ..arrays import Out
from ..errors import InputError, UnknownName
from ..math.spatial import Transform
from ..math.vec3 import Mat3, Vec3
from ..model.model import WORLD, Array, Model
from ..model.parts import Frame
from ..model.tree import Tree
from .evaluator import Evaluator
from .ready import call_key

FrameName: TypeAlias = str | tuple[str, ArrayLike]  # a frame, or a point given in one
Viewpoint = Literal["local", "world", "world_aligned"]
FLOAT32 = np.dtype(np.float32)


def named(model: Model, name: FrameName) -> Frame:
    """The frame of that name; (name, point) moves its origin to a point (3,) [m] in its own coordinates."""
    if not isinstance(name, tuple):
        return model.frame(name)
    if len(name) != 2:
        raise InputError(f"frame: expected a name, or a name and a point, got {name!r}")
    base = model.frame(name[0])
    point = arrays.finite("point", name[1], (3,), "x y z")
    if point.shape != (3,):
        raise InputError(f"point: expected one point (3,), got {point.shape}")
    placement = np.array(base.placement)
    placement[:3, 3] += placement[:3, :3] @ point
    return Frame(base.name, base.joint, placement, base.kind)


def canonical(tree: Tree, joint: int, T: Array) -> Transform:
    """A placement (4, 4) in a joint's frame (or the world's), expressed in the joint's canonical frame."""
    A = np.eye(3)
    if joint != WORLD:
        align = tree.nodes[joint].align
        A = np.array([[c.x, c.y, c.z] for c in (align.x, align.y, align.z)])  # rows are columns: align^T
    R, p = A @ T[:3, :3], A @ T[:3, 3]
    return Transform(Mat3.from_array(R), Vec3(*p.tolist()))


def numbers(evaluator: Evaluator, name: FrameName) -> tuple[Array, Array]:
    """A frame as code reads it (13,), in double and in single precision; see `algorithms.frames.jacobians.View`."""
    found = evaluator.frames.get(name) if isinstance(name, str) else None
    if found is None:
        f = named(evaluator.model, name)
        X = canonical(evaluator.tree, f.joint, f.placement)
        entries = [x for column in (X.R.x, X.R.y, X.R.z, X.p) for x in (column.x, column.y, column.z)]
        double = np.array([f.joint, *entries], float)
        found = double, double.astype(FLOAT32)
        if isinstance(name, str):
            evaluator.frames[name] = found
    return found


def run(
    evaluator: Evaluator, quantity: str, given: tuple, name: FrameName, viewpoint: str | None, out: Out
) -> tuple[Array, ...]:
    """The results of a quantity of a frame, seen from a viewpoint if the quantity depends on one."""
    try:  # the shortest way, for one state by code that has run before
        call, frame = evaluator.ready.frame_calls[quantity, name, viewpoint]
    except (KeyError, TypeError):  # a point may be an array, which is no key
        pass
    else:
        results = call(*given, frame) if out is None else call(*given, frame, out=out)
        if results is not None:
            return results
    frame = numbers(evaluator, name)[getattr(given[0], "dtype", None) == FLOAT32]
    options = {"viewpoint": checked_viewpoint(viewpoint)} if "viewpoint" in record(quantity).options else {}
    results = evaluator.run(quantity, (*given, frame), None, out, **options)
    call = evaluator.ready.calls.get(call_key(quantity, options))
    if call is not None and isinstance(name, str):
        evaluator.ready.frame_calls[quantity, name, viewpoint] = call, frame
    return results


def checked_viewpoint(viewpoint: str | None) -> str:
    """A viewpoint, or an error if there is none of that name."""
    if not isinstance(viewpoint, str) or viewpoint not in VIEWPOINTS:
        raise UnknownName("viewpoint", viewpoint, VIEWPOINTS)
    return viewpoint


def placement(evaluator: Evaluator, q: ArrayLike, name: FrameName, out: Out = None) -> Array:
    """Placement (..., 4, 4) of a frame in the world."""
    return run(evaluator, "frame_placement", (q,), name, None, out)[0]
