"""A simulated motion as a function of time, as the viewer wants it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.model import Array
from ..robot.robot import Robot
from ..simulation.trajectory import Trajectory


class Playback:
    """A trajectory between its samples: positions on the way from one to the next, torques those of the step."""

    source = ""  # a trajectory has its robot in it, and no file with meshes

    def __init__(self, trajectory: Trajectory) -> None:
        if trajectory.model is None or len(trajectory) < 2:
            raise InputError("a trajectory without its robot, or of one state alone, cannot be played")
        self.robot, self.trajectory = Robot(trajectory.model, "numpy"), trajectory.standard()
        self._t = trajectory.t - trajectory.t[0]
        self.duration = float(self._t[-1])

    @property
    def caption(self) -> str:
        cut = "" if self.trajectory.complete else ", interrupted"
        return f"simulated, {len(self.trajectory)} states{cut}"

    def times(self, count: int = 201) -> Array:
        """So many times from start to end [s]."""
        return np.linspace(0.0, self.duration, count)

    def q(self, t: ArrayLike) -> Array:
        """Configurations (..., nq)."""
        t = np.asarray(t, float)
        k = self._step(t)
        share = (t - self._t[k]) / (self._t[k + 1] - self._t[k])
        return self.robot.interpolate(self.trajectory.q[k], self.trajectory.q[k + 1], share)

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., nv)."""
        return self.trajectory.tau[self._step(np.asarray(t, float))]

    def arrows(self, t: ArrayLike) -> Array:
        """Where contact forces act and what they are, (..., contacts, 2, 3) in the world."""
        return self.trajectory.arrows[self._step(np.asarray(t, float))]

    def energy_rate(self, t: ArrayLike) -> Array:
        """The sum of squared torques (...)."""
        return (self.tau(t) ** 2).sum(-1)

    def _step(self, t: Array) -> Array:
        return np.clip(np.searchsorted(self._t, t, "right") - 1, 0, len(self._t) - 2)
