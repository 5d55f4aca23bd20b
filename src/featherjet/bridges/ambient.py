"""Turns changes of the entries of q into tangent vectors, and back, on arrays of any framework.

Bridges take any q whose quaternions are not zero, and mean f(q / |q|). With F(q) the rates of q along `integrate` and
Fbar(q) its left inverse, both at q / |q|, a change dq moves the robot along Fbar dq / |q|: the factor 1 / |q| concerns
the entries of quaternions (and cosine-sine pairs). `xp` is numpy, jax.numpy or torch; everything is plain array
operations, which frameworks differentiate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..jit.kernel import Kernel, compile
from ..model.configuration import Places
from ..model.manifolds import Euclidean, Manifold, Rows

Block = tuple[Manifold, slice, slice]  # a manifold and its slices of q and v


class Ambient:
    """The configuration space of a robot. q (..., nq); tangent vectors (..., nv)."""

    def __init__(self, places: Places) -> None:
        self.nq, self.nv, self.digest = places.nq, places.nv, places.digest
        self.blocks: list[Block] = []
        for place in places.nodes:  # vector spaces side by side are one
            block: Block = (place.manifold, place.q, place.v)
            if self.blocks and isinstance(place.manifold, Euclidean) and isinstance(self.blocks[-1][0], Euclidean):
                _, q, v = self.blocks.pop()
                width = place.q.stop - q.start
                block = Euclidean(width), slice(q.start, place.q.stop), slice(v.start, place.v.stop)
            self.blocks.append(block)

    @cached_property
    def neutral(self) -> np.ndarray:
        """The configuration of no displacement."""
        return np.concatenate([m.neutral() for m, _, _ in self.blocks])

    @property
    def flat(self) -> bool:
        """Whether q is a vector, and its changes are tangent vectors."""
        return all(isinstance(m, Euclidean) for m, _, _ in self.blocks)

    def normalised(self, xp: Any, q: Any) -> Any:
        """q with quaternions and cosine-sine pairs of norm one."""
        return q if self.flat else self._each(xp, lambda m, q: _unit(xp, m, q)[0], q)

    def tangent(self, xp: Any, q: Any, dq: Any) -> Any:
        """The tangent vector (..., nv) along which a change dq (..., nq) moves the robot."""

        def block(m: Manifold, q: Any, dq: Any) -> Any:
            unit, scale = _unit(xp, m, q)
            return _times(xp, m.rate_map_inverse(_entries(unit)), dq * scale)

        return dq if self.flat else self._each(xp, block, q, dq)

    def cotangent(self, xp: Any, q: Any, g: Any) -> Any:
        """The transpose of `tangent`: derivatives by the entries of q (..., nq) from those along dofs g (..., nv)."""

        def block(m: Manifold, q: Any, g: Any) -> Any:
            unit, scale = _unit(xp, m, q)
            return _times(xp, _transposed(m.rate_map_inverse(_entries(unit))), g) * scale

        return g if self.flat else self._each(xp, block, q, g)

    def rate(self, xp: Any, q: Any, v: Any) -> Any:
        """The change (..., nq) of a normalised q along a tangent vector v (..., nv)."""
        return v if self.flat else self._each(xp, lambda m, q, v: _times(xp, m.rate_map(_entries(q)), v), q, v)

    def corate(self, xp: Any, q: Any, w: Any) -> Any:
        """The transpose of `rate`: (..., nv) from w (..., nq)."""

        def block(m: Manifold, q: Any, w: Any) -> Any:
            return _times(xp, _transposed(m.rate_map(_entries(q))), w)

        return w if self.flat else self._each(xp, block, q, w)

    def _each(self, xp: Any, block: Callable[..., Any], *given: Any) -> Any:
        """A function of each vector space's part of each array, side by side; arrays are as long as q or v.

        Where q and v are as long as each other, so are their parts.
        """
        found = []
        for m, iq, iv in self.blocks:
            parts = [x[..., iq] if x.shape[-1] == self.nq else x[..., iv] for x in given]
            found.append(block(m, *parts))
        return xp.concatenate(found, -1)


class CompiledAmbient:
    """The same transposes by machine code, on NumPy arrays; what has no quaternions needs none."""

    def __init__(self, ambient: Ambient) -> None:
        self._ambient = ambient
        self._kernels: dict[str, Kernel] = {}

    def cotangent(self, xp: Any, q: Any, g: Any) -> Any:
        return g if self._ambient.flat else self._run("cotangent", q, g)

    def corate(self, xp: Any, q: Any, w: Any) -> Any:
        return w if self._ambient.flat else self._run("corate", q, w)

    def _run(self, name: str, q: Any, x: Any) -> Any:
        kernel = self._kernels.get(name) or self._kernels.setdefault(name, self._compiled(name, x.shape[-1]))
        if q.ndim == x.ndim == 1:
            found = kernel.direct(q, x)
            if found is not None:
                return found[0]
        return kernel([q, x], None, 1)[0][0]

    def _compiled(self, name: str, length: int) -> Kernel:
        method = getattr(self._ambient, name)

        def function(q: Any, x: Any) -> list[Any]:
            return [method(np, q[None], x[None])[0]]  # with a batch axis, since the methods take arrays

        return compile(function, {"q": (self._ambient.nq,), "x": (length,)}, (name, self._ambient.digest), name)


def _unit(xp: Any, m: Manifold, q: Any) -> tuple[Any, Any]:
    """q with its unit parts normalised, and the factor of each entry: one, or one by the norm of its part."""
    if not m.units:
        return q, 1.0
    scales = [xp.ones_like(q[..., :1])] * m.nq
    for part in m.units:
        x = q[..., part]
        scales[part] = [1.0 / xp.sqrt((x * x).sum(-1))[..., None]] * (part.stop - part.start)
    scale = xp.concatenate(scales, -1)
    return q * scale, scale


def _entries(q: Any) -> list[Any]:
    return [q[..., i] for i in range(q.shape[-1])]


def _times(xp: Any, rows: Rows, x: Any) -> Any:
    """A matrix of scalars, some of them plain numbers, times x (..., n)."""
    if _is_identity(rows):
        return x
    entries = _entries(x)
    zero = xp.zeros_like(entries[0])
    found = []
    for row in rows:
        terms = [a * b for a, b in zip(row, entries, strict=True) if not (isinstance(a, float) and a == 0.0)]
        found.append(sum(terms[1:], terms[0]) if terms else zero)
    return xp.stack(xp.broadcast_arrays(*found) if hasattr(xp, "broadcast_arrays") else found, -1)


def _is_identity(rows: Rows) -> bool:
    numbers = all(isinstance(x, float) for row in rows for x in row)
    return numbers and bool(np.array_equal(np.array(rows), np.eye(len(rows), len(rows[0]))))


def _transposed(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


# Placements (..., 4, 4), whose tangent vectors are twists (..., 6), linear then angular, in the frame's own axes


def twisted(xp: Any, T: Any, twist: Any) -> Any:
    """The change (..., 4, 4) of a placement along a twist (..., 6): T [twist]."""
    v, w = twist[..., :3], twist[..., 3:]
    R = T[..., :3, :3]
    columns = [_turned(xp, R, _crossed(xp, w, axis)) for axis in range(3)]
    top = xp.stack([*columns, _turned(xp, R, v)], -1)
    return xp.concatenate([top, xp.zeros_like(top[..., :1, :])], -2)


def untwisted(xp: Any, T: Any, C: Any) -> Any:
    """The transpose of `twisted`: (..., 6) from C (..., 4, 4)."""
    Rt = xp.swapaxes(T[..., :3, :3], -1, -2)
    back = [_turned(xp, Rt, C[..., :3, k]) for k in range(4)]
    x, y, z, p = back
    w = xp.stack([y[..., 2] - z[..., 1], z[..., 0] - x[..., 2], x[..., 1] - y[..., 0]], -1)
    return xp.concatenate([p, w], -1)


def _turned(xp: Any, R: Any, v: Any) -> Any:
    return (R * v[..., None, :]).sum(-1)


def _crossed(xp: Any, w: Any, axis: int) -> Any:
    """w x e_axis."""
    x, y, z = _entries(w)
    zero = xp.zeros_like(x)
    return xp.stack(([zero, z, -y], [-z, zero, x], [y, -x, zero])[axis], -1)
