"""Contact problems whose matrices are given: the solver of contact laws on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...math.loops import ArrayLoops, LoopArray
from ...math.scalars import Scalar
from ...math.vec3 import Vec3
from ..scan import Array
from .feet import Law, stopped_in_time
from .percussion import Stop
from .solver import ContactSolver, SolverMemory


class DenseRows:
    """Rows of feet, three each, and of stops, which accelerate by G (rows, rows, lanes...) under percussions of one."""

    def __init__(self, G: Array, feet: int) -> None:
        self.G, self.feet = G, feet
        self.x = np.zeros_like(G[0])  # percussions
        self.kept = self.x

    def at(self, block: int) -> slice:
        own = 3 * block
        return slice(own, own + 3) if block < self.feet else slice(2 * self.feet + block, 2 * self.feet + block + 1)

    def felt(self, block: int, first: Sequence[Scalar]) -> list[Scalar]:
        rows = self.G[self.at(block)]
        change = rows @ self.x if rows.ndim == 2 else np.einsum("ij...,j...->i...", rows, self.x)
        return [x + y for x, y in zip(first, change, strict=True)]

    def push(self, block: int, change: Sequence[Scalar]) -> None:
        for k, x in enumerate(change, self.at(block).start):
            self.x[k] += x

    def own(self, block: int, count: int) -> list[Scalar]:
        own = self.G[self.at(block), self.at(block)]
        return [own[i, j] for i in range(count) for j in range(i, count)]

    def whole(self, G: LoopArray) -> None:
        G.values[...] = self.G[: 3 * self.feet, : 3 * self.feet]

    def keep(self) -> None:
        self.kept = self.x.copy()

    def restore(self, better: Scalar) -> None:
        self.x = np.where(np.asarray(better) > 0.5, self.x, self.kept)


class GivenLaws(NamedTuple):
    """Laws of feet; velocities without percussions (rows, lanes...), those of feet as their laws speak of them.

    ways (stops, 3, lanes...): the way to each joint's lower and upper limits, and its dry friction; h: the time step.
    """

    feet: Sequence[Law]
    velocity: Array
    ways: Array
    h: Scalar

    def foot(self, k: int) -> Law:
        return self.feet[k]

    def before(self, k: int) -> Vec3:
        return Vec3(*self.velocity[3 * k : 3 * k + 3])

    def rate(self, k: int) -> Scalar:
        return self.velocity[3 * len(self.feet) + k]

    def stop(self, k: int, G: Scalar, rate: Scalar, P: Stop) -> Stop:
        return stopped_in_time(self.h, G, rate, self.ways[k], P)


class Settled(NamedTuple):
    """Percussions: all rows' (rows, lanes...), feet's in world axes (feet, 3), dry friction's and limits' (stops, 2).

    report (4, lanes...): see `feet.strike`.
    """

    rows: Array
    world: Array
    stops: Array
    report: Array


def settle(G: Array, laws: GivenLaws, guess: Array | None = None, at_once: bool = True) -> Settled:
    """Percussions that obey the laws; guess (stops, 2, lanes...): of those at stops.

    at_once: let sweeps begin with all feet that stick solved for at once.
    """
    lanes, n, stops = G.shape[2:], len(laws.feet), len(G) - 3 * len(laws.feet)
    shapes = SolverMemory.shapes(n, stops, 3 * n)
    arrays = {name: LoopArray(np.zeros((*size, *lanes)), len(size)) for name, size in shapes.items()}
    t, memory, rows = ArrayLoops(lanes), SolverMemory(**arrays), DenseRows(G, n)
    if guess is not None:
        memory.stops.values[:, 1:] = guess
    solver = ContactSolver(t, laws, rows, memory, n, stops, 3 * n if at_once else 0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # laws drop cases that cannot be
        residual, sweeps = solver.settle()
        world: Any = LoopArray(np.zeros((n, 3, *lanes)), 2)
        solver.in_world(world)
        flies, afloat = solver.flies()
        report = np.stack([residual[0], flies, sweeps[0], afloat])
    return Settled(rows.x, world.values, memory.stops.values[:, 1:], report)
