"""The stages of one time step of worlds, one after the other: what `StepCompiler.step` chains, for engines in Python.

The contact laws are solved at the middle of a step that ends as guessed, first with the velocities at its beginning,
then with those that this gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..evaluate.evaluator import Evaluator
from ..model.model import Array
from .engine import Engine, Struck


class StepStart(NamedTuple):
    """Where worlds start, what acts on them, and how long (..., 1); the other arrays as in `StepCompiler.step`."""

    q: Array
    v: Array
    tau: Array
    soft: Array
    table: Array
    height: Array
    h: Array
    stops: Array | None


class Attempt(NamedTuple):
    """The way to the middle of a step, the configuration and velocity there, and the solution of the contact laws."""

    way: Array
    half: Array
    mid: Array
    found: Struck


class StepEnd(NamedTuple):
    """The way that worlds move, where to, and their velocities there, balanced in flight."""

    way: Array
    q: Array
    v: Array


def attempts(evaluate: Evaluator, engine: Engine, s: StepStart, start: Array, held: Array | None) -> Iterator[Attempt]:
    """Both solutions; start, held: guesses of percussions at feet and stops."""
    found = Struck(s.v, start, np.zeros(3), held)
    for _ in range(2):
        way, mid = 0.5 * s.h * found.v, 0.5 * (s.v + found.v)
        half = evaluate("integrate", s.q, way)
        given = half, s.v, mid, s.tau, s.soft, s.table, s.height, found.P, s.h, s.stops, found.held
        found = engine.strike(*given)
        yield Attempt(way, half, mid, found)


def ended(evaluate: Evaluator, engine: Engine, s: StepStart, found: Struck) -> StepEnd:
    """What a solution leads to; in flight worlds move with the mean velocity, and keep their momentum."""
    flies = found.solver_report[..., 1:2]
    way = s.h * (s.v + (1.0 - 0.5 * flies) * (found.v - s.v))
    q, v = evaluate("integrate", s.q, way), found.v
    if engine.floats and flies.any():
        v = np.where(flies > 0, engine.balanced(s.q, s.v, q, v, s.tau, s.h), v)
    return StepEnd(way, q, v)
