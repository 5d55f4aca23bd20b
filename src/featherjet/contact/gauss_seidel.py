"""Percussions at contacts with Coulomb friction, by block Gauss-Seidel; [KINDR] 'M du - h dt = W P'.

For each contact, velocities gamma = G P + b (two tangents, normal) and percussions P obey
    normal   0 <= Pn,  0 <= gamma_n,  Pn gamma_n = 0
    tangent  |Pt| <= mu Pn, and where the contact slides Pt = -mu Pn gamma_t / |gamma_t|
Both together are P = prox(P - r gamma) for any r > 0, where prox keeps Pn from being negative and |Pt| below mu Pn;
by how much this equation fails is the `residual`, which anyone can compute from G, b and P alone.
A sweep solves contact after contact, the others held: exactly if it opens or sticks, by a few prox steps if it slides.
Where sweeps converge slowly (contacts that share a body), Newton steps on the same equation finish the work; their
result is kept only if its residual is smaller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Array

SWEEPS = 1000
SLIDING_STEPS = 10
NEWTON_EVERY = 4  # sweeps
NEWTON_STEPS = 8
INERTIA = 1e-8
TOLERANCE = 1e-12  # residual relative to the largest percussion that a contact alone would need


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


def solve(
    G: Array, b: Array, friction: Array, start: Array | None = None, tolerance: float = TOLERANCE, sweeps: int = SWEEPS
) -> Percussions:
    """P for G (3 n, 3 n) symmetric, b (3 n,), friction (n,); `start` is a guess, such as the last step's."""
    n = len(friction)
    P = np.zeros(3 * n) if start is None else start.copy()
    blocks = _blocks(G, n)
    inverses = np.linalg.pinv(blocks, hermitian=True)
    steps = 1.0 / np.linalg.eigvalsh(blocks)[:, -1]
    goal = tolerance * max(float(np.abs(b.reshape(n, 3) * steps[:, None]).max()), 1e-300)
    found, done = residual(G, b, friction, P), 0
    while found > goal and done < sweeps:
        for k in range(n):
            at = slice(3 * k, 3 * k + 3)
            rest = G[at] @ P + b[at] - blocks[k] @ P[at]
            P[at] = _one(blocks[k], inverses[k], steps[k], rest, float(friction[k]), P[at])
        found, done = residual(G, b, friction, P), done + 1
        if found > goal and done % NEWTON_EVERY == 0:
            P, found = _polished(G, b, friction, P, found, goal)
    return Percussions(P, found, done, found <= goal)


def _polished(G: Array, b: Array, friction: Array, P: Array, found: float, goal: float) -> tuple[Array, float]:
    """The best of P and of what a few Newton steps make of it, and its residual; on the way that may grow."""
    best, walker = P, P
    for _ in range(NEWTON_STEPS):
        walker = _newton(G, b, friction, walker)
        left = residual(G, b, friction, walker)
        if left < found:
            best, found = walker, left
        if found <= goal:
            break
    return best, found


def _newton(G: Array, b: Array, friction: Array, P: Array) -> Array:
    """One step for P = prox(P - r gamma), which a little inertia of P keeps determined where contacts are redundant."""
    n = len(friction)
    own, gamma = P.reshape(n, 3), (G @ P + b).reshape(n, 3)
    r = 1.0 / np.trace(_blocks(G, n), axis1=1, axis2=2)
    x = own - r[:, None] * gamma
    one = np.eye(3 * n)
    A, rhs = G + INERTIA / r.max() * one, -(G @ P + b)  # pressed and sticking: gamma = 0
    for k, mu in enumerate(friction):
        t, at = slice(3 * k, 3 * k + 2), 3 * k + 2
        length, radius = np.hypot(x[k, 0], x[k, 1]), mu * own[k, 2]
        if x[k, 2] <= 0:  # open
            A[3 * k : at + 1], rhs[3 * k : at + 1] = one[3 * k : at + 1], -own[k]
        elif length > radius:  # sliding: Pt = mu Pn d, d the direction of x
            d = x[k, :2] / length
            across = radius / length * (np.eye(2) - np.outer(d, d))
            A[t] = one[t] - mu * np.outer(d, one[at]) - across @ (one[t] - r[k] * G[t])
            rhs[t] = radius * d - own[k, :2]
    return prox((P + np.linalg.solve(A, rhs)).reshape(n, 3), friction).ravel()


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
