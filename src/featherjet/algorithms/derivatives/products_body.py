"""Products with the derivatives of inverse dynamics in body coordinates: adjoint and tangent of `dynamics.balafoutis`.

`products` computes the same in ground coordinates, where code for one robot takes up to twice the instructions.
docs/second-order.md has the proof.

**Adjoint.** The adjoint of the way in is the way out of motions V = (u, l) with rates mu, in each body's frame:
s = mu.tau = sum of V.(eta, F). What s gains from a body's Omega and sdd, with P = l + u x r,

    G = m P r^T + u~ Jc        p = m P

adds up inward, with A^T x = x' what a body receives from its parent, and x_ the adjoint of x:

    p_ = p + sum of A p_c       G_ = G + sum of (A p_c) s_c^T       n_ = dual(G_) + sum of A n_c
    w_ = (G_ + G_^T - 2 tr G_) w + sum of A w'_c                    w'_ = w_ + wJ x n_ + 2 uJ x p_

    by a: z.n_ + y.p_           by v: z.(w_ + n_ x w' + uJ x p_) + y.(p_ x (w + w'))
    by q: z.(w'_ x w' + n_ x wd' + p_ x sdd' + f.eta x u' + f.F x l') + y.(A^T Omega_p^T A p_ + f.F x u')

since d(A^T x) = x' x z and ds = A y. p_ and n_ are the momentum h of the subtree that moves with V.

**Tangent.** Each line differentiated along (dq, dv, da); the wrench is linear in (Omega, sdd).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.fieldwise import Additive
from ...math.spatial import Force, Motion, span
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.tree import Node
from ..dynamics.balafoutis import (
    NONE,
    Received,
    Spin,
    dual,
    ground,
    handed,
    loaded,
    spread,
    tilde,
    varied,
)
from ..frames.kinematics import components
from ..motion import REST
from ..scan import Array, Scan
from .products import Gradients


@dataclass(slots=True, eq=False)
class TurningBody:
    """What a body receives, its own motion, and its parent's Omega where the joint slides."""

    given: Received
    at: Spin
    above: Mat3 | None


def bodies_of(scan: Scan, q: Array, v: Array, a: Array) -> Sequence[TurningBody]:
    """All bodies, outward."""

    def step(node: Node, parent: TurningBody | None, q, v, a) -> TurningBody:
        given = handed(node, parent.at if parent else None, ground(scan, node, q), q, v, a)
        return TurningBody(given, given.spin, parent.at.Omega if parent and node.kind.slides else None)

    return scan.outward(step, scan.coordinates(q), scan.rates(v), scan.rates(a))


def totals_of(scan: Scan, bodies: Sequence[TurningBody], fext: Sequence | None) -> Sequence[Force]:
    """The force that each joint transmits, in its body's frame."""

    def step(node: Node, f: Force, body: TurningBody) -> tuple[Force, Force]:
        return f if node.is_root else body.given.X.force(f), f

    return scan.inward(
        step,
        scan.each(
            lambda node, body, fext: loaded(node, body.at, fext),
            bodies,
            fext if fext is not None else scan.constant(None),
        ),
        bodies,
    )


# Adjoint


@dataclass(slots=True, eq=False)
class SweptBody:
    """A body's motion V with rates mu, and its parent's, both in the body's frame."""

    V: Motion
    received: Motion
    rates: list[Scalar]


@dataclass(slots=True, eq=False)
class Adjoint(Additive):
    """Adjoints of a body's sdd, Omega, wd and w: its own, and what its children hand over."""

    p: Vec3
    G: Mat3
    n: Vec3
    w: Vec3


def inverse_dynamics_vjp(scan: Scan, q: Array, v: Array, a: Array, w: Array) -> tuple[Array, ...]:
    """w^T (dtau/dq, dtau/dv, dtau/da), (nv,) each."""
    return inverse_dynamics_force_vjp(scan, q, v, a, w)[:3]


def inverse_dynamics_force_vjp(
    scan: Scan, q: Array, v: Array, a: Array, w: Array, fext: Sequence | None = None
) -> tuple[Array, ...]:
    """The same under external forces, then w^T dtau/dfext (njoints, 6)."""
    bodies = bodies_of(scan, q, v, a)
    swept = scan.outward(sweep, bodies, scan.rates(w))
    by = gradients(scan, bodies, swept, totals_of(scan, bodies, fext))
    return *by, scan.joint_rows(scan.each(by_force, swept))


def torque_slopes(scan: Scan, q: Array, v: Array, a: Array, weights: Array) -> tuple[Array, ...]:
    """tau and the slopes of half of tau^T diag(weights) tau by q, v, a, (nv,) each."""

    def torque(node: Node, body: TurningBody, f: Force, a) -> list[Scalar]:
        return [S.dot(f) + arm * x for S, arm, x in zip(body.given.S, node.armature, a, strict=True)]

    bodies = bodies_of(scan, q, v, a)
    totals = totals_of(scan, bodies, None)
    tau = scan.each(torque, bodies, totals, scan.rates(a))
    w = scan.each(lambda node, tau, by: [x * y for x, y in zip(by, tau, strict=True)], tau, scan.rates(weights))
    return scan.vector(tau), *gradients(scan, bodies, scan.outward(sweep, bodies, w), totals)


def sweep(node: Node, parent: SweptBody | None, body: TurningBody, w: Sequence[Scalar]) -> SweptBody:
    """The outward step of V."""
    received = body.given.X.motion_inverse(parent.V) if parent else REST
    return SweptBody(received + span(body.given.S, w), received, list(w))


def by_force(node: Node, swept: SweptBody) -> tuple:
    """-V in the joint's own axes, linear then angular."""
    return components(Motion(node.align @ -swept.V.ang, node.align @ -swept.V.lin))


