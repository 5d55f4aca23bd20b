"""Forward kinematics, geometric Jacobians, energies, centre of mass and centroidal momentum, in the world's frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...math.spatial import Force, Motion, Subspace, Transform, span
from ...math.vec3 import Scalar, Vec3
from ...model.tree import Node
from ..motion import REST, world_placement
from ..scan import Array, Scan


@dataclass(slots=True, eq=False)
class PlacedBody:
    """A body's placement X (of its canonical frame), subspace S and velocity v in the world."""

    X: Transform
    S: Subspace
    v: Motion


def placed(node: Node, parent: PlacedBody | None, q: Sequence[Scalar], v: Sequence[Scalar]) -> PlacedBody:
    """The outward step in world coordinates."""
    X = world_placement(node, parent.X if parent else None, q)
    S = node.kind.subspace(X, node.pitch)
    return PlacedBody(X, S, (parent.v if parent else REST) + span(S, v))


def bodies(scan: Scan, q: Array, v: Array | None = None) -> list[PlacedBody]:
    """All bodies in the world."""
    return scan.outward(placed, scan.coordinates(q), scan.no_rates() if v is None else scan.rates(v))


def joint_frame(node: Node, X: Transform) -> Transform:
    """The placement of the joint's own frame, given that of its canonical frame."""
    return Transform(X.R.compose(node.align.transposed()), X.p)


def forward_kinematics(scan: Scan, q: Array) -> Array:
    """Placement of every joint's frame in the world (njoints, 16): the rows of a homogeneous transform."""

    return scan.joint_rows(scan.each(lambda node, body: homogeneous(joint_frame(node, body.X)), bodies(scan, q)))


def homogeneous(X: Transform) -> tuple:
    """The rows of a homogeneous transform, 16 numbers."""
    R, p = X.R, X.p
    first, second, third = (R.x.x, R.y.x, R.z.x, p.x), (R.x.y, R.y.y, R.z.y, p.y), (R.x.z, R.y.z, R.z.z, p.z)
    return (*first, *second, *third, 0.0, 0.0, 0.0, 1.0)


def joint_columns(scan: Scan, q: Array) -> Array:
    """The motion that each degree of freedom gives to the bodies beyond it (nv, 6): (linear, angular) in the world.

    The columns of the geometric Jacobian in the world's frame; [KINDR] eq. 14.
    """

    def columns(node: Node, body: PlacedBody) -> list[tuple]:
        return [components(S) for S in body.S]

    return scan.dof_rows(scan.each(columns, bodies(scan, q)))


def components(m: Motion | Force) -> tuple:
    """The six components, linear, then angular."""
    return m.lin.x, m.lin.y, m.lin.z, m.ang.x, m.ang.y, m.ang.z


def kinetic_energy(scan: Scan, q: Array, v: Array) -> Array:
    """v^T M v / 2 [J]."""
    everywhere = bodies(scan, q, v)
    energies = scan.each(lambda node, b: 0.5 * b.v.dot(node.body.placed(b.X) @ b.v), everywhere)
    rotors = scan.each(
        lambda node, rates: sum(0.5 * arm * r * r for arm, r in zip(node.armature, rates, strict=True)),
        scan.rates(v),
    )
    return scan.total(scan.each(lambda node, body, rotor: body + rotor, energies, rotors))


def potential_energy(scan: Scan, q: Array) -> Array:
    """-sum m g.c [J], zero for masses at the world's origin."""
    g = scan.tree.gravity
    terms = scan.each(lambda node, b: -node.body.m * g.dot(b.X.p + b.X.R @ node.body.c), bodies(scan, q))
    return scan.total(terms)


def center_of_mass(scan: Scan, q: Array) -> Array:
    """The centre of mass (3,) in the world [m]."""
    c = center(scan, bodies(scan, q))
    return scan.stack((c.x, c.y, c.z))


def center(scan: Scan, everywhere: Sequence[PlacedBody]) -> Vec3:
    """The centre of mass in the world."""
    moments = scan.each(lambda node, b: node.body.m * (b.X.p + b.X.R @ node.body.c), everywhere)
    mass = scan.each(lambda node: node.body.m)
    return (1.0 / scan.total(mass)) * scan.total(moments)


def centroidal_map(scan: Scan, q: Array) -> Array:
    """A (6, nv): A v is the momentum (linear, angular) about the centre of mass, in world axes."""
    everywhere = bodies(scan, q)
    inertias = scan.each(lambda node, b: node.body.placed(b.X), everywhere)
    momenta = scan.inward(lambda node, IC, b: (IC, [IC @ S for S in b.S]), inertias, everywhere)
    c = center(scan, everywhere)
    return scan.dof_columns(scan.each(lambda node, joint: [components(shifted(h, c)) for h in joint], momenta))


def centroidal_momentum(scan: Scan, q: Array, v: Array) -> Array:
    """Linear, then angular momentum about the centre of mass (6,) [kg m/s, kg m^2/s]."""
    everywhere = bodies(scan, q, v)
    momenta = scan.each(lambda node, b: node.body.placed(b.X) @ b.v, everywhere)
    c = center(scan, everywhere)
    return scan.stack(components(shifted(scan.total(momenta), c)))


def shifted(h: Force, c: Vec3) -> Force:
    """A force or momentum with its moment taken about c."""
    return Force(h.ang - c.cross(h.lin), h.lin)
