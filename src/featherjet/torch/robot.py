"""A robot's quantities as functions of tensors."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..bridges.robots import Selection
from ..bridges.wrapped import NONE, WrappedRobot
from ..errors import InputError
from ..evaluate.evaluator import HasEvaluator
from ..model import configuration
from ..robot.robot import robot_of
from .operator import KINDS, call, operator, registered


def wrap(robot: HasEvaluator) -> TorchRobot:
    """A robot's quantities as functions of tensors; see TorchRobot."""
    return TorchRobot(robot)


class TorchRobot(WrappedRobot):
    """A robot's quantities as functions of CPU tensors, q (..., nq), v, a, tau (..., nv), whose leading axes broadcast.

    They work with backward (twice, too), torch.func (grad, vjp, jvp, vmap, jacrev, jacfwd, hessian), torch.compile and
    torch.export, in float64, or float32 if all inputs are. q is any tensor of numbers: its quaternions are normalised
    inside, and derivatives by its entries are those of f(q / |q|). What is not finite gives results that are not.
    """

    def __init__(self, robot: HasEvaluator) -> None:
        super().__init__(robot, "fj.torch")

    def __reduce__(self) -> tuple:
        return TorchRobot, (robot_of(self._functions.evaluator),)

    def call(self, name: str, *given: Any, selection: Selection = NONE) -> Any:
        if torch.compiler.is_compiling():
            return operator(list(given), _digest(self, name, *selection))
        f = self.function(name, selection)
        for p, core, x in zip(f.record.inputs, f.inputs, given, strict=True):
            if not isinstance(x, Tensor) or x.dtype not in KINDS or x.shape[-len(core) :] != core or not x.is_cpu:
                raise _refusal(p.name, core, x)
        return call(f, given)

    def neutral(self) -> Tensor:
        """The configuration of no displacement, (nq,)."""
        return torch.from_numpy(configuration.neutral(self._functions.evaluator.space))

    def normalised(self, q: Tensor) -> Tensor:
        """q with quaternions and cosine-sine pairs of norm one."""
        return self._functions.ambient.normalised(torch, q)


@torch.compiler.assume_constant_result
def _digest(robot: TorchRobot, name: str, *selection: Any) -> str:
    """How compiled programs name a function."""
    return registered(robot.function(name, Selection(*selection))).digest


def _refusal(name: str, core: tuple[int, ...], x: Any) -> InputError:
    """What is wrong with an input."""
    if not isinstance(x, Tensor):
        return InputError(f"{name}: expected a tensor, got {type(x).__name__}; torch.as_tensor makes one")
    if x.dtype not in KINDS:
        return InputError(f"{name}: expected torch.float64 or torch.float32, got {x.dtype}")
    if not x.is_cpu:
        return InputError(f"{name}: expected a tensor on the CPU, got one on {x.device.type}")
    return InputError(f"{name}: expected shape (..., {', '.join(map(str, core))}), got {tuple(x.shape)}")
