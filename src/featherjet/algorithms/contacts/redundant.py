"""Forces of redundant contacts, by a proximal iteration.

Contacts are redundant if some forces between them do nothing: J^T n = 0. Then G = J M^-1 J^T is singular, but if the
contacts can hold at all, G x = b has solutions, and all of them accelerate the robot alike. From x = 0, the steps

    x += (G + rho)^-1 (b - G x)

shrink the error of a force with inverse inertia s to the share rho / (s + rho), and never add a force that does
nothing: x becomes the smallest solution, in the norm x . rho x. rho is diagonal, the same for the three rows of a grip,
so that the axes of forces do not matter. What remains of b - G x shows whether the contacts can hold.

Derivatives solve the same system for columns b, and their x are the smallest changes of forces. There are none if
something remains of a column, as contacts contradict each other in neighbouring states; nor if the forces that do
nothing here do something nearby (an arm that is stretched out), as forces then jump. That is so unless the change of
J^T n accelerates nothing that the contacts leave free; `idle` draws an n, and one of them tells for all.
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
INVERSE_STEPS = 4  # of inverse iteration; each leaves the share rho / (s + rho) of a force that does something
GOAL, ENOUGH = 1e-13, 1e-10  # of the remainder, as a share of one unit and of the largest number in b


def settled(G: Array, factor: ltl.Factor, b: Array, margins: Array) -> tuple[Array, Array]:
    """x with G x = b, and margins, those of redundant contacts one for rows that hold, else zero.

    b: (rows, lanes...) or (rows, columns, lanes...); factor, margins: of G; symbols take these alone.
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


def idle(G: Array, margins: Array) -> Array | None:
    """A force n (rows, lanes...) that does nothing, G n = 0, drawn at random; zero where contacts are not redundant.

    None if they are nowhere.
    """
    if margins.dtype == object:
        return None
    redundant = ~(np.real(margins) > LEAST_MARGIN).all(0)
    if not redundant.any():
        return None
    found = np.zeros_like(margins)
    weights = np.moveaxis(own_inverse_inertia(G[..., redundant]), -1, 0)[..., None]
    rho = RHO[0] * weights
    damped = np.moveaxis(G[..., redundant], -1, 0) + rho * np.eye(len(G))
    n = np.broadcast_to(np.random.default_rng(0).normal(size=(len(G), 1)), rho.shape)
    for _ in range(INVERSE_STEPS):
        n = np.linalg.solve(damped, rho * n)
    found[..., redundant] = np.moveaxis(n[..., 0] / np.abs(n).max((1, 2))[:, None], 0, -1)
    return found


def proximal(G: Array, b: Array) -> tuple[Array, Array]:
    """x (rows, [columns,] n), and which rows of G x = b it solves (rows, n); G (rows, rows, n)."""
    weights = np.moveaxis(own_inverse_inertia(G), -1, 0)
    G, columns = np.moveaxis(G, -1, 0), np.moveaxis(b if b.ndim == 3 else b[:, None], -1, 0)
    unit = 1.0 + np.abs(columns).max(1, keepdims=True)
    x, rest = np.zeros_like(columns), columns
    for rho in RHO:
        damped = G + rho * weights[..., None] * np.eye(G.shape[-1])
        for _ in range(STEPS):
            on = ~(np.abs(rest) <= GOAL * unit).all(1, keepdims=True)
            if not on.any():
                break
            x = x + np.where(on, np.linalg.solve(damped, rest), 0.0)
            rest = columns - G @ x
    holds = (np.abs(rest) <= ENOUGH * unit).all(-1)
    found = np.moveaxis(x, 0, -1)
    return found if b.ndim == 3 else found[:, 0], np.moveaxis(holds, 0, -1)


def own_inverse_inertia(G: Array) -> Array:
    """What rho is a share of (rows, n): the mean of a grip's three rows, but not less than LEAST_SHARE allows."""
    own = np.stack([np.real(G[i, i]) for i in range(len(G))])
    mean = own.reshape(-1, 3, *own.shape[1:]).mean(1)
    least = np.maximum(LEAST_SHARE * mean.max(0), LEAST_INVERSE)
    return np.repeat(np.maximum(mean, least), 3, axis=0)
