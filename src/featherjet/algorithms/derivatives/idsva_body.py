"""IDSVA in body coordinates; [IDSVA] Sec. V-B and Fig. 3, where it is compared with ground coordinates.

The same equations as `idsva`, with every quantity in its own body's frame. The inward walk moves composites, and t1..t4
of each dof below, to the parent's frame, so that a body finds them all in its own frame. Ground coordinates save these
O(Nd) moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Coriolis, Force, Transform
from ...math.vec3 import Vec3
from ...model.tree import Node
from ..results import InverseDynamicsDerivatives
from ..scan import Array, Scan
from .idsva import ForcedComposite, across, dof_terms, within
from .partials import IDENTITY, Entries, Local, Partials, local, local_force, own


@dataclass(slots=True, eq=False)
class Terms:
    """t1..t4 of a degree of freedom (see `idsva.DofTerms`), in the frame of some body above it."""

    t1: Force
    t2: Force
    t3: Force
    t4: Vec3

    def placed(self, X: Transform) -> Terms:
        """The same in the outer frame of X."""
        return Terms(X.force(self.t1), X.force(self.t2), X.force(self.t3), X.R @ self.t4)


@dataclass(slots=True, eq=False)
class CompositeTerms(Additive):
    """A subtree's composites and the terms of its dofs, in the frame of its first body."""

    C: ForcedComposite
    terms: Partials[Terms]


def inverse_dynamics_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, fext: Sequence | None = None
) -> InverseDynamicsDerivatives:
    """dtau/dq, dtau/dv and dtau/da = M."""
    bodies = scan.outward(local(scan), scan.coordinates(q), scan.rates(v), scan.rates(a))
    seeds = scan.each(seed, bodies, fext if fext is not None else scan.constant(None))
    return InverseDynamicsDerivatives(*scan.entries(scan.inward(collect, seeds, bodies)))


def seed(node: Node, body: Local, fext) -> CompositeTerms:
    """[IDSVA] Alg. 1, lines 8-10, in the body's frame."""
    I = node.body.placed(IDENTITY)
    B2 = Coriolis.of(I, body.v, I @ body.v)
    return CompositeTerms(ForcedComposite(I, B2, local_force(node, body, I, fext)), Partials())


def collect(node: Node, sub: CompositeTerms, body: Local) -> tuple[CompositeTerms, Entries]:
    """Lines 5-7 and 13-23; the sums of lines 22-23 take place in the parent's frame."""
    dofs = [dof_terms(sub.C, body, S, armature) for S, armature in zip(body.S, node.armature, strict=True)]
    below, here = sub.terms, own(node, dofs)
    entries: dict[tuple[int, int], tuple] = {}
    for i, d in here.items():
        for k, t in below.items():
            entries[k, i], entries[i, k] = within(d, t), across(d, t)  # type: ignore[arg-type]
        for k, t in here.items():
            entries[k, i] = within(d, t)
        by_q, by_v, M = entries[i, i]
        entries[i, i] = by_q, by_v, M + d.armature
    if node.is_root:
        return sub, entries
    terms = below + here.map(lambda d: Terms(d.t1, d.t2, d.t3, d.t4))
    C, X = sub.C, body.X
    moved = ForcedComposite(C.I.placed(X), C.B2.placed(X), X.force(C.f))
    return CompositeTerms(moved, terms.map(lambda t: t.placed(X))), entries
