"""Small quadratic programs with bounds, in the loop language (`math.loops`).

    minimise 1/2 x^T H x + g^T x  subject to  low <= x <= high

by projected Newton steps (D. Bertsekas, 1982; Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic
programming, ICRA 2014): variables at a bound that the gradient keeps there are fixed, the others take a Newton step,
clipped and shortened until it gains enough. It ends with a full step that meets no bound and leaves the set of fixed
variables as it was, which is the minimum up to rounding.
"""

from __future__ import annotations

from typing import Any

from .dense import eliminate, substitute
from .scalars import where_less

ROUNDS, HALVINGS = 60, 30  # the most of either
ENOUGH = 0.1  # of the gain that the slope promises
YES = 0.5  # truths are numbers, 0 or 1
LEAST = -1e30  # less than any gain of a step that is worth a look


def minimise_in_box(
    t: Any, Q: Any, low: Any, high: Any, K: Any, x: Any, slope: Any, failed: Any, work: Any, m: int, n: int
) -> None:
    """The minimum x (m,) for Q = [H B g] (m, m + n + 1), the gradient there, and K = H^-1 B of the free variables.

    Rows of K are zero for fixed variables. failed[0] becomes 1 where H of the free ones is not positive definite.
    work: G and Z of `eliminate`; the last Newton step k, free, trial and trial_slope (m,).
    """
    G, Z, k, free, trial, trial_slope = work
    cost, done, whole = t.cell(0.0), t.cell(0.0), t.cell(0.0)
    for i in t.loop(m):
        x[i] = clipped(0.0, low[i], high[i])
        free[i] = -1.0
    quadratic(t, Q, x, slope, cost, m, n)
    for _ in t.until(lambda: (done[0], YES), ROUNDS):
        changed = t.cell(0.0)
        for i in t.loop(m):
            now = is_free(x[i], slope[i], low[i], high[i])
            changed[0] = if_equal(now, free[i], changed[0], 1.0)
            free[i] = now
        done[0] = where_less(changed[0], whole[0], 1.0, done[0])
        for _ in t.when(done[0], YES):
            restrict(t, Q, slope, free, G, m, n)
            eliminate(t, G, Z, failed, m, m + n + 1)
            substitute(t, Z, ((K, 0, n), (k.rows, n, 1)), m)
            done[0] = where_less(YES, failed[0], 1.0, done[0])
            search(t, Q, low, high, k, (x, slope, cost), (trial, trial_slope), done, whole, m, n)


def search(
    t: Any, Q: Any, low: Any, high: Any, k: Any, here: Any, there: Any, done: Any, whole: Any, m: int, n: int
) -> None:
    """Move x by -k, clipped, or half as far and so on until that gains enough; unless it is done, or never does.

    here, there: points, gradients and, here, the value. whole[0] becomes 1 for all the way with nothing clipped.
    """
    (x, slope, cost), (trial, trial_slope) = here, there
    length, moved = t.cell(1.0), t.cell(done[0])
    whole[0] = 0.0
    for _ in t.until(lambda: (moved[0], YES), HALVINGS):
        hoped, after, unclipped = t.cell(0.0), t.cell(0.0), t.cell(where_less(length[0], 1.0, 0.0, 1.0))
        for i in t.loop(m):
            aim = x[i] - length[0] * k[i]
            reached = clipped(aim, low[i], high[i])
            unclipped[0] = if_equal(aim, reached, unclipped[0], 0.0)
            hoped[0] = hoped[0] + slope[i] * (x[i] - reached)
            trial[i] = reached
        quadratic(t, Q, trial, trial_slope, after, m, n)
        gain = cost[0] - after[0]
        enough = where_less(LEAST, gain, where_less(gain, ENOUGH * hoped[0], 0.0, 1.0), 0.0)  # never if not a number
        moves = where_less(YES, moved[0], 0.0, enough)
        for i in t.loop(m):
            x[i] = where_less(YES, moves, trial[i], x[i])
            slope[i] = where_less(YES, moves, trial_slope[i], slope[i])
        cost[0] = where_less(YES, moves, after[0], cost[0])
        whole[0] = where_less(YES, moves, unclipped[0], whole[0])
        moved[0] = where_less(YES, moves, 1.0, moved[0])
        length[0] = 0.5 * length[0]
    done[0] = where_less(moved[0], YES, 1.0, done[0])


def quadratic(t: Any, Q: Any, x: Any, slope: Any, value: Any, m: int, n: int) -> None:
    """value[0] = 1/2 x^T H x + g^T x of Q = [H B g]; slope = g + H x."""
    for i in t.loop(m):
        slope[i] = Q[i, m + n]
    t.product(slope.row, x.rows, Q, (1, m, m), start=slope.row)
    value[0] = 0.0
    for i in t.loop(m):
        value[0] = value[0] + x[i] * (0.5 * (slope[i] + Q[i, m + n]))


def restrict(t: Any, Q: Any, slope: Any, free: Any, G: Any, m: int, n: int) -> None:
    """G = [H B slope], with rows and columns of fixed variables as in a unit matrix."""
    for i in t.loop(m):
        own = free[i]
        for c in t.columns(m):
            G[i, c] = own * free[c] * Q[i, c]
        right, source = G.beyond(i, m), Q.beyond(i, m)
        for c in t.columns(n):
            right[0, c] = own * source[0, c]
        G[i, i] = G[i, i] + (1.0 - own)
        G[i, m + n] = own * slope[i]


def clipped(x: Any, low: Any, high: Any) -> Any:
    """A number brought between two others."""
    x = where_less(high, x, high, x)
    return where_less(x, low, low, x)


def is_free(x: Any, slope: Any, low: Any, high: Any) -> Any:
    """One, or zero if the gradient keeps a variable at a bound."""
    above = where_less(0.0, slope, where_less(low, x, 1.0, 0.0), 1.0)
    return where_less(slope, 0.0, where_less(x, high, 1.0, 0.0), above)


def if_equal(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x where a = b, else y."""
    return where_less(a, b, y, where_less(b, a, y, x))
