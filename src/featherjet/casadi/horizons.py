"""Optimal control problems as CasADi functions of a whole horizon: next states and costs, with their Jacobians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..control.problem.problem import Problem
from ..errors import InputError
from ..export.functions import identifier
from .functions import ALIVE

Array = np.ndarray


def horizon(problem: Problem, *, name: str = "horizon") -> ca.Function:
    """(xs (nx, T + 1), us (nu, T)) -> next states (nx, T), costs (1, T + 1) of a problem, for one's own solver.

    Columns are knots. Constraints of the problem follow as `equality` (ne, T + 1) and `inequality` (ni, T + 1, <= 0) if
    it has any. Jacobians are exact and sparse, block by block, by all entries of the states: q stands for q / |q|. They
    have no derivatives in turn: give solvers a Hessian approximation, such as Ipopt's "limited-memory".
    """
    if not isinstance(problem, Problem):
        raise InputError(f"horizon: expected a Problem, got {type(problem).__name__}")
    if problem.batch:
        raise InputError("horizon: expected one problem, this is a batch; use problem.take")
    return HorizonCall(identifier(name, "name"), problem)


class HorizonCall(ca.Callback):
    """The values of a horizon."""

    def __init__(self, name: str, problem: Problem) -> None:
        ca.Callback.__init__(self)
        self.problem = problem
        p = problem
        self.inputs = {"xs": (p.nx, p.T + 1), "us": (p.nu, p.T)}
        self.results = {"next": (p.nx, p.T), "cost": (1, p.T + 1)}
        self.results |= {k: (n, p.T + 1) for k, n in (("equality", p.ne), ("inequality", p.ni)) if n}
        self.construct(name, {"enable_fd": False})
        ALIVE.append(self)

    def get_n_in(self) -> int:
        return 2

    def get_n_out(self) -> int:
        return len(self.results)

    def get_name_in(self, i: int) -> str:
        return list(self.inputs)[i]

    def get_name_out(self, i: int) -> str:
        return list(self.results)[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(*list(self.inputs.values())[i])

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return ca.Sparsity.dense(*list(self.results.values())[i])

    def eval(self, arg: Sequence[Any]) -> list[Any]:
        values = self.problem.values(*states(arg))
        return [ca.DM(np.atleast_2d(getattr(values, k).T)) for k in self.results]

    def has_jacobian(self) -> bool:
        return True

    def get_jacobian(self, name: str, inames: Any, onames: Any, opts: Any) -> ca.Function:
        return HorizonJacobian(name, self)

    def has_jac_sparsity(self, oind: int, iind: int) -> bool:
        return True

    def get_jac_sparsity(self, oind: int, iind: int, symmetric: bool) -> ca.Sparsity:
        """Each knot's results depend on its own state and control."""
        (rows, count), (columns, knots) = list(self.results.values())[oind], list(self.inputs.values())[iind]
        both = min(count, knots)
        blocks = ca.diagcat(*[ca.Sparsity.dense(rows, columns)] * both)
        return ca.diagcat(blocks, ca.Sparsity(rows * (count - both), columns * (knots - both)))


class HorizonJacobian(ca.Callback):
    """The Jacobians of all results by both inputs."""

    def __init__(self, name: str, of: HorizonCall) -> None:
        ca.Callback.__init__(self)
        self.of = of
        self.construct(name, {"enable_fd": False})
        ALIVE.append(self)

    def get_n_in(self) -> int:
        return 2 + self.of.get_n_out()

    def get_n_out(self) -> int:
        return 2 * self.of.get_n_out()

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return self.of.get_sparsity_in(i) if i < 2 else self.of.get_sparsity_out(i - 2)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return self.of.get_jac_sparsity(i // 2, i % 2, False)

    def eval(self, arg: Sequence[Any]) -> list[Any]:
        p, (xs, us) = self.of.problem, states(arg[:2])
        d = p.linearize(xs, us)
        into, back = entries(p, d.next), tangents(p, xs)
        blocks = {
            "next": (into @ d.Fx @ back[:-1], into @ d.Fu),
            "cost": (d.Lx[:, None, :] @ back, d.Lu[:, None, :]),
        }
        for k, x, u in (("equality", d.Ex, d.Eu), ("inequality", d.Ix, d.Iu)):
            if x is not None and u is not None:
                blocks[k] = x @ back, u
        found = [x for k in self.of.results for x in blocks[k]]
        return [ca.DM(self.get_sparsity_out(i), np.swapaxes(x, -1, -2).ravel()) for i, x in enumerate(found)]


def states(arg: Sequence[Any]) -> tuple[Array, Array]:
    """States and controls, knots first."""
    xs, us = (np.ascontiguousarray(np.array(x).T) for x in arg)
    return xs, us


def entries(p: Problem, x: Array) -> Array:
    """What a tangent does to the entries of states (..., nx, ndx)."""
    return bordered(p.evaluator.run("rate_map", [x[..., : p.nq]])[0], p.nv)


def tangents(p: Problem, x: Array) -> Array:
    """The tangent (..., ndx, nx) of a change of the entries of states; changes of norm do nothing."""
    return bordered(p.evaluator.run("rate_map_inverse", [x[..., : p.nq]])[0], p.nv)


def bordered(A: Array, n: int) -> Array:
    """A and the identity (n, n) along the diagonal."""
    rows, columns = A.shape[-2:]
    out = np.zeros((*A.shape[:-2], rows + n, columns + n))
    out[..., :rows, :columns] = A
    out[..., rows:, columns:] = np.eye(n)
    return out
