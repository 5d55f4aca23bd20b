"""Dynamics of robots whose bodies are held by contacts, M u' - h = W lambda; [KINDR] 'Equations of Motion'.

A contact holds a frame on one body at a frame of another, or of the world. With the relative twist, seen in the first
frame, xi = X1^-1 (v1 - v2), a surface contact wants xid + kd xi + kp e = 0 (six rows), a point contact the same of the
point's motion relative to the other body, where the acceleration is xid.lin + xi.ang x xi.lin (three rows). Baumgarte's
kp and kd pull back what has drifted; e is the error of position, and sin(angle) axis that of orientation. Both bodies
feel the force at the same point, so that momentum is kept whatever the drift. All together

    M a - J^T lambda = tau - h,    J a + mu lambda = -gamma,    gamma = Jd v + kd J v + kp e                       (1)

The damping mu makes (1) regular where contacts are redundant. With M = L^T D L along the tree and Y = L^-T J^T, as
sparse as the tree, J M^-1 J^T = Y^T D^-1 Y. Forces come out in the first frame's axes, or turned to the world's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...math.spatial import Force, Motion, Transform
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.model import WORLD
from ...model.tree import Node, Tree
from ..dynamics import ltl
from ..dynamics.coupled import reduce_matrix, reduce_vector
from ..dynamics.crba import mass_matrix
from ..dynamics.rnea import inverse_dynamics
from ..motion import REST, Moving, carried
from ..scan import Array, Scan


@dataclass(frozen=True, eq=False)
class Contact:
    """A frame X on the body of joint `body`, held at frame Y of `other` (or of the world); in canonical frames."""

    body: int
    X: Transform
    other: int
    Y: Transform
    point: bool  # only the frame's origin is held
    world_axes: bool  # forces are told in the world's axes instead of those of X
    kp: Scalar | None  # None: no position is held, and Y does not count
    kd: Scalar | None

    @property
    def rows(self) -> int:
        return 3 if self.point else 6


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts that hold at the same time, and the damping mu of their forces, if there is one."""

    each: tuple[Contact, ...]
    mu: Scalar | None

    @property
    def rows(self) -> list[slice]:
        """The rows of each contact."""
        ends = np.cumsum([c.rows for c in self.each]).tolist()
        return [slice(end - c.rows, end) for end, c in zip(ends, self.each, strict=True)]

    @property
    def settings(self) -> list[Scalar]:
        """Damping, gains and places, as far as there are any: what may change without another code."""
        out = [self.mu]
        for c in self.each:
            R, p = c.Y.R, c.Y.p
            place = [x for column in (R.x, R.y, R.z, p) for x in (column.x, column.y, column.z)]
            out += [c.kp, c.kd, *(place if c.kp is not None else ())]
        return [x for x in out if x is not None]

    def with_settings(self, settings: Sequence[Scalar]) -> Contacts:
        """The same contacts with other damping, gains and places, where they have any."""
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
        return Contacts(tuple(each), mu)


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
        """The relative twist, in the axes and at the origin of the first frame."""
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


def scene(scan: Scan, contacts: Contacts, q: Array, v: Array | None = None, a: Array | None = None) -> Scene:
    """Bodies without gravity, in world axes about the first root: far from the world's origin no digits are lost."""
    fq = scan.coordinates(q)
    first = scan.tree.nodes[0]
    origin = first.kind.move(first.X, fq[0], first.pitch).p

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        X = node.kind.move(parent.X.compose(node.X) if parent else node.X, q, node.pitch)
        return carried(node, parent, X if parent else Transform(X.R, X.p - origin), REST, v, a)

    fv, fa = (scan.no_rates() if x is None else scan.rates(x) for x in (v, a))
    bodies = scan.outward(step, fq, fv, fa)
    return Scene(bodies, [touch(c, bodies, origin) for c in contacts.each])


def touch(contact: Contact, bodies: Sequence[Moving], origin: Vec3) -> Touch:
    one = bodies[contact.body]
    F1 = one.X.compose(contact.X)
    if contact.other == WORLD:
        return Touch(F1, Transform(contact.Y.R, contact.Y.p - origin), one.v, REST, one.a, REST)
    other = bodies[contact.other]
    return Touch(F1, other.X.compose(contact.Y), one.v, other.v, one.a, other.a)


def path(tree: Tree, body: int) -> list[Node]:
    """The joints between a body and the world, root first."""
    found: list[Node] = []
    while body != WORLD:
        found.append(tree.nodes[body])
        body = found[-1].parent
    return found[::-1]


def sides(tree: Tree, contact: Contact) -> list[tuple[Node, float]]:
    """The joints that move one of the two bodies, with their signs; those that move both alike do not count."""
    one, other = path(tree, contact.body), path(tree, contact.other)
    return [(n, 1.0) for n in one if n not in other] + [(n, -1.0) for n in other if n not in one]


