"""Frames and points on bodies, and their Jacobians from what each degree of freedom does to the bodies beyond it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.frames.jacobians import View
from ..errors import InputError
from ..math.spatial import Transform
from ..math.vec3 import Mat3, Vec3
from ..model.model import WORLD, Frame, Model
from ..model.tree import Tree

Array = np.ndarray
FrameName: TypeAlias = str | tuple[str, ArrayLike]  # a frame, or a point given in one


def named(model: Model, name: FrameName) -> Frame:
    """The frame of that name; (name, point) is its like with the origin at that point (3,) [m], given in it."""
    if not isinstance(name, tuple):
        return model.frame(name)
    if len(name) != 2:
        raise InputError(f"frame: expected a name, or a name and a point, got {name!r}")
    base = model.frame(name[0])
    point = arrays.numbers("point", name[1], (3,), "x y z")
    if point.shape != (3,):
        raise InputError(f"point: expected one point (3,), got {point.shape}")
    placement = np.array(base.placement)
    placement[:3, 3] += placement[:3, :3] @ point
    return Frame(base.name, base.joint, placement, base.kind)


def sight(tree: Tree, f: Frame, viewpoint: str) -> View:
    """The frame as algorithms take it: placed in its body's canonical frame."""
    A = np.eye(3)
    if f.joint != WORLD:
        align = tree.nodes[f.joint].align
        A = np.array([[c.x, c.y, c.z] for c in (align.x, align.y, align.z)])  # the transpose of align
    R, p = A @ f.placement[:3, :3], A @ f.placement[:3, 3]
    return View(f.joint, Transform(Mat3.from_array(R), Vec3(*p.tolist())), viewpoint)


def jacobian(tree: Tree, joint: int, placement: Array, columns: Array, frame: str) -> Array:
    """Geometric Jacobian (..., 6, nv) of a frame on a joint's body, rows (linear, angular); [KINDR] eq. 14.

    placement (..., 4, 4) is the frame's in the world, columns (..., nv of the tree, 6) each dof's motion at the world's
    origin. Only dofs between the body and the root move it; mimicking joints' columns go to their leaders.
    """
    moves = np.zeros(tree.nv)
    at = joint
    while at >= 0:
        node = tree.nodes[at]
        moves[node.v] = 1.0
        at = node.parent
    J = np.swapaxes(columns, -1, -2) * moves
    if tree.coupling is not None:
        J = J @ tree.coupling.G
    if frame == "world":
        return J
    linear, angular = J[..., :3, :], J[..., 3:, :]
    p = placement[..., :3, 3, None]
    linear = linear - np.cross(p, angular, axis=-2)
    if frame == "local":
        back = np.swapaxes(placement[..., :3, :3], -1, -2)
        linear, angular = back @ linear, back @ angular
    return np.concatenate([linear, angular], -2)
