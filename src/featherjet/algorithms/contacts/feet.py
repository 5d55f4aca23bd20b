"""A time step of a robot whose feet may touch the ground and whose joints may reach stops; as walks, like `grips`.

Velocities of free and planar joints are in axes that turn. A step keeps them in the axes of its middle, which do not:
u is the velocity v at its start in these axes, and v+ is u+ in those of the end. Over a step of length h they change by
M (u+ - u) = h (tau - bias) + J^T P, bias = ID(q, u, -w x u), with percussions P that obey the laws of `percussion` for
the velocities u+ at its end. A foot is a sphere; the ground below it is the plane n . x = d, which may be another
one for every foot, sample and step. In the notation of `grips`, left = h D^-1 L^-T (tau - bias) + D^-1 Y P is all that
the way back out needs, and a foot's velocity is J u+ = J u + Y^T left. So Gauss-Seidel sweeps visit the feet and change
P and `left`, and never form J M^-1 J^T.

Feet are numbers for each sample: FOOT. Percussions are in world axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...math.scalars import Scalar, sqrt, where_less
from ...math.spatial import ArticulatedInertia, Force, Subspace, Transform
from ...math.vec3 import Sym3, Vec3
from ...model.tree import Node
from ..dynamics import aba
from ..dynamics.rnea import force
from ..motion import Standing, moving, place, standing
from .grips import Grip, columns, numbers, pivots, prepared, world_of
from .percussion import FootBlock, Stop, across, block, rubbed, stopped, struck

FOOT = ("nx", "ny", "nz", "d", "radius", "friction")  # of each foot: the plane n . x = d below it, its size, friction
PUSH_OUT = 0.2  # share of a penetration that one step removes
HARDLY = 1e-6  # m: at most
GRAVITY = 9.81  # limits this speed to that of a throw as high as the penetration is deep


@dataclass(slots=True, eq=False)
class FootRows:
    """A foot's lowest point: three rows (tangents, normal) as forces in its root's frame, and its velocity J u."""

    rows: tuple[Force, Force, Force]
    gamma: Vec3


def foot_rows(grip: Grip, body: Standing, W: Transform, _: None, __: None, foot: Sequence[Scalar]) -> FootRows:
    """The rows of a foot on a body whose root is at W; the grip's X is at the foot's centre."""
    axes = [W.R.transposed_times(a) for a in columns(across(Vec3(*foot[:3])))]
    low = (body.X.R @ grip.X.p) + body.X.p - foot[4] * axes[2]
    x, y, z = (Force(low.cross(f), f) for f in axes)
    return FootRows((x, y, z), Vec3(body.u.dot(x), body.u.dot(y), body.u.dot(z)))


def gap(grip: Grip, body: Standing, W: Transform, _: None, __: None, foot: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
    """A foot's height above the ground, and its rate."""
    n = Vec3(*foot[:3])
    centre = (body.X.R @ grip.X.p) + body.X.p
    low = centre - foot[4] * W.R.transposed_times(n)
    rate = n.dot(W.R @ (body.u.lin + body.u.ang.cross(low)))
    return n.dot((W.R @ centre) + W.p) - foot[3] - foot[4], rate


def approach(scan: Any, q: Any, v: Any, feet: Any) -> tuple:
    """Each foot's height above the ground, and its rate."""
    bodies = scan.outward(standing, scan.coordinates(q), scan.rates(v))
    places = scan.each(world_of, scan.coordinates(q))
    found = scan.touches(gap, bodies, places, scan.per_grip(feet, len(FOOT)))
    return scan.column(found, 0), scan.column(found, 1)


def begin(scan: Any, q: Any, v: Any, feet: Any, away: Any, h: Any) -> tuple:
    """Each foot's height above the ground, to which `away` is added; and `halfway` of a first guess, the velocity v."""
    bodies = scan.outward(standing, scan.coordinates(q), scan.rates(v))
    places = scan.each(world_of, scan.coordinates(q))

    def height(grip: Grip, body: Standing, W: Transform, _: None, __: None, foot: Any, more: Any) -> tuple[Scalar]:
        return (gap(grip, body, W, None, None, foot)[0] + more[0],)

    heights = scan.touches(height, bodies, places, scan.per_grip(feet, len(FOOT)), scan.per_grip(away, 1))
    dt = scan.number(h)
    u = later(scan, scan.rates(v), scan.rates(v), dt)
    half = scan.each(lambda node, x: [0.5 * y for y in x], way(scan, u, dt))
    return scan.column(heights, 0), scan.vector(u), scan.vector(half)


def halfway(scan: Any, v: Any, guess: Any, move: Any) -> tuple:
    """The velocity u, v in the axes of the middle of a step that makes a move; the mean of u and `guess`; half the way.

    guess: the velocity at the end, in the axes of the middle.
    """
    half = scan.each(lambda node, x: [0.5 * y for y in x], scan.rates(move))
    u = scan.each(lambda node, v, turn: node.kind.manifold.in_turned_axes(v, turn), scan.rates(v), half)
    mid = scan.each(lambda node, *x: [0.5 * (a + b) for a, b in zip(*x, strict=True)], u, scan.rates(guess))
    return scan.vector(u), scan.vector(mid), scan.vector(half)


