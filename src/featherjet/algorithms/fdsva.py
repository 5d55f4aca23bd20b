"""Analytical derivatives of forward dynamics through those of inverse dynamics; [IDSVA] Sec. IV-E.

    da/du = -M^-1 dtau/du,   u = q or v,   at a = forward_dynamics(q, v, tau)         (eq. 5)
    da/dtau = M^-1

Two ways to form the product: DMM multiplies with M^-1 (O(n^3)), AZA sends each column through the articulated bodies
(O(n^2), eq. 34).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import aba, minv
from .idsva import inverse_dynamics_derivatives
from .results import ForwardDynamicsDerivatives
from .scan import Array, Scan


def dmm(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA by direct matrix multiplication; returns the derivatives and the margins of M."""
    a, margins = aba.forward_dynamics(scan, q, v, tau, fext)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, a, fext)
    Minv = minv.by_lanes(scan, aba.factors(scan, q))
    return ForwardDynamicsDerivatives(-times(Minv, by_q), -times(Minv, by_v), Minv), margins


def aza(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA by the ABA-zero algorithm; returns the derivatives and the margins of M."""
    a, margins = aba.forward_dynamics(scan, q, v, tau, fext)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, a, fext)
    factors = aba.factors(scan, q)
    solved = aba.solve(scan, factors, np.concatenate([by_q, by_v], axis=1))
    n = scan.nv
    return ForwardDynamicsDerivatives(-solved[:, :n], -solved[:, n:], minv.by_lanes(scan, factors)), margins


def times(A: Array, B: Array) -> Array:
    """A B for matrices with lanes trailing."""
    return np.einsum("ij...,jk...->ik...", A, B)
