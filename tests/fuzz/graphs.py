"""Random straight-line programs: machine code and the interpreter of graphs against a bound of rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featherjet.jit.engine import target, targets
from featherjet.jit.kernel import compile
from featherjet.jit.straight import trace
from featherjet.math.scalars import sincos, sqrt, where_less
from fuzz.bounded import Bounded, SingleBounded, lifted

INPUTS, OUTPUTS = 5, 4
CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 3.25, -1.75, 1e-3)
OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "neg": (1, lambda x: -x),
    "div": (2, lambda x, y: x / y),
    "ratio": (2, lambda x, y: x / (y * y + 0.25)),
    "sin": (1, lambda x: sincos(x)[0]),
    "cos": (1, lambda x: sincos(x)[1]),
    "both": (1, lambda x: sincos(x)[0] * sincos(x)[1]),
    "sqrt": (1, lambda x: sqrt(x * x + 0.125)),
    "choice": (4, where_less),
    "fused": (3, lambda x, y, z: x * y + z),
    "long sum": (4, lambda x, y, z, w: x + y - z + w),
}


class Step(NamedTuple):
    """An operation on earlier values, by number, or on constants."""

    name: str
    operands: tuple[int | float, ...]


def drawn(rng: np.random.Generator) -> list[Step]:
    """A program of 1 to 80 steps; later ones prefer what was computed lately."""
    steps: list[Step] = []
    for k in range(int(rng.integers(1, 81))):
        name = str(rng.choice(list(OPERATIONS)))
        known = INPUTS + k
        operands = [
            CONSTANTS[rng.integers(len(CONSTANTS))] if rng.random() < 0.12
            else int(known - 1 - min(rng.geometric(0.15) - 1, known - 1))
            for _ in range(OPERATIONS[name][0])
        ]  # fmt: skip
        steps.append(Step(name, tuple(operands)))
    return steps


def run(steps: list[Step], x: Any) -> list[Any]:
    """The last values that a program computes, from numbers of any kind."""
    values: list[Any] = [x[k] for k in range(INPUTS)]
    for step in steps:
        operands = [values[k] if isinstance(k, int) else k for k in step.operands]
        if not any(isinstance(k, int) for k in step.operands):
            operands[0] = values[0]
        values.append(OPERATIONS[step.name][1](*operands))
    return values[-OUTPUTS:]


def mistakes(steps: list[Step], x: np.ndarray, cpu: str) -> tuple[str, float]:
    """What is wrong with the code for a program at inputs x (samples, INPUTS), and the share of results compared.

    Results that rounding may change by more than a thousandth of what they are made of are not compared.
    """
    shapes = {"x": (INPUTS,)}

    def function(x: Any) -> list[np.ndarray]:
        return [np.array(run(steps, x), object)]

    with np.errstate(all="ignore"):
        kind = SingleBounded if x.dtype == np.float32 else Bounded
        wide = x.astype(float)
        bounds = [lifted(kind, y) for y in run(steps, [kind(wide[:, k], error=0.0) for k in range(INPUTS)])]
        value, size, error = (
            np.stack([np.broadcast_to(getattr(y, part), len(x)) for y in bounds], 1)
            for part in ("value", "size", "error")
        )
        known = (error <= 1e-3 * size) & np.isfinite(value)
        traced = trace(function, shapes)
        try:
            interpreted = traced.graph.interpret(traced.roots, lambda at: wide[:, at[1]])
        except ZeroDivisionError:  # of constants, which are Python's
            return "", 0.0
        interpreted = np.stack([np.broadcast_to(y, len(x)) for y in interpreted], 1)
    kernel = compile(function, shapes, "fuzz", cpu=target(cpu))
    (batch,), flags = kernel([x], None, 1)
    (one,), more = kernel([x[0]], None, 1)
    found = {"interpreter": interpreted, "batch": batch, "one sample": one[None]}
    for name, y in found.items():
        rows = slice(len(y))
        with np.errstate(all="ignore"):
            wrong = known[rows] & ~(np.abs(y - value[rows]) <= error[rows])
        if wrong.any():
            return f"{name}: {y[wrong][0]!r}, expected {value[rows][wrong][0]!r} +- {error[rows][wrong][0]:.1e}", 0.0
    return (f"flags {flags | more}" if flags | more else ""), float(known.mean())


def attempt(rng: np.random.Generator) -> tuple[str, float]:
    """One random program, on random numbers, for a processor and in a precision of chance; see `mistakes`."""
    steps = drawn(rng)
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    x = rng.uniform(-2, 2, (int(rng.choice([1, 2, 3, 5, 8, 17])), INPUTS)).astype(dtype)
    cpu = str(rng.choice(targets()))
    said, share = mistakes(steps, x, cpu)
    return (f"{said}\n{cpu}, {x.dtype} {x.tolist()}\n{steps}" if said else ""), share
