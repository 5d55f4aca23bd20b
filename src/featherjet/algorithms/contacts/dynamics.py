"""Dynamics of robots whose bodies are held by contacts, M u' - h = W lambda; [KINDR] 'Equations of Motion'.

A contact holds a frame of one body at a frame of another body, or of the world. With the relative twist in the first
frame, xi = X1^-1 (v1 - v2), a surface contact requires xid + kd xi + kp e = 0 (six rows). A point contact requires the
same of the point's motion relative to the other body, whose acceleration is xid.lin + xi.ang x xi.lin (three rows).
Baumgarte's kp and kd correct drift; e is the position error, and sin(angle) axis the orientation error. Both bodies
feel the force at the same point, so momentum is conserved whatever the drift. Together

    M a - J^T lambda = tau - h,    J a + mu lambda = -gamma,    gamma = Jd v + kd J v + kp e                       (1)

If contacts are redundant, a is still determined, and the forces are the smallest (`redundant`); a damping mu makes (1)
regular instead. With M = L^T D L along the tree and Y = L^-T J^T, as sparse
as the tree, J M^-1 J^T = Y^T D^-1 Y. Internally forces are in contact axes, those of the first frame; the user may ask
for them in world axes instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from ...math.spatial import Force, Motion, Transform
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.model import WORLD
from ...model.tree import Node, Tree
from ..dynamics import ltl
from ..dynamics.coupled import reduce_matrix, reduce_vector
from ..dynamics.crba import mass_matrix
from ..dynamics.rnea import inverse_dynamics
from ..motion import REST, Moving, carried, world_placement
from ..scan import Array, Scan
from . import redundant


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


# Where contacts are, and how their bodies move


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


Entry = Callable[[Contact, Touch, Node, int], Motion]


def matrix(scan: Scan, contacts: ContactSet, s: Scene, entry: Entry) -> Array:
    """A matrix (rows, nv): for the k-th dof of a joint on one side of a contact, +- `entry` in the contact's rows."""
    rows = [[0.0] * scan.nv for _ in range(contacts.rows[-1].stop)]
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        for node, sign in sides(scan.tree, c):
            for k, dof in enumerate(node.dofs):
                column = rows_of(c, sign * entry(c, t, node, k))
                for i, x in zip(range(at.start, at.stop), column, strict=True):
                    rows[i][dof] = x
    return by_independent(scan.tree, scan.matrix_of(rows))


def jacobian(scan: Scan, contacts: ContactSet, s: Scene) -> Array:
    """J (rows, nv): relative twists, in contact axes."""
    return matrix(scan, contacts, s, lambda c, t, node, k: t.F1.motion_inverse(s.bodies[node.index].S[k]))


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


# The linear system (1)


class System(NamedTuple):
    """Factors of M and of G = J M^-1 J^T + mu, Y = L^-T J^T (nv, rows), each contact's dofs and rows, and G itself."""

    M: ltl.Factor
    Y: Array
    G: ltl.Factor
    parts: list[tuple[list[int], slice]]
    margins: Array
    contact_margins: Array
    whole: Array


def system(scan: Scan, contacts: ContactSet, q: Array, J: Array) -> System:
    """The factorised matrix of (1)."""
    tree = scan.tree
    M, parents = mass_matrix(scan, q), tree.dof_parents
    if tree.coupling is not None:
        M, parents = reduce_matrix(tree.coupling.G, M), ltl.dense_parents(tree.coupling.G.shape[1])
    factor = ltl.factorise(M, parents)
    parts = [(support(tree, c), at) for c, at in zip(contacts.each, contacts.rows, strict=True)]
    JT = np.swapaxes(J, 0, 1)
    Y = np.concatenate([ltl.solve_inward(factor, JT[:, at], dofs) for dofs, at in parts], axis=1)
    G = inverse_inertia(factor, Y, parts, contacts.mu)
    inner = ltl.factorise(G, ltl.dense_parents(len(G)))
    return System(factor, Y, inner, parts, factor.D / diagonal(M), inner.D / diagonal(G), G)


