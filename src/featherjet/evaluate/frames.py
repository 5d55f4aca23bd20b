"""Placements, velocities and Jacobians of frames and of points on bodies."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..algorithms.frames.jacobians import VIEWPOINTS, View
from ..errors import InputError, UnknownName
from ..math.spatial import Transform
from ..math.vec3 import Mat3, Vec3
from ..model.model import WORLD, Array, Frame, Model
from ..model.tree import Tree
from .evaluator import Evaluator

FrameName: TypeAlias = str | tuple[str, ArrayLike]  # a frame, or a point given in one
FrameChoice = Literal["local", "world", "world_aligned"]


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


def refuse_unknown(viewpoint: object) -> None:
    if not isinstance(viewpoint, str) or viewpoint not in VIEWPOINTS:
        raise UnknownName("frame choice", viewpoint, VIEWPOINTS)


def canonical(tree: Tree, joint: int, T: Array) -> Transform:
    """A placement (4, 4) in a joint's frame (or the world's), expressed in the joint's canonical frame."""
    A = np.eye(3)
    if joint != WORLD:
        align = tree.nodes[joint].align
        A = np.array([[c.x, c.y, c.z] for c in (align.x, align.y, align.z)])  # rows are columns: align^T
    R, p = A @ T[:3, :3], A @ T[:3, 3]
    return Transform(Mat3.from_array(R), Vec3(*p.tolist()))


def view(evaluator: Evaluator, name: FrameName, viewpoint: str) -> View:
    """A frame and its viewpoint, as algorithms take them."""
    refuse_unknown(viewpoint)
    f = named(evaluator.model, name)
    return View(f.joint, canonical(evaluator.tree, f.joint, f.placement), viewpoint)


def placement(evaluator: Evaluator, q: ArrayLike, name: FrameName) -> Array:
    """Placement (..., 4, 4) of a frame in the world."""
    f = named(evaluator.model, name)
    if f.joint == WORLD:
        return np.broadcast_to(f.placement, (*evaluator.checked_q("q", q).shape[:-1], 4, 4)).copy()
    return evaluator.run("forward_kinematics", (q,))[0][..., f.joint, :, :] @ f.placement


def jacobian(evaluator: Evaluator, q: ArrayLike, name: FrameName, viewpoint: str) -> Array:
    """Geometric Jacobian (..., 6, nv) of a frame, rows (linear, angular); [KINDR] eq. 14.

    It follows from the motions of the dofs at the world's origin; only dofs between the frame's body and the root move
    the frame. Columns of mimicking joints are added to those of their leaders.
    """
    refuse_unknown(viewpoint)
    f, tree = named(evaluator.model, name), evaluator.tree
    if f.joint == WORLD:
        return np.zeros((*evaluator.checked_q("q", q).shape[:-1], 6, evaluator.model.nv))
    J = np.swapaxes(evaluator.run("joint_columns", (q,))[0], -1, -2) * moves(tree, f.joint)
    if tree.coupling is not None:
        J = J @ tree.coupling.G
    if viewpoint == "world":
        return J
    T = placement(evaluator, q, name)
    linear, angular = J[..., :3, :], J[..., 3:, :]
    linear = linear - np.cross(T[..., :3, 3, None], angular, axis=-2)
    if viewpoint == "local":
        back = np.swapaxes(T[..., :3, :3], -1, -2)
        linear, angular = back @ linear, back @ angular
    return np.concatenate([linear, angular], -2)


def moves(tree: Tree, joint: int) -> Array:
    """For each dof of the tree (nv,): one if it moves a joint's body, else zero."""
    found = np.zeros(tree.nv)
    found[tree.dof_path(joint)] = 1.0
    return found


def velocity(evaluator: Evaluator, q: ArrayLike, v: ArrayLike, name: FrameName, viewpoint: str) -> Array:
    """Velocity (..., 6) of a frame, linear then angular."""
    v = evaluator.checked_v("v", v)
    arrays.common_batch({"q": (evaluator.checked_q("q", q), 1), "v": (v, 1)})
    return (jacobian(evaluator, q, name, viewpoint) @ v[..., None])[..., 0]
