"""The quantities that are benchmarked: their inputs and results, and the peers' functions that compute them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...algorithms.quantities import Quantity, quantity
from ...model.model import Array


@dataclass(frozen=True)
class BenchmarkedQuantity:
    """A method of `Robot` that is timed.

    pinocchio: the function that computes it there. by_third: the quantity that is its derivative by the third input.
    """

    name: str
    label: str
    pinocchio: str = ""
    by_third: str | None = None

    @property
    def record(self) -> Quantity:
        return quantity(self.name)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.record.inputs)

    @property
    def derivative_of(self) -> str | None:
        """The quantity that this one differentiates by its three inputs, if it does."""
        return self.record.base.name if self.record.base else None

    @property
    def divides_by_mass(self) -> bool:
        """Whether M^-1 enters, so that long chains, whose M is ill-conditioned, need a wider tolerance."""
        return "mass" in self.record.margins

    @property
    def entries_per_dof(self) -> int:
        """The largest number of axes of a result: work grows with this power of the number of dofs."""
        return max(len(r.axes) for r in self.record.results)

    def empty_results(self, size: int, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        """Arrays (size, *axes) full of NaN; `sizes` are the lengths of the axes by name."""
        return tuple(np.full((size, *shape), np.nan) for shape in self.record.result_shapes(sizes))


def _table(*rows: BenchmarkedQuantity) -> dict[str, BenchmarkedQuantity]:
    return {row.name: row for row in rows}


QUANTITIES = _table(
    BenchmarkedQuantity("inverse_dynamics", "ID", "rnea"),
    BenchmarkedQuantity("forward_dynamics", "FD", "aba"),
    BenchmarkedQuantity("inverse_dynamics_derivatives", "ID derivatives", "computeRNEADerivatives", "mass_matrix"),
    BenchmarkedQuantity(
        "forward_dynamics_derivatives", "FD derivatives", "computeABADerivatives", "inverse_mass_matrix"
    ),
)
CONTACT_QUANTITIES = _table(
    BenchmarkedQuantity("constrained_dynamics", "dynamics"),
    BenchmarkedQuantity("constrained_dynamics_derivatives", "derivatives"),
)
