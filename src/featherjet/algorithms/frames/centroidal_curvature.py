"""Second derivatives of the centre of mass, the momentum about it and energies, contracted with weights.

Arrays have any leading axes. P (..., 3, nv) is the linear half of the centroidal map, S (..., 6, nv) are the motions
that dofs give at the world's origin, linear then angular. For h above k or of its joint, dof k moves mass times c by
P_k, which turns with dof h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...math.rotations.quaternion import skew
from ...model.model import Joint
from ...model.tree import Tree
from .curvature import ANGULAR, LINEAR, Curvature, DofOrder, cross, dual, transposed

Array = np.ndarray


def center_of_mass_curvature(order: DofOrder, P: Array, S: Array, w: Array) -> Array:
    """The Hessian (..., nv, nv) of w.(mass c) by q."""
    return order.symmetric(transposed(np.cross(w[..., None], S[..., ANGULAR, :], axis=-2)) @ P)


def momentum_curvature(
    order: DofOrder, c: Array, A: Array, S: Array, IC: Array, v: Array, w: Array, mass: float
) -> Curvature:
    """Second derivatives of w.h, the momentum h = A v about the centre of mass c; IC (..., nv, 6, 6): see `composites`.

    About a point O that is at c for now, h = sum of I V has, with alpha_k = S_k x V above k,

        dh/dq_k = S_k x* hC_k - IC_k alpha_k
        d2h/dq_g dq_k = S_g x* dh/dq_k - S_k x* IC_k alpha_g + IC_k (S_k x alpha_g)      for g above k or of its joint
        d2h/dq_k dv_j = S_k x* IC_j S_j  for k at or above j's joint,   S_k x* IC_k S_j - IC_k (S_k x S_j)  below it

    and angular momentum about c loses (c - O) x p, whose second derivatives are those of a product.
    """
    S = S.copy()
    S[..., LINEAR, :] += np.cross(S[..., ANGULAR, :], c[..., None], axis=-2)
    W = w[..., None]
    shares = S * v[..., None, :]
    alpha = cross(S, shares @ order.strictly)
    IS, Ialpha, pull, IW = (applied(IC, x) for x in (S, alpha, cross(S, W), np.broadcast_to(W, S.shape)))
    hC = applied(IC, shares @ (order.strictly + order.same)) + (IS * v[..., None, :]) @ order.strictly.T
    by_q = -dual(S, hC) - Ialpha
    lean = -cross(S, W)
    qq = transposed(lean) @ by_q + transposed(alpha) @ (pull + dual(S, IW))
    above, below = transposed(lean) @ IS, -transposed(pull + dual(S, IW)) @ S
    qv = above * (order.strictly + order.same) + below * order.strictly.T
    spin, P = w[..., ANGULAR], A[..., LINEAR, :]
    p = (P @ v[..., None])[..., 0]
    drift = transposed(np.cross(spin[..., None], P / mass, axis=-2))
    mixed = drift @ by_q[..., LINEAR, :]
    of_center = center_of_mass_curvature(order, P, S, np.cross(p, spin) / mass)
    return Curvature(order.symmetric(qq) - (of_center + mixed + transposed(mixed)), qv - drift @ P)


def applied(IC: Array, x: Array) -> Array:
    """IC_k x_k for all dofs, (..., 6, nv)."""
    return np.einsum("...kij,...jk->...ik", IC, x)


def composites(tree: Tree, joints: Sequence[Joint], T: Array, center: Array) -> Array:
    """The inertia of each dof's subtree about a point (..., nv, 6, 6), in world axes; T (..., bodies, 4, 4)."""
    R = T[..., :3, :3]
    masses = np.array([j.body.mass for j in joints])[:, None, None]
    r = (R @ np.array([j.body.com for j in joints])[..., None])[..., 0] + T[..., :3, 3] - center[..., None, :]
    cross_r = skew(r)
    turned = R @ np.array([j.body.inertia for j in joints]) @ transposed(R)
    whole = np.zeros((*R.shape[:-2], 6, 6))
    whole[..., LINEAR, LINEAR] = masses * np.eye(3)
    whole[..., LINEAR, ANGULAR], whole[..., ANGULAR, LINEAR] = -masses * cross_r, masses * cross_r
    whole[..., ANGULAR, ANGULAR] = turned - masses * (cross_r @ cross_r)
    carried = np.zeros((tree.nv, len(joints)))
    for node in tree.nodes:
        carried[node.v, node.index : node.end] = 1.0
    return np.einsum("kb,...bij->...kij", carried, whole)
