"""How a solved contact problem changes: its laws as equations, each contact in its mode.

A step's velocities u and percussions x (feet in their own axes, then stops) solve A u - rows^T x = ..., and each foot
is in one of three modes, with gamma = rows u + landing:
    open    P = 0
    sticks  gamma = 0
    slides  gamma_n = 0,  Pt = -mu Pn d,  d = gamma_t / |gamma_t|
A stop is free (its percussion is given: none, or that of dry friction that slides) or held (its rate is given: none, or
that which reaches the limit). Between changes of modes, changes of all this obey linear equations
    A du = r + rows^T dx,      dgamma = rows du + c,      Bg dgamma + BP dx = e                              (1)
    slides:  dgamma_n = 0,  dPt + mu d dPn + mu Pn / |gamma_t| (1 - d d^T) dgamma_t = 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Array

SLIDES = 1e-9  # share of the friction cone's radius: closer to its edge, a foot slides; as in `feet.Law.sticks`
REGULAR = 1e-8  # of the diagonal: contacts may be redundant
REFINED = 3  # corrections, which remove what REGULAR makes wrong
TINY = 1e-300


class Modes(NamedTuple):
    """What (1) says of each contact: Bg, BP (B, n, 3, 3) of feet, in units of `scale`; held (B, s): 1, or 0 if free."""

    Bg: Array
    BP: Array
    held: Array


def feet(P: Array, gamma: Array, mu: Array, scale: Array, given: bool) -> tuple[Array, Array]:
    """Bg and BP of feet with percussions P and velocities gamma (B, n, 3); scale (B, n) divides P, multiplies gamma.

    given: whether normal percussions are given, and only friction has a law.
    """
    normal, length = P[..., 2], np.sqrt(gamma[..., 0] ** 2 + gamma[..., 1] ** 2)
    pressed = normal > 0
    slides = pressed & (P[..., 0] ** 2 + P[..., 1] ** 2 >= (mu * normal) ** 2 * (1 - SLIDES)) & (length > 0)
    d = gamma[..., :2] / np.maximum(length, TINY)[..., None]
    stiff = np.where(slides, mu * normal / np.maximum(length * scale**2, TINY), 0.0)
    share = 1.0 / (1.0 + stiff)  # of each equation: both of its sides then have the size of one
    Bg, BP = np.zeros((*P.shape, 3)), np.zeros((*P.shape, 3))
    Bg[pressed] = np.eye(3)
    BP[~pressed] = np.eye(3)
    across = np.eye(2) - d[..., :, None] * d[..., None, :]
    Bg[slides, :2, :2] = ((1.0 - share)[..., None, None] * across)[slides]
    BP[slides, :2, :2] = share[slides, None, None] * np.eye(2)
    BP[slides, :2, 2] = ((share * mu)[..., None] * d)[slides]
    if given:
        Bg[..., 2, 2], BP[..., 2, 2] = 0.0, 1.0
    return Bg, BP


class ModeEquations:
    """The equations (1) of many worlds: A (B, nv, nv), rows (B, m, nv), of which the first 3 n are feet's.

    P, gamma (B, n, 3): percussions and velocities in the feet's axes; mu (B, n); held (B, s): see Modes.
    """

    def __init__(
        self, A: Array, rows: Array, P: Array, gamma: Array, mu: Array, held: Array, given: bool = False
    ) -> None:
        self.A, self.rows, self.laws, self.held, self.given = A, rows, (P, gamma, mu), held, given
        self.n = P.shape[-2]

    def solve(self, r: Array, c: Array, e: Array) -> tuple[Array, Array]:
        """du (B, nv, K) and dx (B, m, K) from r (B, nv, K), c (B, m, K) and e (B, m, K), which is zero but where a
        percussion is given."""
        rows = self.rows
        inverse = np.linalg.inv(self.A)
        back, free = inverse @ np.swapaxes(rows, -1, -2), inverse @ r
        G = rows @ back
        scale, modes = self._scaled(np.diagonal(G, axis1=-2, axis2=-1))
        system = self._system(G * scale * np.swapaxes(scale, -1, -2), modes)
        x = scale * solved(system, e / scale - self._of_velocities(modes, scale * (rows @ free + c)))
        return free + back @ x, x

    def _scaled(self, diagonal: Array) -> tuple[Array, Modes]:
        """Units (B, m, 1) in which the diagonal of G is one, on average over each foot; and the modes in these."""
        cut = 3 * self.n
        of_feet = 1.0 / np.sqrt(np.maximum(diagonal[:, :cut].reshape(-1, self.n, 3).mean(-1), TINY))
        of_stops = 1.0 / np.sqrt(np.maximum(diagonal[:, cut:], TINY))
        modes = Modes(*feet(*self.laws, of_feet, self.given), self.held)
        return np.concatenate([np.repeat(of_feet, 3, -1), of_stops], -1)[..., None], modes

    def _system(self, G: Array, modes: Modes) -> Array:
        """Bg G + BP."""
        system = self._of_velocities(modes, G)
        for k in range(self.n):
            at = slice(3 * k, 3 * k + 3)
            system[:, at, at] += modes.BP[:, k]
        stop = np.arange(3 * self.n, G.shape[-1])
        system[:, stop, stop] += 1.0 - modes.held
        return system

    def _of_velocities(self, modes: Modes, x: Array) -> Array:
        """Bg times velocities (B, m, K)."""
        cut = 3 * self.n
        blocks = x[:, :cut].reshape(len(x), self.n, 3, -1)
        found = (modes.Bg @ blocks).reshape(len(x), cut, -1)
        return np.concatenate([found, modes.held[..., None] * x[:, cut:]], 1)


def solved(system: Array, right: Array) -> Array:
    """system^-1 right; redundant contacts share what they must do, and of contradictions most is left."""
    one = np.eye(system.shape[-1])
    near = np.linalg.inv(system + REGULAR * one)
    wrong = one - system @ near
    redundant = np.abs(wrong).max((-1, -2), initial=0.0) >= 1e-5  # world by world: none knows of the others
    found = (near + near @ wrong + near @ (wrong @ wrong)) @ right
    if redundant.any():
        system, near, right = system[redundant], near[redundant], right[redundant]
        x = near @ right
        for _ in range(REFINED):
            x = x + near @ (right - system @ x)
        found[redundant] = x
    return found