def later(scan: Any, v: Any, speed: Any, h: Scalar) -> Any:
    """Velocities in the axes of half a step later, which turn with `speed`."""

    def step(node: Node, v: Sequence[Scalar], speed: Sequence[Scalar]) -> list[Scalar]:
        return node.kind.manifold.in_turned_axes(v, [0.5 * h * x for x in speed])

    return scan.each(step, v, speed)


def way(scan: Any, speed: Any, h: Scalar) -> Any:
    """The way that a step makes with `speed`, which is in the axes of the middle."""
    return scan.each(lambda node, speed: node.kind.manifold.straight([h * x for x in speed]), speed)


def centres(scan: Any, q: Any) -> Any:
    """Each foot's centre in the world (feet, 3)."""
    bodies = scan.outward(place, scan.coordinates(q))
    places = scan.each(world_of, scan.coordinates(q))

    def step(grip: Grip, X: Transform, W: Transform, *_: None) -> tuple:
        return numbers((W.R @ ((X.R @ grip.X.p) + X.p)) + W.p)

    return scan.rows(scan.touches(step, bodies, places))


def softened(
    node: Node, IA: ArticulatedInertia, S: Subspace, soft: Sequence[Scalar]
) -> tuple[ArticulatedInertia, aba.Articulated]:
    """Like `aba.articulate`, with inertia added to each dof: implicit damping and stiffness act like it."""
    return aba.eliminate(IA, S, [a + x for a, x in zip(node.armature, soft, strict=True)])


def without_rotors(node: Node, tau: Sequence[Scalar], a: Sequence[Scalar]) -> list[Scalar]:
    """Torques without those that accelerate the armature, which is no body's inertia."""
    return [x - m * y for x, m, y in zip(tau, node.armature, a, strict=True)]


def landing(h: Scalar, height: Scalar) -> Scalar:
    """What to add to a foot's normal velocity in the contact law.

    A foot lands without penetrating; each step removes a fifth of a penetration, less of a deep one, so that a foot is
    thrown no higher above the ground than it was below. One that is hardly below comes up at once: so what lies on the
    ground, to rounding, is away from the kink, and its step has one derivative.
    """
    near, depth = hardly(h), where_less(height, 0.0, -height, 0.0)
    slow, fast = (near + PUSH_OUT * (depth - near)) / h, sqrt(2 * GRAVITY * depth)
    return where_less(-near, height, height / h, -where_less(slow, fast, slow, fast))


def hardly(h: Scalar) -> Scalar:
    """The depth from which a foot that comes up within a step of h is thrown no higher than it was below: 2 g h^2."""
    most = 2 * GRAVITY * h * h
    return where_less(most, HARDLY, most, HARDLY)


class Law:
    """The laws that percussions obey in one step, at one foot and at one joint with stops.

    foot: FOOT; high: its height at the start; guess: of its percussion, in world axes.
    """

    def __init__(self, foot: Sequence[Scalar], high: Scalar, h: Scalar, guess: Vec3) -> None:
        self.foot, self.high, self.h, self.guess = foot, high, h, guess
        self.axes = across(Vec3(*foot[:3]))  # in the world
        self.landing = landing(h, high)

    @property
    def start(self) -> Vec3:
        """A guess of the percussion in the foot's axes."""
        return self.axes.transposed_times(self.guess)

    def velocity(self, gamma: Vec3) -> Vec3:
        """What the laws speak of: a foot's velocity, its normal part reduced by what the foot may come down."""
        return Vec3(gamma.x, gamma.y, gamma.z + self.landing)

    def block(self, G: Sym3) -> FootBlock:
        return block(G)

    def percussion(self, of: FootBlock, gamma: Vec3, P: Vec3) -> Vec3:
        return struck(of, gamma, self.foot[5], P)

    def sticks(self, P: Vec3) -> Vec3:
        """For each direction 1 if the foot does not move along it, else 0: pressed to the ground, and not sliding."""
        most = self.foot[5] * P.z
        pressed = where_less(0.0, P.z, 1.0, 0.0)
        inside = where_less(P.x * P.x + P.y * P.y, most * most * (1.0 - 1e-9), pressed, 0.0)
        return Vec3(inside, inside, pressed)

    def world(self, P: Vec3) -> Vec3:
        """A percussion in world axes."""
        return self.axes @ P

    def lands(self, before: Vec3, gamma: Vec3, P: Vec3) -> Scalar:
        """1 if the foot touches the ground in this step, else 0; velocities are as the laws speak of them."""
        end = self.high + 0.5 * self.h * (before.z + gamma.z - 2.0 * self.landing)
        return where_less(0.0, P.z, 1.0, where_less(0.0, end, 0.0, 1.0))

    def stops(self, G: Scalar, rate: Scalar, stop: Sequence[Scalar], P: Stop) -> Stop:
        return stopped_in_time(self.h, G, rate, stop, P)