def support(tree: Tree, contact: Contact) -> list[int]:
    """The dofs that a force at this contact can be felt by on the way to the root."""
    if tree.coupling is not None:
        return list(range(tree.coupling.G.shape[1]))
    nodes = {n.index: n for body in (contact.body, contact.other) for n in path(tree, body)}
    return [k for i in sorted(nodes) for k in range(nodes[i].v.start, nodes[i].v.stop)]


def numbers(contact: Contact, m: Motion) -> list[Scalar]:
    """A motion in contact coordinates as the contact's rows: linear, then angular."""
    linear = [m.lin.x, m.lin.y, m.lin.z]
    return linear if contact.point else [*linear, m.ang.x, m.ang.y, m.ang.z]


def wrench(contact: Contact, x: Array) -> Force:
    """The force that a contact's rows stand for, at the origin and in the axes of its frame."""
    return Force(Vec3(*x[3:6]) if not contact.point else REST.ang, Vec3(*x[:3]))


Entry = Callable[[Contact, Touch, Node, int], Motion]


def matrix(scan: Scan, contacts: Contacts, s: Scene, entry: Entry) -> Array:
    """Rows of contacts by dofs: for a joint on one side of a contact and its k-th dof, +- what `entry` tells."""
    rows = [[0.0] * scan.nv for _ in range(contacts.rows[-1].stop)]
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        for node, sign in sides(scan.tree, c):
            for k in range(node.v.stop - node.v.start):
                column = numbers(c, sign * entry(c, t, node, k))
                for i, x in zip(range(at.start, at.stop), column, strict=True):
                    rows[i][node.v.start + k] = x
    return by_independent(scan.tree, scan.matrix_of(rows))


def jacobian(scan: Scan, contacts: Contacts, s: Scene) -> Array:
    """J (rows, nv): relative twists, each in its contact's own frame."""
    return matrix(scan, contacts, s, lambda c, t, node, k: t.F1.motion_inverse(s.bodies[node.index].S[k]))


def acceleration(scan: Scan, contacts: Contacts, s: Scene) -> Array:
    """What contacts want to vanish, (rows,): relative acceleration, and Baumgarte's share; gamma where a = 0."""
    return scan.vector([wanted(c, t) for c, t in zip(contacts.each, s.touches, strict=True)])


def wanted(contact: Contact, t: Touch) -> list[Scalar]:
    m, xi = t.xid, t.xi
    if contact.point:
        m = Motion(m.ang, m.lin + xi.ang.cross(xi.lin))
    if contact.kd is not None:
        m = m + contact.kd * xi
    if contact.kp is not None:
        m = m + contact.kp * t.error
    return numbers(contact, m)


# The linear system (1)


class System(NamedTuple):
    """Factors of M and of J M^-1 J^T + mu, Y = L^-T J^T (nv, rows), and which dofs and rows each contact has."""

    M: ltl.Factor
    Y: Array
    G: ltl.Factor
    parts: list[tuple[list[int], slice]]
    margins: Array
    contact_margins: Array


def system(scan: Scan, contacts: Contacts, q: Array, J: Array) -> System:
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
    return System(factor, Y, inner, parts, factor.D / diagonal(M), inner.D / diagonal(G))


def inverse_inertia(M: ltl.Factor, Y: Array, parts: list[tuple[list[int], slice]], mu: Scalar | None) -> Array:
    """J M^-1 J^T + mu = Y^T D^-1 Y + mu, (rows, rows): two contacts meet in the dofs they share."""
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
    return np.stack([A[i, i] for i in range(len(A))])


def solve(s: System, f: Array, g: Array) -> tuple[Array, Array]:
    """x and lambda with M x - J^T lambda = f and J x + mu lambda = g; f and g may have columns."""
    y = ltl.solve_inward(s.M, f)
    wide = y.ndim > s.M.D.ndim
    rest = g.copy()
    for dofs, at in s.parts:
        for k in dofs:
            Yk = s.Y[k, at, None] if wide else s.Y[k, at]
            rest[at] = rest[at] - Yk * (y[k] * (1.0 / s.M.D[k]))
    forces = ltl.solve(s.G, rest)
    for dofs, at in s.parts:
        for k in dofs:
            Yk = s.Y[k, at, None] if wide else s.Y[k, at]
            y[k] = y[k] + (Yk * forces[at]).sum(0)
    return ltl.solve_outward(s.M, y), forces


# Algorithms


class Constrained(NamedTuple):
    """Accelerations, contact forces, and how far G and M are from singular (see `aba.margins`)."""

    a: Array
    forces: Array
    contact_margins: Array
    margins: Array