def gradients(
    scan: Scan, bodies: Sequence[TurningBody], swept: Sequence[SweptBody], totals: Sequence[Force]
) -> tuple[Array, Array, Array]:
    """The derivatives of w.tau by q, v and a, where the bodies are swept with rates w."""
    found = scan.inward(gather, scan.each(share, swept), bodies, swept, totals)
    return (
        scan.vector(scan.each(lambda node, g: g.by_q, found)),
        scan.vector(scan.each(lambda node, g: g.by_v, found)),
        scan.vector(scan.each(lambda node, g: g.by_a, found)),
    )


def share(node: Node, swept: SweptBody) -> Adjoint:
    """A body's own p and G."""
    u, l, r = swept.V.ang, swept.V.lin, node.body.c
    p = node.body.m * (l + u.cross(r))
    G = tilde(u).compose(spread(node)) + Mat3(r.x * p, r.y * p, r.z * p)
    return Adjoint(p, G, NONE, NONE)


def gather(node: Node, C: Adjoint, body: TurningBody, swept: SweptBody, f: Force) -> tuple[Adjoint, Gradients]:
    """The adjoints of a body's motion, the derivatives along its joint's dofs, and what its parent takes over."""
    given, w, p = body.given, body.at.w, C.p
    wJ, uJ, S, V = given.J.ang, given.J.lin, given.S, swept.received
    n = C.n + dual(C.G)
    w_ = C.w + squared(C.G, w)
    handed_w = w_ + wJ.cross(n) + 2.0 * uJ.cross(p)
    rate = Force(w_ + n.cross(given.w) + uJ.cross(p), p.cross(w + given.w))
    turn = Force(
        handed_w.cross(given.w) + n.cross(given.wd) + p.cross(given.sdd) + f.ang.cross(V.ang) + f.lin.cross(V.lin),
        f.lin.cross(V.ang),
    )
    R, s = given.X.R, given.X.p
    up = R @ p
    if body.above is not None:
        turn = Force(turn.ang, turn.lin + R.transposed_times(body.above.transposed_times(up)))
    by_a = [x.ang.dot(n) + x.lin.dot(p) + arm * w for x, arm, w in zip(S, node.armature, swept.rates, strict=True)]
    by = Gradients([x.dot(turn) for x in S], [x.dot(rate) for x in S], by_a)
    if node.is_root:
        return C, by
    return Adjoint(up, Mat3(s.x * up, s.y * up, s.z * up), R @ n, R @ handed_w), by


def squared(G: Mat3, w: Vec3) -> Vec3:
    """(G + G^T - 2 tr G) w, the adjoint of w in w~ w~ = w w^T - (w.w) 1."""
    xy, xz, yz = G.x.y + G.y.x, G.x.z + G.z.x, G.y.z + G.z.y
    x, y, z = G.x.x, G.y.y, G.z.z
    return Vec3(
        xy * w.y + xz * w.z - 2.0 * ((y + z) * w.x),
        xy * w.x + yz * w.z - 2.0 * ((x + z) * w.y),
        xz * w.x + yz * w.y - 2.0 * ((x + y) * w.z),
    )


# Tangent


@dataclass(slots=True, eq=False)
class Turned:
    """How a body's motion changes, and the motion S dq of its joint."""

    by: Spin
    turn: Motion


def inverse_dynamics_jvp(
    scan: Scan,
    q: Array,
    v: Array,
    a: Array,
    dq: Array,
    dv: Array,
    da: Array,
    dfext: Array | None = None,
    fext: Sequence | None = None,
) -> Array:
    """dtau (nv,) along (dq, dv, da) and along a change of the external forces."""
    bodies = bodies_of(scan, q, v, a)
    rates = scan.rates(da)
    changes = scan.outward(change, bodies, scan.rates(dq), scan.rates(dv), rates)
    forces = scan.constant(None) if dfext is None else scan.forces(dfext)
    seeds = scan.each(lambda node, c, dfext: loaded(node, c.by, dfext), changes, forces)
    return scan.vector(scan.inward(project, seeds, bodies, changes, totals_of(scan, bodies, fext), rates))


def change(node: Node, parent: Turned | None, body: TurningBody, dq, dv, da) -> Turned:
    """The outward step, differentiated."""
    given, S = body.given, body.given.S
    turn, rate, more = span(S, dq), span(S, dv), span(S, da)
    dw, dwd, dsdd = NONE, NONE, given.sdd.cross(turn.ang)
    if parent:
        R, up = given.X.R, parent.by
        lifted = up.sdd + up.Omega @ given.X.p
        if body.above is not None:
            lifted = lifted + body.above @ (R @ turn.lin)
        dw = R.transposed_times(up.w) + given.w.cross(turn.ang)
        dwd = R.transposed_times(up.wd) + given.wd.cross(turn.ang)
        dsdd = dsdd + R.transposed_times(lifted)
    dwd = dwd + dw.cross(given.J.ang) + given.w.cross(rate.ang) + more.ang
    slide = (2.0 * dw + rate.ang).cross(given.J.lin) + (given.w + body.at.w).cross(rate.lin)
    return Turned(varied(body.at.w, dw + rate.ang, dwd, dsdd + slide + more.lin), turn)


def project(node: Node, df: Force, body: TurningBody, c: Turned, f: Force, da) -> tuple[Force, list[Scalar]]:
    """The change of a joint's torques; its parent also feels its force turned."""
    dtau = [S.dot(df) + arm * x for S, arm, x in zip(body.given.S, node.armature, da, strict=True)]
    return df if node.is_root else body.given.X.force(df + c.turn.cross_force(f)), dtau
