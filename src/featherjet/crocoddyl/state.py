"""States [q, v] of a robot for Crocoddyl, on the manifolds of its joints."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import crocoddyl
import numpy as np

from ..control.problem.problem import Problem
from ..model.manifolds import Euclidean, Manifold

Array = np.ndarray


def state_of(problem: Problem) -> Any:
    """The state space of a problem; Crocoddyl's own where states are vectors."""
    flat = all(isinstance(p.manifold, Euclidean) for p in problem.evaluator.places.nodes)
    return crocoddyl.StateVector(problem.nx) if flat else RobotState(problem)


class RobotState(crocoddyl.StateAbstract):
    """States x = [q, v] (nx,) with tangents dx = [dq, dv] (ndx,), dq in the bodies' axes."""

    def __init__(self, problem: Problem) -> None:
        crocoddyl.StateAbstract.__init__(self, problem.nx, problem.ndx)
        self.problem, self.places = problem, problem.evaluator.places

    def zero(self) -> Array:
        return np.concatenate([*(p.manifold.neutral() for p in self.places.nodes), np.zeros(self.places.nv)])

    def rand(self) -> Array:
        return self.problem.integrate(self.zero(), np.random.default_rng().uniform(-1.0, 1.0, self.problem.ndx))

    def diff(self, x0: Array, x1: Array) -> Array:
        return self.problem.difference(x0, x1)

    def integrate(self, x: Array, dx: Array) -> Array:
        return self.problem.integrate(x, dx)

    def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> list[Array]:
        """Jacobians (ndx, ndx) of diff by x0, by x1, or both."""
        way = self.diff(x0, x1)
        first = -self._blocks(-way, lambda m, v: m.right_jacobian_inverse(v))
        return chosen(firstsecond, first, self._blocks(way, lambda m, v: m.right_jacobian_inverse(v)))

    def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = crocoddyl.Jcomponent.both) -> list[Array]:
        """Jacobians (ndx, ndx) of integrate by x, by dx, or both."""
        first = self._blocks(dx, lambda m, v: m.adjoint_inverse(v))
        return chosen(firstsecond, first, self._blocks(dx, lambda m, v: m.right_jacobian(v)))

    def JintegrateTransport(self, x: Array, dx: Array, Jin: Array, firstsecond: Any) -> Array:
        """The Jacobian of integrate by x or by dx, times Jin (ndx, ...)."""
        return self.Jintegrate(x, dx, firstsecond)[0] @ Jin

    def _blocks(self, dx: Array, block: Callable[[Manifold, Array], Any]) -> Array:
        """A matrix (ndx, ndx) with a block for each joint, and the identity for velocities."""
        out = np.eye(self.problem.ndx)
        for p in self.places.nodes:
            if not isinstance(p.manifold, Euclidean):
                out[p.v, p.v] = block(p.manifold, dx[p.v])
        return out


def chosen(which: Any, first: Array, second: Array) -> list[Array]:
    if which == crocoddyl.Jcomponent.both:
        return [first, second]
    return [first] if which == crocoddyl.Jcomponent.first else [second]
