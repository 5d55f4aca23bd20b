"""Random quadratic horizons."""

from __future__ import annotations

import numpy as np

from featherjet.control import Quadratic


def positive(rng: np.random.Generator, size: int, *batch: int) -> np.ndarray:
    A = rng.normal(size=(*batch, size, size))
    return A @ A.swapaxes(-1, -2) / size + 0.5 * np.eye(size)


def random_quadratic(n: int, m: int, T: int, B: int, seed: int = 0) -> Quadratic:
    rng = np.random.default_rng(seed)
    H, r = positive(rng, n + m, B, T), rng.normal
    Lxx = np.concatenate([H[..., :n, :n], positive(rng, n, B, 1)], 1)
    return Quadratic(
        next=np.zeros(0), cost=np.zeros(0), Fx=np.eye(n) + 0.1 * r(size=(B, T, n, n)), Fu=r(size=(B, T, n, m)),
        Lx=r(size=(B, T + 1, n)), Lu=r(size=(B, T, m)), Lxx=Lxx, Lxu=H[..., :n, n:], Luu=H[..., n:, n:],
    )  # fmt: skip
