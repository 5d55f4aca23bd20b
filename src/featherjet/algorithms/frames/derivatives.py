"""Derivatives of a frame's spatial velocity and acceleration by q, v and a; [RSS18] Sec. III-D, [IDSVA] J2-J9.

In the world's frame, for a dof k on the way from the frame's body i to the root ([IDSVA] eq. 52, J6-J9):
    dv/dq_k = Psid_k - v x S_k          da/dq_k = Psidd_k - a x S_k - v x Psid_k
    dv/dv_k = S_k                       da/dv_k = Psid_k + Sd_k - v x S_k           da/da_k = S_k
with v, a those of body i. A viewpoint that moves along (see `jacobians`) takes away V_k x what is seen. Accelerations
are spatial ones, without gravity: the rate of the velocity at a fixed place, not of a point of the body.

By q these are the derivatives of what is seen, from each viewpoint (complex step says so). Pinocchio 4.1 agrees on
"local", and on velocities in "world"; its LOCAL_WORLD_ALIGNED holds the viewpoint still, and what it gives for
accelerations in WORLD is not the derivative of its getFrameAcceleration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...math.spatial import Motion, Subspace
from ...model.tree import Node
from ..motion import REST, Moving, carried
from ..scan import Array, Scan
from .jacobians import VIEWPOINTS, Sight, flat
from .kinematics import stack_motions


class FrameVelocityDerivatives(NamedTuple):
    """Of a frame's velocity, (..., 6, nv) each, rows linear then angular."""

    dv_dq: Array
    dv_dv: Array


class FrameAccelerationDerivatives(NamedTuple):
    """Of a frame's spatial acceleration, (..., 6, nv) each, rows linear then angular."""

    da_dq: Array
    da_dv: Array
    da_da: Array


def in_world(scan: Scan, q: Array, v: Array, a: Array | None = None) -> list[Moving]:
    """All bodies in the world's frame, without gravity."""

    def step(node: Node, parent: Moving | None, q, v, a) -> Moving:
        X = node.kind.move(parent.X.compose(node.X) if parent else node.X, q, node.pitch)
        return carried(node, parent, X, REST, v, a)

    fa = scan.no_rates() if a is None else scan.rates(a)
    return scan.outward(step, scan.coordinates(q), scan.rates(v), fa)


def frame_acceleration(scan: Scan, q: Array, v: Array, a: Array, view: Sight) -> Array:
    """The frame's spatial acceleration (6,), linear then angular."""
    bodies = in_world(scan, q, v, a)
    seen = view.view(bodies)  # type: ignore[arg-type]
    return stack_motions(scan, [seen(bodies[view.joint].a) if view.joint >= 0 else REST])[:, 0]


def frame_velocity_derivatives(scan: Scan, q: Array, v: Array, view: Sight) -> FrameVelocityDerivatives:
    bodies = in_world(scan, q, v)
    at, seen, leave = observed(bodies, view)

    def by_q(node: Node, body: Moving, S: Motion) -> Motion:
        return seen(body.v_parent.cross(S) - at.v.cross(S)) - leave(S, at.v)

    def by_v(node: Node, body: Moving, S: Motion) -> Motion:
        return seen(S)

    return FrameVelocityDerivatives(*(columns(scan, bodies, view, by) for by in (by_q, by_v)))


def frame_acceleration_derivatives(scan: Scan, q: Array, v: Array, a: Array, view: Sight):
    bodies = in_world(scan, q, v, a)
    at, seen, leave = observed(bodies, view)

    def by_q(node: Node, body: Moving, S: Motion) -> Motion:
        Psid = body.v_parent.cross(S)
        Psidd = body.a_parent.cross(S) + body.v_parent.cross(Psid)
        return seen(Psidd - at.a.cross(S) - at.v.cross(Psid)) - leave(S, at.a)

    def by_v(node: Node, body: Moving, S: Motion) -> Motion:
        return seen(body.v_parent.cross(S) + (body.v - at.v).cross(S))

    def by_a(node: Node, body: Moving, S: Motion) -> Motion:
        return seen(S)

    return FrameAccelerationDerivatives(*(columns(scan, bodies, view, by) for by in (by_q, by_v, by_a)))


def observed(bodies: list[Moving], view: Sight) -> tuple[Moving, Callable[[Motion], Motion], Callable]:
    """The frame's body, how a motion is seen, and V_k x what is seen of it when the frame moves with S_k."""
    seen, V = view.view(bodies), VIEWPOINTS[view.viewpoint]  # type: ignore[arg-type]
    return bodies[view.joint], seen, lambda S, m: V(seen(S)).cross(seen(m))


def columns(scan: Scan, bodies: list[Moving], view: Sight, by: Callable[[Node, Moving, Motion], Motion]) -> Array:
    """A matrix (6, nv) whose columns for dofs off the frame's way to the root are zero."""
    on_path = view.path(scan)

    def step(node: Node, body: Moving, on: float) -> Subspace:
        return [by(node, body, S) if on else REST for S in body.S]

    return flat(scan, scan.each(step, bodies, on_path))
