"""Derivatives without differentiating anything by hand: complex step and finite differences, on the manifold of q.

    complex step         Im f(q exp(i h e_k)) / h            exact to rounding, for any tiny h; [IDSVA] refs. [12]-[14]
    central difference   (f(q exp(h e_k)) - f(q exp(-h e_k))) / 2h         error O(h^2) + O(eps / h)
    forward difference   (f(q exp(h e_k)) - f(q)) / h                      error O(h) + O(eps / h)
All directions are evaluated at once, as further lanes of a scan. The steps are the usual compromise between truncation
and rounding, the cube and square root of eps. These methods need numbers and cannot be traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from ..configurations import integrate
from ..dynamics import aba, coupled, rnea
from ..results import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from ..scan import Array, Scan

IMAGINARY = 1e-30
EPS = float(np.finfo(float).eps)

Evaluate = Callable[[Scan, Array, Array, Array], Array]
Rule = Callable[[Callable[[complex], Array], Callable[[], Array]], Array]  # from f at a distance h, and f here


def complex_step(away: Callable[[complex], Array], here: Callable[[], Array]) -> Array:
    return np.imag(away(1j * IMAGINARY)) / IMAGINARY


def central(step: float = EPS ** (1 / 3)) -> Rule:
    return lambda away, here: (away(step) - away(-step)) / (2 * step)


def one_sided(step: float = EPS**0.5) -> Rule:
    return lambda away, here: (away(step) - here()) / step


def inverse(rule: Rule) -> Callable[..., InverseDynamicsDerivatives]:
    """Derivatives of inverse dynamics by a rule."""

    def derivatives(scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None):
        def tau(wide: Scan, q: Array, v: Array, a: Array) -> Array:
            return rnea.inverse_dynamics(wide, q, v, a, fext)

        eye = np.eye(scan.nv)
        return InverseDynamicsDerivatives(*sweep(scan, rule, tau, (q, v, a), (eye, eye, eye)))

    return derivatives


def forward(rule: Rule) -> Callable[..., tuple[ForwardDynamicsDerivatives, Array]]:
    """Derivatives of forward dynamics by a rule, and the margins of M; joints may mimic."""

    def derivatives(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
        coupling = scan.tree.coupling
        G = None if coupling is None else coupling.G

        def solve(wide: Scan, q: Array, v: Array, tau: Array) -> aba.Forward:
            if G is None:
                return aba.forward_dynamics(wide, q, v, tau, fext)
            return coupled.forward_dynamics(wide, G, q, v, tau, fext)

        move = np.eye(scan.nv) if G is None else G
        directions = move, move, np.eye(len(tau))
        by = sweep(scan, rule, lambda *given: solve(*given).a, (q, v, tau), directions)
        return ForwardDynamicsDerivatives(*by), solve(scan, q, v, tau).margins

    return derivatives


def sweep(scan: Scan, rule: Rule, f: Evaluate, at: Sequence[Array], directions: Sequence[Array]) -> list[Array]:
    """The matrices df/dx for the inputs x = q, v and a third; column k is along column k of x's directions."""

    @cache
    def here() -> Array:
        return f(scan, *at)[:, None]

    def away(x: int, h: complex) -> Array:
        move = directions[x]
        lanes = (move.shape[1], *scan.lanes)
        steps = np.broadcast_to(h * move.reshape(*move.shape, *(1 for _ in scan.lanes)), (len(move), *lanes))
        given = [part[:, None] for part in at]
        wide = Scan(scan.tree, lanes, np.result_type(given[x], steps))
        given[x] = integrate(wide, given[x], steps) if x == 0 else given[x] + steps
        return f(Scan(scan.tree, lanes, np.result_type(*given)), *given)

    return [rule(partial(away, x), here) for x in range(len(directions))]
