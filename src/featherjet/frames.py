"""Jacobians of frames, from what each degree of freedom does to the bodies beyond it."""

from __future__ import annotations

import numpy as np

from .model.tree import Tree

Array = np.ndarray


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
