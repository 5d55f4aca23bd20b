"""The Riccati recursion of discrete optimal control over a horizon, in the loop language (`math.loops`).

From the last knot to the first; V, v: the value function's Hessian and gradient; f: the gap; r: the regularisation:

    Qxx = Lxx + Fx^T V Fx   Qux = Lxu^T + Fu^T V Fx   Quu = Luu + Fu^T V Fu + r   Qx = Lx + Fx^T v   Qu = Lu + Fu^T v
    U^T D U = Quu,  Y = U^-T Qux,  y = U^-T Qu,  U K = D^-1 Y,  U k = D^-1 y
    V = Qxx - Y^T D^-1 Y + r,  v = Qx - Y^T D^-1 y + V f

Every product has the form C0 +- A^T B. [Quu Qux Qu] is one matrix, whose rows are eliminated to [D U Y y]. Where
controls have limits, k solves a quadratic program with bounds (`math.box`), Y and K have only the rows of controls that
are free, and v = Qx - Qux^T k + V f.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...jit.loops.spec import Fill, LoopSpec
from ...math.box import YES, minimise_in_box
from ...math.dense import eliminate, substitute

RESULTS = ("K", "k", "Vx", "Vf", "Vxx", "slope", "bend", "failed")
SIZES = ("T", "knots", "kept", "gaps")  # T; T + 1; how many Vxx there is room for, all or two; whether there are gaps


def riccati_spec(n: int, m: int, bounded: bool, fill: Fill = Fill.COLUMNS) -> LoopSpec:
    """The recursion for n tangent directions of states and m controls; low, high: how far controls may change."""
    wide, bounds = m + n + 1, {"low": ("T", m), "high": ("T", m)} if bounded else {}
    inputs = {
        "Fx": ("T", n, n), "Fu": ("T", n, m), "Lx": ("knots", n), "Lu": ("T", m), "Lxx": ("knots", n, n),
        "Lxu": ("T", n, m), "Luu": ("T", m, m), "f": ("knots", n), "regularisation": (), **bounds,
    }  # fmt: skip
    results = {
        "K": ("T", m, n), "k": ("T", m), "Vx": ("knots", n), "Vf": ("knots", n), "Vxx": ("kept", n, n),
        "slope": (), "bend": (), "failed": (),
    }  # fmt: skip
    work = {"Wu": (n, m), "W": (n, n), "Qxx": (n, n), "Qx": (n,), "Qu": (m,), "G": (m, wide), "Z": (m, wide)}
    if bounded:
        work |= {"Q": (m, wide), "d": (m,), "du": (m,), "free": (m,), "trial": (m,), "trial_slope": (m,)}
    constants = ("n", n), ("m", m), ("names", (*inputs, *results, *work))
    return LoopSpec(
        "riccati_in_box" if bounded else "riccati", riccati, inputs, results, fill, work, SIZES,
        constants=constants, many=True,
    )  # fmt: skip


def riccati(t: Any, *given: Any, n: int, m: int, names: tuple[str, ...]) -> None:
    """The recursion for one problem; the arrays that `riccati_spec` lists, then SIZES.

    slope = sum of Qu.k, bend = sum of k.Quu k; failed: 1 where a Quu is not positive definite, which leaves the rest
    without meaning.
    """
    arrays = dict(zip((*names, *SIZES), given, strict=True))
    T, _, kept, gaps = (arrays.pop(name) for name in SIZES)
    totals = {name: arrays.pop(name) for name in ("slope", "bend", "failed")}
    arrays |= {name: t.cell(0.0) for name in totals}
    a = SimpleNamespace(**arrays)
    V = a.Vxx[T % kept]
    for i in t.loop(n):
        for c in t.columns(n):
            V[i, c] = a.Lxx[T, i, c]
        V[i, i] = V[i, i] + a.regularisation[()]
    shift(t, V, a.f[T], a.Lx[T], a.Vx[T], a.Vf[T], gaps, n)
    for k in t.loop(T, down=True):
        for _ in t.when(a.failed[0], YES):
            t.call(knot, tuple(arrays), n, m, k, k % kept, (k + 1) % kept, gaps, *arrays.values())
    for name, x in totals.items():
        x[()] = arrays[name][0]


def knot(
    t: Any, names: tuple[str, ...], n: int, m: int, k: Any, here: Any, later: Any, gaps: Any, *arrays: Any
) -> None:  # fmt: skip
    """Gains of knot k, and the value function there; here, later: where Vxx of this knot and the next one are."""
    a = SimpleNamespace(**dict(zip(names, arrays, strict=True)))
    V, G, W, Wu, Fx, Fu, r = a.Vxx[here], a.G, a.W, a.Wu, a.Fx[k], a.Fu[k], a.regularisation[()]
    Y, v = G.beyond(0, m), a.Vx[k + 1].rows
    t.product(W, a.Vxx[later], Fx, (n, n, n))
    t.product(Wu, a.Vxx[later], Fu, (n, m, n))
    t.product(a.Qxx, Fx, W, (n, n, n), start=a.Lxx[k], upper=True)
    t.product(a.Qx.row, v, Fx, (1, n, n), start=a.Lx[k].row)
    t.product(a.Qu.row, v, Fu, (1, m, n), start=a.Lu[k].row)
    for i in t.loop(m):
        for j in t.loop(n):
            G[i, m + j] = a.Lxu[k, j, i]
        G[i, m + n] = a.Qu[i]
    t.product(Y, Fu, W, (m, n, n), start=Y)
    t.product(G, Fu, Wu, (m, m, n), start=a.Luu[k])
    for i in t.loop(m):
        G[i, i] = G[i, i] + r
    (bounded_gains if hasattr(a, "low") else gains)(t, a, k, n, m)
    t.product(V, Y, a.Z.beyond(0, m), (n, n, m), start=a.Qxx, plus=False, upper=True)
    for i in t.loop(n):
        for j in t.loop(i):
            V[i, j] = V[j, i]
        V[i, i] = V[i, i] + r
    shift(t, V, a.f[k], a.Qx, a.Vx[k], a.Vf[k], gaps, n)


def gains(t: Any, a: Any, k: Any, n: int, m: int) -> None:
    """K, k and v without bounds; G becomes [D U Y y], Z becomes D^-1 G."""
    G, Z, slope, bend = a.G, a.Z, a.slope, a.bend
    eliminate(t, G, Z, a.failed, m, m + n + 1)
    substitute(t, Z, ((a.K[k], 0, n), (a.k[k].rows, n, 1)), m)
    t.product(a.Qx.row, G.beyond(0, m + n), Z.beyond(0, m), (1, n, m), start=a.Qx.row, plus=False)
    total = t.cell(0.0)
    for i in t.loop(m):
        total[0] = total[0] + G[i, m + n] * Z[i, m + n]
    slope[0], bend[0] = slope[0] + total[0], bend[0] + total[0]


def bounded_gains(t: Any, a: Any, k: Any, n: int, m: int) -> None:
    """The same with bounds; G becomes [D U Y y] of free controls."""
    G, Q, step = a.G, a.Q, a.k[k]
    for i in t.loop(m):
        for c in t.columns(m + n + 1):
            Q[i, c] = G[i, c]
    work = G, a.Z, step, a.free, a.trial, a.trial_slope
    minimise_in_box(t, Q, a.low[k], a.high[k], a.K[k], a.d, a.du, a.failed, work, m, n)
    for i in t.loop(m):
        d = a.d[i]
        step[i] = -d
        a.slope[0] = a.slope[0] - a.Qu[i] * d
        a.bend[0] = a.bend[0] - d * (a.Qu[i] - a.du[i])
    t.product(a.Qx.row, step.rows, Q.beyond(0, m), (1, n, m), start=a.Qx.row, plus=False)


def shift(t: Any, V: Any, f: Any, v: Any, Vx: Any, Vf: Any, gaps: Any, n: int) -> None:
    """Vf = V f, Vx = v + Vf; f is zero where there are no gaps."""
    for c in t.columns(n):
        Vx[c] = v[c]
        Vf[c] = 0.0
    for _ in t.when(0, gaps):
        t.product(Vf.row, f.rows, V, (1, n, n))
        for c in t.columns(n):
            Vx[c] = Vx[c] + Vf[c]
