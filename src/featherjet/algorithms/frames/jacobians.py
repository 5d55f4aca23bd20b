"""The spatial Jacobian of a frame to second order; [KINDR] Appendices II and III.

Column i of J is S_i, the motion that dof i gives to the frame's body, seen from one of three viewpoints: the world's
origin, the frame itself, or a frame that follows its origin without turning. S_i is fixed to the body of its own joint:
along a dof k at or above that joint dS_i = S_k x S_i, and along dofs further out it is constant. A viewpoint that moves
with V subtracts V x S_i. So, with all motions as the viewpoint sees them (V_k is its motion when the frame's is S_k):

    dS_i/dq_k = (S_k - V_k) x S_i   for k at or above i's joint,   S_i x V_k   for k further out          (eq. 15)
    dS_i/dt   = (v_i - V) x S_i,    v_i being the velocity of i's body                                     (eqs. 17, 18)

(The sheet's i >= j and i < j order one-dof joints of a chain; the dofs of one joint all count as "at or above".)
Dofs off the frame's path to the root do not move it: their columns are zero, and so are all derivatives of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...math.fieldwise import Linear
from ...math.scalars import Scalar, where_less
from ...math.spatial import Motion, Transform
from ...math.vec3 import Mat3, Vec3
from ...model.tree import Node
from ..motion import REST, Moving
from ..scan import Array, Scan
from .kinematics import PlacedBody, bodies, components, homogeneous

# The viewpoint's motion V when the frame moves with m; "world_aligned" sees the frame's velocity in world axes.
VIEWPOINTS: dict[str, Callable[[Motion], Motion]] = {
    "local": lambda m: m,
    "world": lambda m: REST,
    "world_aligned": lambda m: Motion(REST.ang, m.lin),
}


L = TypeVar("L", bound=Linear)


class View:
    """A frame on one of the bodies, and a viewpoint on it.

    frame (13,): the number of the joint that carries the frame, or -1 for the world, then the frame's placement in the
    joint's canonical frame: the columns of R, and p. All are numbers that code reads, as it reads q: a new frame needs
    no new code, and every sample of a batch may have its own.
    """

    def __init__(
        self, scan: Scan, everywhere: Sequence[PlacedBody] | Sequence[Moving], frame: Array, viewpoint: str = "world"
    ) -> None:
        self._scan = scan
        joint, *entries = scan.numbers(frame, 13)
        x, y, z, p = (Vec3(*entries[k : k + 3]) for k in (0, 3, 6, 9))
        self.viewpoint = viewpoint
        # joints are numbered depth first: those of a subtree are the numbers from its root's on, up to its end
        beyond = scan.each(lambda node: where_less(joint, node.index - 0.5, 1.0, 0.0))
        self.here = scan.each(lambda node, late: where_less(joint, node.index + 0.5, 1.0 - late, 0.0), beyond)
        self.on_path = scan.each(lambda node, late: where_less(joint, node.end - 0.5, 1.0 - late, 0.0), beyond)
        R, origin = (self.at(everywhere, lambda body: body.X.R), self.at(everywhere, lambda body: body.X.p))
        R = R + where_less(joint, -0.5, 1.0, 0.0) * Mat3.identity()
        self.X = Transform(R, origin).compose(Transform(Mat3(x, y, z), p))

    def at(self, field: Sequence[Any], part: Callable[[Any], L]) -> L:
        """What a part of a field is at the frame's body; zero in the world."""
        scan = self._scan
        return scan.total(scan.each(lambda node, here, value: here * part(value), self.here, field))

    def seen(self, m: Motion) -> Motion:
        """A motion in the world's frame as the viewpoint sees it."""
        if self.viewpoint == "local":
            return self.X.motion_inverse(m)
        if self.viewpoint == "world_aligned":
            return Motion(m.ang, m.lin + m.ang.cross(self.X.p))
        return m

    def placed(self, X: Transform) -> Transform:
        """A placement in the world as the viewpoint sees it; that of a body leads to its S as seen."""
        if self.viewpoint == "world":
            return X
        p = X.p - self.X.p
        if self.viewpoint == "world_aligned":
            return Transform(X.R, p)
        back = self.X.R.transposed_times
        return Transform(Mat3(back(X.R.x), back(X.R.y), back(X.R.z)), back(p))

    def moving(self, seen: Motion) -> Motion:
        """The motion of the viewpoint when it sees the frame move like this."""
        return VIEWPOINTS[self.viewpoint](seen)


