"""Derivatives of a frame's spatial velocity and acceleration by q, v and a; [RSS18] Sec. III-D, [IDSVA] J2-J9.

In the world's frame, for a dof k on the path from the root to the frame's body i ([IDSVA] eq. 52, J6-J9):
    dv/dq_k = Psid_k - v x S_k          da/dq_k = Psidd_k - a x S_k - v x Psid_k
    dv/dv_k = S_k                       da/dv_k = Psid_k + Sd_k - v x S_k           da/da_k = S_k
with v, a those of body i. A viewpoint that moves (see `jacobians`) subtracts V_k x what it sees. Accelerations are
spatial ones, without gravity: the rate of the velocity at a fixed place, not of a point of the body.

The derivatives by q are those of what each viewpoint sees, as complex step confirms. Pinocchio 4.1 agrees on "local",
and on "world" but for one thing: the columns da/dq of joints that turn about more than one axis or turn and slide
(spherical, planar, free) on a parent that moves are not those of its getFrameAcceleration in WORLD. Its
LOCAL_WORLD_ALIGNED holds the viewpoint still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...math.spatial import Motion
from ...model.tree import Node
from ..motion import REST, DofMotion, Moving, carried, dof_motions, world_placement
from ..scan import Array, Scan
from .jacobians import VIEWPOINTS, View, flat
from .kinematics import stack_motions


class FrameVelocityDerivatives(NamedTuple):
    """Partials of a frame's velocity, (..., 6, nv) each, rows linear then angular."""

    dv_dq: Array
    dv_dv: Array


class FrameAccelerationDerivatives(NamedTuple):
    """Partials of a frame's spatial acceleration, (..., 6, nv) each, rows linear then angular."""

    da_dq: Array
    da_dv: Array
    da_da: Array


def in_world(scan: Scan, q: Array, v: Array, a: Array | None = None) -> list[Moving]:
    """All bodies in the world's frame, without gravity."""

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        return carried(node, parent, world_placement(node, parent.X if parent else None, q), REST, v, a)

    fa = scan.no_rates() if a is None else scan.rates(a)
    return scan.outward(step, scan.coordinates(q), scan.rates(v), fa)


def frame_acceleration(scan: Scan, q: Array, v: Array, a: Array, view: View) -> Array:
    """The frame's spatial acceleration (6,), linear then angular."""
    bodies = in_world(scan, q, v, a)
    seen = view.seen(bodies)
    return stack_motions(scan, [seen(bodies[view.joint].a) if view.joint >= 0 else REST])[:, 0]


def frame_velocity_derivatives(scan: Scan, q: Array, v: Array, view: View) -> FrameVelocityDerivatives:
    """dv/dq and dv/dv."""
    bodies = in_world(scan, q, v)
    frame, seen, moved = observed(bodies, view)

    def by_q(body: Moving, S: Motion) -> Motion:
        return seen(body.v_parent.cross(S) - frame.v.cross(S)) - moved(S, frame.v)

    def by_v(body: Moving, S: Motion) -> Motion:
        return seen(S)

    columns_of = {n.index: bodies[n.index].S for n in scan.tree.path(view.joint)}
    return FrameVelocityDerivatives(*(columns(scan, bodies, columns_of, by) for by in (by_q, by_v)))


def frame_acceleration_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, view: View
) -> FrameAccelerationDerivatives:
    """da/dq, da/dv and da/da."""
    bodies = in_world(scan, q, v, a)
    frame, seen, moved = observed(bodies, view)

    def by_q(body: Moving, m: DofMotion) -> Motion:
        return seen(m.Psidd - frame.a.cross(m.S) - frame.v.cross(m.Psid)) - moved(m.S, frame.a)

    def by_v(body: Moving, m: DofMotion) -> Motion:
        return seen(m.Psid + (body.v - frame.v).cross(m.S))  # one product less than with Sd

    def by_a(body: Moving, m: DofMotion) -> Motion:
        return seen(m.S)

    motions = {n.index: dof_motions(n, bodies[n.index]) for n in scan.tree.path(view.joint)}
    return FrameAccelerationDerivatives(*(columns(scan, bodies, motions, by) for by in (by_q, by_v, by_a)))


def observed(bodies: list[Moving], view: View) -> tuple[Moving, Callable[[Motion], Motion], Callable]:
    """The frame's body, how the viewpoint sees a motion, and V_k x what it sees when the frame moves with S_k."""
    seen, V = view.seen(bodies), VIEWPOINTS[view.viewpoint]
    return bodies[view.joint], seen, lambda S, m: V(seen(S)).cross(seen(m))


def columns(scan: Scan, bodies: list[Moving], dofs: Mapping[int, Sequence], by: Callable[..., Motion]) -> Array:
    """A matrix (6, nv) with columns by(body, dof) for the given dofs of each joint; the other columns are zero."""

    def step(node: Node, body: Moving) -> list[Motion]:
        found = dofs.get(node.index)
        return [by(body, dof) for dof in found] if found else [REST for _ in body.S]

    return flat(scan, scan.each(step, bodies))
