"""Products with the derivatives of dynamics with contacts, without the matrices: two solves with the same factors.

Differentiating (1) of `dynamics` gives (2) of `derivatives`, M da - J^T dlambda = dtau - dE, J da + mu dlambda = -dK.

**From the left.** With x and y of the same system, M x - J^T y = w_a and J x + mu y = -w_forces,

    w_a.da + w_forces.dlambda = x.(dtau - dE) + y.dK

x.dE is the gradient of inverse dynamics (`products`) with the contact forces as external forces. y.dK, from (4) there,
is a sum over dofs j that move only one of a contact's bodies, with s = +-1, of

    by q_j: s (H.Psidd_j + B.Psid_j + k.S_j)         by v_j: s (H.SPd_j + B.S_j)

    H = y as a force     B = kd H + (v1 + v2) x* H     k = v2 x* (kd H) + a2 x* H + v2 x* (v1 x* H) + kp error's

so that H, B and k are forces on the two bodies, which add up inward like those of `products`. If a point is held, its
own velocity adds to B. k also has the reaction of (3), and, on the first body alone, how forces in world axes turn.

**From the right.** Bodies are displaced by Y, and their velocities and accelerations change by x and y as seen from
them (`products`): dK is (4) at the differences of Y, x and y between the two bodies, and dE the product of inverse
dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...math.fieldwise import Additive
from ...math.spatial import Force, Motion
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..derivatives import products
from ..derivatives.direct import accelerated
from ..derivatives.products import ForceChange, Gradients, along
from ..dynamics import aba
from ..dynamics.aba import BodyResponse
from ..motion import NO_FORCE, REST, DofMotion, Moving
from . import grips
from .derivatives import residual_by_q, xi_by_q
from .grips import Grip, HeldStill, Touched, given, numbers, pivots, pulled, touching


@dataclass(slots=True, eq=False)
class Weighed(Additive):
    """What a body's joints feel: forces f, and the factors of Psidd and SPd, of Psid and S, and of S alone."""

    f: Force
    H: Force
    B: Force
    k: Force


# From the left


def constrained_vjp(scan: Any, q: Any, v: Any, tau: Any, w_a: Any, w_forces: Any, fext: Any = None) -> tuple:
    """w_a^T da + w_forces^T dforces by q, v and tau; and the margins of M."""
    h = grips.constrained(scan, q, v, tau, fext)
    bodies = scan.each(accelerated, h.p.bodies, h.response)
    touched = scan.touches(touching(scan.tree.gravity), bodies, h.p.places)
    weights = scan.per_grip(w_forces, 3)
    swept, y = adjoint(scan, h, touched, w_a, weights)
    held = scan.gather(weigh, touched, swung(scan, bodies, motions(scan, swept), h), h.forces, y, weights)
    own = scan.each(share, bodies, swept, given(scan, fext))
    found = scan.inward(gather, scan.each(lambda node, own, held: own + held, own, held), bodies, swept)
    return *outputs(scan, found), minus(scan, swept), h.p.margins


def impulse_vjp(scan: Any, q: Any, v: Any, restitution: Any, w_v: Any, w_impulses: Any) -> tuple:
    """The same for the jump and impulses, by q and v."""
    speed = 1.0 + scan.number(restitution)
    h = grips.jump(scan, q, v, speed)
    rest = scan.each(leaping, h.p.bodies, h.response)
    after = grips.after_jump(scan, q, v, speed, h)
    touched = scan.touches(touching(scan.tree.gravity), after, h.p.places)
    weights = scan.per_grip(w_impulses, 3)
    swept, y = adjoint(scan, h, touched, w_v, weights)
    held = scan.gather(weigh_twist, touched, swung(scan, after, motions(scan, swept), h), h.forces, y, weights)
    own = scan.each(share, rest, swept, given(scan, None))

    def step(node: Node, C: Weighed, body: Moving, fast: Moving, swept: BodyResponse) -> tuple[Weighed, Gradients]:
        still = along(node, C.f, C.H, NO_FORCE, body, swept)
        by_q = [x + S.dot(C.k) + fast.v_parent.cross(S).dot(C.B) for x, S in zip(still.by_q, body.S, strict=True)]
        return C, Gradients(by_q, [speed * S.dot(C.B) for S in body.S], still.by_a)

    seeds = scan.each(lambda node, own, held: own + held, own, held)
    return *outputs(scan, scan.inward(step, seeds, rest, after, swept)), h.p.margins


def adjoint(scan: Any, h: HeldStill, touched: Any, w: Any, weights: Any) -> tuple[Any, Any]:
    """-x as the response of all bodies, and -y as forces of grips."""
    less = scan.each(lambda node, w: [-x for x in w], scan.rates(w))
    left = scan.inward(aba.reduce, scan.constant(NO_FORCE), h.p.joints, less)
    drift = scan.grips(lambda grip, w: tuple(-x for x in w), weights)
    left, y, _ = scan.hold(pivots(scan, h.p), left, touched, drift)
    return scan.outward(aba.accelerate, h.p.joints, left), y