def inverse_inertia(M: ltl.Factor, Y: Array, parts: list[tuple[list[int], slice]], mu: Scalar | None) -> Array:
    """J M^-1 J^T + mu = Y^T D^-1 Y + mu (rows, rows); two contacts interact through the dofs they share."""
    G = np.zeros((Y.shape[1], *Y.shape[1:]), Y.dtype)
    for n, (dofs, at) in enumerate(parts):
        for others, beside in parts[: n + 1]:
            common = [k for k in dofs if k in others]
            for k in common:
                G[at, beside] = G[at, beside] + Y[k, at, None] * (Y[k, beside] * (1.0 / M.D[k]))[None]
        for others_at in (at for _, at in parts[:n]):
            G[others_at, at] = np.swapaxes(G[at, others_at], 0, 1)
    for i in range(len(G)) if mu is not None else ():
        G[i, i] = G[i, i] + mu
    return G


def diagonal(A: Array) -> Array:
    """The diagonal of a matrix (n, n, ...)."""
    return np.stack([A[i, i] for i in range(len(A))])


def hold(s: System, f: Array, g: Array) -> tuple[Array, Array, Array]:
    """x and lambda with M x - J^T lambda = f and J x + mu lambda = g; and the margins of G, zero if there are none.

    f and g may have columns. Of redundant contacts, lambda is the smallest.
    """
    y, rest = freed(s, f, g)
    forces, margins = redundant.settled(s.whole, s.G, rest, s.contact_margins)
    return held(s, y, forces), forces, margins


def freed(s: System, f: Array, g: Array) -> tuple[Array, Array]:
    """L^-T f, and what forces must make of J x, g less that of the robot without contacts."""
    y = ltl.solve_inward(s.M, f)
    wide = y.ndim > s.M.D.ndim
    rest = g.copy()
    for dofs, at in s.parts:
        for k in dofs:
            Yk = s.Y[k, at, None] if wide else s.Y[k, at]
            rest[at] = rest[at] - Yk * (y[k] * (1.0 / s.M.D[k]))
    return y, rest


def held(s: System, y: Array, forces: Array) -> Array:
    """x of L^-T f and the forces; y is modified."""
    wide = y.ndim > s.M.D.ndim
    for dofs, at in s.parts:
        for k in dofs:
            Yk = s.Y[k, at, None] if wide else s.Y[k, at]
            y[k] = y[k] + (Yk * forces[at]).sum(0)
    return ltl.solve_outward(s.M, y)


# Algorithms


class Constrained(NamedTuple):
    """Accelerations, contact forces, and how far G and M are from singular (see `aba.margins`)."""

    a: Array
    forces: Array
    contact_margins: Array
    margins: Array


class Impulsive(NamedTuple):
    """The jump of velocities, impulses, and how far G and M are from singular."""

    jump: Array
    impulses: Array
    contact_margins: Array
    margins: Array


def constrained_dynamics(
    scan: Scan,
    q: Array,
    v: Array,
    tau: Array,
    fext: Sequence | None = None,
    *,
    contacts: ContactSet,
    settings: Sequence[Scalar] | None = None,
) -> Constrained:
    """a (nv,) and lambda (rows,) of (1), in the user's axes.

    If joints mimic, q and v are the tree's, tau and a those of the independent joints.
    """
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q, v)
    K = system(scan, contacts, q, jacobian(scan, contacts, s))
    h = to_independent(scan.tree, inverse_dynamics(scan, q, v, None, fext))
    a, forces, margins = hold(K, tau - h, -residuals(scan, contacts, s))
    return Constrained(a, to_user_axes(contacts, s, forces), margins, K.margins)


