"""Percussions at contacts with Coulomb friction, by block Gauss-Seidel; [KINDR] 'M du - h dt = W P'.

For each contact, velocities gamma = G P + b (two tangents, normal) and percussions P obey
    normal   0 <= Pn,  0 <= gamma_n,  Pn gamma_n = 0
    tangent  |Pt| <= mu Pn, and where the contact slides Pt = -mu Pn gamma_t / |gamma_t|
Both together are P = prox(P - r gamma) for any r > 0, where prox keeps Pn from being negative and |Pt| below mu Pn;
by how much this equation fails is the `residual`, which anyone can compute from G, b and P alone.
A sweep solves contact after contact, the others held: exactly if it opens or sticks, by a few prox steps if it slides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Array

SWEEPS = 2000
SLIDING_STEPS = 30
TOLERANCE = 1e-10  # residual relative to the largest percussion that a contact alone would need


class Percussions(NamedTuple):
    """P (3 n,), how well it solves the problem [N s], the sweeps it took, and whether that was enough."""

    P: Array
    residual: float
    sweeps: int
    converged: bool


def prox(P: Array, friction: Array) -> Array:
    """Percussions (n, 3) with Pn >= 0 and |Pt| <= mu Pn."""
    normal = np.maximum(P[:, 2], 0.0)
    length = np.hypot(P[:, 0], P[:, 1])
    share = np.minimum(1.0, friction * normal / np.maximum(length, 1e-300))
    return np.column_stack([P[:, 0] * share, P[:, 1] * share, normal])


def residual(G: Array, b: Array, friction: Array, P: Array) -> float:
    """Largest entry of P - prox(P - r (G P + b)) [N s], with r = 1 / (trace of the contact's block of G)."""
    n = len(friction)
    r = 1.0 / np.trace(_blocks(G, n), axis1=1, axis2=2)
    gamma = (G @ P + b).reshape(n, 3)
    own = P.reshape(n, 3)
    return float(np.abs(own - prox(own - r[:, None] * gamma, friction)).max())


def solve(G: Array, b: Array, friction: Array, start: Array | None = None, sweeps: int = SWEEPS) -> Percussions:
    """P for G (3 n, 3 n) symmetric, b (3 n,), friction (n,); `start` is a guess, such as the last step's."""
    n = len(friction)
    P = np.zeros(3 * n) if start is None else start.copy()
    blocks = _blocks(G, n)
    inverses = np.linalg.pinv(blocks, hermitian=True)
    steps = 1.0 / np.linalg.eigvalsh(blocks)[:, -1]
    goal = TOLERANCE * max(float(np.abs(b.reshape(n, 3) * steps[:, None]).max()), 1e-300)
    parts = [slice(3 * k, 3 * k + 3) for k in range(n)]
    found = residual(G, b, friction, P)
    done = 0
    while found > goal and done < sweeps:
        for k, at in enumerate(parts):
            rest = G[at] @ P + b[at] - blocks[k] @ P[at]
            P[at] = _one(blocks[k], inverses[k], steps[k], rest, float(friction[k]), P[at])
        done += 1
        found = residual(G, b, friction, P)
    return Percussions(P, found, done, found <= goal)


def _one(G: Array, inverse: Array, r: float, b: Array, mu: float, P: Array) -> Array:
    """One contact by itself, gamma = G P + b: open, sticking, or sliding."""
    if b[2] >= 0.0:
        return np.zeros(3)
    stick = -inverse @ b
    if stick[2] >= 0.0 and np.hypot(stick[0], stick[1]) <= mu * stick[2]:
        return stick
    for _ in range(SLIDING_STEPS):
        gamma = G @ P + b
        normal = max(P[2] - gamma[2] / G[2, 2], 0.0)
        x, y = P[0] - r * gamma[0], P[1] - r * gamma[1]
        share = min(1.0, mu * normal / max(np.hypot(x, y), 1e-300))
        P = np.array([x * share, y * share, normal])
    return P


def _blocks(G: Array, n: int) -> Array:
    """The diagonal blocks (n, 3, 3)."""
    return np.stack([G[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] for k in range(n)])
