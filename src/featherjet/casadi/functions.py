"""Quantities as CasADi functions that run in this process: no compiler is needed.

A function has a Jacobian, and an adjoint that has one in turn, which is the Hessian of the weighted results. CasADi
finds each through the one before. A whole horizon is one call of machine code, which writes into CasADi's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..algorithms.quantities import quantity as record_of
from ..contact import Contacts
from ..contact.bilateral import evaluator_of
from ..errors import InputError
from ..evaluate.entries import SparseTrace
from ..evaluate.evaluator import Evaluator, HasEvaluator
from ..evaluate.frames import FrameName, Viewpoint
from ..evaluate.sparse import SparseFunction
from ..export.functions import Choices, identifier, selected
from ..jit.kernel import Kernel
from .recipes import Knots, Recipe

MOST = 1_000_000  # states of a horizon
ALIVE: list[Any] = []  # CasADi's graphs do not keep functions of Python alive


def function(
    robot: HasEvaluator,
    quantity: str,
    *,
    horizon: int = 1,
    fext: bool = False,
    frame: FrameName | None = None,
    viewpoint: Viewpoint = "local",
    contacts: Contacts | None = None,
    name: str | None = None,
) -> ca.Function:
    """A quantity as a CasADi function of matrices with a column for each state of a horizon.

    Inputs and results have the names and the order of docs/quantities.md; matrices among them are columns, row by row.
    q is taken entry by entry: any q stands for q / |q|, where the norm is that of its quaternions and cosine-sine
    pairs, and derivatives are by all entries of q. The function has an exact Jacobian, and an exact Hessian through its
    adjoint, both with their true sparsity: block by block along the diagonal. Inputs are not checked; what is not
    finite gives results that are not. Functions stay in memory until Python ends.

    fext: whether external forces are an input too, six rows for each joint. frame, viewpoint: of quantities of frames;
    contacts: of those with contacts; name: the function's in CasADi.
    """
    traced = sparse_function(robot, quantity, Choices(fext, frame, viewpoint, contacts))
    return call(identifier(name or quantity, "name"), traced, checked(horizon))


def call(name: str, traced: SparseTrace, states: int = 1) -> ca.Function:
    """A traced function as one of CasADi's."""
    of = Knots(traced, states)

    def adjoint(name: str) -> ca.Function:
        return CompiledCall(name, of.adjoint(), of.states, of.hessian())

    return CompiledCall(name, of.value(), of.states, of.jacobian(), adjoint)


def sparse_function(robot: HasEvaluator, quantity: str, choices: Choices) -> SparseFunction:
    """The traces of a quantity."""
    evaluator: Evaluator = evaluator_of(robot, "featherjet.casadi")
    if evaluator.coordinates is not None:
        raise InputError(
            f"casadi: functions are in the standard convention, not in {evaluator.convention!r}; "
            "use robot.with_convention('pinocchio')"
        )
    evaluator.refuse_laws("featherjet.casadi")
    record = record_of(quantity)
    evaluator.refuse_massless(record)
    if choices.fext and not record.forces:
        raise InputError(f"casadi: {quantity} takes no external forces")
    options, fixed, names = selected(evaluator, record, choices, "casadi")
    return SparseFunction(evaluator, record, names, options, fixed)


def checked(horizon: int) -> int:
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)) or not 0 < horizon <= MOST:
        raise InputError(f"horizon: expected a positive whole number of states, got {horizon!r}")
    return int(horizon)


class CompiledCall(ca.Callback):
    """A CasADi function whose code is ours.

    jacobian: what computes its Jacobian, if anything does; adjoint(name): makes its adjoint.
    """

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        states: int,
        jacobian: Recipe | None = None,
        adjoint: Callable[[str], ca.Function] | None = None,
    ) -> None:
        ca.Callback.__init__(self)
        self.recipe, self.states, self.jacobian_recipe, self.adjoint = recipe, states, jacobian, adjoint
        self.construct(name, {"enable_fd": False})
        ALIVE.append(self)

    def get_n_in(self) -> int:
        return len(self.recipe.inputs)

    def get_n_out(self) -> int:
        return len(self.recipe.results)

    def get_name_in(self, i: int) -> str:
        return self.recipe.inputs[i][0]

    def get_name_out(self, i: int) -> str:
        return self.recipe.results[i][0]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        return self.recipe.inputs[i][1]

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        return self.recipe.results[i][1]

    # Derivatives; CasADi keeps what it gets

    def has_jacobian(self) -> bool:
        return self.jacobian_recipe is not None

    def get_jacobian(self, name: str, inames: Any, onames: Any, opts: Any) -> ca.Function:
        assert self.jacobian_recipe is not None
        return CompiledCall(name, self.jacobian_recipe, self.states)

    def has_jac_sparsity(self, oind: int, iind: int) -> bool:
        return self.jacobian_recipe is not None  # else CasADi takes it to be dense, whatever the Jacobian says

    def get_jac_sparsity(self, oind: int, iind: int, symmetric: bool) -> ca.Sparsity:
        assert self.jacobian_recipe is not None
        return self.jacobian_recipe.results[oind * self.get_n_in() + iind][1]

    def has_reverse(self, nadj: int) -> bool:
        return nadj == 1 and self.adjoint is not None

    def get_reverse(self, nadj: int, name: str, inames: Any, onames: Any, opts: Any) -> ca.Function:
        assert self.adjoint is not None
        return self.adjoint(name)

    # Evaluation

    @cached_property
    def _kernels(self) -> list[Kernel]:
        return [step.code.kernel() for step in self.recipe.steps]

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arg: Sequence[Any], res: Sequence[Any]) -> int:
        for step, kernel in zip(self.recipe.steps, self._kernels, strict=True):
            if not any(res[k] is not None for k in step.gives):
                continue
            sizes = kernel.inputs.values()
            given = [self._array(arg[k], size) for k, (size,) in zip(step.takes, sizes, strict=True)]
            outs = tuple(self._array(res[k], size) for k, (size,) in zip(step.gives, kernel.shapes, strict=True))
            kernel(given, outs, 1)
        return 0

    def _array(self, memory: Any, size: int) -> np.ndarray:
        """CasADi's memory as an array (states, size), of one state as (size,); zeros where it has none."""
        x = np.zeros(self.states * size) if memory is None else np.frombuffer(memory)
        return x if self.states == 1 else x.reshape(self.states, size)
