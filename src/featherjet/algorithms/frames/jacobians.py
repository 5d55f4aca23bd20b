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
from dataclasses import dataclass

import numpy as np

from ...math.spatial import Motion, Transform
from ...math.vec3 import Scalar
from ...model.tree import Node, Tree
from ..motion import REST, Moving
from ..scan import Array, Scan
from .kinematics import PlacedBody, bodies, components, stack_motions

# The viewpoint's motion V when the frame moves with m; "world_aligned" sees the frame's velocity in world axes.
VIEWPOINTS: dict[str, Callable[[Motion], Motion]] = {
    "local": lambda m: m,
    "world": lambda m: REST,
    "world_aligned": lambda m: Motion(REST.ang, m.lin),
}


@dataclass(frozen=True, eq=False)
class View:
    """A frame placed in the canonical frame of a joint's body (in the world, if joint < 0), and a viewpoint."""

    joint: int
    placement: Transform
    viewpoint: str

    def seen(self, everywhere: Sequence[PlacedBody] | Sequence[Moving]) -> Callable[[Motion], Motion]:
        """The function from a motion in the world's frame to the same motion as the viewpoint sees it."""
        X = everywhere[self.joint].X.compose(self.placement) if self.joint >= 0 else self.placement
        if self.viewpoint == "local":
            return X.motion_inverse
        if self.viewpoint == "world_aligned":
            return lambda m: Motion(m.ang, m.lin + m.ang.cross(X.p))
        return lambda m: m

    def mask(self, tree: Tree) -> list[float]:
        """One for the joints that move the frame, zero for the others."""
        on_path = {node.index for node in tree.path(self.joint)}
        return [1.0 if node.index in on_path else 0.0 for node in tree.nodes]


def jacobian(scan: Scan, q: Array, view: View) -> Array:
    """J (6, nv), rows linear then angular; eq. 14."""
    return flat(scan, columns(scan, bodies(scan, q), view))


def frame_velocity(scan: Scan, q: Array, v: Array, view: View) -> Array:
    """J v (6,), linear then angular."""
    everywhere = bodies(scan, q, v)
    moved = view.seen(everywhere)(everywhere[view.joint].v) if view.joint >= 0 else REST
    return stack_motions(scan, [moved])[:, 0]


def columns(scan: Scan, everywhere: Sequence[PlacedBody], view: View) -> list[list[Motion]]:
    """The columns of J, joint by joint."""
    seen = view.seen(everywhere)

    def step(node: Node, body: PlacedBody, on_path: Scalar) -> list[Motion]:
        return [on_path * seen(S) for S in body.S]

    return scan.each(step, everywhere, view.mask(scan.tree))


def jacobian_hessian(scan: Scan, q: Array, view: View) -> Array:
    """dJ/dq (6, nv, nv): entry [r, i, k] is the change of J[r, i] along dof k; eq. 16."""
    V = VIEWPOINTS[view.viewpoint]

    def within(k: Motion, i: Motion) -> tuple:
        return components((k - V(k)).cross(i))

    def across(i: Motion, k: Motion) -> tuple:
        return components(i.cross(V(k)))

    return np.stack(scan.pairs(within, across, columns(scan, bodies(scan, q), view)))


def jacobian_derivative(scan: Scan, q: Array, v: Array, view: View) -> Array:
    """dJ/dt (6, nv)."""
    everywhere = bodies(scan, q, v)
    seen = view.seen(everywhere)
    V = viewpoint_velocity(everywhere, view)

    def step(node: Node, body: PlacedBody, on_path: Scalar) -> list[Motion]:
        return [on_path * (seen(body.v) - V).cross(seen(S)) for S in body.S]

    return flat(scan, scan.each(step, everywhere, view.mask(scan.tree)))


def jacobian_drift(scan: Scan, q: Array, v: Array, view: View) -> Array:
    """dJ/dt v (6,), without dJ/dt: the rate of the frame's velocity J v at constant joint velocities."""
    everywhere = bodies(scan, q, v)
    a = scan.outward(coasting, everywhere, scan.rates(v))
    if view.joint < 0:
        return stack_motions(scan, [REST])[:, 0]
    seen = view.seen(everywhere)
    a_frame, v_frame = seen(a[view.joint]), seen(everywhere[view.joint].v)
    return stack_motions(scan, [a_frame - viewpoint_velocity(everywhere, view).cross(v_frame)])[:, 0]


def coasting(node: Node, parent: Motion | None, body: PlacedBody, rates: Sequence[Scalar]) -> Motion:
    """A body's spatial acceleration at constant joint velocities: a = a_parent + v x vJ; [RBDA] eq. 5.14."""
    a = parent or REST
    for S, rate in zip(body.S, rates, strict=True):
        a = a + rate * body.v.cross(S)
    return a


def viewpoint_velocity(everywhere: Sequence[PlacedBody], view: View) -> Motion:
    """V, as the viewpoint sees it."""
    if view.joint < 0:
        return REST
    return VIEWPOINTS[view.viewpoint](view.seen(everywhere)(everywhere[view.joint].v))


def flat(scan: Scan, field: Sequence[Sequence[Motion]]) -> Array:
    """Motions, joint by joint, as the columns of a matrix (6, nv)."""
    return stack_motions(scan, [m for joint in field for m in joint])