def swung(scan: Any, bodies: Any, motions: Any, h: HeldStill) -> Any:
    """The grips, as if their bodies had these motions for velocities."""

    def swing(node: Node, body: Moving, m: Motion) -> Moving:
        return Moving(body.X, body.S, m, body.a, REST, body.a_parent)

    return scan.touches(touching(scan.tree.gravity), scan.each(swing, bodies, motions), h.p.places)


def motions(scan: Any, responses: Any) -> Any:
    return scan.each(lambda node, r: r.a, responses)


def leaping(node: Node, body: Moving, r: BodyResponse) -> Moving:
    """A body at rest that accelerates as velocities jump."""
    return Moving(body.X, body.S, REST, r.a, REST, r.a_parent)


def share(node: Node, body: Moving, swept: BodyResponse, fext: Sequence[Scalar] | None) -> Weighed:
    """A body's own share of the gradient of inverse dynamics."""
    own = products.shares(node, body, swept, fext)
    return Weighed(own.f, own.h, Force(own.b, REST.ang), NO_FORCE)


def weigh(grip: Grip, t: Touched, swung: Touched, f, less: Sequence[Scalar], w) -> tuple[Weighed, Weighed | None]:
    """What a grip adds for its two bodies; `less` is -y."""
    touch, W = t.touch, weight(grip, t, less)
    v1, v2, xi, up = touch.v1, touch.v2, touch.xi, touch.F1.force
    D = grip.kd * W
    if grip.point:
        D = D + Force(xi.lin.cross(W.lin), W.lin.cross(xi.ang))
    e = touch.error
    turn = -e.lin.cross(W.lin)
    if not grip.point:
        R = touch.turn
        turn = turn + 0.5 * ((R.x.x + R.y.y + R.z.z) * W.ang - R @ W.ang)
    H, D = up(W), up(D)
    k = v2.cross_force(D + v1.cross_force(H)) + touch.a2.cross_force(H) + up(grip.kp * Force(turn, W.lin))
    return shared(grip, t, swung, f, w, H, D + (v1 + v2).cross_force(H), k)


def weigh_twist(grip: Grip, t: Touched, swung: Touched, f, less: Sequence[Scalar], w) -> tuple[Weighed, Weighed | None]:
    """The same for impulses, where K is the twist."""
    B = t.touch.F1.force(weight(grip, t, less))
    return shared(grip, t, swung, f, w, NO_FORCE, B, t.touch.v2.cross_force(B))


def weight(grip: Grip, t: Touched, less: Sequence[Scalar]) -> Force:
    """y as a force at the contact, in the axes of the root."""
    return grip.wrench(t.axes @ Vec3(*(-x for x in less)))


def shared(
    grip: Grip, t: Touched, swung: Touched, f: Sequence[Scalar], w: Sequence[Scalar], H: Force, B: Force, k: Force
) -> tuple[Weighed, Weighed | None]:
    """Forces for both bodies: opposite ones, but for the contact force on each and the turn of world axes."""
    pull = pulled(t.rows, f)
    k = k - swung.touch.v2.cross_force(pull)  # the reaction, whose motion is that of -x
    turning = Force(grip.world * (t.axes @ Vec3(*f).cross(Vec3(*w))), REST.ang)
    first = Weighed(-pull, H, B, k + turning)
    if t.between is None or t.others is None:
        return first, None
    back = t.between.force_inverse
    return first, Weighed(-pulled(t.others, f), -back(H), -back(B), -back(k))


def gather(node: Node, C: Weighed, body: Moving, swept: BodyResponse) -> tuple[Weighed, Gradients]:
    """The derivatives along a joint's dofs."""
    found = along(node, C.f, C.H, C.B, body, swept)
    by_q = [x + S.dot(C.k) for x, S in zip(found.by_q, body.S, strict=True)]
    return C, Gradients(by_q, found.by_v, found.by_a)


def outputs(scan: Any, found: Any) -> tuple:
    return scan.vector(scan.each(lambda node, g: g.by_q, found)), scan.vector(scan.each(lambda node, g: g.by_v, found))


def minus(scan: Any, swept: Any) -> Any:
    return scan.vector(scan.each(lambda node, r: [-x for x in r.rates], swept))


# From the right


