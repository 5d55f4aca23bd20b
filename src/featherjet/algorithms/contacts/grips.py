"""Dynamics with contacts as walks: articulated bodies, and the rows of contacts that go up the tree from them.

A grip is three rows of a contact: the force at a point, or the force or the moment at a surface. Eliminating dofs from
the leaves inward factorises M = L^T D L (see `aba`). A row of J, as a force on the contact's bodies, goes up the tree
like any other force and leaves y = L^-T J^T at the dofs it passes. So with Y, those of all rows, and left = D^-1 L^-T
(tau - h), which the articulated-body algorithm has on its way,

    G = J M^-1 J^T + mu = Y^T D^-1 Y + mu,   J a_free = Y^T left,   G lambda = -(gamma + J a_free)

and D^-1 Y lambda, added to left, makes the way back out give the accelerations a of `dynamics.constrained_dynamics`.

Bodies are in the frames of their roots (see `motion`). Turning the frames of a contact on both bodies by the same
rotation turns its forces and residuals by it. So everything is computed in frames whose axes are those of the first
body's root, and only results are turned to the axes of the user's forces. Which bodies are held, and where, is data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...math.spatial import Force, Motion, Transform
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.tree import Node
from ..derivatives.direct import accelerated
from ..dynamics import aba
from ..dynamics.rnea import force, project
from ..motion import NO_FORCE, REST, DofMotion, Moving, dof_motions, moving
from .derivatives import residual_by_q, residual_by_v, xi_by_q
from .scene import Touch, residual

POINT, PUSH, TWIST = range(3)  # the force at a point, the force at a surface, the moment at a surface


@dataclass(frozen=True, eq=False)
class Grip:
    """Three rows of a contact; see `scene.Contact`. `world` is 1 if forces are in world axes, else 0."""

    case: int
    X: Transform
    Y: Transform
    kp: Scalar
    kd: Scalar
    mu: Scalar
    world: Scalar

    @property
    def point(self) -> bool:
        return self.case == POINT

    def part(self, m: Motion) -> Vec3:
        """Its rows of a motion in its axes."""
        return m.ang if self.case == TWIST else m.lin

    def wrench(self, f: Vec3) -> Force:
        """Its rows as a force in its axes."""
        return Force(f, NO_FORCE.lin) if self.case == TWIST else Force(NO_FORCE.ang, f)


@dataclass(frozen=True, eq=False)
class Side:
    """How a dof moves a grip: sign +1 if it moves only the first body, -1 only the second; 1 where it moves a body."""

    sign: Scalar
    first: Scalar
    second: Scalar
    beyond: bool  # it moves only the second body, which may belong to another tree


@dataclass(slots=True, eq=False)
class Touched:
    """A grip at one instant, in the frame of its first body's root.

    between: the frame of the second body's root in that of the first's; None if the world holds all contacts.
    rows, others: each row as a force on the first body, and on the second in its own root's frame.
    """

    touch: Touch
    axes: Mat3  # of the user's forces
    between: Transform | None
    rows: tuple[Force, Force, Force]
    others: tuple[Force, Force, Force] | None

    def row(self, x: Vec3) -> Vec3:
        """A vector in the axes of the user's forces."""
        return self.axes.transposed_times(x)


def world_of(node: Node, q: Sequence[Scalar]) -> Transform | None:
    """A root's placement in the world."""
    return node.kind.move(node.X, q, node.pitch) if node.is_root else None


def ground(gravity: Vec3) -> tuple[Moving, Transform]:
    """The world as a body, and as the root of its own tree."""
    a = Motion(REST.ang, -gravity)
    return Moving(Transform.identity(), [], REST, a, REST, a), Transform.identity()


