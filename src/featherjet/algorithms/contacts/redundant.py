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

import math
from typing import Any, NamedTuple

import numpy as np

from ...math.dense import factorise, solve
from ...math.loops import ArrayLoops, LoopArray
from ...math.scalars import Scalar, where_less
from ..dynamics import ltl
from ..scan import Array
from .solver import larger, size

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
    x[..., redundant], margins[..., redundant] = solved(G[..., redundant], b[..., redundant])
    return x, margins


def solved(G: Array, b: Array) -> tuple[Array, Array]:
    """The smallest solution of G x = b, and one for rows that it solves, in all columns, else zero; lanes last."""
    n, columns = len(G), b.reshape(len(b), -1, b.shape[-1])
    lanes = columns.shape[1:]
    t = ArrayLoops(lanes, dtype=np.result_type(G, b))
    arrays = {name: LoopArray(np.zeros((*x, *lanes), t.dtype), len(x)) for name, x in ProximalMemory.shapes(n).items()}
    x, margins = (LoopArray(np.zeros(columns.shape, t.dtype), 1) for _ in range(2))
    proximal(t, LoopArray(G[:, :, None], 2), margins, LoopArray(columns, 1), x, *ProximalMemory(**arrays), n)
    return x.values.reshape(b.shape), np.real(margins.values).min(1)


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
    weights = LoopArray(np.zeros_like(np.real(G[0][..., redundant])), 1)
    own_inverse_inertias(
        ArrayLoops(weights.values.shape[1:]), LoopArray(np.real(G[..., redundant]), 2), weights, len(G)
    )
    rho = RHO[0] * np.moveaxis(weights.values, -1, 0)[..., None]
    damped = np.moveaxis(G[..., redundant], -1, 0) + rho * np.eye(len(G))
    n = np.broadcast_to(np.random.default_rng(0).normal(size=(len(G), 1)), rho.shape)
    for _ in range(INVERSE_STEPS):
        n = np.linalg.solve(damped, rho * n)
    found[..., redundant] = np.moveaxis(n[..., 0] / np.abs(n).max((1, 2))[:, None], 0, -1)
    return found


class ProximalMemory(NamedTuple):
    """Arrays that `proximal` works in: a matrix and vectors over rows."""

    damped: Any
    damped_dinv: Any
    damped_margins: Any
    inertias: Any
    rest: Any
    smallest: Any

    @staticmethod
    def shapes(rows: Any) -> dict[str, tuple[Any, ...]]:
        """The axes of each array, of whatever stands for the number of rows."""
        return {name: (rows, rows) if name == "damped" else (rows,) for name in ProximalMemory._fields}


def proximal(t: Any, G: Any, margins: Any, b: Any, x: Any, *memory: Any) -> None:
    """Where a margin is small, x (n,) becomes the smallest solution of G x = b, margins one for rows that it solves.

    G (n, n) has its lower triangle; other rows of such margins become zero. memory: `ProximalMemory`, then n.
    """
    *arrays, n = memory
    m = ProximalMemory(*arrays)
    unit, worst, total, redundant = (t.cell(x) for x in (1.0, 0.0, 0.0, any_redundant(t, margins, n)))
    for i in t.loop(n):
        m.rest[i], m.smallest[i] = b[i], t.number(0.0)
        total[0] = larger(size(b[i]), total[0])
    unit[0] = 1.0 + total[0]
    worst[0] = where_less(0.0, redundant[0], math.inf, 0.0)
    own_inverse_inertias(t, G, m.inertias, n)
    for rho in RHO:
        for _ in t.when(GOAL * unit[0], worst[0]):
            damp(t, rho, G, m.inertias, m.damped, n)
            t.call(factorise, m.damped, m.damped_dinv, m.damped_margins, n)
            for _ in t.until(lambda: (GOAL * unit[0], worst[0]), STEPS):
                on = where_less(GOAL * unit[0], worst[0], 1.0, 0.0)
                t.call(solve, m.damped, m.damped_dinv, m.rest, n)
                for i in t.loop(n):
                    m.smallest[i] = m.smallest[i] + where_less(0.5, on, m.rest[i], 0.0)
                remainder(t, G, b, m, total, n)
                worst[0] = where_less(0.5, on, total[0], worst[0])
    for i in t.loop(n):
        holds = where_less(size(m.rest[i]), ENOUGH * unit[0], 1.0, 0.0)
        x[i] = where_less(0.0, redundant[0], m.smallest[i], x[i])
        margins[i] = where_less(0.0, redundant[0], holds, margins[i])


def any_redundant(t: Any, margins: Any, n: Any) -> Scalar:
    """One where a margin is of rounding size, or none, else zero."""
    found = t.cell(0.0)
    for i in t.loop(n):
        found[0] = where_less(LEAST_MARGIN, margins[i], found[0], 1.0)
    return found[0]


def damp(t: Any, rho: float, G: Any, inertias: Any, damped: Any, n: Any) -> None:
    """The lower triangle of G + rho, with this share of each row's own inverse inertia."""
    for i in t.loop(n):
        for j in t.loop(i):
            damped[i, j] = G[i, j]
        damped[i, i] = G[i, i] + rho * inertias[i]


def own_inverse_inertias(t: Any, G: Any, inertias: Any, n: Any) -> None:
    """What rho is a share of (n,): the mean of a grip's three rows, but not less than LEAST_SHARE allows."""
    most = t.cell(0.0)
    for g in t.loop(n // 3):
        mean = (G[g * 3, g * 3] + G[g * 3 + 1, g * 3 + 1] + G[g * 3 + 2, g * 3 + 2]) / 3.0
        most[0] = larger(mean, most[0])
        for k in range(3):
            inertias[g * 3 + k] = mean
    for i in t.loop(n):
        inertias[i] = larger(inertias[i], larger(LEAST_SHARE * most[0], LEAST_INVERSE))


def remainder(t: Any, G: Any, b: Any, m: ProximalMemory, worst: Any, n: Any) -> None:
    """rest = b - G x, and the largest size of it."""
    worst[0] = t.number(0.0)
    for i in t.loop(n):
        total = t.cell(b[i])
        for j in t.loop(i + 1):
            total[0] = total[0] - G[i, j] * m.smallest[j]
        for j in t.loop(n, start=i + 1):
            total[0] = total[0] - G[j, i] * m.smallest[j]
        m.rest[i] = total[0]
        worst[0] = larger(size(total[0]), worst[0])