def constrained_dynamics(
    scan: Scan, contacts: Contacts, q: Array, v: Array, tau: Array, fext: Sequence | None = None
) -> Constrained:
    """a (nv,) and lambda (rows,) of (1); q and v are the tree's where joints mimic, tau and a those of its leaders."""
    s = scene(scan, contacts, q, v)
    K = system(scan, contacts, q, jacobian(scan, contacts, s))
    h = to_independent(scan.tree, inverse_dynamics(scan, q, v, None, fext))
    a, forces = solve(K, tau - h, -acceleration(scan, contacts, s))
    return Constrained(a, told(contacts, s, forces), K.contact_margins, K.margins)


def impulse_dynamics(scan: Scan, contacts: Contacts, q: Array, v: Array, restitution: Scalar) -> Constrained:
    """v+ and impulses: M (v+ - v-) = J^T Lambda, J v+ + mu Lambda = -restitution J v-; [KINDR] 'and Impulses'."""
    s = scene(scan, contacts, q, v)
    K = system(scan, contacts, q, jacobian(scan, contacts, s))
    xi = scan.vector([numbers(c, t.xi) for c, t in zip(contacts.each, s.touches, strict=True)])
    dv, impulses = solve(K, np.zeros_like(K.Y[:, 0]), -xi * (1.0 + restitution))
    return Constrained(dv, told(contacts, s, impulses), K.contact_margins, K.margins)


def contact_inverse_dynamics(
    scan: Scan, contacts: Contacts, q: Array, v: Array, a: Array, forces: Array, fext: Sequence | None = None
) -> Array:
    """tau = M a + h - J^T lambda, forces (rows,) as the contacts tell them."""
    s = scene(scan, contacts, q)
    on_bodies = external_forces(scan, contacts, s, meant(contacts, s, forces), fext)
    return to_independent(scan.tree, inverse_dynamics(scan, q, v, a, on_bodies))


def told_jacobian(scan: Scan, contacts: Contacts, q: Array) -> Array:
    """J (rows, nv) in the axes of the forces: the power of forces f is f . J v."""
    s = scene(scan, contacts, q)
    return told(contacts, s, jacobian(scan, contacts, s))


# Forces: axes, and how bodies feel them


def told(contacts: Contacts, s: Scene, forces: Array) -> Array:
    """Forces (rows, ...), columns of forces or rows of J, turned from contact axes to those the user asked for."""
    return _turned(contacts, s, forces, lambda R, x: R @ x)


def meant(contacts: Contacts, s: Scene, forces: Array) -> Array:
    """The inverse of `told`."""
    return _turned(contacts, s, forces, lambda R, x: R.transposed_times(x))


def _turned(contacts: Contacts, s: Scene, forces: Array, turn: Callable[[Mat3, Vec3], Vec3]) -> Array:
    out = forces.copy()
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        for i in range(at.start, at.stop, 3) if c.world_axes else ():
            x = turn(t.F1.R, Vec3(*forces[i : i + 3]))
            out[i], out[i + 1], out[i + 2] = x.x, x.y, x.z
    return out


def external_forces(scan: Scan, contacts: Contacts, s: Scene, forces: Array, fext: Sequence | None) -> list:
    """Forces in contact axes as external forces in the joints' own frames, added to those there already are."""
    felt: list = list(fext) if fext is not None else list(scan.constant(None))
    for c, t, at in zip(contacts.each, s.touches, contacts.rows, strict=True):
        f = wrench(c, forces[at])
        _add(felt, scan.tree.nodes[c.body], c.X.force(f), 1.0)
        if c.other != WORLD:
            _add(felt, scan.tree.nodes[c.other], s.bodies[c.other].X.force_inverse(t.F1.force(f)), -1.0)
    return felt


def _add(felt: list, node: Node, f: Force, sign: float) -> None:
    lin, ang = sign * (node.align @ f.lin), sign * (node.align @ f.ang)
    own = (lin.x, lin.y, lin.z, ang.x, ang.y, ang.z)
    there = felt[node.index]
    felt[node.index] = own if there is None else tuple(x + y for x, y in zip(there, own, strict=True))


# Mimicking joints: v_tree = G v


def to_independent(tree: Tree, f: Array) -> Array:
    """Forces (nv,) on the tree's dofs, as the independent ones feel them."""
    return f if tree.coupling is None else reduce_vector(tree.coupling.G, f)


def by_independent(tree: Tree, A: Array) -> Array:
    """Columns (rows, nv) over the tree's dofs, over the independent ones."""
    return A if tree.coupling is None else np.moveaxis(np.tensordot(A, tree.coupling.G, (1, 0)), -1, 1)
