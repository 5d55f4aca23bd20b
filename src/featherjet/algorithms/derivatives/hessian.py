"""The second derivatives of s = w.tau, inverse dynamics contracted with a vector, in closed form: O(n d), no tensors.

With the motions V that rates w give to the bodies (`products`), for each dof j of a joint with parent p

    L = V_p x S,   Psid, Psidd, SPd as in [IDSVA];   IC, 2BC, fC as in [IDSVA], and over the same subtree
    h = sum of I V = (n, m),   b = sum of (2B)^T V,   R = sum of the rates of the bodies' inertias under V (angular)
    D(x) = -R x.ang + x.ang x n + 2 x.lin x m                    (= 2 x x* h - 2B[V] x, whose linear half is zero)
    t1, t2, t3 as in [IDSVA];   E = 2BC^T L + S.ang x b + D(Psid),   F = IC L + S x* h,   G = D(S)

and for i on j's path to the root, joints of i and j being different,

    d2s/dq_i dq_j = L_i.t3_j + Psid_i.E_j + Psidd_i.F_j          d2s/dv_i dv_j = S_i.G_j
    d2s/dq_i dv_j = L_i.t2_j + Psid_i.G_j                        d2s/dv_i dq_j = S_i.E_j + SPd_i.F_j
    d2s/dq_i da_j = L_i.t1_j                                     d2s/da_i dq_j = S_i.F_j

All others are zero, those by (v, a) and (a, a) everywhere. E and G have three numbers each. For dofs of one joint the
first column holds as well, in both orders, but for d2s/dv_i dv_j = (S_i.G_j + S_j.G_i) / 2. Entry [j, i] of qq is the
derivative along dof i of ds/dq_j: within a joint that is no vector space, the order matters. docs/second-order.md has
the proof. External forces are part of fC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Coriolis, Force, Inertia, Motion
from ...math.vec3 import Sym3, Vec3
from ...model.tree import Node
from ..dynamics.aba import BodyResponse
from ..dynamics.coriolis import Composite
from ..motion import DofMotion, Moving, dof_motion, moving
from ..results import InverseDynamicsHessian
from ..scan import Array, Scan
from . import idsva
from .idsva import ForcedComposite
from .products import sweep


@dataclass(slots=True, eq=False)
class Swept(Additive):
    """Of a subtree that is swept with motions V: the sums h, b and R."""

    h: Force
    b: Vec3
    R: Sym3

    def D(self, x: Motion) -> Vec3:
        """2 x x* h - 2B[V] x, angular half; the linear half is zero."""
        return x.ang.cross(self.h.ang) + 2.0 * x.lin.cross(self.h.lin) - self.R @ x.ang

    @staticmethod
    def of(I: Inertia, B2: Coriolis, V: Motion) -> Swept:
        """A body's own share."""
        return Swept(I @ V, B2.transposed_times(V), I.rate(V))


@dataclass(slots=True, eq=False)
class SweptComposite(ForcedComposite):
    """Of a subtree: inertia, twice the Coriolis matrix, force, and its sweep."""

    sweep: Swept


@dataclass(slots=True, eq=False)
class FirstTerms(DofMotion):
    """What a degree of freedom contributes whatever V is."""

    t1: Force  # IC S
    t2: Force  # 2 BC S + IC (Sd + Psid)
    t3: Force  # 2 BC Psid + IC Psidd + fC xbar* S


@dataclass(slots=True, eq=False)
class SecondTerms(FirstTerms):
    """All that a degree of freedom contributes to the pair pass."""

    L: Motion  # V_parent x S
    E: Vec3
    F: Force
    G: Vec3


def inverse_dynamics_hessian(
    scan: Scan, q: Array, v: Array, a: Array, w: Array, fext: Sequence | None = None
) -> InverseDynamicsHessian:
    """qq, qv, vv, qa of w.tau, (nv, nv) each."""
    bodies = scan.outward(moving(scan.tree.gravity), scan.coordinates(q), scan.rates(v), scan.rates(a))
    dofs = swept_terms(scan, bodies, scan.outward(sweep, bodies, scan.rates(w)), fext)
    return InverseDynamicsHessian(*scan.pairs(within, across, dofs, own=own))


def swept_terms(
    scan: Scan, bodies: Sequence[Moving], swept: Sequence[BodyResponse], fext: Sequence | None
) -> list[list[SecondTerms]]:
    """The terms of all dofs, where the bodies are swept with rates w."""
    seeds = scan.each(seed, bodies, swept, fext if fext is not None else scan.constant(None))
    return scan.inward(collect, seeds, bodies, swept)


def seed(node: Node, body: Moving, swept: BodyResponse, fext) -> SweptComposite:
    """A body's own share."""
    C = idsva.seed(node, body, fext)
    return SweptComposite(C.I, C.B2, C.f, Swept.of(C.I, C.B2, swept.a))


def collect(
    node: Node, C: SweptComposite, body: Moving, swept: BodyResponse
) -> tuple[SweptComposite, list[SecondTerms]]:
    """The terms of a joint's dofs; the composite goes on to the parent."""
    return C, [second_terms(first_terms(C, body, S), C, C.sweep, swept.a_parent.cross(S)) for S in body.S]


def first_terms(C: ForcedComposite, body: Moving, S: Motion) -> FirstTerms:
    """The terms of one column S that do not depend on V."""
    m = dof_motion(body, S)
    t2 = C.B2 @ S + C.I @ m.SPd
    t3 = C.B2 @ m.Psid + C.I @ m.Psidd + C.f.cross_bar(S)
    return FirstTerms(S, m.Psid, m.Psidd, m.SPd, C.I @ S, t2, t3)


def second_terms(t: FirstTerms, C: Composite, sweep: Swept, L: Motion) -> SecondTerms:
    """All terms of one column."""
    E = C.B2.transposed_times(L) + t.S.ang.cross(sweep.b) + sweep.D(t.Psid)
    F = C.I @ L + sweep.h.cross_bar(t.S)
    return SecondTerms(t.S, t.Psid, t.Psidd, t.SPd, t.t1, t.t2, t.t3, L, E, F, sweep.D(t.S))


def within(i: SecondTerms, k: SecondTerms) -> tuple:
    """Entries [k, i], k strictly below i's joint."""
    return (
        i.L.dot(k.t3) + i.Psid.ang.dot(k.E) + i.Psidd.dot(k.F),
        i.S.ang.dot(k.E) + i.SPd.dot(k.F),
        i.S.ang.dot(k.G),
        i.S.dot(k.F),
    )


def across(i: SecondTerms, k: SecondTerms) -> tuple:
    """Entries [i, k], k strictly below i's joint."""
    return (
        i.L.dot(k.t3) + i.Psid.ang.dot(k.E) + i.Psidd.dot(k.F),
        i.L.dot(k.t2) + i.Psid.ang.dot(k.G),
        i.S.ang.dot(k.G),
        i.L.dot(k.t1),
    )


def own(i: SecondTerms, k: SecondTerms) -> tuple:
    """Entries [k, i], i and k of one joint."""
    return (
        i.L.dot(k.t3) + i.Psid.ang.dot(k.E) + i.Psidd.dot(k.F),
        k.L.dot(i.t2) + k.Psid.ang.dot(i.G),
        0.5 * (i.S.ang.dot(k.G) + k.S.ang.dot(i.G)),
        k.L.dot(i.t1),
    )
