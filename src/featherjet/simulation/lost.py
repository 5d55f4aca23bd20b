"""Worlds that are lost: their motion diverges, or their torques are no numbers. The others go on.

A lost world moves as another world does, so that all that is computed stays finite, and its results are not numbers.
"""

from __future__ import annotations

from math import isfinite
from typing import Protocol

import numpy as np

from ..blas import sum_of_squares
from ..errors import InputError, SingularContacts, SingularMassMatrix
from ..model.model import Array
from .laws import Pull
from .steps import Stepped

FASTEST = 1e8  # a larger velocity means that the motion diverges
FAILURES = (SingularContacts, SingularMassMatrix, np.linalg.LinAlgError, InputError)
NAMED = 5  # worlds, at most, in a message


class Steps(Protocol):
    """Steps that may remember something of each world."""

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped: ...
    def forget(self, which: Array) -> None: ...


class Living:
    """Steps of many worlds, or of one, which knows those that are lost (...)."""

    def __init__(self, steps: Steps, batch: tuple[int, ...]) -> None:
        self.steps, self.lost = steps, np.zeros(batch, bool)

    def __call__(self, q: Array, v: Array, tau: Array, pull: Pull | None = None) -> Stepped:
        """A step; raises what a step raises if all worlds are lost."""
        if not isfinite(sum_of_squares(tau)):
            self.lose(np.asarray(~np.isfinite(np.broadcast_to(tau, v.shape)).all(-1)))
        given = self.replaced(q, v, tau, pull)
        try:
            found = self.steps(*given)
        except FAILURES:
            failing = self._failing(np.arange(self.lost.size), given)
            if failing.all():
                raise
            self.lose(failing)
            found = self.steps(*self.replaced(*given))
        if isfinite(sum_of_squares(found.q)) and sum_of_squares(found.v) < FASTEST**2:
            return found
        fine = np.isfinite(found.q).all(-1) & ((found.v**2).sum(-1) < FASTEST**2)
        self.lose(~fine)
        return found if self.lost.all() else Stepped(*map(self.replacing, found))

    def lose(self, which: Array) -> None:
        """From now on these worlds are lost, too."""
        self.lost = self.lost | which
        if self.lost.ndim:
            self.steps.forget(self.lost)

    def replaced(self, q: Array, v: Array, tau: Array, pull: Pull | None) -> tuple[Array, Array, Array, Pull | None]:
        if not self.lost.any() or self.lost.all():
            return q, v, tau, pull
        push = None if pull is None else Pull(*map(self.replacing, pull))
        return self.replacing(q), self.replacing(v), self.replacing(tau), push

    def replacing(self, x: Array) -> Array:
        """x, where it has an entry for each world, with that of a living world for each lost one."""
        if x.shape[: self.lost.ndim] != self.lost.shape or not self.lost.ndim:
            return x
        x = x.copy()
        x[self.lost] = x[np.unravel_index(np.argmin(self.lost), self.lost.shape)]
        return x

    def _failing(self, some: Array, given: tuple[Array, Array, Array, Pull | None]) -> Array:
        """Which of some worlds (numbers) make a step fail, (...)."""
        found = np.zeros(self.lost.size, bool)
        if len(some) == 1 and not self.lost.ndim:
            return np.ones((), bool)
        chosen = np.resize(some, self.lost.size)

        def taken(x: Array) -> Array:
            each = self.lost.ndim and x.shape[: self.lost.ndim] == self.lost.shape
            return x.reshape(self.lost.size, *x.shape[self.lost.ndim :])[chosen].reshape(x.shape) if each else x

        q, v, tau, pull = given
        try:
            self.steps.forget(np.ones_like(self.lost))
            self.steps(taken(q), taken(v), taken(tau), None if pull is None else Pull(*map(taken, pull)))
        except FAILURES:
            if len(some) == 1:
                found[some] = True
                return found.reshape(self.lost.shape)
            return self._failing(some[: len(some) // 2], given) | self._failing(some[len(some) // 2 :], given)
        return found.reshape(self.lost.shape)


def told(lost: Array) -> str:
    """What to say of worlds, of which at least one is lost."""
    worlds = [tuple(map(int, k)) if len(k) > 1 else int(k[0]) for k in np.argwhere(lost)]
    names = ", ".join(map(str, worlds[:NAMED])) + (", ..." if len(worlds) > NAMED else "")
    which = f"world {names} diverges" if len(worlds) == 1 else f"{len(worlds)} of {lost.size} worlds ({names}) diverge"
    return f"{which}, or torques there are not finite: states are not numbers"
