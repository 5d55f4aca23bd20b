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
from typing import NamedTuple

import numpy as np

from ...math.spatial import Force, Motion
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.model import WORLD
from ...model.tree import Node, Tree
from ..dynamics import ltl
from ..dynamics.coupled import reduce_matrix, reduce_vector
from ..dynamics.crba import mass_matrix
from ..dynamics.rnea import inverse_dynamics
from ..scan import Array, Scan
from . import redundant
from .scene import Contact, ContactSet, Scene, Touch, residuals, rows_of, scene, sides, support, wrench

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


# The linear system (1)


REFINED = 2  # corrections of redundant forces
RHO = 1e-11  # of the mean diagonal of G: damps corrections


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
    some = redundant_lanes(s)
    if some is not None:
        forces, margins = forces.copy(), margins.copy()
        forces[..., some], left = refined(s, y, g, forces, some)
        holds = np.abs(left) <= redundant.ENOUGH * (1.0 + np.abs(rest[..., some]).max(0))
        margins[..., some] = holds if holds.ndim == 2 else holds.all(1)
    return under_forces(s, y, forces), forces, margins


def redundant_lanes(s: System) -> Array | None:
    """Where contacts are redundant; None if they are nowhere, or if it is not known, as of symbols."""
    if s.contact_margins.dtype == object:
        return None
    found = np.asarray(~(np.real(s.contact_margins) > redundant.LEAST_MARGIN).all(0))
    return found if found.any() else None


def refined(s: System, y: Array, g: Array, forces: Array, some: Array) -> tuple[Array, Array]:
    """Forces of redundant lanes, and g - J x, what they leave, by what they do to the robot.

    This is exact where large forces nearly cancel. In G forces they do not, so that accelerations would lose digits
    with the square of the condition of J. y: L^-T f.
    """
    lanes = [x[..., some] if x.ndim > s.M.D.ndim else x[:, None][..., some] for x in (y, g, forces)]
    given = (*lanes, s.Y[..., some], s.whole[..., some])
    y, g, x, Y, G = (np.ascontiguousarray(np.moveaxis(a, -1, 0)) for a in given)
    weighted = np.swapaxes(Y, -1, -2) / np.moveaxis(s.M.D[..., some], -1, 0)[:, None]
    one = np.eye(G.shape[-1])
    scale = np.maximum(np.real(np.trace(G, axis1=1, axis2=2)) / len(one), redundant.LEAST_INVERSE)
    inverse = np.linalg.inv(G + RHO * scale[:, None, None] * one)
    left = g - weighted @ (y + Y @ x)
    for _ in range(REFINED):
        change = inverse @ left
        x = x + inverse @ (G @ change)  # without forces that do nothing, which have grown from rounding
        left = g - weighted @ (y + Y @ x)
    x, left = np.moveaxis(x, 0, -1), np.moveaxis(left, 0, -1)
    return (x, left) if forces.ndim > s.M.D.ndim else (x[:, 0], left[:, 0])


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


def under_forces(s: System, y: Array, forces: Array) -> Array:
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