def touching(gravity: Vec3) -> Callable[..., Touched]:
    """The step (grip, first body, its root's placement, second body, its root's placement) -> Touched.

    The second body is None if the world holds all contacts.
    """

    def step(grip: Grip, first: Moving, W1: Transform, second: Moving | None, W2: Transform | None) -> Touched:
        body, W = (second, W2) if second and W2 else ground(gravity)
        T = inside(W1, W)
        F1, F2 = first.X.compose(grip.X), T.compose(body.X).compose(grip.Y)
        axes = blended(grip.world, W1.R.transposed(), F1.R)
        F1, F2 = Transform(Mat3.identity(), F1.p), Transform(F2.R.compose(F1.R.transposed()), F2.p)
        touch = Touch(F1, F2, first.v, T.motion(body.v), first.a, T.motion(body.a))
        x, y, z = (F1.force(grip.wrench(e)) for e in columns(axes))
        if second is None:
            return Touched(touch, axes, None, (x, y, z), None)
        others = tuple(T.force_inverse(-1.0 * f) for f in (x, y, z))
        return Touched(touch, axes, T, (x, y, z), others)  # type: ignore[arg-type]

    return step


def inside(W: Transform, B: Transform) -> Transform:
    """W^-1 B."""
    back = W.R.transposed_times
    return Transform(Mat3(back(B.R.x), back(B.R.y), back(B.R.z)), back(B.p - W.p))


def columns(A: Mat3) -> tuple[Vec3, Vec3, Vec3]:
    return A.x, A.y, A.z


def blended(share: Scalar, A: Mat3, B: Mat3) -> Mat3:
    """A if share is one, B if it is zero."""
    rest = 1.0 - share
    return Mat3(*(share * a + rest * b for a, b in zip(columns(A), columns(B), strict=True)))