def constrained_jvp(scan: Any, q: Any, v: Any, tau: Any, dq: Any, dv: Any, dtau: Any, fext: Any = None) -> tuple:
    """da and dforces along (dq, dv, dtau); and the margins of M."""
    h = grips.constrained(scan, q, v, tau, fext)
    bodies = scan.each(accelerated, h.p.bodies, h.response)
    touched = scan.touches(touching(scan.tree.gravity), bodies, h.p.places)
    changes = scan.outward(products.change, bodies, scan.rates(dq), scan.rates(dv), scan.no_rates())
    Y = swung(scan, bodies, displaced(scan, changes), h)
    x = swung(scan, bodies, scan.each(lambda node, c: c.x, changes), h)
    y = swung(scan, bodies, scan.each(lambda node, c: c.y, changes), h)
    drift = scan.grips(drifting, touched, Y, x, y)
    dE = felt(scan, bodies, changes, touched, Y, h, fext)
    rest = scan.each(lambda node, t, e: [a - b for a, b in zip(t, e, strict=True)], scan.rates(dtau), dE)
    return *released(scan, h, touched, Y, rest, drift), h.p.margins


def impulse_jvp(scan: Any, q: Any, v: Any, restitution: Any, dq: Any, dv: Any) -> tuple:
    """The changes of the jump and of impulses along (dq, dv); and the margins of M."""
    speed = 1.0 + scan.number(restitution)
    h = grips.jump(scan, q, v, speed)
    rest, after = scan.each(leaping, h.p.bodies, h.response), grips.after_jump(scan, q, v, speed, h)
    touched = scan.touches(touching(scan.tree.gravity), after, h.p.places)
    faster = scan.each(lambda node, dv: [speed * x for x in dv], scan.rates(dv))
    changes = scan.outward(products.change, rest, scan.rates(dq), scan.no_rates(), scan.no_rates())
    twists = scan.outward(products.change, after, scan.rates(dq), faster, scan.no_rates())
    Y = swung(scan, after, displaced(scan, changes), h)
    x = swung(scan, after, scan.each(lambda node, c: c.x, twists), h)
    drift = scan.grips(twisting, touched, Y, x)
    dE = felt(scan, rest, changes, touched, Y, h, None)
    return *released(scan, h, touched, Y, scan.each(lambda node, e: [-z for z in e], dE), drift), h.p.margins


def displaced(scan: Any, changes: Any) -> Any:
    """How bodies move along dq."""
    return scan.outward(lambda node, parent, c: parent + c.turn if parent else c.turn, changes)


def apart(t: Touched) -> Motion:
    """The first body's motion less the second's."""
    return t.touch.v1 - t.touch.v2


def drifting(grip: Grip, t: Touched, Y: Touched, x: Touched, y: Touched) -> tuple:
    """dK."""
    j = DofMotion(apart(Y), apart(x), apart(y), REST)
    return numbers(t.row(grip.part(residual_by_q(grip, t.touch, j))))


def twisting(grip: Grip, t: Touched, Y: Touched, x: Touched) -> tuple:
    """dK of impulses, where K is the twist."""
    j = DofMotion(apart(Y), apart(x), REST, REST)
    return numbers(t.row(grip.part(t.touch.F1.motion_inverse(xi_by_q(t.touch, j)))))


def felt(scan: Any, bodies: Any, changes: Any, touched: Any, Y: Any, h: HeldStill, fext: Any) -> Any:
    """dE, for each joint's dofs."""

    def pulls(grip: Grip, t: Touched, Y: Touched, f: Sequence[Scalar]) -> tuple[ForceChange, ForceChange | None]:
        pull = pulled(t.rows, f)
        first = ForceChange(-pull, NO_FORCE)
        if t.between is None or t.others is None:
            return first, None
        reaction = t.between.force_inverse(apart(Y).cross_force(pull))
        return first, ForceChange(-pulled(t.others, f), reaction)

    own = scan.each(products.changed, bodies, changes, given(scan, fext), scan.constant(None))
    held = scan.gather(pulls, touched, Y, h.forces)
    seeds = scan.each(lambda node, own, held: own + held, own, held)
    return scan.inward(products.project, seeds, bodies, changes, scan.no_rates())


def released(scan: Any, h: HeldStill, touched: Any, Y: Any, rest: Any, drift: Any) -> tuple:
    """The response to torques `rest` and the change of forces, in the user's axes."""
    left = scan.inward(aba.reduce, scan.constant(NO_FORCE), h.p.joints, rest)
    left, change, _ = scan.hold(pivots(scan, h.p), left, touched, drift)

    def turned(grip: Grip, t: Touched, Y: Touched, f: Sequence[Scalar], df: Sequence[Scalar]) -> tuple:
        return numbers(Vec3(*df) + grip.world * t.row(Y.touch.v1.ang).cross(Vec3(*f)))

    forces = scan.grips(turned, touched, Y, h.forces, change)
    return aba.rates(scan, scan.outward(aba.accelerate, h.p.joints, left)), scan.rows(forces)