def impulse_dynamics(
    scan: Scan,
    q: Array,
    v: Array,
    restitution: Sequence[Scalar],
    *,
    contacts: ContactSet,
    settings: Sequence[Scalar] | None = None,
) -> Impulsive:
    """The jump v+ - v- (nv,) and impulses (rows,), in the user's axes, for restitution e (1,); [KINDR] 'and Impulses'.

    M (v+ - v-) = J^T Lambda,    J v+ + mu Lambda = -e J v-
    """
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q, v)
    K = system(scan, contacts, q, jacobian(scan, contacts, s))
    xi = scan.vector([rows_of(c, t.xi) for c, t in zip(contacts.each, s.touches, strict=True)])
    jump, impulses, margins = hold(K, np.zeros_like(K.Y[:, 0]), -xi * (1.0 + restitution[0]))
    return Impulsive(jump, to_user_axes(contacts, s, impulses), margins, K.margins)


def contact_inverse_dynamics(
    scan: Scan,
    q: Array,
    v: Array,
    a: Array,
    forces: Array,
    fext: Sequence | None = None,
    *,
    contacts: ContactSet,
    settings: Sequence[Scalar] | None = None,
) -> Array:
    """tau (nv,) = M a + h - J^T lambda for forces (rows,) in the user's axes."""
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q)
    on_bodies = external_forces(scan, contacts, s, from_user_axes(contacts, s, forces), fext)
    return to_independent(scan.tree, inverse_dynamics(scan, q, v, a, on_bodies))


def contact_jacobian(scan: Scan, q: Array, *, contacts: ContactSet, settings: Sequence[Scalar] | None = None) -> Array:
    """J (rows, nv) in the user's axes: the power of forces f is f . J v."""
    contacts = contacts.with_settings(settings)
    s = scene(scan, contacts, q)
    return to_user_axes(contacts, s, jacobian(scan, contacts, s))


# Forces: their axes, and their effect on bodies


def to_user_axes(contacts: ContactSet, s: Scene, forces: Array) -> Array:
    """Forces (rows, ...), or the rows of J, from contact axes to the axes the user asked for."""
    return _rotated(contacts, s, forces, lambda R, x: R @ x)


def from_user_axes(contacts: ContactSet, s: Scene, forces: Array) -> Array:
    """The inverse of `to_user_axes`."""
    return _rotated(contacts, s, forces, lambda R, x: R.transposed_times(x))


def _rotated(contacts: ContactSet, s: Scene, forces: Array, rotate: Callable[[Mat3, Vec3], Vec3]) -> Array:
    out = forces.copy()
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        for i in range(at.start, at.stop, 3) if c.world_axes else ():
            x = rotate(t.F1.R, Vec3(*forces[i : i + 3]))
            out[i], out[i + 1], out[i + 2] = x.x, x.y, x.z
    return out


def external_forces(scan: Scan, contacts: ContactSet, s: Scene, forces: Array, fext: Sequence | None) -> list:
    """Forces in contact axes as external forces in the joints' own frames, added to those in `fext`."""
    total: list = list(fext) if fext is not None else list(scan.constant(None))
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        f = wrench(c, forces[at])
        _add(total, scan.tree.nodes[c.body], c.X.force(f), 1.0)
        if c.other != WORLD:
            _add(total, scan.tree.nodes[c.other], s.bodies[c.other].X.force_inverse(t.F1.force(f)), -1.0)
    return total


def _add(total: list, node: Node, f: Force, sign: float) -> None:
    lin, ang = sign * (node.align @ f.lin), sign * (node.align @ f.ang)
    own = (lin.x, lin.y, lin.z, ang.x, ang.y, ang.z)
    there = total[node.index]
    total[node.index] = own if there is None else tuple(x + y for x, y in zip(there, own, strict=True))


# Mimicking joints: v_tree = G v


def to_independent(tree: Tree, f: Array) -> Array:
    """Forces (nv,) on the tree's dofs, reduced to the independent ones."""
    return f if tree.coupling is None else reduce_vector(tree.coupling.G, f)


def by_independent(tree: Tree, A: Array) -> Array:
    """A matrix (rows, nv) by the tree's dofs, reduced to the independent ones."""
    return A if tree.coupling is None else np.moveaxis(np.tensordot(A, tree.coupling.G, (1, 0)), -1, 1)
