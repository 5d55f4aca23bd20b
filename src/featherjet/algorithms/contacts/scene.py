"""Where contacts are at one instant, how their bodies move, and what contacts require of that; see `dynamics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from ...math.spatial import Force, Motion, Transform
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.model import WORLD
from ...model.tree import Node, Tree
from ..motion import REST, Moving, carried, world_placement
from ..scan import Array, Scan


class Held(Protocol):
    """What residuals need of a contact; see `Contact`."""

    @property
    def point(self) -> bool: ...
    @property
    def kp(self) -> Scalar | None: ...
    @property
    def kd(self) -> Scalar | None: ...


@dataclass(frozen=True, eq=False)
class Contact:
    """A frame X on the body of joint `body`, held at frame Y of `other` (or of the world); in canonical frames."""

    body: int
    X: Transform
    other: int
    Y: Transform
    point: bool  # only the frame's origin is held
    world_axes: bool  # the user's forces are in world axes instead of those of X
    kp: Scalar | None  # None: no position is held, and Y is not used
    kd: Scalar | None

    @property
    def rows(self) -> int:
        """How many numbers its force has."""
        return 3 if self.point else 6


@dataclass(frozen=True, eq=False)
class ContactSet:
    """Contacts that hold at the same time, and the damping mu of their forces, if any."""

    each: tuple[Contact, ...]
    mu: Scalar | None

    @property
    def rows(self) -> list[slice]:
        """The rows of each contact."""
        ends = np.cumsum([c.rows for c in self.each]).tolist()
        return [slice(end - c.rows, end) for end, c in zip(ends, self.each, strict=True)]

    @property
    def settings(self) -> list[Scalar]:
        """Damping, gains and places, where there are any: what may change without recompiling."""
        out = [self.mu]
        for c in self.each:
            R, p = c.Y.R, c.Y.p
            place = [x for column in (R.x, R.y, R.z, p) for x in (column.x, column.y, column.z)]
            out += [c.kp, c.kd, *(place if c.kp is not None else ())]
        return [x for x in out if x is not None]

    def with_settings(self, settings: Sequence[Scalar] | None) -> ContactSet:
        """The same contacts with these `settings`; unchanged if None."""
        if settings is None:
            return self
        rest = iter(settings)

        def new(old: Scalar | None) -> Scalar | None:
            return None if old is None else next(rest)

        def place() -> Transform:
            x, y, z, p = (Vec3(next(rest), next(rest), next(rest)) for _ in range(4))
            return Transform(Mat3(x, y, z), p)

        mu = new(self.mu)
        each = []
        for c in self.each:
            kp, kd = new(c.kp), new(c.kd)
            each.append(replace(c, kp=kp, kd=kd, Y=c.Y if kp is None else place()))
        return ContactSet(tuple(each), mu)


@dataclass(slots=True, eq=False)
class Touch:
    """A contact's two frames, and the velocities and accelerations of its bodies, in the common frame."""

    F1: Transform
    F2: Transform
    v1: Motion
    v2: Motion
    a1: Motion
    a2: Motion

    @property
    def xi(self) -> Motion:
        """The relative twist, at the origin and in the axes of the first frame."""
        return self.F1.motion_inverse(self.v1 - self.v2)

    @property
    def xid(self) -> Motion:
        """Its rate: d/dt X1^-1 (v1 - v2) = X1^-1 (a1 - a2 - v1 x (v1 - v2))."""
        return self.F1.motion_inverse(self.a1 - self.a2 + self.v1.cross(self.v2))

    @property
    def turn(self) -> Mat3:
        """R2^T R1: the first frame's axes in the second."""
        back = self.F2.R.transposed_times
        return Mat3(back(self.F1.R.x), back(self.F1.R.y), back(self.F1.R.z))

    @property
    def error(self) -> Motion:
        """Displacement and sin(angle) axis from the second frame to the first, in the first's axes."""
        R = self.turn
        sine = 0.5 * Vec3(R.y.z - R.z.y, R.z.x - R.x.z, R.x.y - R.y.x)
        return Motion(sine, self.F1.R.transposed_times(self.F1.p - self.F2.p))


class Scene(NamedTuple):
    """All bodies, and all contacts between them, at one instant."""

    bodies: Sequence[Moving]
    touches: list[Touch]


def scene(scan: Scan, contacts: ContactSet, q: Array, v: Array | None = None, a: Array | None = None) -> Scene:
    """Bodies without gravity, in world axes about the first root, so that no digits are lost far from the origin."""
    fq = scan.coordinates(q)
    first = scan.tree.nodes[0]
    origin = first.kind.move(first.X, fq[0], first.pitch).p

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        X = world_placement(node, parent.X if parent else None, q)
        return carried(node, parent, X if parent else Transform(X.R, X.p - origin), REST, v, a)

    fv, fa = (scan.no_rates() if x is None else scan.rates(x) for x in (v, a))
    bodies = scan.outward(step, fq, fv, fa)
    return Scene(bodies, [touch(c, bodies, origin) for c in contacts.each])


def touch(contact: Contact, bodies: Sequence[Moving], origin: Vec3) -> Touch:
    """A contact's frames and the motion of its bodies."""
    first = bodies[contact.body]
    F1 = first.X.compose(contact.X)
    if contact.other == WORLD:
        return Touch(F1, Transform(contact.Y.R, contact.Y.p - origin), first.v, REST, first.a, REST)
    second = bodies[contact.other]
    return Touch(F1, second.X.compose(contact.Y), first.v, second.v, first.a, second.a)


def sides(tree: Tree, contact: Contact) -> list[tuple[Node, float]]:
    """The joints that move only one of the two bodies: +1 for the first body's, -1 for the second's."""
    first, second = tree.path(contact.body), tree.path(contact.other)
    return [(n, 1.0) for n in first if n not in second] + [(n, -1.0) for n in second if n not in first]


def support(tree: Tree, contact: Contact) -> list[int]:
    """The dofs between the contact's bodies and the root, in order."""
    if tree.coupling is not None:
        return list(range(tree.coupling.G.shape[1]))
    return sorted({*tree.dof_path(contact.body), *tree.dof_path(contact.other)})


def rows_of(contact: Contact, m: Motion) -> list[Scalar]:
    """The contact's rows of a motion in contact axes: linear, then angular."""
    linear = [m.lin.x, m.lin.y, m.lin.z]
    return linear if contact.point else [*linear, m.ang.x, m.ang.y, m.ang.z]


def wrench(contact: Contact, x: Array) -> Force:
    """The force given by a contact's rows, at the origin and in the axes of its first frame."""
    return Force(Vec3(*x[3:6]) if not contact.point else REST.ang, Vec3(*x[:3]))


def residuals(scan: Scan, contacts: ContactSet, s: Scene) -> Array:
    """What contacts require to vanish (rows,): relative accelerations and Baumgarte's terms; gamma if a = 0."""
    return scan.vector([rows_of(c, residual(c, t)) for c, t in zip(contacts.each, s.touches, strict=True)])


def residual(contact: Held, t: Touch) -> Motion:
    """The residual of one contact, in contact axes."""
    m, xi = t.xid, t.xi
    if contact.point:
        m = Motion(m.ang, m.lin + xi.ang.cross(xi.lin))
    if contact.kd is not None:
        m = m + contact.kd * xi
    if contact.kp is not None:
        m = m + contact.kp * t.error
    return m
