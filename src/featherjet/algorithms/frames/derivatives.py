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

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...display import compact
from ...math.scalars import Scalar
from ...math.spatial import Motion
from ...model.tree import Node
from ..motion import REST, DofMotion, Moving, carried, dof_motions, world_placement
from ..scan import Array, Scan
from .jacobians import View, flat, one, velocity


@compact
class FrameVelocityDerivatives(NamedTuple):
    """Partials of a frame's velocity, (..., 6, nv) each, rows linear then angular."""

    dv_dq: Array
    dv_dv: Array


@compact
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


def acceleration(body: Moving) -> Motion:
    return body.a


def frame_acceleration(scan: Scan, q: Array, v: Array, a: Array, frame: Array, viewpoint: str) -> Array:
    """The frame's spatial acceleration (6,), linear then angular."""
    bodies = in_world(scan, q, v, a)
    view = View(scan, bodies, frame, viewpoint)
    return one(scan, view.seen(view.at(bodies, acceleration)))


def frame_velocity_derivatives(
    scan: Scan, q: Array, v: Array, frame: Array, viewpoint: str
) -> FrameVelocityDerivatives:
    """dv/dq and dv/dv."""
    bodies = in_world(scan, q, v)
    view = View(scan, bodies, frame, viewpoint)
    seen, v_frame = view.seen, view.at(bodies, velocity)

    def by_q(body: Moving, S: Motion) -> Motion:
        return seen(body.v_parent.cross(S) - v_frame.cross(S)) - view.moving(seen(S)).cross(seen(v_frame))

    def by_v(body: Moving, S: Motion) -> Motion:
        return seen(S)

    dofs = scan.each(lambda node, body: list(body.S), bodies)
    return FrameVelocityDerivatives(*(columns(scan, bodies, dofs, view, by) for by in (by_q, by_v)))


def frame_acceleration_derivatives(
    scan: Scan, q: Array, v: Array, a: Array, frame: Array, viewpoint: str
) -> FrameAccelerationDerivatives:
    """da/dq, da/dv and da/da."""
    bodies = in_world(scan, q, v, a)
    view = View(scan, bodies, frame, viewpoint)
    seen, v_frame, a_frame = view.seen, view.at(bodies, velocity), view.at(bodies, acceleration)

    def by_q(body: Moving, m: DofMotion) -> Motion:
        moved = seen(m.Psidd - a_frame.cross(m.S) - v_frame.cross(m.Psid))
        return moved - view.moving(seen(m.S)).cross(seen(a_frame))

    def by_v(body: Moving, m: DofMotion) -> Motion:
        return seen(m.Psid + (body.v - v_frame).cross(m.S))  # one product less than with Sd

    def by_a(body: Moving, m: DofMotion) -> Motion:
        return seen(m.S)

    dofs = scan.each(dof_motions, bodies)
    return FrameAccelerationDerivatives(*(columns(scan, bodies, dofs, view, by) for by in (by_q, by_v, by_a)))


def columns(scan: Scan, bodies: list[Moving], dofs: Sequence[Sequence], view: View, by: Callable[..., Motion]) -> Array:
    """A matrix (6, nv) with columns by(body, dof) for dofs that move the frame; the other columns are zero."""

    def step(node: Node, body: Moving, own: Sequence, on_path: Scalar) -> list[Motion]:
        return [on_path * by(body, dof) for dof in own]

    return flat(scan, scan.each(step, bodies, dofs, view.on_path))
