"""Flat coordinates of a robot's configurations, in which splines can be drawn.

Every joint gets nv coordinates x around a reference configuration; x, x', x'' determine its q, v, a:

    one-axis joints    x = q; for a continuous joint, the angle from the reference
    ball               x = 2 tan(angle / 2) axis, the Rodrigues parameters of the rotation from the reference
    planar, free       x = position in the world, then angle or Rodrigues parameters

Rodrigues parameters are rational where exponential coordinates are not, agree with them to third order, and reach every
rotation except those half a turn away from the reference. With the reference midway, the ends of a transition are at
most a quarter turn away: |x| <= 2.

Gradients. Let eta = J(x) dx be the change of q in body axes, J the chart's Jacobian: v = J x'. On a group,
    dv = eta' + v x eta,    da = eta'' + a x eta + v x eta'        (x: the bracket of the group)
so a function with slopes gq, gv, ga has, along dx, dx', dx'', the slopes
    J^T h0 + J'^T h1 + J''^T h2,         J^T h1 + 2 J'^T h2,        J^T h2,
    h0 = gq + (v x)^T gv + (a x)^T ga,   h1 = gv + (v x)^T ga,      h2 = ga.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..math import rotations as so3
from ..model import configuration
from ..model.manifolds import SE2, SE3, SO2, SO3, Euclidean
from ..model.model import Model
from . import rodrigues
from .compiled import SampledFormula

Array = np.ndarray


class JointChart:
    """The chart of a joint whose configurations form a vector space: x = q, v = x', a = x''."""

    def __init__(self, reference: Array, compiled: bool) -> None:
        pass

    def coordinates(self, q: Array) -> Array:
        """x (..., nv) of configurations (..., nq)."""
        return q

    def rates(self, x: Array, v: Array) -> Array:
        """x' (..., nv) of velocities v at x."""
        return v

    def lift(self, jets: Array, q: Array) -> Any:
        """Write q (N, nq) and overwrite x' and x'' in jets (N, 3, nv) by v and a; return a tape for `pull`."""
        q[:] = jets[:, 0]

    def pull(self, tape: Any, slopes: Array) -> None:
        """Turn slopes (N, 3, nv) by q, v, a into slopes by x, x', x'', in place; `tape` is what `lift` returned."""


class AngleChart(JointChart):
    """A continuous joint: q = (cosine, sine)."""

    def __init__(self, reference: Array, compiled: bool) -> None:
        self.angle = np.arctan2(reference[1], reference[0])

    def coordinates(self, q: Array) -> Array:
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.arctan2(c * q[..., 1] - s * q[..., 0], c * q[..., 0] + s * q[..., 1])[..., None]

    def lift(self, jets: Array, q: Array) -> Any:
        angle = self.angle + jets[:, 0, 0]
        q[:, 0], q[:, 1] = np.cos(angle), np.sin(angle)


class FormulaChart(JointChart):
    """A chart whose formulas, in rodrigues.py, are evaluated for all samples at once."""

    nq: int
    nv: int
    formulas: tuple[Any, Any]

    def __init__(self, reference: Array, compiled: bool) -> None:
        self.constants = np.ascontiguousarray(self.constant(reference))
        lift, pull = self.formulas
        self._lift = SampledFormula(lift, len(self.constants), 3 * self.nv, compiled)
        self._pull = SampledFormula(pull, len(self.constants), 6 * self.nv, compiled)

    def constant(self, reference: Array) -> Array:
        """The constants of the formulas, from the reference (nq,)."""
        return reference

    def lift(self, jets: Array, q: Array) -> Any:
        n, nv = len(jets), self.nv
        tape = jets.reshape(n, 3 * nv)
        tape = tape.copy() if np.may_share_memory(tape, jets) else tape  # jets are about to be overwritten
        out = self._lift(self.constants, tape)
        q[:] = out[:, : self.nq]
        jets[:, 1:] = out[:, self.nq :].reshape(n, 2, nv)
        return tape

    def pull(self, tape: Any, slopes: Array) -> None:
        n, nv = len(slopes), self.nv
        given = np.concatenate([tape, slopes.reshape(n, 3 * nv)], 1)
        slopes[:] = self._pull(self.constants, given).reshape(n, 3, nv)


