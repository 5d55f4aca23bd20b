"""Activations: what a row of a residual costs. Each is a function of one scalar, with its two derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError
from ...math.scalars import Scalar, sqrt, where_less


class Charge(NamedTuple):
    """The cost of a row, and its first and second derivative by the row."""

    value: Scalar
    slope: Scalar
    curvature: Scalar


class Activation(Protocol):
    """What a row r costs, before it is weighted.

    parameters: arrays of numbers, one for each row, that the compiled code takes as inputs.
    """

    @property
    def parameters(self) -> tuple[ArrayLike, ...]: ...

    def __call__(self, r: Scalar, *parameters: Scalar) -> Charge: ...


@dataclass(frozen=True)
class Square:
    """r^2 / 2."""

    @property
    def parameters(self) -> tuple[ArrayLike, ...]:
        return ()

    def __call__(self, r: Scalar, *parameters: Scalar) -> Charge:
        return Charge(0.5 * r * r, r, 1.0)


@dataclass(frozen=True, eq=False)
class Barrier:
    """Half the square of what r exceeds its bounds by: nothing within them. Bounds may be infinite."""

    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    def __post_init__(self) -> None:
        try:
            crossed = not np.all(np.asarray(self.lower, float) <= np.asarray(self.upper, float))
        except (TypeError, ValueError):
            raise InputError("Barrier: expected numbers, lower and upper for the same rows") from None
        if crossed:
            raise InputError("Barrier: a lower bound exceeds its upper bound, or is nan")

    @property
    def parameters(self) -> tuple[ArrayLike, ...]:
        return self.lower, self.upper

    def __call__(self, r: Scalar, *parameters: Scalar) -> Charge:
        lower, upper = parameters
        excess = where_less(r, lower, r - lower, where_less(upper, r, r - upper, 0.0))
        active = where_less(r, lower, 1.0, where_less(upper, r, 1.0, 0.0))
        return Charge(0.5 * excess * excess, excess, active)


@dataclass(frozen=True, eq=False)
class SmoothAbs:
    """sqrt(r^2 + width^2) - width: as r^2 / (2 width) near zero, as |r| far from it."""

    width: ArrayLike = 1e-2

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.width, float) > 0):
            raise InputError(f"SmoothAbs: expected a positive width, got {self.width!r}")

    @property
    def parameters(self) -> tuple[ArrayLike, ...]:
        return (self.width,)

    def __call__(self, r: Scalar, *parameters: Scalar) -> Charge:
        (width,) = parameters
        length = sqrt(r * r + width * width)
        return Charge(length - width, r / length, width * width / (length * length * length))
