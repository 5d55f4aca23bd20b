"""Forward kinematics, geometric Jacobians, energies, centre of mass and centroidal momentum, in the world's frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import Force, Motion, Subspace, Transform, span
from ...math.vec3 import Mat3, Scalar, Vec3
from ...model.tree import Node
from ..motion import REST
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class Placed:
    """A body's placement X (canonical frame) and subspace S in the world, and its velocity."""

    X: Transform
    S: Subspace
    v: Motion


def placed(node: Node, parent: Placed | None, q: Sequence[Scalar], v: Sequence[Scalar]) -> Placed:
    """The outward step in world coordinates."""
    X = node.kind.move(parent.X.compose(node.X) if parent else node.X, q, node.pitch)
    S = node.kind.subspace(X, node.pitch)
    return Placed(X, S, (parent.v if parent else REST) + span(S, v))


def bodies(scan: Scan, q: Array, v: Array | None = None) -> list[Placed]:
    return scan.outward(placed, scan.coordinates(q), scan.no_rates() if v is None else scan.rates(v))


def joint_frame(node: Node, X: Transform) -> Transform:
    """Where the joint's own (not canonical) frame is."""
    A = node.align
    back = Mat3(Vec3(A.x.x, A.y.x, A.z.x), Vec3(A.x.y, A.y.y, A.z.y), Vec3(A.x.z, A.y.z, A.z.z))
    return Transform(X.R.compose(back), X.p)


def forward_kinematics(scan: Scan, q: Array) -> Array:
    """Placement of every joint's frame in the world, (njoints, 16): the rows of a homogeneous transform."""

    def rows(node: Node, body: Placed) -> tuple:
        X = joint_frame(node, body.X)
        R, p = X.R, X.p
        first, second, third = (R.x.x, R.y.x, R.z.x, p.x), (R.x.y, R.y.y, R.z.y, p.y), (R.x.z, R.y.z, R.z.z, p.z)
        return (*first, *second, *third, 0.0, 0.0, 0.0, 1.0)

    return scan.numbers(scan.each(rows, bodies(scan, q)))


def joint_columns(scan: Scan, q: Array) -> Array:
    """What each degree of freedom does to the bodies beyond it, (nv, 6): (linear, angular) at the world's origin.

    The columns of the geometric Jacobian in the world's frame; [KINDR] eq. 14.
    """

    def columns(node: Node, body: Placed) -> list[tuple]:
        return [(S.lin.x, S.lin.y, S.lin.z, S.ang.x, S.ang.y, S.ang.z) for S in body.S]

    return scan.dof_numbers(scan.each(columns, bodies(scan, q)))


def stack_motions(scan: Scan, motions: Sequence[Motion]) -> Array:
    """(6, len): rows linear, then angular."""
    parts = [(m.lin.x, m.lin.y, m.lin.z, m.ang.x, m.ang.y, m.ang.z) for m in motions]
    return scan.matrix_of(list(zip(*parts, strict=True)))


def kinetic_energy(scan: Scan, q: Array, v: Array) -> Array:
    """v^T M v / 2 [J]."""
    everywhere = bodies(scan, q, v)
    energies = scan.each(lambda node, b: 0.5 * b.v.dot(node.body.placed(b.X) @ b.v), everywhere)
    rotors = scan.each(
        lambda node, rates: sum(0.5 * arm * r * r for arm, r in zip(node.armature, rates, strict=True)),
        scan.rates(v),
    )
    return sum(energies) + sum(rotors)  # type: ignore[return-value]


def potential_energy(scan: Scan, q: Array) -> Array:
    """-sum m g.c [J], zero for masses at the world's origin."""
    g = scan.tree.gravity
    terms = scan.each(lambda node, b: -node.body.m * g.dot(b.X.p + b.X.R @ node.body.c), bodies(scan, q))
    return sum(terms)  # type: ignore[return-value]


def center_of_mass(scan: Scan, q: Array) -> Array:
    """(3,) in the world [m]."""
    c = center(scan, bodies(scan, q))
    return scan.matrix_of([[c.x], [c.y], [c.z]])[:, 0]


def center(scan: Scan, everywhere: Sequence[Placed]) -> Vec3:
    mass = sum(node.body.m for node in scan.tree.nodes)
    moments = scan.each(lambda node, b: node.body.m * (b.X.p + b.X.R @ node.body.c), everywhere)
    total = moments[0]
    for h in moments[1:]:
        total = total + h
    return (1.0 / mass) * total


def centroidal_map(scan: Scan, q: Array) -> Array:
    """A (6, nv): A v is the momentum (linear, angular) about the centre of mass, in the world's axes."""
    everywhere = bodies(scan, q)
    c = center(scan, everywhere)
    inertias = scan.each(lambda node, b: node.body.placed(b.X), everywhere)
    momenta = scan.inward(lambda node, IC, b: (IC, [IC @ S for S in b.S]), inertias, everywhere)
    about = [shifted(h, c) for joint in momenta for h in joint]
    return stack_motions(scan, [Motion(h.ang, h.lin) for h in about])


def centroidal_momentum(scan: Scan, q: Array, v: Array) -> Array:
    """(6,): linear, then angular momentum about the centre of mass [kg m/s, kg m^2/s]."""
    everywhere = bodies(scan, q, v)
    momenta = scan.each(lambda node, b: node.body.placed(b.X) @ b.v, everywhere)
    total = momenta[0]
    for h in momenta[1:]:
        total = total + h
    total = shifted(total, center(scan, everywhere))
    return stack_motions(scan, [Motion(total.ang, total.lin)])[:, 0]


def shifted(h: Force, c: Vec3) -> Force:
    """A force-like vector, its moment taken about c."""
    return Force(h.ang - c.cross(h.lin), h.lin)