class BallChart(FormulaChart):
    """A ball joint: q = quaternion x y z w."""

    nq, nv, formulas = 4, 3, (rodrigues.lift_ball, rodrigues.pull_ball)

    def coordinates(self, q: Array) -> Array:
        back = so3.quaternion_conjugate(so3.wxyz_from_xyzw(self.constants))
        relative = so3.quaternion_product(back, so3.wxyz_from_xyzw(q))
        return 2 * relative[..., 1:] / relative[..., :1]

    def rates(self, x: Array, v: Array) -> Array:
        rho = x / 2
        return v + np.cross(rho, v) + rho * (rho * v).sum(-1, keepdims=True)


class FreeChart(FormulaChart):
    """A free joint: q = (x y z, quaternion x y z w)."""

    nq, nv, formulas = 7, 6, (rodrigues.lift_free, rodrigues.pull_free)

    def __init__(self, reference: Array, compiled: bool) -> None:
        super().__init__(reference, compiled)
        self.ball = BallChart(self.constants, False)

    def constant(self, reference: Array) -> Array:
        return reference[3:]

    def coordinates(self, q: Array) -> Array:
        return np.concatenate([q[..., :3], self.ball.coordinates(q[..., 3:])], -1)

    def rates(self, x: Array, v: Array) -> Array:
        turned = np.concatenate([x[..., 3:] / 2, np.ones_like(x[..., :1])], -1)
        turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
        Q = so3.quaternion_product(so3.wxyz_from_xyzw(self.constants), so3.wxyz_from_xyzw(turned))
        return np.concatenate([so3.rotate(Q, v[..., :3]), self.ball.rates(x[..., 3:], v[..., 3:])], -1)


class PlanarChart(FormulaChart):
    """A planar joint: q = (x, y, cosine, sine)."""

    nq, nv, formulas = 4, 3, (rodrigues.lift_planar, rodrigues.pull_planar)

    def __init__(self, reference: Array, compiled: bool) -> None:
        super().__init__(reference, compiled)
        self.turn = AngleChart(reference[2:], False)

    def constant(self, reference: Array) -> Array:
        return np.arctan2(reference[3:], reference[2:3])

    def coordinates(self, q: Array) -> Array:
        return np.concatenate([q[..., :2], self.turn.coordinates(q[..., 2:])], -1)

    def rates(self, x: Array, v: Array) -> Array:
        c, s = np.cos(self.turn.angle + x[..., 2]), np.sin(self.turn.angle + x[..., 2])
        return np.stack([c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1], v[..., 2]], -1)


CHARTS: dict[type, type[JointChart]] = {
    Euclidean: JointChart,
    SO2: AngleChart,
    SO3: BallChart,
    SE3: FreeChart,
    SE2: PlanarChart,
}


class FlatChart:
    """The charts of all joints of a robot, around one reference configuration (nq,)."""

    def __init__(self, model: Model, reference: Array, compiled: bool = False) -> None:
        self.model, self.reference = model, reference
        self.parts: list[tuple[JointChart, slice, slice]] = []
        for _, manifold, iq, iv in configuration.parts(model):
            kind = CHARTS[type(manifold)]
            if kind is JointChart and self.parts and type(self.parts[-1][0]) is JointChart:  # neighbours share one call
                flat, q, v = self.parts[-1]
                self.parts[-1] = flat, slice(q.start, iq.stop), slice(v.start, iv.stop)
            else:
                self.parts.append((kind(reference[iq], compiled), iq, iv))

    def coordinates(self, q: Array) -> Array:
        """x (..., nv) of configurations q (..., nq)."""
        return np.concatenate([part.coordinates(q[..., iq]) for part, iq, _ in self.parts], -1)

    def rates(self, x: Array, v: Array) -> Array:
        """x' (..., nv) for which v = J(x) x'."""
        return np.concatenate([part.rates(x[..., iv], v[..., iv]) for part, _, iv in self.parts], -1)

    def lift(self, jets: Array, q: Array) -> list[Any]:
        """Write q (N, nq) and overwrite x' and x'' in jets (N, 3, nv) by v and a; return a tape for `pull`."""
        return [part.lift(jets[:, :, iv], q[:, iq]) for part, iq, iv in self.parts]

    def pull(self, tape: list[Any], slopes: Array) -> None:
        """Turn slopes (N, 3, nv) by q (in the tangent space), v and a into slopes by x, x' and x'', in place."""
        for (part, _, iv), saved in zip(self.parts, tape, strict=True):
            part.pull(saved, slopes[:, :, iv])