def numbers(v: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    return v.x, v.y, v.z


def pulled(rows: tuple[Force, Force, Force], f: Sequence[Scalar]) -> Force:
    """The force on a body that a grip's forces f make."""
    return f[0] * rows[0] + f[1] * rows[1] + f[2] * rows[2]


def pull(grip: Grip, t: Touched, f: Sequence[Scalar]) -> tuple[Force, Force | None]:
    """The forces f of a grip as forces on its two bodies."""
    return pulled(t.rows, f), None if t.others is None else pulled(t.others, f)


# How a grip's rows change along a degree of freedom


def slopes(grip: Grip, side: Side, j: DofMotion, t: Touched, f: Sequence[Scalar]) -> tuple:
    """An entry of J and of the residual's derivatives by q and by v, and the terms of `entry`."""
    j = seen(t, side, j)
    return entry(grip, side, t, f, j, residual_by_q(grip, t.touch, j), residual_by_v(grip, t.touch, j))


def impulse_slopes(speed: Scalar, grip: Grip, side: Side, j: DofMotion, t: Touched, f: Sequence[Scalar]) -> tuple:
    """The same for impulses: derivatives of the twist, at the velocity v+ + e v-."""
    j, X = seen(t, side, j), t.touch.F1.motion_inverse
    return entry(grip, side, t, f, j, X(xi_by_q(t.touch, j)), speed * X(j.S))


def jacobian_entry(grip: Grip, side: Side, S: Motion, t: Touched) -> tuple:
    """Three rows of J in one column."""
    if side.beyond and t.between is not None:
        S = t.between.motion(S)
    return numbers(side.sign * t.row(grip.part(t.touch.F1.motion_inverse(S))))


def seen(t: Touched, side: Side, j: DofMotion) -> DofMotion:
    """A dof's motion in the frame of the first body's root."""
    if not side.beyond or t.between is None:
        return j
    return DofMotion(*(t.between.motion(m) for m in (j.S, j.Psid, j.Psidd, j.SPd)))


def entry(
    grip: Grip, side: Side, t: Touched, f: Sequence[Scalar], j: DofMotion, by_q: Motion, by_v: Motion
) -> tuple[Scalar, ...]:
    """Three numbers each: J, the residual by q and by v, and how forces in world axes turn with the first body.

    If bodies hold bodies, also what the second body's motion and the reaction (`derivatives.reaction_by_q`) multiply
    to: S and s_j S_j x* F, both in the frame of the second body's root, linear and angular.
    """
    F1 = t.touch.F1
    found = [side.sign * t.row(grip.part(m)) for m in (F1.motion_inverse(j.S), by_q, by_v)]
    found.append((grip.world * side.first) * t.row(j.S.ang).cross(Vec3(*f)))
    if t.between is not None:
        S = side.second * t.between.motion_inverse(j.S)
        reaction = side.sign * t.between.force_inverse(j.S.cross_force(pulled(t.rows, f)))
        found += [S.lin, S.ang, reaction.lin, reaction.ang]
    return tuple(x for v in found for x in numbers(v))


# Algorithms: walks of a `contact_scan.ContactScan`. `dynamics` and `derivatives` compute the same with matrices.


class Prepared(NamedTuple):
    """All bodies with zero joint accelerations, their roots in the world, joints eliminated, and the margins of M."""

    bodies: Any
    places: Any
    joints: Any
    margins: Any


def prepared(scan: Any, q: Any, v: Any) -> Prepared:
    fq = scan.coordinates(q)
    bodies = scan.outward(
        moving(scan.tree.gravity), fq, scan.no_rates() if v is None else scan.rates(v), scan.no_rates()
    )
    inertias, S = scan.each(aba.inertia, bodies), scan.each(aba.subspace, bodies)
    joints = aba.articulated(scan, inertias, S)
    places = scan.each(world_of, scan.coordinates(q))
    return Prepared(bodies, places, joints, aba.margins(scan, joints, inertias, S))


class HeldStill(NamedTuple):
    """Bodies at the solution, the grips there, and their forces."""

    p: Prepared
    response: Any
    forces: Any
    factor: Any


def constrained(scan: Any, q: Any, v: Any, tau: Any, fext: Any, redundant: bool = False) -> HeldStill:
    """a and lambda of `dynamics` (1); redundant: also of redundant contacts, but without a factor."""
    p = prepared(scan, q, v)
    bias = scan.each(force, p.bodies, given(scan, fext))
    left = scan.inward(aba.reduce, bias, p.joints, scan.rates(tau))
    grips = scan.touches(touching(scan.tree.gravity), p.bodies, p.places)
    gamma = scan.grips(lambda grip, t: numbers(t.row(grip.part(residual(grip, t.touch)))), grips)
    left, forces, factor = scan.hold(pivots(scan, p), left, grips, gamma, redundant)
    return HeldStill(p, scan.outward(aba.accelerate, p.joints, left), forces, factor)


def constrained_dynamics(scan: Any, q: Any, v: Any, tau: Any, fext: Any = None) -> tuple:
    """a, lambda and the margins of M."""
    h = constrained(scan, q, v, tau, fext, redundant=True)
    return aba.rates(scan, h.response), scan.rows(h.forces), h.p.margins


def constrained_slopes(scan: Any, q: Any, v: Any, tau: Any, fext: Any = None) -> tuple:
    """What derivatives need besides those of forward dynamics: all external forces, the entries of rows, G's factor."""
    h = constrained(scan, q, v, tau, fext)
    bodies = scan.each(accelerated, h.p.bodies, h.response)
    grips = scan.touches(touching(scan.tree.gravity), bodies, h.p.places)
    entries = scan.sides(slopes, scan.each(dof_motions, bodies), grips, h.forces)
    total = scan.each(
        own_axes, bodies, scan.gather(pull, grips, h.forces), scan.constant(None) if fext is None else fext
    )
    return scan.joint_rows(total), scan.entries(entries), h.factor, h.p.margins


def jump(scan: Any, q: Any, v: Any, speed: Scalar, redundant: bool = False) -> HeldStill:
    """v+ - v- and impulses, with speed = 1 + e: a robot at rest responds to impulses as it does to forces."""
    p = prepared(scan, q, v)
    grips = scan.touches(touching(scan.tree.gravity), p.bodies, p.places)
    twist = scan.grips(lambda grip, t: numbers(speed * t.row(grip.part(t.touch.xi))), grips)
    left, impulses, factor = scan.hold(pivots(scan, p), scan.no_rates(), grips, twist, redundant)
    return HeldStill(p, scan.outward(aba.accelerate, p.joints, left), impulses, factor)


def impulse_dynamics(scan: Any, q: Any, v: Any, restitution: Any) -> tuple:
    """The jump of velocities, impulses, and the margins of M."""
    h = jump(scan, q, v, 1.0 + scan.number(restitution), redundant=True)
    return aba.rates(scan, h.response), scan.rows(h.forces), h.p.margins


def impulse_slopes_of(scan: Any, q: Any, v: Any, restitution: Any) -> tuple:
    """Like `constrained_slopes`."""
    speed = 1.0 + scan.number(restitution)
    h = jump(scan, q, v, speed)
    bodies = after_jump(scan, q, v, speed, h)
    grips = scan.touches(touching(scan.tree.gravity), bodies, h.p.places)
    entries = scan.sides(partial(impulse_slopes, speed), scan.each(dof_motions, bodies), grips, h.forces)
    total = scan.each(own_axes, bodies, scan.gather(pull, grips, h.forces), given(scan, None))
    return scan.joint_rows(total), scan.entries(entries), h.factor, h.p.margins


def after_jump(scan: Any, q: Any, v: Any, speed: Scalar, h: HeldStill) -> Any:
    """All bodies at the velocities v+ + e v-."""
    rates = scan.each(
        lambda node, v, r: [speed * x + y for x, y in zip(v, r.rates, strict=True)], scan.rates(v), h.response
    )
    return scan.outward(moving(scan.tree.gravity), scan.coordinates(q), rates, scan.no_rates())


def contact_jacobian(scan: Any, q: Any) -> Any:
    """J (rows, nv)."""
    p = standing(scan, q, None, None)
    grips = scan.touches(touching(scan.tree.gravity), p, scan.each(world_of, scan.coordinates(q)))
    return scan.dense(scan.sides(jacobian_entry, scan.each(lambda node, body: list(body.S), p), grips))


def contact_inverse_dynamics(scan: Any, q: Any, v: Any, a: Any, forces: Any, fext: Any = None) -> Any:
    """tau (nv,) = M a + h - J^T lambda."""
    bodies = standing(scan, q, v, a)
    grips = scan.touches(touching(scan.tree.gravity), bodies, scan.each(world_of, scan.coordinates(q)))
    pulls = scan.gather(pull, grips, scan.per_grip(forces, 3))
    net = scan.each(force, bodies, given(scan, fext))
    net = scan.each(lambda node, f, held: f - held, net, pulls)
    return scan.vector(scan.inward(project, net, bodies, scan.rates(a)))


def standing(scan: Any, q: Any, v: Any, a: Any) -> Any:
    """All bodies at q, v and a; None counts as zero."""
    rates = [scan.no_rates() if x is None else scan.rates(x) for x in (v, a)]
    return scan.outward(moving(scan.tree.gravity), scan.coordinates(q), *rates)


def given(scan: Any, fext: Any) -> Any:
    """External forces of all bodies, or none."""
    return scan.constant(None) if fext is None else fext


def pivots(scan: Any, p: Prepared) -> Any:
    return scan.each(lambda node, joint: joint.pivots, p.joints)


def own_axes(node: Node, body: Moving, f: Force, fext: Sequence[Scalar] | None) -> tuple[Scalar, ...]:
    """A force on a body as an external force, linear then angular, in the joint's own frame; plus those given."""
    own = body.X.force_inverse(f)
    found = (*numbers(node.align @ own.lin), *numbers(node.align @ own.ang))
    return found if fext is None else tuple(x + y for x, y in zip(found, fext, strict=True))
