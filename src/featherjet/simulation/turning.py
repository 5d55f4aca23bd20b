"""The axes of velocities of free and planar joints, which turn during a step: on arrays, with derivatives.

The mathematics is that of the joints' manifolds, which `contacts.feet` walks over. For each of these joints, a stage
gives three things from velocities v, `guess`, `speed` and the length h of a step:

    u      v in the axes of the middle, which turn with `speed`
    way    the motion of which a way h speed in these axes is made
    still  the rates, in axes that turn, of what moves steadily with (u + guess) / 2

and their derivatives by guess, v, speed and h.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..evaluate.evaluator import Evaluator
from ..jit.autodiff import jacobian
from ..jit.kernel import Kernel, compile
from ..model.manifolds import Manifold, on_arrays
from ..model.model import Array
from .balance import STEP


class Stage(NamedTuple):
    """u, way and still (..., nv); slopes (..., 3 k, 3 k + 1) of each joint that turns, whose k rates are at a slice."""

    u: Array
    way: Array
    still: Array
    slopes: list[tuple[slice, Array]]

    def change(self, dv: Array, dspeed: Array, dh: Array | None) -> Array:
        """How u changes (..., nv, K); dh: of the step's length, or None if that stays."""
        found = dv.copy()
        for at, J in self.slopes:
            k = at.stop - at.start
            found[..., at, :] = J[..., :k, k : 2 * k] @ dv[..., at, :] + J[..., :k, 2 * k : 3 * k] @ dspeed[..., at, :]
            if dh is not None:
                found[..., at, :] += J[..., :k, 3 * k :] * dh
        return found

    def by_speed(self, by_way: Array, h: Array) -> Array:
        """Derivatives (..., n, nv) by `speed` of what has derivatives by the way."""
        found = by_way * h[..., None]
        for at, J in self.slopes:
            k = at.stop - at.start
            found[..., at] = by_way[..., at] @ J[..., k : 2 * k, 2 * k : 3 * k]
        return found

    def by_h(self, speed: Array) -> Array:
        """The derivative of the way (..., nv, 1) by h."""
        found = speed[..., None].copy()
        for at, J in self.slopes:
            k = at.stop - at.start
            found[..., at, :] = J[..., k : 2 * k, 3 * k :]
        return found

    def by_mid(self, by_v: Array, by_a: Array) -> Array:
        """Derivatives by a velocity of what has derivatives by it and by rates, where these are `still`."""
        if not self.slopes:
            return by_v
        found = by_v.copy()
        for at, J in self.slopes:
            k = at.stop - at.start
            found[..., at] += by_a[..., at] @ (2.0 * J[..., 2 * k :, :k])
        return found


class Turning:
    """What happens to velocities where axes turn: to the joints whose manifold `turns`, and to no other."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.joints = [(p.joint.kind.manifold, p.v) for p in evaluator.model.parts if p.joint.kind.manifold.turns]
        self.compiled = evaluator.backend == "compiled"

    def stage(self, v: Array, guess: Array, speed: Array, h: Array) -> Stage:
        u, way, still, slopes = v.copy(), h * speed, np.zeros_like(v), []
        if h.ndim < v.ndim:
            h = np.broadcast_to(h, (*v.shape[:-1], 1))
        for manifold, at in self.joints:
            parts = [guess[..., at], v[..., at], speed[..., at], h]
            x, J = kernel(type(manifold))(parts, None, 1)[0] if self.compiled else by_complex_steps(manifold, parts)
            k = manifold.nv
            u[..., at], way[..., at], still[..., at] = x[..., :k], x[..., k : 2 * k], x[..., 2 * k :]
            slopes.append((at, J))
        return Stage(u, way, still, slopes)


def turned(manifold: Manifold, guess: Any, v: Any, speed: Any, h: Any) -> list[Any]:
    """u, way and still of one joint; h is a sequence of one number."""
    u = manifold.in_turned_axes(v, [0.5 * h[0] * x for x in speed])
    mid = [0.5 * (x + y) for x, y in zip(u, guess, strict=True)]
    return [*u, *manifold.straight([h[0] * x for x in speed]), *manifold.still(mid)]


def by_complex_steps(manifold: Manifold, parts: Sequence[Array]) -> tuple[Array, Array]:
    """The same on arrays (..., k), and its derivatives."""
    x, cuts = np.concatenate(parts, -1), np.cumsum([y.shape[-1] for y in parts])[:-1]
    wide = x[..., None, :] + 1j * STEP * np.eye(x.shape[-1])
    found = on_arrays(partial(turned, manifold), *np.split(wide, cuts, -1))
    return np.real(found[..., 0, :]), np.swapaxes(np.imag(found) / STEP, -1, -2)


@cache
def kernel(kind: type[Manifold]) -> Kernel:
    """The same as machine code."""
    manifold = kind()
    k = manifold.nv

    def both(guess: Any, v: Any, speed: Any, h: Any) -> list[Any]:
        found = list(map(h[0].graph.lift, turned(manifold, guess, v, speed, h)))
        return [np.array(found), jacobian(found, [*guess, *v, *speed, *h])]

    shapes = {"guess": (k,), "v": (k,), "speed": (k,), "h": (1,)}
    outputs = [(3 * k,), (3 * k, 3 * k + 1)]
    return compile(both, shapes, ("turning", kind.__name__), "turning axes", outputs=outputs)
