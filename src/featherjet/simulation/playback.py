"""A simulated motion as a function of time, for the viewer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..evaluate.evaluator import Evaluator
from ..model.model import Array, Model
from ..view.playable import DrawnForces, motion_to_show


class Recorded(Protocol):
    """What playing needs of a Trajectory, whose docstring has the shapes."""

    @property
    def t(self) -> Array: ...
    @property
    def q(self) -> Array: ...
    @property
    def tau(self) -> Array: ...
    @property
    def arrows(self) -> Array: ...
    @property
    def surface(self) -> Array: ...
    @property
    def contacts(self) -> tuple[str, ...]: ...
    @property
    def friction(self) -> tuple[float, ...]: ...
    @property
    def model(self) -> Model | None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def worlds(self) -> tuple[int, ...]: ...
    def standard(self) -> Recorded: ...
    def __len__(self) -> int: ...


class Playback:
    """A trajectory at any time: configurations are interpolated, torques and forces constant over a step.

    Times t (...) [s] run from 0 to `duration`. If the trajectory has worlds, results have one axis of all of them
    behind those of t. made: how the trajectory came about, for the caption.
    """

    def __init__(self, trajectory: Recorded, made: str = "simulated") -> None:
        if trajectory.model is None or len(trajectory) < 2:
            raise InputError("trajectory: cannot be played without its robot's model and at least two states")
        self.model: Model = trajectory.model
        self._made = made
        self.trajectory = trajectory.standard()
        self.worlds = math.prod(trajectory.worlds)
        self._q, self._tau, self._arrows = (
            self._over_time(x) for x in (self.trajectory.q, self.trajectory.tau, self.trajectory.arrows)
        )
        self._evaluate = Evaluator(self.model, "numpy")
        self._t = trajectory.t - trajectory.t[0]
        self.duration = float(self._t[-1])

    def _over_time(self, x: Array) -> Array:
        """An array (*worlds, n, ...) with time first: (n, [worlds,] ...)."""
        batch = self.trajectory.worlds
        return np.moveaxis(x.reshape(self.worlds, *x.shape[len(batch) :]), 0, 1) if batch else x

    @property
    def caption(self) -> str:
        """One line that describes the motion."""
        cut = "" if self.trajectory.complete else ", interrupted"
        count = f"{self.worlds} worlds, " if self.trajectory.worlds else ""
        return f"{self._made}, {count}{len(self.trajectory)} states{cut}"

    @property
    def contact_forces(self) -> DrawnForces:
        """The contacts' names, the ground, the forces and the coefficients of friction."""
        found = self.trajectory
        return DrawnForces(found.contacts, found.surface, self.arrows, found.friction)

    def times(self, count: int = 201) -> Array:
        """`count` equally spaced times (count,) from 0 to `duration`."""
        return np.linspace(0.0, self.duration, count)

    def q(self, t: ArrayLike) -> Array:
        """Configurations (..., [worlds,] nq)."""
        t = np.asarray(t, float)
        k, share = self._share(t, self._q.ndim - 1)
        return self._evaluate("interpolate", self._q[k], self._q[k + 1], share)

    def placements(self, t: ArrayLike) -> Array:
        """Placements (..., [worlds,] njoints, 4, 4) of the joints' frames in the world."""
        return self._evaluate("forward_kinematics", self.q(t))

    def tau(self, t: ArrayLike) -> Array:
        """Torques (..., [worlds,] nv) [N m, N]."""
        return self._tau[self._step(np.asarray(t, float))]

    def arrows(self, t: ArrayLike) -> Array:
        """The points [m] where contact forces act, and the forces [N], (..., [worlds,] contacts, 2, 3) in the world."""
        k, share = self._share(np.asarray(t, float), self._arrows.ndim - 2)
        now, then = self._arrows[k], self._arrows[k + 1]
        point = now[..., 0, :] + share * (then - now)[..., 0, :]
        return np.stack([point, now[..., 1, :]], -2)

    def energy_rate(self, t: ArrayLike) -> Array:
        """The sum of squared torques (..., [worlds])."""
        return (self.tau(t) ** 2).sum(-1)

    def _share(self, t: Array, axes: int) -> tuple[Array, Array]:
        """The steps that times t (...) are in, and how much of them has passed, with as many axes more."""
        k = self._step(t)
        share = (t - self._t[k]) / (self._t[k + 1] - self._t[k])
        return k, share.reshape(*t.shape, *(1,) * axes)

    def _step(self, t: Array) -> Array:
        return np.clip(np.searchsorted(self._t, t, "right") - 1, 0, len(self._t) - 2)


@dataclass(frozen=True)
class Samples:
    """Configurations q (..., n, nq) at times t (n,) [s], and nothing else to draw."""

    model: Model
    t: Array
    q: Array
    surface: Array = field(default_factory=lambda: np.zeros((0, 0, 3)))
    contacts: tuple[str, ...] = ()
    friction: tuple[float, ...] = ()
    complete: bool = True

    def __len__(self) -> int:
        return len(self.t)

    @property
    def worlds(self) -> tuple[int, ...]:
        return self.q.shape[:-2]

    @property
    def tau(self) -> Array:
        return np.zeros((*self.q.shape[:-1], self.model.nv))

    @property
    def arrows(self) -> Array:
        return np.zeros((*self.q.shape[:-1], 0, 2, 3))

    def standard(self) -> Samples:
        return self


motion_to_show.register(Playback, lambda playback: playback)


def sampled(model: Model, q: Array, dt: float) -> Playback:
    """A motion through configurations q (..., n, nq), in the standard convention, dt seconds apart."""
    dt = arrays.positive_number("dt", dt)
    if q.ndim < 2 or q.shape[-2] < 2:
        raise InputError(f"q: a motion has at least two configurations, shape (..., n, {model.nq}); got {q.shape}")
    return Playback(Samples(model, dt * np.arange(q.shape[-2]), q), "sampled")
