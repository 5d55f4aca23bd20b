"""The algorithms that experiments count and time, all compiled alike, so that a race compares algorithms alone.

An algorithm is traced for one robot: every body and every pair of joints written out, constants folded, dead code
removed; lanes are samples. Operations are the arithmetic instructions that run, a product fused with its only sum.
Such code is too long for large robots. There, algorithms run as loops over bodies (`lab.loops`), scalar, one state at a
time, as in the papers: in the loops that their authors describe, with inner loops over ancestors, subtrees or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ...algorithms.derivatives import chain_rule, idsva, methods, pinocchio
from ...algorithms.dynamics import aba, crba, factored, ltl, minv, rnea, torques
from ...algorithms.scan import Array, Scan
from ...model.tree import Tree
from ..internals import TracedCode

MATRICES = ("by_q", "by_v")
LOOPED_FORWARD = ("direct", "abacr")  # methods that are loops as they are
LOOPED_INVERSE = ("idsva", "idsva-body", "chain-rule", "pinocchio", "balafoutis-patel")
CUBIC = ("fdsva-dmm", "fdsva-ltl", "fdcr", "pinocchio")  # forward dynamics on chains; all other methods are quadratic


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A function(scan, *inputs) -> arrays, with the names of its inputs.

    degree: that of the polynomial in N that gives its operations on a chain of N joints.
    looped: the same function in a form that can be made into loops, if there is one.
    """

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., Sequence[Array]]
    degree: int = 2
    looped: Callable[..., Sequence[Any]] | None = None


class TracedAlgorithm(TracedCode):
    """An algorithm traced for one robot."""

    def __init__(self, algorithm: Algorithm, tree: Tree, limit: int | None = None) -> None:
        shapes = {name: input_shape(tree, name) for name in algorithm.inputs}
        super().__init__(algorithm.name, algorithm.function, tree, shapes, limit)
        self.algorithm = algorithm


def input_shape(tree: Tree, name: str) -> tuple[int, ...]:
    """(nq,) for q and its rate, (nv^2,) for a matrix row by row, (nv,) for everything else."""
    return (tree.nv**2,) if name in MATRICES else (tree.nq,) if name in ("q", "dq") else (tree.nv,)


# Each made once, since results are kept by algorithm


@cache
def inverse(name: str, matrices: int = 2) -> Algorithm:
    """dtau/dq and dtau/dv by a method of `methods`; with matrices=3 also dtau/da."""
    method = methods.find(methods.ID, name)

    def run(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[Array]:
        return tuple(method.function(scan, q, v, a))[:matrices]

    return Algorithm(name, ("q", "v", "a"), run, looped=run if name in LOOPED_INVERSE else None)


@cache
def forward(name: str) -> Algorithm:
    """da/dq, da/dv and da/dtau by a method of `methods`."""
    method = methods.find(methods.FD, name)

    def run(scan: Scan, q: Array, v: Array, tau: Array) -> Sequence[Array]:
        return tuple(method.function(scan, q, v, tau)[0])

    looped = run if name in LOOPED_FORWARD else WHOLE.get(name)
    return Algorithm(name, ("q", "v", "tau"), run, 3 if name in CUBIC else 2, looped)


RNEA = Algorithm("inverse dynamics", ("q", "v", "a"), lambda scan, *x: [rnea.inverse_dynamics(scan, *x)], 1)
MASS = Algorithm("mass matrix", ("q",), lambda scan, q: [crba.mass_matrix(scan, q)])
DEDICATED = Algorithm("M^-1, dedicated", ("q",), lambda scan, q: [minv.inverse_mass_matrix(scan, q).Minv])
FACTORISED = Algorithm("M^-1, L^T D L", ("q",), lambda scan, q: [factored.by_ltl(scan, q).Minv], 3)
ABA = Algorithm("forward dynamics", ("q", "v", "tau"), lambda scan, *x: [aba.forward_dynamics(scan, *x).a], 1)


# [IDSVA] eq. 5 alone: -M^-1 by_q, -M^-1 by_v and M^-1, from dense matrices by_q = dtau/dq and by_v = dtau/dv


def dmm(scan: Scan, q: Array, by_q: Array, by_v: Array, inverse: Callable = minv.by_lanes) -> Sequence[Array]:
    """Products with the dense M^-1."""
    M = inverse(scan, aba.factors(scan, q))
    return *(scan.negative(scan.product(M, scan.matrix(by))) for by in (by_q, by_v)), M


def aza(scan: Scan, q: Array, by_q: Array, by_v: Array, inverse: Callable = minv.by_lanes) -> Sequence[Array]:
    """Each column through the articulated-body algorithm."""
    factors = aba.factors(scan, q)
    solved = (scan.negative(aba.solve(scan, factors, scan.matrix(by))) for by in (by_q, by_v))
    return *solved, inverse(scan, factors)


def by_ltl(scan: Scan, q: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    """Solutions with the sparse factors of M."""
    factor = ltl.factorise(crba.mass_matrix(scan, q), scan.tree.dof_parents)
    return *(-ltl.solve(factor, scan.matrix(by)) for by in (by_q, by_v)), ltl.inverse(factor)


# As loops: M^-1 row by row, and the whole derivatives of forward dynamics from those of inverse dynamics

looped_dmm, looped_aza = (partial(step, inverse=torques.by_rows) for step in (dmm, aza))


def looped_ltl(scan: Any, q: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    return solved(scan, crba.mass_matrix(scan, q), by_q, by_v)


def solved(scan: Any, M: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    """Solutions with the sparse factors of M, by loops of their own."""
    factor = scan.factor(M)
    return *(scan.negative(scan.solve(factor, scan.matrix(by))) for by in (by_q, by_v)), scan.solve(factor)


def whole_ltl(scan: Scan, q: Array, v: Array, tau: Array) -> Sequence[Array]:
    """The same as `fdsva.by_ltl`, which has M from the derivatives of inverse dynamics."""
    by_q, by_v, M = idsva.inverse_dynamics_derivatives(scan, q, v, aba.forward_dynamics(scan, q, v, tau).a)
    return solved(scan, M, by_q, by_v)


def whole(derivatives: Callable, step: Callable, scan: Scan, q: Array, v: Array, tau: Array) -> Sequence[Array]:
    """Forward dynamics, derivatives of inverse dynamics there, and a step of eq. 5."""
    by_q, by_v, _ = derivatives(scan, q, v, aba.forward_dynamics(scan, q, v, tau).a)
    return step(scan, q, by_q, by_v)


WHOLE: dict[str, Callable[..., Sequence[Array]]] = {
    "fdsva-dmm": partial(whole, idsva.inverse_dynamics_derivatives, looped_dmm),
    "fdsva-aza": partial(whole, idsva.inverse_dynamics_derivatives, looped_aza),
    "fdsva-ltl": whole_ltl,
    "fdcr": partial(whole, chain_rule.inverse_dynamics_derivatives, looped_dmm),
    "pinocchio": partial(whole, pinocchio.inverse_dynamics_derivatives, looped_dmm),
}
DMM, AZA, LTL = PRODUCTS = (
    Algorithm("DMM", ("q", *MATRICES), dmm, 3, looped_dmm),
    Algorithm("AZA", ("q", *MATRICES), aza, 2, looped_aza),
    Algorithm("LTL", ("q", *MATRICES), by_ltl, 3, looped_ltl),
)
