"""The spatial Jacobian of a frame to second order; [KINDR] Appendices II and III.

Column i of J is S_i, the motion that dof i gives to the frame's body, seen from one of three viewpoints: the world's
origin, the frame, or a frame that goes along with its origin without turning. S_i rides on the body of its own joint:
along a dof k at or above that joint dS_i = S_k x S_i, and along dofs further out it stays. A viewpoint that moves with
V takes away V x S_i. So, with all motions as they are seen (V_k the viewpoint's motion when the frame's is S_k):

    dS_i/dq_k = (S_k - V_k) x S_i   for k at or above i's joint,   S_i x V_k   for k further out          (eq. 15)
    dS_i/dt   = (v_i - V) x S_i,    v_i being the velocity of i's body                                     (eqs. 17, 18)

(The sheet's i >= j and i < j order one-dof joints of a chain; the dofs of one joint all count as "at or above".)
Dofs off the frame's path to the root move nothing: their columns are zero, and so is all that is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...math.spatial import Motion, Transform
from ...math.vec3 import Scalar
from ...model.tree import Node
from ..motion import REST
from ..scan import Array, Scan
from .kinematics import Placed, bodies, stack_motions

# The viewpoint's motion V when the frame moves with m; "world_aligned" sees the frame's velocity in the world's axes.
VIEWPOINTS: dict[str, Callable[[Motion], Motion]] = {
    "local": lambda m: m,
    "world": lambda m: REST,
    "world_aligned": lambda m: Motion(REST.ang, m.lin),
}


@dataclass(frozen=True, eq=False)
class Sight:
    """A frame placed in the canonical frame of a joint's body (in the world, if joint < 0), and its viewpoint."""

    joint: int
    placement: Transform
    viewpoint: str

    def view(self, everywhere: Sequence[Placed]) -> Callable[[Motion], Motion]:
        """A motion given at the world's origin, as it is seen."""
        X = everywhere[self.joint].X.compose(self.placement) if self.joint >= 0 else self.placement
        if self.viewpoint == "local":
            return X.motion_inverse
        if self.viewpoint == "world_aligned":
            return lambda m: Motion(m.ang, m.lin + m.ang.cross(X.p))
        return lambda m: m

    def path(self, scan: Scan) -> list[float]:
        """One for the joints between the frame and the root, zero for the others."""
        out, at = [0.0] * len(scan.tree.nodes), self.joint
        while at >= 0:
            out[at] = 1.0
            at = scan.tree.nodes[at].parent
        return out


def jacobian(scan: Scan, q: Array, view: Sight) -> Array:
    """J (6, nv), rows linear then angular; eq. 14."""
    return flat(scan, columns(scan, bodies(scan, q), view))


def frame_velocity(scan: Scan, q: Array, v: Array, view: Sight) -> Array:
    """J v (6,), linear then angular."""
    everywhere = bodies(scan, q, v)
    moved = view.view(everywhere)(everywhere[view.joint].v) if view.joint >= 0 else REST
    return stack_motions(scan, [moved])[:, 0]


def columns(scan: Scan, everywhere: Sequence[Placed], view: Sight) -> list[list[Motion]]:
    """The columns of J, joint by joint."""
    seen = view.view(everywhere)

    def step(node: Node, body: Placed, on_path: Scalar) -> list[Motion]:
        return [on_path * seen(S) for S in body.S]

    return scan.each(step, everywhere, view.path(scan))


def jacobian_hessian(scan: Scan, q: Array, view: Sight) -> Array:
    """dJ/dq (6, nv, nv): for each row of J a matrix whose entry [i, k] is the change of column i along dof k; eq. 16."""
    V = VIEWPOINTS[view.viewpoint]

    def within(k: Motion, i: Motion) -> tuple:
        return parts((k - V(k)).cross(i))

    def across(i: Motion, k: Motion) -> tuple:
        return parts(i.cross(V(k)))

    return np.stack(scan.pairs(within, across, columns(scan, bodies(scan, q), view)))


def jacobian_derivative(scan: Scan, q: Array, v: Array, view: Sight) -> Array:
    """dJ/dt (6, nv)."""
    everywhere = bodies(scan, q, v)
    seen = view.view(everywhere)
    V = viewpoint_velocity(everywhere, view)

    def step(node: Node, body: Placed, on_path: Scalar) -> list[Motion]:
        return [on_path * (seen(body.v) - V).cross(seen(S)) for S in body.S]

    return flat(scan, scan.each(step, everywhere, view.path(scan)))


def jacobian_drift(scan: Scan, q: Array, v: Array, view: Sight) -> Array:
    """dJ/dt v (6,) without dJ/dt: the rate of the frame's velocity J v when every dof keeps its speed."""
    everywhere = bodies(scan, q, v)
    a = scan.outward(coasting, everywhere, scan.rates(v))
    if view.joint < 0:
        return stack_motions(scan, [REST])[:, 0]
    seen = view.view(everywhere)
    a_frame, v_frame = seen(a[view.joint]), seen(everywhere[view.joint].v)
    return stack_motions(scan, [a_frame - viewpoint_velocity(everywhere, view).cross(v_frame)])[:, 0]


def coasting(node: Node, parent: Motion | None, body: Placed, rates: Sequence[Scalar]) -> Motion:
    """A body's spatial acceleration at constant joint velocities: a = a_parent + v x vJ; [RBDA] eq. 5.14."""
    a = parent or REST
    for S, rate in zip(body.S, rates, strict=True):
        a = a + rate * body.v.cross(S)
    return a


def viewpoint_velocity(everywhere: Sequence[Placed], view: Sight) -> Motion:
    """V, as it is seen itself."""
    if view.joint < 0:
        return REST
    return VIEWPOINTS[view.viewpoint](view.view(everywhere)(everywhere[view.joint].v))


def parts(m: Motion) -> tuple:
    """Linear, then angular."""
    return m.lin.x, m.lin.y, m.lin.z, m.ang.x, m.ang.y, m.ang.z


def flat(scan: Scan, field: Sequence[Sequence[Motion]]) -> Array:
    return stack_motions(scan, [m for joint in field for m in joint])
