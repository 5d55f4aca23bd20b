"""A simulated motion as a function of time, for the viewer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..evaluate.evaluator import Evaluator
from ..model.model import Array, Model
from ..view.playable import ContactForces
from .trajectory import Trajectory


class Playback:
    """A trajectory at any time: configurations are interpolated, torques and forces constant over a step.

    Times t (...) [s] run from 0 to `duration`.
    """

    source = ""  # a trajectory file contains the robot, but no meshes

    def __init__(self, trajectory: Trajectory) -> None:
        if trajectory.model is None or len(trajectory) < 2:
            raise InputError("trajectory: cannot be played without its robot's model and at least two states")
        if trajectory.worlds:
            raise InputError(f"trajectory: it has {trajectory.worlds} worlds; play one of them, such as trajectory[0]")
        self.model: Model = trajectory.model
        self.trajectory = trajectory.standard()
        self._evaluate = Evaluator(self.model, "numpy")
        self._t = trajectory.t - trajectory.t[0]
        self.duration = float(self._t[-1])

    @property
    def caption(self) -> str:
        """One line that describes the motion."""
        cut = "" if self.trajectory.complete else ", interrupted"
        return f"simulated, {len(self.trajectory)} states{cut}"

    @property
    def contact_forces(self) -> ContactForces:
        """The contacts' names, the ground, and the forces."""
        return ContactForces(self.trajectory.contacts, self.trajectory.surface, self.arrows)

    def times(self, count: int = 201) -> Array:
        """`count` equally spaced times (count,) from 0 to `duration`."""
        return np.linspace(0.0, self.duration, count)

    def q(self, t: ArrayLike) -> Array:
        """Configurations (..., nq)."""
        t = np.asarray(t, float)
        k = self._step(t)
        share = (t - self._t[k]) / (self._t[k + 1] - self._t[k])
        return self._evaluate("interpolate", self.trajectory.q[k], self.trajectory.q[k + 1], share[..., None])

    def placements(self, t: ArrayLike) -> Array:
        """Placements (..., njoints, 4, 4) of the joints' frames in the world."""
        return self._evaluate("forward_kinematics", self.q(t))

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., nv) [N m, N]."""
        return self.trajectory.tau[self._step(np.asarray(t, float))]

    def arrows(self, t: ArrayLike) -> Array:
        """The points [m] where contact forces act, and the forces [N], (..., contacts, 2, 3) in the world."""
        return self.trajectory.arrows[self._step(np.asarray(t, float))]

    def energy_rate(self, t: ArrayLike) -> Array:
        """The sum of squared torques (...)."""
        return (self.tau(t) ** 2).sum(-1)

    def _step(self, t: Array) -> Array:
        return np.clip(np.searchsorted(self._t, t, "right") - 1, 0, len(self._t) - 2)
