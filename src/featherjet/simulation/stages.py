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
from .turning import Turning


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
    """The velocity u at the start, and guesses of that at the end and of that with which worlds move, all in the axes
    of the middle; the way there, the configuration and velocity there, and the solution of the contact laws."""

    u: Array
    guess: Array
    speed: Array
    way: Array
    half: Array
    mid: Array
    found: Struck


class StepEnd(NamedTuple):
    """The velocity with which worlds move in the axes of the middle, the way, where to, and their velocities there."""

    speed: Array
    way: Array
    q: Array
    v: Array


def attempts(evaluate: Evaluator, engine: Engine, s: StepStart, start: Array, held: Array | None) -> Iterator[Attempt]:
    """Both solutions; start, held: guesses of percussions at feet and stops."""
    axes = Turning(evaluate.model)
    guess = speed = axes.later(s.v, s.v, s.h)
    P = start
    for _ in range(2):
        u = axes.later(s.v, speed, s.h)
        way, mid = 0.5 * axes.straight(s.h * speed), 0.5 * (u + guess)
        half = evaluate("integrate", s.q, way)
        found = engine.strike(half, u, mid, s.tau, s.soft, s.table, s.height, P, s.h, s.stops, held)
        attempt = Attempt(u, guess, speed, way, half, mid, found)
        yield attempt
        guess, speed, P, held = found.v, moving(attempt), found.P, found.held


def moving(attempt: Attempt) -> Array:
    """The velocity with which worlds move, in the axes of the middle: in flight the mean one."""
    u, found = attempt.u, attempt.found
    return u + (1.0 - 0.5 * found.solver_report[..., 1:2]) * (found.v - u)


def ended(evaluate: Evaluator, engine: Engine, s: StepStart, last: Attempt) -> StepEnd:
    """What the last solution leads to; unless feet touch the ground, momentum is kept."""
    axes, speed, found = Turning(evaluate.model), moving(last), last.found
    afloat = found.solver_report[..., 3:]
    way = axes.straight(s.h * speed)
    q, v = evaluate("integrate", s.q, way), axes.later(found.v, speed, s.h)
    if engine.floats and afloat.any():
        v = np.where(afloat > 0, engine.balanced(s.q, s.v, q, v, s.tau, s.h), v)
    return StepEnd(speed, way, q, v)
