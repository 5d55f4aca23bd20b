"""Costs and constraints as users write them: residuals with weights, activations and bounds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError
from .activations import Activation, Barrier, Square
from .references import finite_numbers
from .residuals import Residual

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Cost:
    """weight times what the rows of a residual cost; in phases with a duration, per second.

    weight: a number, one for each row (n,), or (..., knots, n) over time. activation: by default half the square of
    each row; for cones and limits a Barrier with the residual's own bounds.
    """

    residual: Residual
    weight: ArrayLike = 1.0
    activation: Activation | None = None
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        check_residual("Cost", self.residual)
        if (finite_numbers(f"weight of {self.label!r}", self.weight) < 0).any():
            raise InputError(f"weight of {self.label!r}: must not be negative, for then no motion costs least")
        activation = self.activation
        if activation is not None and not (callable(activation) and hasattr(activation, "parameters")):
            raise InputError(
                f"activation of {self.label!r}: expected one such as control.Barrier(...), got {activation!r}"
            )

    @property
    def label(self) -> str:
        return self.name or self.residual.name

    @property
    def charged(self) -> Activation:
        """The activation, by default that of the residual."""
        if self.activation is not None:
            return self.activation
        lower, upper = (getattr(self.residual, k, None) for k in ("lower", "upper"))
        return Square() if lower is None or upper is None else Barrier(lower, upper)


@dataclass(frozen=True, eq=False)
class Constraint:
    """lower <= residual <= upper, row by row; by default the residual is zero. Bounds may be infinite."""

    residual: Residual
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        check_residual("Constraint", self.residual)

    @property
    def label(self) -> str:
        return self.name or self.residual.name

    def bounds(self, rows: int) -> tuple[Array, Array]:
        """Lower and upper (rows,)."""
        of_residual = [getattr(self.residual, k, None) for k in ("lower", "upper")]
        if self.lower is None and self.upper is None:
            lower, upper = (0.0, 0.0) if of_residual[0] is None else of_residual
        else:
            lower = -np.inf if self.lower is None else self.lower
            upper = np.inf if self.upper is None else self.upper
        try:
            bounds = np.broadcast_to(np.asarray(lower, float), rows), np.broadcast_to(np.asarray(upper, float), rows)
        except ValueError:
            raise InputError(f"constraint {self.label!r}: expected bounds for {rows} rows") from None
        if np.isnan(bounds).any():
            raise InputError(f"constraint {self.label!r}: a bound is nan")
        if not (bounds[0] <= bounds[1]).all():
            raise InputError(f"constraint {self.label!r}: a lower bound exceeds its upper bound")
        return bounds


def check_residual(what: str, residual: object) -> None:
    """Raise unless this is a residual."""
    if not isinstance(residual, Residual):
        hint = "; wrap a function as control.Custom(function)" if callable(residual) else ""
        raise InputError(f"{what}: expected a residual, such as control.State(), got {type(residual).__name__}{hint}")
