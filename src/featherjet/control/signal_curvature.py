"""Second derivatives of signals contracted with weights: what residuals bend by because their signals do.

Weights are those of a signal's tangent. Accelerations and forces are the business of `dynamics_curvature`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .frame_curvature import ANGULAR, LINEAR, Curvature, Moved, Order, cross, dual, placed, transposed, turns, viewed
from .motion import Motion
from .signals import Signal

Array = np.ndarray


def of_placement(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    return Curvature(placed(order, m.of_frame("jacobian", signal)[0], w))


def of_velocity(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    local, viewpoint = signal._replace(viewpoint="local"), signal.viewpoint or "local"
    s = m.of_frame("jacobian", local)[0]
    T = m.of_frame("frame_placement", local)[0]
    return Moved(order, s, m.v).seen(viewed(w, T, viewpoint), turns(s, viewpoint))


def of_com(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    return Curvature(com_curvature(m, w / m.mass, order))


def com_curvature(m: Motion, w: Array, order: Order) -> Array:
    """Of w.(mass c): dof k moves it by P_k, a column of the centroidal map, which turns with all dofs above."""
    P, turn = m.of_robot("centroidal_map")[0][..., LINEAR, :], columns(m)[..., ANGULAR, :]
    return order.symmetric(transposed(np.cross(w[..., None], turn, axis=-2)) @ P)


def of_potential(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    return Curvature(com_curvature(m, -w * m.body.evaluator.model.gravity, order))


def of_kinetic(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    """v^T M v / 2, from second derivatives of v^T M a at a = v: inverse dynamics at rest, less gravity's part."""
    hessian, still = m.body.kernel("inverse_dynamics_hessian"), m.body.still
    qq, _, _, qa = hessian.values(m.q, still, m.v, m.v)
    gravity = hessian.values(m.q, still, still, m.v)[0]
    k = w[..., None]
    qq = 0.5 * (qq - gravity)
    return Curvature(0.5 * k * (qq + transposed(qq)), k * qa, k * m.of_robot("mass_matrix")[0])


def of_momentum(m: Motion, signal: Signal, w: Array, order: Order) -> Curvature:
    """About a point O that is at the centre of mass c for now, h = sum of I V has, with alpha_k = S_k x V above k,

        dh/dq_k = S_k x* hC_k - IC_k alpha_k
        d2h/dq_g dq_k = S_g x* dh/dq_k - S_k x* IC_k alpha_g + IC_k (S_k x alpha_g)      for g above k or of its joint
        d2h/dq_k dv_j = S_k x* IC_j S_j  for k at or above j's joint,   S_k x* IC_k S_j - IC_k (S_k x S_j)  below it

    and angular momentum about c loses (c - O) x p, whose second derivatives are those of a product.
    """
    c, A = m.of_robot("center_of_mass")[0], m.of_robot("centroidal_map")[0]
    S = columns(m).copy()
    S[..., LINEAR, :] += np.cross(S[..., ANGULAR, :], c[..., None], axis=-2)
    IC = composites(m, c)
    W = w[..., None]
    shares = S * m.v[..., None, :]
    alpha = cross(S, shares @ order.strictly)
    IS, Ialpha, pull, IW = (applied(IC, x) for x in (S, alpha, cross(S, W), np.broadcast_to(W, S.shape)))
    hC = applied(IC, shares @ (order.strictly + order.same)) + (IS * m.v[..., None, :]) @ order.strictly.T
    by_q = -dual(S, hC) - Ialpha
    lean = -cross(S, W)
    qq = transposed(lean) @ by_q + transposed(alpha) @ (pull + dual(S, IW))
    above, below = transposed(lean) @ IS, -transposed(pull + dual(S, IW)) @ S
    qv = above * (order.strictly + order.same) + below * order.strictly.T
    spin = w[..., ANGULAR]
    p = (A[..., LINEAR, :] @ m.v[..., None])[..., 0]
    drift = transposed(np.cross(spin[..., None], A[..., LINEAR, :] / m.mass, axis=-2))
    mixed = drift @ by_q[..., LINEAR, :]
    moved = com_curvature(m, np.cross(p, spin) / m.mass, order) + mixed + transposed(mixed)
    return Curvature(order.symmetric(qq) - moved, qv - drift @ A[..., LINEAR, :])


def columns(m: Motion) -> Array:
    """The motion that each dof gives, at the world's origin (..., 6, nv)."""
    return transposed(m.of_robot("joint_columns")[0])


def applied(IC: Array, x: Array) -> Array:
    """IC_k x_k for all dofs."""
    return np.einsum("...kij,...jk->...ik", IC, x)


def composites(m: Motion, center: Array) -> Array:
    """The inertia of each dof's subtree about a point (..., nv, 6, 6), in world axes, linear then angular."""
    evaluator = m.body.evaluator
    joints, tree = evaluator.model.joints, evaluator.tree
    T = m.of_robot("forward_kinematics")[0]
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


def skew(r: Array) -> Array:
    """The matrices (..., 3, 3) of r x."""
    out = np.zeros((*r.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., k, j], out[..., j, k] = r[..., i], -r[..., i]
    return out


Curve = Callable[[Motion, Signal, Array, Order], Curvature]
CURVES: dict[str, Curve] = {
    "placement": of_placement, "velocity": of_velocity, "com": of_com, "momentum": of_momentum, "kinetic": of_kinetic,
    "potential": of_potential,
}  # fmt: skip
