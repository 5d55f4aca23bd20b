"""The second derivatives of inverse dynamics in full: the Hessians of all torques, as tensors, in O(n d^2).

The Hessian of tau_k is that of s = w.tau for w = e_k (`hessian`), which sweeps the bodies beyond k's joint with V = S_k
and leaves all others at rest. So, for dofs j on a path with k,

    strictly below k's joint:  L = S_k x S_j,  and h, b, R are those of j's own subtree under S_k
    at or above it:            L = 0,          and h, b, R are those of k's subtree

and all others have none. docs/second-order.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...model.tree import Node
from ..dynamics.coriolis import Composite
from ..motion import REST, Moving, moving
from ..results import InverseDynamicsHessian
from ..scan import Array, Scan
from . import idsva
from .hessian import FirstTerms, SecondTerms, Swept, across, first_terms, own, second_terms, within
from .idsva import ForcedComposite


@dataclass(slots=True, eq=False)
class TorqueTerms(FirstTerms):
    """All that a degree of freedom contributes, as one that moves and as one whose torque is differentiated."""

    C: Composite  # of its subtree
    sweep: Swept  # of its subtree, swept with S


def inverse_dynamics_second_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsHessian:
    """qq, qv, vv, qa, (nv, nv, nv) each: qq[k] is that of tau_k."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    seeds = scan.each(idsva.seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsHessian(*scan.triples(terms, within, across, own, scan.inward(collect, seeds, bodies)))


def collect(node: Node, C: ForcedComposite, body: Moving) -> tuple[ForcedComposite, list[TorqueTerms]]:
    """The terms of a joint's dofs; the composite goes on to the parent."""
    firsts = [first_terms(C, body, S) for S in body.S]
    subtree = Composite(C.I, C.B2)
    return C, [
        TorqueTerms(t.S, t.Psid, t.Psidd, t.SPd, t.t1, t.t2, t.t3, subtree, Swept.of(C.I, C.B2, t.S)) for t in firsts
    ]


def terms(k: TorqueTerms, j: TorqueTerms, below: bool) -> SecondTerms:
    """The terms of dof j for the torque at dof k: strictly `below` that dof's joint, or else at or above it."""
    if below:
        return second_terms(j, j.C, Swept.of(j.C.I, j.C.B2, k.S), k.S.cross(j.S))
    return second_terms(j, j.C, k.sweep, REST)
