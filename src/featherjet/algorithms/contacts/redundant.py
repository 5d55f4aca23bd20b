"""Forces of redundant contacts, by a proximal iteration.

Contacts are redundant if some forces between them do nothing: J^T n = 0. Then G = J M^-1 J^T is singular, but if the
contacts can hold at all, G x = b has solutions, and all of them accelerate the robot alike. From x = 0, the steps

    x += (G + rho)^-1 (b - G x)

shrink the error of a force with inverse inertia s to the share rho / (s + rho), and never add a force that does
nothing: x becomes the smallest solution, in the norm x . rho x. rho is diagonal, the same for the three rows of a grip,
so that the axes of forces do not matter. What remains of b - G x shows whether the contacts can hold.
"""

from __future__ import annotations

import numpy as np

from ..dynamics import ltl
from ..scan import Array

LEAST_MARGIN = 1e-12  # smaller margins of G are rounding errors
RHO = (1e-8, 1e-11)  # shares of a grip's own inverse inertia; rounding grows by 1 / rho, in forces that do nothing
LEAST_SHARE = 1e-6  # of the largest inverse inertia, for grips that can hardly move
LEAST_INVERSE = 1e-6  # [1/kg, 1/(kg m^2)], if none of them can
STEPS = 20  # with each rho
GOAL, ENOUGH = 1e-13, 1e-10  # of the remainder, as a share of one unit and of the largest number in b


def settled(G: Array, factor: ltl.Factor, b: Array, margins: Array) -> tuple[Array, Array]:
    """x (rows, lanes...) with G x = b, and margins, those of redundant contacts one for rows that hold, else zero.

    factor, margins: of G; symbols take these alone.
    """
    x = ltl.solve(factor, b)
    if b.dtype == object:
        return x, margins
    redundant = ~(np.real(margins) > LEAST_MARGIN).all(0)
    if not redundant.any():
        return x, margins
    x, margins = x.copy(), margins.copy()
    found, holds = proximal(G[..., redundant], b[..., redundant])
    x[..., redundant] = found
    margins[..., redundant] = holds
    return x, margins


def proximal(G: Array, b: Array) -> tuple[Array, Array]:
    """x (rows, n), and which rows of G x = b it solves (rows, n); G (rows, rows, n)."""
    unit = 1.0 + np.abs(b).max(0)
    weights = own_inverse_inertia(G)
    x, rest = np.zeros_like(b), b
    for rho in RHO:
        damped = G.copy()
        for i, weight in enumerate(weights):
            damped[i, i] = damped[i, i] + rho * weight
        factor = ltl.factorise(damped, ltl.dense_parents(len(G)))
        for _ in range(STEPS):
            on = ~(np.abs(rest) <= GOAL * unit).all(0)
            if not on.any():
                break
            x = x + np.where(on, ltl.solve(factor, rest), 0.0)
            rest = b - (G * x[None]).sum(1)
    return x, np.abs(rest) <= ENOUGH * unit


def own_inverse_inertia(G: Array) -> Array:
    """What rho is a share of (rows, n): the mean of a grip's three rows, but not less than LEAST_SHARE allows."""
    own = np.stack([np.real(G[i, i]) for i in range(len(G))])
    mean = own.reshape(-1, 3, *own.shape[1:]).mean(1)
    least = np.maximum(LEAST_SHARE * mean.max(0), LEAST_INVERSE)
    return np.repeat(np.maximum(mean, least), 3, axis=0)
