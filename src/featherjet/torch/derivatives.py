"""Derivatives of a robot's functions by the entries of their inputs, on tensors or on NumPy arrays.

Rules (bridges/rules.py) speak of tangent vectors; these speak of entries, as PyTorch does. A change or a weight that is
zero is None.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..bridges.ambient import twisted, untwisted
from ..bridges.robots import RobotFunction
from ..bridges.rules import Arrays
from ..bridges.table import Role

Call = Callable[..., Arrays]  # (function, inputs) -> results
Known = Sequence[Any]


def pulled(f: RobotFunction, xp: Any, call: Call, x: Known, y: Known, w: Known) -> list[Any]:
    """The derivatives of the sum of w.y by the inputs x."""
    ambient = f.robot.ambient if xp is torch else f.robot.compiled_ambient
    derivation = f.record.derivation
    if derivation is None:
        return _pulled_again(f, call, x, w)
    turn = {Role.CONFIGURATION: ambient.corate, Role.PLACEMENT: untwisted}
    ports = zip(f.record.results, y, w, strict=True)
    weights = [c if c is None or p.role is Role.VECTOR else turn[p.role](xp, b, c) for p, b, c in ports]
    found = derivation.vjp(f.point(xp, x, _calling(f, call)), *weights)
    ports = zip(f.record.inputs, x, found, strict=True)
    return [g if g is None or p.role is Role.VECTOR else ambient.cotangent(xp, a, g) for p, a, g in ports]


def pushed(f: RobotFunction, xp: Any, call: Call, x: Known, y: Known, dx: Known) -> list[Any]:
    """The changes of the results y along changes of the inputs x."""
    ambient, derivation = f.robot.ambient, f.record.derivation
    if derivation is None:
        full = tuple(torch.zeros_like(a) if d is None else d for a, d in zip(x, dx, strict=True))
        return list(torch.func.jvp(made_of_others(f, call), tuple(x), full)[1])
    ports = zip(f.record.inputs, x, dx, strict=True)
    changes = [d if d is None or p.role is Role.VECTOR else ambient.tangent(xp, a, d) for p, a, d in ports]
    found = derivation.jvp(f.point(xp, x, _calling(f, call)), *changes)
    turn = {Role.CONFIGURATION: ambient.rate, Role.PLACEMENT: twisted}
    ports = zip(f.record.results, y, found, strict=True)
    return [d if d is None or p.role is Role.VECTOR else turn[p.role](xp, b, d) for p, b, d in ports]


def _calling(f: RobotFunction, call: Call) -> Call:
    return lambda name, *given: call(f.another(name), given)


# Functions that PyTorch differentiates itself, made of others or of the algorithm's own operations


def _pulled_again(f: RobotFunction, call: Call, x: Known, w: Known) -> list[Any]:
    differentiated: Any = torch.func.vjp(made_of_others(f, call), *x)
    results, back = differentiated
    return list(back(tuple(torch.zeros_like(r) if c is None else c for r, c in zip(results, w, strict=True))))


def made_of_others(f: RobotFunction, call: Call) -> Callable[..., tuple[Any, ...]]:
    """The function as operations that PyTorch can differentiate to any order that their own derivatives have."""
    plain = f.record.plain

    def made(*x: Any) -> tuple[Any, ...]:
        if plain is not None:
            return tuple(plain(f.point(torch, x, _calling(f, call))))
        batch = torch.broadcast_shapes(*(a.shape[: a.ndim - len(s)] for a, s in zip(x, f.inputs, strict=True)))
        return tuple(f.replay(torch, *(a.expand((*batch, *s)) for a, s in zip(x, f.inputs, strict=True))))

    return made
