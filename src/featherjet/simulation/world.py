"""A world that is stepped by hand, for loops that have their own controller: reinforcement learning, teleoperation."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Out
from ..blas import sum_of_squares
from ..contact.ground import Ground
from ..errors import FixedAttribute, InputError, SimulationError, SimulationWarning, warn
from ..evaluate.evaluator import HasEvaluator
from ..model.model import Array
from .engine import Compiled
from .lost import Living, told
from .steps import TimeStepping
from .timestep import StepDerivatives, TimeStep, checked_robot

WRITABLE = ("q", "v", "tau")


class World:
    """A robot on its ground, or many (leading axes of q and v), in time steps of dt; the method is "time-stepping".

    q (..., nq), v (..., nv), tau (..., nv) and t [s] are read and may be written between steps; `world.q = q` writes
    into the array. forces (..., 3 feet) [N]: those of the last step, in world axes; residual (...) [N s]: see
    `Trajectory`.

        world = fj.World(robot, q, v, contacts=ground, dt=2e-3)
        world.tau[:] = controller(world.q, world.v)
        world.step()
    """

    def __init__(
        self, robot: HasEvaluator, q: ArrayLike, v: ArrayLike, contacts: Ground | None = None, *, dt: float = 1e-3,
        passive: bool = True,
    ) -> None:  # fmt: skip
        evaluator = checked_robot(robot, contacts, dt, "World")
        q, v = evaluator.checked_q("q", q), evaluator.checked_v("v", v)
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        self.q, self.v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
        self.tau, self.t, self.dt = np.zeros_like(self.v), 0.0, float(dt)
        self._function = TimeStep(robot, contacts, dt=dt, passive=passive)
        self.laws = self._function.laws
        self._steps = self._function.steps(batch)
        feet = 0 if contacts is None else 3 * len(contacts.feet)
        self.forces, self.residual = np.zeros((*batch, feet)), np.zeros(batch)
        self._lost = np.zeros(batch, bool)
        self._fast = _Fast(self, self._steps) if not batch else None

    def __setattr__(self, name: str, value: Any) -> None:
        """Write into the arrays, which machine code reads and so remain the same; nothing else but t can be set."""
        if "_fast" not in self.__dict__ or name == "t":
            self.__dict__[name] = value
        elif name in WRITABLE:
            array: Array = self.__dict__[name]
            try:
                array[...] = value
            except (TypeError, ValueError):
                raise InputError(f"world.{name}: expected shape {array.shape}, got {np.shape(value)}") from None
        else:
            raise FixedAttribute("World", name, self.__dict__, (*WRITABLE, "t"))

    def __repr__(self) -> str:
        return f"<World of {self._steps.evaluate.model.name}: {self.q.shape[:-1] or 'one'}, t = {self.t:g} s>"

    def step(self, count: int = 1) -> None:
        """Go on by `count` steps with the same torques."""
        for _ in range(count):
            if self._fast is None or not self._fast():
                self._step()
            self.__dict__["t"] += self.dt

    def step_derivatives(self, out: Out = None) -> StepDerivatives:
        """The derivatives of the next step, which is not made, by q, v and tau; see `TimeStep`."""
        living = self._living()
        found = self._function.derivatives(*living.replaced(self.q, self.v, self.tau, None)[:3], out)
        for x in found if living.lost.any() else ():
            x[living.lost] = np.nan
        return found

    def _step(self) -> None:
        living = self._living()
        q, v, tau, _ = living.replaced(self.q.copy(), self.v.copy(), self.laws.limited(self.tau), None)
        found = living(q, v, tau)
        if living.lost.all():
            raise SimulationError(f"the motion diverges at t = {self.t:g} s. Use a smaller dt or softer gains", None)
        self.q[...], self.v[...], self.forces[...], self.residual[...] = found[:4]
        for x in (self.q, self.v, self.forces, self.residual) if living.lost.any() else ():
            x[living.lost] = np.nan
        if (living.lost & ~self._lost).any():
            warn(SimulationWarning(f"{told(living.lost)} from t = {self.t + self.dt:.3g} s on, and the others go on"))
        self.__dict__["_lost"] = living.lost
        if not found.converged.all():
            warn(SimulationWarning(f"contact forces did not converge at t = {self.t:g} s; see World.residual"))

    def _living(self) -> Living:
        """Steps that know which worlds are not numbers; raises if all are such."""
        living = Living(self._steps, self.q.shape[:-1])
        for name in ("q", "v", "tau"):
            x = getattr(self, name)
            if not isfinite(sum_of_squares(x)):
                living.lose(~np.isfinite(x).all(-1))
                if living.lost.all():
                    raise InputError(f"world.{name}: every entry must be finite")
        return living


class _Fast:
    """One world by one call of machine code, while nothing but feet on a plane without restitution is concerned."""

    def __init__(self, world: World, steps: TimeStepping) -> None:
        self.world, self.steps, self.laws = world, steps, world.laws
        engine = steps.unlimited or steps.engine
        simple = steps.bounces is None and steps.fixed is not None and (steps.unlimited or not world.laws.stops)
        self.run: Callable[[], int] | None = None
        if not isinstance(engine, Compiled) or not simple or steps.fixed is None or self.laws.springs:
            return
        laws, nv = self.laws, len(world.v)
        self.push, self.start = np.zeros(nv), steps.last.copy()
        self.q, self.v, self.P, self.solver_report = (
            np.empty_like(world.q),
            np.empty(nv),
            np.empty_like(self.start),
            np.empty(4),
        )
        soft = steps.nothing if laws.free else steps.soft
        given = (world.q, world.v, self.push, soft, steps.fixed, steps.none, self.start, steps.whole)
        self.run = engine.kernels.step.bound(*given, self.q, self.v, self.P, self.solver_report)
        self.inverse = 1.0 / world.dt

    def __call__(self) -> bool:
        """Make a step; False if it must be made in another way."""
        world, laws, steps = self.world, self.laws, self.steps
        if self.run is None or steps.pressed:
            return False
        push: Array = self.push
        if laws.bounded:
            np.maximum(world.tau, -laws.effort, out=push)
            np.minimum(push, laws.effort, out=push)
        else:
            push[:] = world.tau
        if not laws.free:
            push -= laws.damping * world.v
        if steps.last is not self.start:
            self.start[:] = steps.last
            steps.last = self.start
        if self.run() or (laws.stops and laws.reached(self.q)):
            return False
        speed = self.v.dot(self.v)
        if not speed < 1e16 or self.solver_report[0] > steps.tiny:
            return False
        world.q[:], world.v[:], self.start[:] = self.q, self.v, self.P
        if world.forces.size:
            np.multiply(self.P, self.inverse, world.forces)
        world.residual[...] = self.solver_report[0]
        return True
