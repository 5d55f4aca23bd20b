"""The quantities that are benchmarked: their inputs and results, and the peers' functions that compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...model.model import Array

Axes = tuple[str, ...]


@dataclass(frozen=True)
class BenchmarkedQuantity:
    """A method of `Robot` that is timed.

    results: the axes of each result after the batch, "v" for degrees of freedom and "rows" for rows of contacts.
    derivative_of: the quantity that this one differentiates by its three inputs, if it does.
    by_third: the quantity that is the derivative by the third input.
    divides_by_mass: whether M^-1 enters, so that long chains, whose M is ill-conditioned, need a wider tolerance.
    """

    name: str
    label: str
    inputs: tuple[str, str, str]
    results: tuple[Axes, ...]
    pinocchio: str = ""
    derivative_of: str | None = None
    by_third: str | None = None
    divides_by_mass: bool = False

    @property
    def entries_per_dof(self) -> int:
        """The largest number of axes of a result: work grows with this power of the number of dofs."""
        return max(map(len, self.results))

    def empty_results(self, size: int, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        """Arrays (size, *axes) full of NaN; `sizes` are the lengths of the axes by name."""
        return tuple(np.full((size, *(sizes[axis] for axis in axes)), np.nan) for axes in self.results)


VECTOR, MATRIX = ("v",), ("v", "v")
INVERSE, FORWARD = ("q", "v", "a"), ("q", "v", "tau")

QUANTITIES: dict[str, BenchmarkedQuantity] = {
    quantity.name: quantity
    for quantity in (
        BenchmarkedQuantity("inverse_dynamics", "ID", INVERSE, (VECTOR,), "rnea"),
        BenchmarkedQuantity("forward_dynamics", "FD", FORWARD, (VECTOR,), "aba", divides_by_mass=True),
        BenchmarkedQuantity(
            "inverse_dynamics_derivatives",
            "ID derivatives",
            INVERSE,
            (MATRIX,) * 3,
            "computeRNEADerivatives",
            derivative_of="inverse_dynamics",
            by_third="mass_matrix",
        ),
        BenchmarkedQuantity(
            "forward_dynamics_derivatives",
            "FD derivatives",
            FORWARD,
            (MATRIX,) * 3,
            "computeABADerivatives",
            derivative_of="forward_dynamics",
            by_third="inverse_mass_matrix",
            divides_by_mass=True,
        ),
    )
}

CONTACT_QUANTITIES: dict[str, BenchmarkedQuantity] = {
    quantity.name: quantity
    for quantity in (
        BenchmarkedQuantity("constrained_dynamics", "dynamics", FORWARD, (("v",), ("rows",))),
        BenchmarkedQuantity(
            "constrained_dynamics_derivatives",
            "derivatives",
            FORWARD,
            (("v", "v"),) * 3 + (("rows", "v"),) * 3,
            derivative_of="constrained_dynamics",
        ),
    )
}