def stopped_in_time(h: Scalar, G: Scalar, rate: Scalar, stop: Sequence[Scalar], P: Stop) -> Stop:
    """The law of one joint in a step of length h; stop: the way to its lower and upper limits, and its dry friction."""
    below, above, dry = stop
    return stopped(G, rate, below / h, above / h, h * dry, P)


class Compression(Law):
    """The laws of an impact without restitution; `high` is 0 where a foot touches the ground, and large elsewhere."""

    def __init__(self, foot: Sequence[Scalar], high: Scalar, h: Scalar, guess: Vec3) -> None:
        super().__init__(foot, high, h, guess)
        self.landing = high


class Restitution(Compression):
    """The laws of friction while normal percussions are given: those of `Compression`, enlarged (Poisson's law)."""

    def percussion(self, of: FootBlock, gamma: Vec3, P: Vec3) -> Vec3:
        return rubbed(of, gamma, self.foot[5], P)

    def sticks(self, P: Vec3) -> Vec3:
        return 0.0 * P


def made(law: type[Law], h: Scalar) -> Callable[..., Law]:
    """What makes a foot's laws of its numbers, its height and a guess of its percussion."""
    return lambda foot, height, guess: law(foot, height[0], h, Vec3(*guess))


def collide(law: type[Law], scan: Any, q: Any, v: Any, feet: Any, height: Any, start: Any, h: Any) -> tuple:
    """Velocities after an impact, and percussions; h is not used."""
    foot = scan.per_grip(feet, len(FOOT))
    p = prepared(scan, q, None)
    before = scan.outward(standing, scan.coordinates(q), scan.rates(v))
    grips = scan.touches(foot_rows, before, p.places, foot)
    of_feet = foot, scan.per_grip(height, 1), scan.per_grip(start, 3)
    left, P, _, report = scan.strike(made(law, scan.number(h)), pivots(scan, p), scan.no_rates(), grips, of_feet)
    jump = scan.outward(aba.accelerate, p.joints, left)
    after = scan.each(lambda node, x, r: [a + b for a, b in zip(x, r.rates, strict=True)], scan.rates(v), jump)
    return scan.vector(after), scan.rows(P), scan.stack(report), p.margins


def strike(
    scan: Any, q: Any, v: Any, mid: Any, tau: Any, soft: Any, feet: Any, height: Any, start: Any, h: Any,
    stops: Any = None, held: Any = None,
) -> tuple:  # fmt: skip
    """Velocities u+ after a step, percussions, the displacement, v+, and a report.

    The report: the residual, 1 if in flight else 0, the sweeps, 1 unless a foot touches the ground else 0.
    q, mid: where forces and laws are taken, and the velocity there; v: u at the start. soft: see `softened`. height:
    each foot's, at the start. start, held: guesses of the percussions at feet and stops. stops: for each joint with
    stops, the way to its lower and upper limits, and its dry friction.
    """
    dt, foot = scan.number(h), scan.per_grip(feet, len(FOOT))
    fq, fv = scan.coordinates(q), scan.rates(v)
    still = scan.each(lambda node, u: node.kind.manifold.still(u), scan.rates(mid))
    bodies = scan.outward(moving(scan.tree.gravity), fq, scan.rates(mid), still)
    inertias, S = scan.each(aba.inertia, bodies), scan.each(aba.subspace, bodies)
    before = scan.outward(standing, scan.coordinates(q), fv)
    places = scan.each(world_of, scan.coordinates(q))
    whole = scan.each(lambda node, I: ArticulatedInertia.of(I), inertias)
    joints = scan.inward(softened, whole, S, scan.rates(soft))
    margins = aba.margins(scan, joints, inertias, S)
    bias = scan.each(force, bodies, scan.constant(None))
    left = scan.inward(aba.reduce, bias, joints, scan.each(without_rotors, scan.rates(tau), still))
    left = scan.each(lambda node, u: [dt * x for x in u], left)
    grips = scan.touches(foot_rows, before, places, foot)
    of_feet = foot, scan.per_grip(height, 1), scan.per_grip(start, 3)
    pivots = scan.each(lambda node, joint: joint.pivots, joints)
    of_stops = () if stops is None else (v, stops, held)
    left, P, stopping, report = scan.strike(made(Law, dt), pivots, left, grips, of_feet, of_stops)
    jump = scan.outward(aba.accelerate, joints, left)
    after = scan.each(lambda node, x, r: [a + b for a, b in zip(x, r.rates, strict=True)], fv, jump)
    share = 1.0 - 0.5 * report[1]
    speed = scan.each(lambda node, x, r: [a + share * b for a, b in zip(x, r.rates, strict=True)], fv, jump)
    move, end = way(scan, speed, dt), later(scan, after, speed, dt)
    last = (margins,) if stops is None else (stopping, margins)
    return scan.vector(after), scan.rows(P), scan.vector(move), scan.vector(end), scan.stack(report), *last
