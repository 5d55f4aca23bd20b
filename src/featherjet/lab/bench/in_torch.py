"""featherjet in PyTorch, beside the same in NumPy, and beside what PyTorch itself costs."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...robot.robot import Robot
from ...torch import wrap
from .frameworks import Duel, Make
from .robots import entrant

torch.set_num_threads(1)
BATCH = 1024


def states(robot: Robot, *batch: int) -> list[np.ndarray]:
    """q, v, tau, and weights of accelerations."""
    rng = np.random.default_rng(0)
    return [robot.random_configuration(rng, batch), *rng.normal(size=(3, *batch, robot.nv))]


def gradients(f: Any, given: Sequence[np.ndarray]) -> Any:
    """A call of f and of `backward` with the last of the arrays as weights."""
    *x, w = (torch.from_numpy(y) for y in given)
    leaves = [y.requires_grad_() for y in x]
    return lambda: torch.autograd.grad(f(*leaves), leaves, w)


def backward() -> Duel:
    robot = Robot(entrant("hyq").robot.model, backend="compiled", threads=1)
    q, v, tau, w = states(robot, BATCH)
    ours = gradients(wrap(robot).forward_dynamics, [q, v, tau, w])

    def other() -> Any:
        return robot.forward_dynamics(q, v, tau), robot.vjp("forward_dynamics", q, v, tau, w)

    def difference() -> float:
        found, wanted = ours()[1].numpy(), other()[1].by_v
        return float(np.abs(found - wanted).max() / np.abs(wanted).max())

    title = f"FD and backward, hyq, batch {BATCH}"
    return Duel(title, ours, other, 1.5, "the same in NumPy by vjp", difference=difference)


class Trivial(torch.autograd.Function):
    """What PyTorch costs: additions of NumPy's, and copies as gradients."""

    @staticmethod
    def forward(ctx: Any, *x: Any) -> Any:
        ctx.save_for_backward(*x)
        return torch.from_numpy(np.add(x[1].numpy(), x[2].numpy()))

    @staticmethod
    def backward(ctx: Any, *w: Any) -> Any:
        return tuple(torch.from_numpy(x.numpy() + 0.0) for x in ctx.saved_tensors)


def one_call() -> Duel:
    robot = Robot(entrant("panda").robot.model, backend="compiled", threads=1)
    given = states(robot)
    ours, other = gradients(wrap(robot).forward_dynamics, given), gradients(Trivial.apply, given)
    return Duel("one FD of panda and backward", ours, other, 2.5, "an autograd.Function that adds")


DUELS: list[tuple[str, Make]] = [("FD and backward", backward), ("one FD and backward", one_call)]