def frame_placement(scan: Scan, q: Array, frame: Array) -> Array:
    """The placement of a frame in the world (16,): the rows of a homogeneous transform."""
    return scan.stack(homogeneous(View(scan, bodies(scan, q), frame).X))


def jacobian(scan: Scan, q: Array, frame: Array, viewpoint: str) -> Array:
    """J (6, nv), rows linear then angular; eq. 14."""
    everywhere = bodies(scan, q)
    return flat(scan, columns(scan, everywhere, View(scan, everywhere, frame, viewpoint)))


def frame_velocity(scan: Scan, q: Array, v: Array, frame: Array, viewpoint: str) -> Array:
    """J v (6,), linear then angular."""
    everywhere = bodies(scan, q, v)
    view = View(scan, everywhere, frame, viewpoint)
    return one(scan, view.seen(view.at(everywhere, velocity)))


def columns(scan: Scan, everywhere: Sequence[PlacedBody], view: View) -> list[list[Motion]]:
    """The columns of J, joint by joint."""

    def step(node: Node, body: PlacedBody, on_path: Scalar) -> list[Motion]:
        X = view.placed(body.X)  # columns are linear in the axes of their body: scaling these takes fewer products
        return list(node.kind.subspace(Transform(on_path * X.R, X.p), node.pitch))

    return scan.each(step, everywhere, view.on_path)


def jacobian_hessian(scan: Scan, q: Array, frame: Array, viewpoint: str) -> Array:
    """dJ/dq (6, nv, nv): entry [r, i, k] is the change of J[r, i] along dof k; eq. 16."""
    V = VIEWPOINTS[viewpoint]

    def within(k: Motion, i: Motion) -> tuple:
        return components((k - V(k)).cross(i))

    def across(i: Motion, k: Motion) -> tuple:
        return components(i.cross(V(k)))

    everywhere = bodies(scan, q)
    view = View(scan, everywhere, frame, viewpoint)
    return np.stack(scan.pairs(within, across, columns(scan, everywhere, view)))


def jacobian_derivative(scan: Scan, q: Array, v: Array, frame: Array, viewpoint: str) -> Array:
    """dJ/dt (6, nv)."""
    everywhere = bodies(scan, q, v)
    view = View(scan, everywhere, frame, viewpoint)
    V = view.moving(view.seen(view.at(everywhere, velocity)))

    def step(node: Node, body: PlacedBody, on_path: Scalar) -> list[Motion]:
        return [on_path * (view.seen(body.v) - V).cross(view.seen(S)) for S in body.S]

    return flat(scan, scan.each(step, everywhere, view.on_path))


def jacobian_drift(scan: Scan, q: Array, v: Array, frame: Array, viewpoint: str) -> Array:
    """dJ/dt v (6,), without dJ/dt: the rate of the frame's velocity J v at constant joint velocities."""
    everywhere = bodies(scan, q, v)
    view = View(scan, everywhere, frame, viewpoint)
    a = view.seen(view.at(scan.outward(coasting, everywhere, scan.rates(v)), lambda a: a))
    v_frame = view.seen(view.at(everywhere, velocity))
    return one(scan, a - view.moving(v_frame).cross(v_frame))


def velocity(body: PlacedBody | Moving) -> Motion:
    return body.v


def coasting(node: Node, parent: Motion | None, body: PlacedBody, rates: Sequence[Scalar]) -> Motion:
    """A body's spatial acceleration at constant joint velocities: a = a_parent + v x vJ; [RBDA] eq. 5.14."""
    a = parent or REST
    for S, rate in zip(body.S, rates, strict=True):
        a = a + rate * body.v.cross(S)
    return a


def flat(scan: Scan, field: Sequence[Sequence[Motion]]) -> Array:
    """Motions, joint by joint, as the columns of a matrix (6, nv)."""
    return scan.dof_columns(scan.each(lambda node, joint: [components(m) for m in joint], field))


def one(scan: Scan, m: Motion) -> Array:
    """A motion (6,), linear then angular."""
    return scan.stack(components(m))
