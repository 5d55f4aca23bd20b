"""Analytical derivatives of forward dynamics through those of inverse dynamics; [IDSVA] Sec. IV-E, [RSS18] Sec. IV.

    da/du = -M^-1 dtau/du,   u = q or v,   at a = forward_dynamics(q, v, tau)         (eq. 5)
    da/dtau = M^-1

Three ways to form the product: DMM multiplies by M^-1 (O(n^3)); AZA sends each column through the articulated bodies
(O(n^2), eq. 34); LTL solves with the sparse factor of M (O(n^2 d), [RBDA] sec. 6.5).
Each function returns the derivatives and the margins of M (`aba.margins`).

Misprints of [RSS18]: eq. 16b has M^-1 (dC/dqd qd + C) where the minus sign of eq. 24 is missing, and eq. 25 factorises
M = L D L^T, which on a tree fills in; the sparse factorisation it refers to is M = L^T D L.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dynamics import aba, coupled, ltl, minv
from ..results import ForwardDynamicsDerivatives
from ..scan import Array, Scan
from . import chain_rule, pinocchio
from .idsva import inverse_dynamics_derivatives

# Dofs from which sending columns through the tree is faster than multiplying: on NumPy arrays, and by the operations of
# straight-line code of a chain. They hold until the crossover is measured on the host; see `evaluate/crossover.py`.
AZA_FROM, AZA_FROM_TRACED = 100, 24


def multiplied(derivatives: Callable) -> Callable[..., tuple[ForwardDynamicsDerivatives, Array]]:
    """DMM with the given derivatives of inverse dynamics."""

    def dmm(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
        a, margins = aba.forward_dynamics(scan, q, v, tau, fext)
        by_q, by_v, _ = derivatives(scan, q, v, a, fext)
        Minv = minv.by_lanes(scan, aba.factors(scan, q))
        a_q, a_v = (scan.negative(scan.product(Minv, by)) for by in (by_q, by_v))
        return ForwardDynamicsDerivatives(a_q, a_v, Minv), margins

    return dmm


dmm = multiplied(inverse_dynamics_derivatives)
chain_rule_dmm = multiplied(chain_rule.inverse_dynamics_derivatives)  # FDCR of [IDSVA] Table II
pinocchio_dmm = multiplied(pinocchio.inverse_dynamics_derivatives)


def aza(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA by the ABA-zero algorithm."""
    a, margins = aba.forward_dynamics(scan, q, v, tau, fext)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, a, fext)
    factors = aba.factors(scan, q)
    solved = aba.solve(scan, factors, np.concatenate([by_q, by_v], axis=1))
    n = scan.nv
    return ForwardDynamicsDerivatives(-solved[:, :n], -solved[:, n:], minv.by_lanes(scan, factors)), margins


def by_ltl(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA by sparse solves; dense ones if joints mimic."""
    if scan.tree.coupling is not None:
        return reduced(scan, scan.tree.coupling.G, q, v, tau, fext)
    a, margins = aba.forward_dynamics(scan, q, v, tau, fext)
    by_q, by_v, M = inverse_dynamics_derivatives(scan, q, v, a, fext)
    factor = ltl.factorise(M, scan.tree.dof_parents)
    solved = [-ltl.solve(factor, by) for by in (by_q, by_v)]
    return ForwardDynamicsDerivatives(solved[0], solved[1], ltl.inverse(factor)), margins


def reduced(scan: Scan, G: Array, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA in the independent coordinates of mimicking joints, v_tree = G v; see `coupled`."""
    a, margins = coupled.forward_dynamics(scan, G, q, v, tau, fext)
    M, _ = coupled.factor(scan, G, q)
    by_q, by_v, _ = inverse_dynamics_derivatives(scan, q, v, np.tensordot(G, a, 1), fext)
    solved = [-ltl.solve(M, coupled.reduce_matrix(G, by)) for by in (by_q, by_v)]
    return ForwardDynamicsDerivatives(solved[0], solved[1], ltl.inverse(M)), margins


def by_size(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """FDSVA as [IDSVA] Sec. V-D describes it: DMM for small robots, AZA from the crossover on."""
    least = AZA_FROM_TRACED if scan.dtype is object else AZA_FROM
    return (aza if scan.nv >= least else dmm)(scan, q, v, tau, fext)


def auto(scan: Scan, q: Array, v: Array, tau: Array, fext: Sequence | None = None):
    """The fastest on NumPy: DMM or AZA by the robot's size, or LTL if joints mimic."""
    return (by_ltl if scan.tree.coupling is not None else by_size)(scan, q, v, tau, fext)
