"""Spatial algebra as explicit 6x6 matrices, [angular; linear]: what the library's records are held to."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def skew(p: Array) -> Array:
    zero = np.zeros_like(p[..., 0])
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*p.shape[:-1], 3, 3)


def block(A: Array, B: Array, C: Array, D: Array) -> Array:
    return np.concatenate([np.concatenate([A, B], -1), np.concatenate([C, D], -1)], -2)


def crm(v: Array) -> Array:
    """v x, eq. 41."""
    w, l = skew(v[..., :3]), skew(v[..., 3:])
    return block(w, 0 * w, l, w)


def crf(v: Array) -> Array:
    """v x*, eq. 42."""
    w, l = skew(v[..., :3]), skew(v[..., 3:])
    return block(w, l, 0 * w, w)


def crb(f: Array) -> Array:
    """f xbar*, eq. 43."""
    n, l = skew(f[..., :3]), skew(f[..., 3:])
    return block(-n, -l, -l, 0 * n)


def times(A: Array, x: Array) -> Array:
    return np.einsum("...ij,...j->...i", A, x)
