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
from .turning import Stage, Turning


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
    """A solution of the contact laws: guesses of the velocities at the end and with which worlds move, in the axes of
    the middle; the axes, the configuration and velocity there, and what was found."""

    guess: Array
    speed: Array
    axes: Stage
    half: Array
    mid: Array
    found: Struck

    @property
    def way(self) -> Array:
        """To the middle."""
        return 0.5 * self.axes.way

    @property
    def moving(self) -> Array:
        """The velocity with which worlds then move: in flight the mean one."""
        u, found = self.axes.u, self.found
        return u + (1.0 - 0.5 * found.solver_report[..., 1:2]) * (found.v - u)


class StepEnd(NamedTuple):
    """The velocity with which worlds moved, the axes of which the velocities there are; where to, and velocities."""

    speed: Array
    axes: Stage
    q: Array
    v: Array


def attempts(
    evaluate: Evaluator, turning: Turning, engine: Engine, s: StepStart, start: Array, held: Array | None
) -> Iterator[Attempt]:
    """Both solutions; start, held: guesses of percussions at feet and stops."""
    guess = speed = turning.stage(s.v, s.v, s.v, s.h).u
    P = start
    for _ in range(2):
        axes = turning.stage(s.v, guess, speed, s.h)
        half, mid = evaluate("integrate", s.q, 0.5 * axes.way), 0.5 * (axes.u + guess)
        found = engine.strike(half, axes.u, mid, s.tau, s.soft, s.table, s.height, P, s.h, s.stops, held)
        attempt = Attempt(guess, speed, axes, half, mid, found)
        yield attempt
        guess, speed, P, held = found.v, attempt.moving, found.P, found.held


def ended(evaluate: Evaluator, turning: Turning, engine: Engine, s: StepStart, last: Attempt) -> StepEnd:
    """What the last solution leads to; unless feet touch the ground, momentum is kept."""
    speed, found = last.moving, last.found
    axes, afloat = turning.stage(found.v, found.v, speed, s.h), found.solver_report[..., 3:]
    q, v = evaluate("integrate", s.q, axes.way), axes.u
    if engine.floats and afloat.any():
        v = np.where(afloat > 0, engine.balanced(s.q, s.v, q, v, s.tau, s.h), v)
    return StepEnd(speed, axes, q, v)
