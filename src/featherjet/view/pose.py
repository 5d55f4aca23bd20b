"""A robot that stands still, for the viewer: at one configuration, which sliders change, or at many side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..evaluate.convert import converted
from ..evaluate.evaluator import Evaluator
from ..math import rotations as so3
from ..model import configuration
from ..model.manifolds import Manifold
from ..model.model import Array, Model
from ..model.names import coordinate_names
from .playable import DrawnForces, motion_to_show

TURN, SLIDE = np.pi, 1.0  # [rad], [m]: how far sliders of joints without limits go


class Slider(NamedTuple):
    """A slider: its name, its range, and its value in the configuration it starts from."""

    name: str
    lower: float
    upper: float
    value: float


class Pose:
    """A robot at configurations q (..., nq), with external forces fext (..., njoints, 6) if given."""

    duration = 0.0

    def __init__(self, evaluator: Evaluator, q: Array, fext: Array | None = None) -> None:
        self.model: Model = evaluator.model
        self._evaluate = Evaluator(self.model, "numpy")
        self.configurations = np.array(q, float).reshape(-1, self.model.nq)
        self._fext = None if fext is None else np.asarray(fext, float)

    @property
    def worlds(self) -> int:
        return len(self.configurations)

    @property
    def caption(self) -> str:
        """One line that describes the pose."""
        count = f"{self.worlds} configurations" if self.worlds > 1 else f"{self.model.nv} degrees of freedom"
        return f"{count}, {self.model.mass:.4g} kg"

    @property
    def contact_forces(self) -> DrawnForces | None:
        """The external forces, at the joints' frames."""
        if self._fext is None:
            return None
        return DrawnForces(self.model.joint_names, np.zeros((0, 0, 3)), self.arrows)

    def times(self, count: int = 1) -> Array:
        """The only time (1,)."""
        return np.zeros(1)

    def placements(self, t: ArrayLike) -> Array:
        """Placements (..., worlds, njoints, 4, 4) of the joints' frames in the world."""
        found = self._evaluate("forward_kinematics", self.configurations)
        return np.broadcast_to(found, (*np.shape(t), *found.shape))

    def arrows(self, t: ArrayLike) -> Array:
        """The joints' origins [m] and the external forces there [N], (..., worlds, njoints, 2, 3) in the world."""
        T = self.placements(t)
        force = np.zeros(3) if self._fext is None else (T[..., :3, :3] @ self._fext[..., :3, None])[..., 0]
        return np.stack(np.broadcast_arrays(T[..., :3, 3], force), -2)

    def tau(self, t: ArrayLike) -> Array:
        """The torques (..., worlds, nv) [N m, N] that hold the robot still."""
        found = self._evaluate("gravity", self.configurations)
        return np.broadcast_to(found, (*np.shape(t), *found.shape))

    def energy_rate(self, t: ArrayLike) -> Array:
        """The sum of squared torques (..., worlds)."""
        return (self.tau(t) ** 2).sum(-1)

    # Sliders: one for each degree of freedom. A rotation vector stands for a quaternion, an angle for cosine and sine.

    def sliders(self) -> list[Slider]:
        """A slider for each degree of freedom, within the limits; joints without limits go a turn, or a metre."""
        q, names, found = self.configurations[0], coordinate_names(self.model)[1], []
        for part in self.model.parts:
            values = _unfolded(part.joint.kind.name, q[part.q], part.manifold)
            bounded = part.joint.kind.nq == 1
            for i, value in enumerate(values):
                name = names[part.v.start + i]
                lower, upper = (part.joint.lower[0], part.joint.upper[0]) if bounded else (-np.inf, np.inf)
                reach = SLIDE if _slides(part.joint.kind.v_parts[i], part.joint.kind.name) else TURN
                lower = float(lower) if np.isfinite(lower) else min(-reach, value)
                upper = float(upper) if np.isfinite(upper) else max(reach, value)
                found.append(Slider(name, lower, max(upper, lower + 1e-9), float(np.clip(value, lower, upper))))
        return found

    def move(self, values: ArrayLike) -> None:
        """Put the robot where sliders (nv,) say."""
        values = np.asarray(values, float)
        for part in self.model.parts:
            self.configurations[0, part.q] = _folded(part.joint.kind.name, values[part.v], part.manifold)


motion_to_show.register(Pose, lambda pose: pose)


def standing(evaluator: Evaluator, q: ArrayLike | None = None, fext: ArrayLike | None = None) -> Pose:
    """A robot at rest at configurations q (..., nq), by default the neutral one within its limits."""
    at = start(evaluator.model) if q is None else converted(evaluator, evaluator.standard, q).q
    shape = evaluator.model.njoints, 6
    forces = None if fext is None else arrays.finite("fext", fext, shape, "a wrench for each joint")
    return Pose(evaluator, at, forces)


def start(model: Model) -> Array:
    """The neutral configuration (nq,), moved to where joint limits allow it."""
    q, bounds = configuration.neutral(model), configuration.limits(model)
    for part in model.parts:
        if part.joint.kind.nq == 1:
            q[part.q] = np.clip(q[part.q], bounds.lower[part.q], bounds.upper[part.q])
    return q


def _slides(part: str, kind: str) -> bool:
    """Whether a degree of freedom is a translation."""
    return part in ("x", "y", "z") or kind == "prismatic"


def _unfolded(kind: str, q: Array, manifold: Manifold) -> Array:
    """The values (nv,) of a joint's sliders: those of its position as they are, those of rotations as vectors."""
    if kind == "free":
        return np.concatenate([q[:3], so3.convert(q[[6, 3, 4, 5]], "quaternion", "rotation_vector")])
    if kind == "planar":
        return np.array([q[0], q[1], np.arctan2(q[3], q[2])])
    return np.array(manifold.difference(manifold.neutral(), q), float)


def _folded(kind: str, values: Array, manifold: Manifold) -> Array:
    """The coordinates (nq,) that sliders (nv,) stand for."""
    if kind == "free":
        w, x, y, z = so3.convert(values[3:], "rotation_vector", "quaternion")
        return np.array([*values[:3], x, y, z, w])
    if kind == "planar":
        return np.array([values[0], values[1], np.cos(values[2]), np.sin(values[2])])
    return np.array(manifold.integrate(manifold.neutral(), values), float)
