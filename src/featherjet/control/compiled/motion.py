"""The robot along the knots of a phase: quantities at all knots at once, each computed when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...algorithms.quantities import FRAME, QUANTITIES
from ...evaluate import frames
from ...jit.kernel import Kernel
from ..residuals.signals import DynamicsSlopes, Signal, SignalSlopes
from .replay import DIRECT, Direct
from .robot import PhaseRobot

Array = np.ndarray
NO_RESTITUTION = np.zeros(1)
NOTHING: Mapping[Any, tuple[Array, ...]] = MappingProxyType({})


class PhaseMotion:
    """The robot of a phase at states x (..., nx) and controls u (..., nu).

    Each quantity is computed when first asked for, as a step of `steps`. results: what has been computed before, such
    as "dynamics": (accelerations, forces).
    """

    def __init__(
        self,
        robot: PhaseRobot,
        x: Array,
        u: Array,
        results: Mapping[Any, tuple[Array, ...]] = NOTHING,
        steps: Direct = DIRECT,
    ) -> None:
        self.robot, self.size, self.mass, self.steps = robot, robot.size, robot.mass, steps
        nq = self.size.nq
        self.x, self.u = x, u[..., : self.size.nu]
        self.q, self.v = x[..., :nq], x[..., nq:]
        self._results = dict(results)

    def followed_by(self, steps: Direct) -> PhaseMotion:
        """The same motion with all that has been computed; what else is asked for is a step of others."""
        return PhaseMotion(self.robot, self.x, self.u, self._results, steps)

    def _run(self, key: Any, kernel: Kernel, *inputs: Array) -> tuple[Array, ...]:
        """The results of a kernel, which are kept."""
        results = self._results[key] = self.steps.run(kernel, *inputs)
        return results

    def _do(self, key: Any, shape: tuple[int, ...], step: Callable[[Array], object]) -> Array:
        """An array of zeros after a step that writes into it, which is kept."""
        results = self._results.get(key)
        if results is None:
            out = np.zeros(shape)
            self.steps.do(lambda: step(out))
            results = self._results[key] = (out,)
        return results[0]

    def _driven(self, key: str, x: Array) -> Array:
        """Columns of the driven dofs."""
        at = self.robot.driven_slice
        if isinstance(at, slice):
            return x[..., at]
        return self._do(key, (*x.shape[:-1], len(at)), lambda out: np.take(x, at, -1, out))

    @property
    def tau(self) -> Array:
        """All torques (..., nv)."""
        robot = self.robot
        if len(robot.driven) == self.size.nv and robot.in_order:
            return self.u
        shape = (*self.u.shape[:-1], self.size.nv)
        return self._do("tau", shape, lambda tau: tau.__setitem__((..., robot.driven_slice), self.u))

    @property
    def dynamics(self) -> tuple[Array, ...]:
        """Accelerations (..., nv), or the jump of velocities, and forces (..., rows), if there are contacts."""
        results = self._results.get("dynamics")
        if results is not None:
            return results
        robot = self.robot
        last = NO_RESTITUTION if robot.hits else self.tau
        return self._run("dynamics", robot.kernel(robot.dynamics), self.q, self.v, last)

    @property
    def a(self) -> Array:
        """Accelerations (..., nv), at an impact the jump of velocities."""
        return self.dynamics[0]

    @property
    def forces(self) -> Array:
        """Forces of all contacts (..., rows), at an impact impulses."""
        return self.dynamics[1]

    @property
    def slopes(self) -> DynamicsSlopes:
        """The Jacobians of accelerations and forces."""
        robot = self.robot
        results = self._results.get("slopes")
        if results is None:
            last = NO_RESTITUTION if robot.hits else self.tau
            results = self._run("slopes", robot.kernel(f"{robot.dynamics}_derivatives"), self.q, self.v, last)
        if robot.hits:
            return DynamicsSlopes(results[0], results[1], None, results[2:])
        a_q, a_v, a_tau, *forces = results
        return DynamicsSlopes(a_q, a_v, a_tau, tuple(forces))

    @property
    def a_slopes(self) -> SignalSlopes:
        """The Jacobian of accelerations, or of a jump, by q, v and u."""
        s = self.slopes
        return SignalSlopes(s.a_q, s.a_v, None if s.a_tau is None else self._driven("a_u", s.a_tau))

    @property
    def force_slopes(self) -> SignalSlopes:
        """The Jacobian of forces, or of impulses, by q, v and u."""
        q, v, *tau = self.slopes.forces
        return SignalSlopes(q, v, *(self._driven("forces_u", x) for x in tau))

    @property
    def com_slopes(self) -> SignalSlopes:
        """The Jacobian of the centre of mass by q."""
        momentum = self.of_robot("centroidal_map")[0][..., :3, :]
        return SignalSlopes(self._do("com_q", momentum.shape, lambda out: np.divide(momentum, self.mass, out)))

    def of_robot(self, name: str) -> tuple[Array, ...]:
        """The results of a quantity of the robot; accelerations count as zero."""
        results = self._results.get(name)
        if results is not None:
            return results
        values = {"q": self.q, "v": self.v, "a": self.robot.zero_acceleration}
        inputs = [values[i.name] for i in QUANTITIES[name].inputs]
        return self._run(name, self.robot.kernel(name), *inputs)

    def of_frame(self, name: str, signal: Signal) -> tuple[Array, ...]:
        """The results of a quantity of the signal's frame."""
        key = name, signal
        results = self._results.get(key)
        if results is not None:
            return results
        frame = frames.numbers(self.robot.evaluator, signal.of)[0]
        values = {"q": self.q, "v": self.v, FRAME.name: frame}
        inputs = [values[i.name] for i in QUANTITIES[name].inputs]
        return self._run(key, self.robot.kernel(name, signal.viewpoint or "local"), *inputs)
