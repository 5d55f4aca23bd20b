"""States to compute on, contenders that know their results, and the comparison that comes before any timing.

A fast wrong answer is worth nothing: contenders whose results differ are not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import FeatherjetError
from ...model.model import Array
from ...robot.robot import Robot
from .quantities import BenchmarkedQuantity
from .timing import Contender

EXACT = 1e-8  # allowed difference of results, relative to the largest entry
LONG, LONG_EXACT = 100, 1e-6  # the same for quantities with M^-1 beyond this many dofs, where M is ill-conditioned
ROUNDED, ROUNDED_INVERSE = 2e-5, 1e-2  # the same for single precision, and where M^-1 magnifies its errors
MAGNIFIED = 30.0  # errors of single precision, relative to what rounding of the inputs alone changes
APPROXIMATE = 1e-3  # the same for finite differences
COMPARED = 8  # samples


class Disagreement(FeatherjetError):
    """Two contenders compute the same quantity with different results, so neither is timed."""


@dataclass
class CheckedContender(Contender):
    """A contender whose results can be compared.

    results: the arrays (B, ...) that `run` fills, in featherjet's conventions; None if they cannot be compared.
    compared: the number of samples to compare, unless the contender takes the whole batch at once.
    """

    results: Callable[[], tuple[Array, ...] | None] = field(default=lambda: None)
    tolerance: float = EXACT
    compared: int = COMPARED


@dataclass
class States:
    """A batch of B states: q (B, nq), and v, a, tau (B, nv), where tau are the torques of q, v, a."""

    q: Array
    v: Array
    a: Array
    tau: Array
    _results: dict[tuple, tuple[Array, ...]] = field(default_factory=dict)
    _repeated: dict[int, States] = field(default_factory=dict)

    @staticmethod
    def random(robot: Robot, size: int, seed: int = 0) -> States:
        rng = np.random.default_rng(seed)
        q = robot.random_configuration(rng, size)
        v, a = rng.normal(size=(2, size, robot.nv))
        return States(q, v, a, robot.inverse_dynamics(q, v, a))

    def inputs(self, quantity: BenchmarkedQuantity) -> tuple[Array, Array, Array]:
        q, v, third = (getattr(self, name) for name in quantity.inputs)
        return q, v, third

    def first_inputs(self, quantity: BenchmarkedQuantity) -> tuple[Array, Array, Array]:
        """The inputs of the first state alone."""
        q, v, third = self.inputs(quantity)
        return q[0].copy(), v[0].copy(), third[0].copy()

    def results(self, quantity: BenchmarkedQuantity, owned: bool = False, size: int | None = None) -> tuple[Array, ...]:
        """Arrays for the results of `size` states: `owned` by the contender that others are compared with, or shared.

        Sharing keeps memory small: contenders are compared, and take their turns, one after the other.
        """
        key = owned, tuple(r.axes for r in quantity.record.results)
        if key not in self._results:
            self._results[key] = quantity.empty_results(len(self.q), {"v": self.v.shape[1]})
        return tuple(x[:size] for x in self._results[key])

    def repeated(self, times: int) -> States:
        """The same states many times over; contenders share them, and the memory of their results."""
        if times not in self._repeated:
            q, v, a, tau = (np.tile(x, (times, 1)) for x in (self.q, self.v, self.a, self.tau))
            self._repeated[times] = States(q, v, a, tau)
        return self._repeated[times]

    def erase_shared_results(self, size: int) -> None:
        """Set the first samples of the shared results to NaN, so that no contender passes with another's results."""
        for states in self._repeated.values():
            states.erase_shared_results(size)
        for (owned, _), arrays in self._results.items():
            for x in () if owned else arrays:
                x[:size] = np.nan


def check(contenders: Sequence[CheckedContender], states: States) -> dict[str, float]:
    """Compare every contender's results with those of the first; errors relative to each sample's largest entry."""
    first, *others = contenders
    first.run(first.batch)
    expected = first.results()
    assert expected is not None
    errors = {}
    for contender in others:
        size = contender.batch if contender.whole else min(contender.batch, contender.compared)
        states.erase_shared_results(size)
        contender.run(size)
        actual = contender.results()
        if actual is None:
            continue
        pairs = zip(actual, expected, strict=False)  # MuJoCo has no derivative by tau
        worst = max(difference(x[:size], e[: min(size, len(x))]) for x, e in pairs)
        if not worst <= contender.tolerance:
            raise Disagreement(
                f"{contender.name!r} differs from {first.name!r} by {worst:.1e} of the largest entry "
                f"(allowed: {contender.tolerance:.0e}); wrong results are not timed"
            )
        errors[contender.name] = worst
    return errors


def difference(actual: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected entry of the same sample; infinite for NaN."""
    worst = 0.0
    for x, e in zip(actual, expected, strict=True):
        scale = np.abs(e).max()
        error = np.abs(x - e).max() / (scale if scale > 0 else 1.0)
        worst = max(worst, float(np.nan_to_num(error, nan=np.inf)))
    return worst
