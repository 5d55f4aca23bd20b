"""Methods as straight-line code, all compiled in the same way, so that a race between them is one of algorithms.

A `Way` is traced for one robot: every body and every pair written out, constants folded, dead code gone; lanes are
samples. What is counted is what runs: arithmetic instructions, a product that goes into one sum fused with it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...algorithms.derivatives import methods
from ...algorithms.derivatives.fdsva import times
from ...algorithms.dynamics import aba, crba, factored, ltl, minv, rnea
from ...algorithms.scan import Array, Scan
from ...evaluate.compiled import Kernel
from ...jit import library
from ...jit.engine import Library, host_lanes
from ...jit.schedule import Schedule
from ...jit.straight import Straight, trace
from ...model.tree import Tree
from ...treejit.tables import Tables

Shape = tuple[int, ...]
MATRICES = ("by_q", "by_v")


@dataclass(frozen=True, eq=False)
class Way:
    """One way to compute something: function(scan, *inputs) -> arrays.

    degree: of the polynomial in N that its operations on a chain of N joints are.
    """

    name: str
    inputs: tuple[str, ...]
    function: Callable[..., Sequence[Array]]
    degree: int = 2


class Traced:
    """A way traced for one tree."""

    def __init__(self, way: Way, tree: Tree, limit: int | None = None) -> None:
        self.way, self.tree = way, tree
        shapes = {name: shape(tree, name) for name in way.inputs}
        self.straight: Straight = trace(lambda **x: way.function(Scan(tree, (), object), *x.values()), shapes, limit)
        self.operations = Schedule(self.straight.graph, self.straight.roots).instructions
        self.size = len(self.straight.graph.reachable(self.straight.roots))  # what there is to compile

    def kernel(self) -> Kernel:
        """As machine code, for batches; call it with a list of arrays."""
        straight = self.straight
        text = straight.graph.text(straight.roots) + repr((straight.inputs, straight.roots))
        what = ("reproduce", hashlib.sha256(text.encode()).hexdigest())

        def code(precision: int, one: bool) -> Library:
            return library.unrolled(what, lambda: straight, precision, one)

        return Kernel(Tables(self.tree, host_lanes()), self.way.name, straight.inputs, None, code, True)


def shape(tree: Tree, name: str) -> Shape:
    """Of an input: q and what moves it, matrices row by row, or vectors over degrees of freedom."""
    return (tree.nv**2,) if name in MATRICES else (tree.nq,) if name in ("q", "dq") else (tree.nv,)


# Ways, each made once


@cache
def inverse(name: str, matrices: int = 2) -> Way:
    """dtau/dq and dtau/dv by a method of the table, or all three matrices."""
    method = methods.find(methods.ID, name)

    def run(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[Array]:
        return tuple(method.function(scan, q, v, a))[:matrices]

    return Way(name, ("q", "v", "a"), run, 3 if "^3" in method.effort else 2)


@cache
def forward(name: str) -> Way:
    """da/dq, da/dv and da/dtau by a method of the table."""
    method = methods.find(methods.FD, name)

    def run(scan: Scan, q: Array, v: Array, tau: Array) -> Sequence[Array]:
        return tuple(method.function(scan, q, v, tau)[0])

    return Way(name, ("q", "v", "tau"), run, 3 if "^3" in method.effort or "^2 d" in method.effort else 2)


RNEA = Way("inverse dynamics", ("q", "v", "a"), lambda scan, *x: [rnea.inverse_dynamics(scan, *x)], 1)
MASS = Way("mass matrix", ("q",), lambda scan, q: [crba.mass_matrix(scan, q)])
DEDICATED = Way("M^-1, dedicated", ("q",), lambda scan, q: [minv.by_lanes(scan, aba.factors(scan, q))])  # half of it
FACTORISED = Way("M^-1, L^T D L", ("q",), lambda scan, q: [factored.by_ltl(scan, q).Minv], 3)
ABA = Way("forward dynamics", ("q", "v", "tau"), lambda scan, *x: [aba.forward_dynamics(scan, *x).a], 1)


# [IDSVA] eq. 5 alone, from dtau/dq and dtau/dv that are given, full of numbers: -M^-1 by_q, -M^-1 by_v and M^-1


def square(entries: Array) -> Array:
    n = math.isqrt(len(entries))
    return entries.reshape(n, n)


def multiplied(scan: Scan, q: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    M = minv.by_lanes(scan, aba.factors(scan, q))
    return -times(M, square(by_q)), -times(M, square(by_v)), M


def sent_through(scan: Scan, q: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    factors = aba.factors(scan, q)
    by_q, by_v = square(by_q), square(by_v)
    return -aba.solve(scan, factors, by_q), -aba.solve(scan, factors, by_v), minv.by_lanes(scan, factors)


def solved(scan: Scan, q: Array, by_q: Array, by_v: Array) -> Sequence[Array]:
    factor = ltl.factorise(crba.mass_matrix(scan, q), scan.tree.dof_parents)
    return -ltl.solve(factor, square(by_q)), -ltl.solve(factor, square(by_v)), ltl.inverse(factor)


GIVEN = ("q", "by_q", "by_v")
PRODUCTS = (
    Way("DMM", GIVEN, multiplied, 3),
    Way("AZA", GIVEN, sent_through, 2),
    Way("LTL", GIVEN, solved, 3),
)


def operations(way: Way, tree: Tree, limit: int | None = None) -> int:
    return Traced(way, tree, limit).operations


def kinds(traced: Traced) -> dict[str, Any]:
    """How often each operation occurs, nothing fused."""
    return traced.straight.graph.count(traced.straight.roots)
