"""Sums of signals' slopes, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from featherjet.control.compiled.gauss_newton import GaussNewtonSum
from featherjet.control.residuals.signals import SignalSlopes

NV, NU, KNOTS = 7, 5, 6


def slopes(rng: np.random.Generator, batch: tuple[int, ...]) -> list[SignalSlopes]:
    """Of three signals: one by q and u, one by q alone, one whose columns of u are some of more."""

    def new(rows: int, columns: int) -> np.ndarray:
        return rng.normal(size=(*batch, rows, columns))

    wide = new(4, NU + 3)[..., 2 : 2 + NU]
    return [
        SignalSlopes(new(3, NV), None, new(3, NU)),
        SignalSlopes(new(2, NV)),
        SignalSlopes(new(4, NV), new(4, NV), wide),
    ]


def stacked(G: list[SignalSlopes]) -> np.ndarray:
    zero = [np.zeros((*s.q.shape[:-1], n)) for s in G for n in (NV, NV, NU)]
    parts = [z if x is None else x for x, z in zip((x for s in G for x in s), zero, strict=True)]
    return np.concatenate([np.concatenate(parts[i : i + 3], -1) for i in (0, 3, 6)], -2)


@pytest.mark.parametrize("batch", [(KNOTS,), (3, KNOTS)])
def test_all_blocks_grow_by_the_sums_and_the_next_slopes_are_other_ones(batch: tuple[int, ...]) -> None:
    rng, nx, nd, m = np.random.default_rng(0), 2 * NV, 2 * NV + NU, 9
    C = rng.normal(size=(*batch, m, m))
    given = {"C": C + np.swapaxes(C, -1, -2), "g": rng.normal(size=(*batch, m))}
    given["C"][..., 1, :, :] = given["g"][..., 1, :] = -0.0  # a knot without costs
    longer = (*batch[:-1], KNOTS + 2)
    L, H = rng.normal(size=(*longer, nd)), rng.normal(size=(*longer, nd, nd))
    views = {
        "Lx": L[..., :nx],
        "Lu": L[..., nx:],
        "Lxx": H[..., :nx, :nx],
        "Lxu": H[..., :nx, nx:],
        "Luu": H[..., nx:, nx:],
    }
    whole = {k: np.ascontiguousarray(x) for k, x in views.items()}
    knots = slice(1, KNOTS + 1)
    out = {k: x[..., knots, :] if k in ("Lx", "Lu") else x[..., knots, :, :] for k, x in whole.items()}
    before = {k: x.copy() for k, x in whole.items()}
    own = slopes(rng, batch)
    add = GaussNewtonSum({**given, **out}, own, (NV, NV, NU), nx)
    total_L, total_H = 0.0, 0.0
    for _ in range(2):
        for part, x in zip(own, slopes(rng, batch), strict=True):
            for to, y in zip(part, x, strict=True):
                if to is not None:
                    to[...] = y
        add()
        J = stacked(own)
        total_L = total_L + np.einsum("...i,...ij->...j", given["g"], J)
        total_H = total_H + np.swapaxes(J, -1, -2) @ given["C"] @ J
    x, u = slice(0, nx), slice(nx, nd)
    expected = {"Lx": total_L[..., x], "Lu": total_L[..., u], "Lxx": total_H[..., x, x], "Lxu": total_H[..., x, u]}
    for name, grown in {**expected, "Luu": total_H[..., u, u]}.items():
        rest = 1 if name in ("Lx", "Lu") else 2
        at = (..., knots, *[slice(None)] * rest)
        before[name][at] += grown
        np.testing.assert_allclose(whole[name], before[name], rtol=1e-12, atol=1e-11)


def test_signals_of_q_alone_grow_a_corner() -> None:
    rng = np.random.default_rng(1)
    C, g, G = rng.normal(size=(KNOTS, 3, 3)), rng.normal(size=(KNOTS, 3)), rng.normal(size=(KNOTS, 3, NV))
    C = C + np.swapaxes(C, -1, -2)
    Lx, Lxx = np.zeros((KNOTS, 2 * NV)), np.zeros((KNOTS, 2 * NV, 2 * NV))
    GaussNewtonSum({"C": C, "g": g, "Lx": Lx, "Lxx": Lxx}, [SignalSlopes(G)], (NV,), NV)()
    np.testing.assert_allclose(Lx[:, :NV], np.einsum("ki,kij->kj", g, G), atol=1e-12)
    np.testing.assert_allclose(Lxx[:, :NV, :NV], np.swapaxes(G, -1, -2) @ C @ G, atol=1e-12)
    assert not Lx[:, NV:].any()
    assert not Lxx[:, NV:].any()
    assert not Lxx[:, :, NV:].any()
