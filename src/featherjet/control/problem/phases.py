"""Phases of a problem as users write them: knots with the same contacts, costs and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ... import arrays
from ...algorithms.integrators import TABLEAUX
from ...contact import Contacts
from ...errors import InputError, UnknownName
from ..residuals.cost import Constraint, Cost

INTEGRATORS = ("euler", *TABLEAUX)


@dataclass(frozen=True, eq=False)
class Phase:
    """`knots` knots of `dt` seconds each, with the same contacts, costs and constraints.

    Costs are per second. contacts: what holds meanwhile, or None. Weights and references may vary along the knots.
    integrator: "euler", semi-implicit, of first order; "rk2" and "rk4", of second and fourth, whose costs are those of
    the states at which steps begin.
    """

    knots: int
    dt: float
    costs: Sequence[Cost]
    contacts: Contacts | None = None
    constraints: Sequence[Constraint] = ()
    _: KW_ONLY
    integrator: str = "euler"

    def __post_init__(self) -> None:
        if self.integrator not in INTEGRATORS:
            raise UnknownName("integrator", self.integrator, INTEGRATORS)
        arrays.whole_number("knots", self.knots, 1)
        arrays.positive_number("dt", self.dt)
        check_terms("Phase", self.costs, self.constraints)
        if self.contacts is not None and not isinstance(self.contacts, Contacts):
            raise InputError(f"contacts: expected fj.Contacts(robot, [...]), got {type(self.contacts).__name__}")


@dataclass(frozen=True, eq=False)
class Impact:
    """A knot without duration at which contacts strike: velocities jump, and there are no controls.

    Costs count as they are, at the state before the impact.
    """

    contacts: Contacts
    costs: Sequence[Cost]
    constraints: Sequence[Constraint] = ()

    def __post_init__(self) -> None:
        check_terms("Impact", self.costs, self.constraints)
        if not isinstance(self.contacts, Contacts):
            raise InputError(f"contacts: expected fj.Contacts(robot, [...]), got {type(self.contacts).__name__}")

    @property
    def knots(self) -> int:
        return 1

    @property
    def integrator(self) -> str:
        return "euler"

    @property
    def dt(self) -> float:
        return 0.0


def check_terms(where: str, costs: object, constraints: object) -> None:
    """Raise unless these are costs and constraints."""
    for name, terms, kind in (("costs", costs, Cost), ("constraints", constraints, Constraint)):
        if not isinstance(terms, Sequence) or not all(isinstance(x, kind) for x in terms):
            raise InputError(f"{where}: {name} must be a list of {kind.__name__}(residual, ...)")
