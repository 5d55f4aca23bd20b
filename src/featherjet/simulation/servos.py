"""Servos: controllers whose stiffness and damping the simulation knows, so that stiff ones stay stable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .. import arrays
from ..errors import InputError
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..model.model import WORLD, Array
from .laws import Pull

Goal = ArrayLike | Callable[[float], ArrayLike]


class Servo:
    """tau = feedforward + kp (target - q) + kd (velocity - v), within the joints' effort limits; a controller.

    kp [N m/rad, N/m] and kd [N m s/rad, N s/m]: one number, or one for each degree of freedom (nv,); a free base has
    none. target (nq,) or (..., nq), velocity and feedforward (nv,) or (..., nv): arrays, or functions of time. The
    difference target - q is that of the manifold. A simulation treats kp and kd implicitly: any gains are stable.
    """

    __slots__ = ("evaluator", "feedforward", "kd", "kp", "model", "target", "velocity")

    def __init__(
        self,
        robot: HasEvaluator,
        *,
        kp: ArrayLike = 0.0,
        kd: ArrayLike = 0.0,
        target: Goal | None = None,
        velocity: Goal | None = None,
        feedforward: Goal | None = None,
    ) -> None:
        evaluator = getattr(robot, "evaluator", None)
        if not isinstance(evaluator, Evaluator):
            raise InputError(f"Servo: expected a robot first, such as fj.load(...), got {type(robot).__name__}")
        self.evaluator, self.model = evaluator, evaluator.model
        self.kp, self.kd = self._gains("kp", kp), self._gains("kd", kd)
        if target is None and self.kp.any():
            raise InputError("Servo: kp needs a target configuration to pull to")
        self.target, self.velocity, self.feedforward = target, velocity, feedforward
        if target is not None and not callable(target):
            evaluator.checked_q("target", target)
        for name, goal in (("velocity", velocity), ("feedforward", feedforward)):
            if goal is not None and not callable(goal):
                evaluator.checked_v(name, goal)

    def __repr__(self) -> str:
        gains = ", ".join(f"{k} up to {np.max(getattr(self, k)):g}" for k in ("kp", "kd"))
        return f"<Servo of {self.model.name}: {gains}>"

    def _gains(self, name: str, value: ArrayLike) -> Array:
        nv = self.model.nv
        x = arrays.finite(name, value, np.shape(value), "a number, or one for each degree of freedom")
        if x.shape not in ((), (nv,)):
            raise InputError(f"{name}: expected one number, or nv = {nv} of them; got {x.shape}")
        if (x < 0).any():
            raise InputError(f"{name}: must not be negative, got {arrays.shortened(value)}")
        gains = np.array(np.broadcast_to(x, nv))
        for joint, _, _, v in self.model.parts:
            if joint.parent == WORLD and joint.kind.name == "free":
                gains[v] = 0.0
        return gains

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Torques (..., nv)."""
        return self.pull(t, q, v).force

    def pull(self, t: float, q: Array, v: Array) -> Pull:
        """The torques at a state, and the gains."""
        way, rate = self.errors(t, q, v)
        force = self.kp * way + self.kd * rate
        if self.feedforward is not None:
            force = force + self._at("feedforward", self.feedforward, t)
        return Pull(force, self.kd, self.kp)

    def errors(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """What kp and kd multiply: target - q, in the tangent space of q, and velocity - v."""
        rate = -v if self.velocity is None else self._at("velocity", self.velocity, t) - v
        way = np.zeros_like(rate) if self.target is None else self.evaluator("difference", q, self._goal(t))
        return way, rate

    def turn(self, t: float, q: Array) -> Array:
        """How the error of position changes with q, (..., nv, nv)."""
        if self.target is None:
            return np.zeros((self.model.nv, self.model.nv))
        return self.evaluator("difference_jacobians", q, self._goal(t))[0]

    def _goal(self, t: float) -> Array:
        return self.evaluator.checked_q("target", self.target(t) if callable(self.target) else self.target)

    def _at(self, name: str, goal: Goal, t: float) -> Array:
        return self.evaluator.checked_v(name, goal(t) if callable(goal) else goal)
