"""Percussions at contacts with Coulomb friction, by block Gauss-Seidel; [KINDR] 'M du - h dt = W P'.

For each contact, velocities gamma = G P + b (two tangents, normal) and percussions P obey
    normal   0 <= Pn,  0 <= gamma_n,  Pn gamma_n = 0
    tangent  |Pt| <= mu Pn, and where the contact slides Pt = -mu Pn gamma_t / |gamma_t|
Together they are P = prox(P - r gamma) for any r > 0, where prox projects onto Pn >= 0 and |Pt| <= mu Pn. The
`residual` is the error of this equation, a function of G, b and P alone.
A sweep solves one contact after the other: exactly if it opens or sticks, by a few prox steps if it slides. Where
sweeps converge slowly (contacts that share a body), Newton steps on the same equation follow, and are kept if they
reduce the residual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherjet.model.model import Array

SWEEPS = 1000
SLIDING_STEPS = 10
NEWTON_EVERY = 4  # sweeps
NEWTON_STEPS = 8
REGULARISATION = 1e-8  # of Newton steps, relative to G
TOLERANCE = 1e-12  # residual relative to the largest percussion that one contact alone would need


class Percussions(NamedTuple):
    """P (3 n,), its residual [N s], the number of sweeps, and whether the residual is within the tolerance."""

    P: Array
    residual: float
    sweeps: int
    converged: bool


def prox(P: Array, friction: Array) -> Array:
    """Percussions (n, 3) projected onto Pn >= 0 and |Pt| <= mu Pn."""
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
    """Percussions P for G (3 n, 3 n) symmetric, b (3 n,), friction (n,); `start` is a guess, such as the last P."""
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
            P[at] = _solve_contact(blocks[k], inverses[k], steps[k], rest, float(friction[k]), P[at])
        found, done = residual(G, b, friction, P), done + 1
        if found > goal and done % NEWTON_EVERY == 0:
            P, found = _polished(G, b, friction, P, found, goal)
    return Percussions(P, found, done, found <= goal)


def _polished(G: Array, b: Array, friction: Array, P: Array, found: float, goal: float) -> tuple[Array, float]:
    """The best of P and a few Newton iterates, and its residual, which need not fall in every step."""
    best, iterate = P, P
    for _ in range(NEWTON_STEPS):
        iterate = _newton(G, b, friction, iterate)
        left = residual(G, b, friction, iterate)
        if left < found:
            best, found = iterate, left
        if found <= goal:
            break
    return best, found


def _newton(G: Array, b: Array, friction: Array, P: Array) -> Array:
    """One Newton step for P = prox(P - r gamma), regularised for redundant contacts."""
    n = len(friction)
    own, gamma = P.reshape(n, 3), (G @ P + b).reshape(n, 3)
    r = 1.0 / np.trace(_blocks(G, n), axis1=1, axis2=2)
    x = own - r[:, None] * gamma
    identity = np.eye(3 * n)
    A, rhs = G + REGULARISATION / r.max() * identity, -(G @ P + b)  # pressed and sticking: gamma = 0
    for k, mu in enumerate(friction):
        t, at = slice(3 * k, 3 * k + 2), 3 * k + 2
        length, radius = np.hypot(x[k, 0], x[k, 1]), mu * own[k, 2]
        if x[k, 2] <= 0:  # open
            A[3 * k : at + 1], rhs[3 * k : at + 1] = identity[3 * k : at + 1], -own[k]
        elif length > radius:  # sliding: Pt = mu Pn d, d the direction of x
            d = x[k, :2] / length
            across = radius / length * (np.eye(2) - np.outer(d, d))
            A[t] = identity[t] - mu * np.outer(d, identity[at]) - across @ (identity[t] - r[k] * G[t])
            rhs[t] = radius * d - own[k, :2]
    return prox((P + np.linalg.solve(A, rhs)).reshape(n, 3), friction).ravel()


def _solve_contact(G: Array, inverse: Array, r: float, b: Array, mu: float, P: Array) -> Array:
    """The percussion of one contact with gamma = G P + b: open, sticking, or sliding."""
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
    """The diagonal blocks (n, 3, 3) of G."""
    return np.stack([G[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] for k in range(n)])
