"""Hessians by differentiating the gradients of `products` numerically, on the manifold of q: see `numeric`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dynamics import aba, coupled
from ..results import ForwardDynamicsHessian, InverseDynamicsHessian
from ..scan import Array, Scan
from . import products
from .numeric import Rule, sweep


def inverse(rule: Rule) -> Callable[..., InverseDynamicsHessian]:
    """The Hessian of w.tau by a rule."""

    def hessian(scan: Scan, q: Array, v: Array, a: Array, w: Array, fext: Sequence | None = None):
        def gradient(wide: Scan, q: Array, v: Array, a: Array) -> Array:
            return np.concatenate(products.inverse_dynamics_force_vjp(wide, q, v, a, w[:, None], fext)[:3])

        eye = np.eye(scan.nv)
        by_q, by_v = sweep(scan, rule, gradient, (q, v, a), (eye, eye))
        return InverseDynamicsHessian(*blocks(by_q, by_v))

    return hessian


def forward(rule: Rule) -> Callable[..., tuple[ForwardDynamicsHessian, Array]]:
    """The Hessian of w.a by a rule, and the margins of M; joints may mimic."""

    def hessian(scan: Scan, q: Array, v: Array, tau: Array, w: Array, fext: Sequence | None = None):
        coupling = scan.tree.coupling
        G = None if coupling is None else coupling.G

        def gradient(wide: Scan, q: Array, v: Array, tau: Array) -> Array:
            given = q, v, tau, w[:, None], fext
            if G is None:
                return np.concatenate(products.forward_dynamics_force_vjp(wide, *given)[:3])
            return np.concatenate(products.coupled_force_vjp(wide, G, *given)[:3])

        move = np.eye(scan.nv) if G is None else G
        by_q, by_v = sweep(scan, rule, gradient, (q, v, tau), (move, move))
        solved = (
            aba.forward_dynamics(scan, q, v, tau, fext)
            if G is None
            else coupled.forward_dynamics(scan, G, q, v, tau, fext)
        )
        return ForwardDynamicsHessian(*blocks(by_q, by_v)), solved.margins

    return hessian


def blocks(by_q: Array, by_v: Array) -> tuple[Array, ...]:
    """qq, qv, vv and the last from the derivatives (3 nv, nv) of the gradients by q, v and the third input."""
    qq, vq, third = np.split(by_q, 3)
    return qq, np.swapaxes(vq, 0, 1), np.split(by_v, 3)[1], np.swapaxes(third, 0, 1)
