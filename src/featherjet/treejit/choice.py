"""The one place where it is decided which algorithm computes a quantity of a robot, and how that is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..algorithms.quantities import Quantity
from ..model.configuration import Places
from ..model.tree import Tree
from .coupled import is_foldable

SMALL = 16_000  # operations; tracing two algorithms that are shorter takes a tenth of a second
UNROLLED, UNROLLED_VECTORS = 32_000, 10_500  # most operations to compile for one robot: with matrices, without


class CodeKind(Enum):
    """How a quantity is compiled; the values are what tables say."""

    CONTACTS = "loops shared, contacts are data"
    CHAIN = "chain of other quantities' code"
    LOOPS = "loops shared"
    FOLDED = "loops shared, between maps of mimicking joints"
    UNROLLED = "unrolled for this robot"


@dataclass(frozen=True)
class CodeChoice:
    """What a compiler does for a quantity of one robot.

    algorithms: the shortest is compiled. longest: operations above which it gives up; None: none. fast: whether code
    compiles and runs fast: loops over independent joints, or short straight-line code. why: the reason for the kind.
    """

    kind: CodeKind
    algorithms: tuple[Callable[..., Any], ...]
    longest: int | None
    fast: bool
    why: str

    @property
    def holds(self) -> bool:
        """Whether contacts are data of the code."""
        return self.kind is CodeKind.CONTACTS

    @property
    def unrolls(self) -> bool:
        """Whether code is for this robot alone."""
        return self.kind is CodeKind.UNROLLED


class CodeChooser:
    """Chooses for the quantities of one robot, from their records. unroll: see TreeCompiler."""

    def __init__(self, tree: Tree, unroll: bool | None, places: Places | None) -> None:
        self.tree, self.unroll, self.places = tree, unroll, places
        self._chosen: dict[tuple[Quantity, bool], CodeChoice] = {}

    def walked(self, quantity: Quantity) -> Any:
        """What a quantity's algorithm walks: the Tree, or Places."""
        return self.places if quantity.of_space and self.places else self.tree

    def choice(self, quantity: Quantity, options: bool = False) -> CodeChoice:
        """What is compiled; options: whether the quantity gets any besides contacts that are data."""
        found = self._chosen.get((quantity, options))
        return found or self._chosen.setdefault((quantity, options), self._choose(quantity, options))

    def _choose(self, quantity: Quantity, options: bool) -> CodeChoice:
        kind, why = self._kind(quantity)
        algorithms = (quantity.algorithm,)
        if kind is CodeKind.CONTACTS:
            assert quantity.contact_walk is not None
            algorithms = (quantity.contact_walk,)
        elif kind is CodeKind.UNROLLED and not options:
            algorithms = self._unrolled(quantity)
        cost = None if quantity.cost is None else quantity.cost.of(self.tree)
        free = self.tree.coupling is None
        longest = quantity.longest
        if cost is not None and not options and (free or self.unroll or cost <= UNROLLED):
            longest = None  # known to be worth compiling, however long it is
        loops = free and kind is not CodeKind.UNROLLED
        fast = loops or (cost is not None and cost <= (quantity.unrolls or UNROLLED))
        return CodeChoice(kind, algorithms, longest, fast, why)

    def _kind(self, quantity: Quantity) -> tuple[CodeKind, str]:
        """How to compile, and why.

        Rolled code computes matrices with columns in lanes, some of them idle; in unrolled code all lanes are samples.
        Vectors have samples in lanes either way, and blocks of columns fill the lanes: unrolling only folds constants.
        """
        couples = self.tree.coupling is not None
        if quantity.contact_walk is not None and not couples:
            return CodeKind.CONTACTS, "takes contacts"
        if quantity.solves:
            return CodeKind.CHAIN, f"-M^-1 times {quantity.solves}"
        shared = CodeKind.FOLDED if couples else CodeKind.LOOPS
        if not quantity.rolled or quantity.cost is None:
            return CodeKind.UNROLLED, f"not made of walks alone; at most {quantity.longest} operations"
        if couples and not is_foldable(quantity):
            return CodeKind.UNROLLED, "joints mimic others"
        if self.unroll is not None:
            return CodeKind.UNROLLED if self.unroll else shared, f"unroll={self.unroll}"
        most = quantity.unrolls or (UNROLLED if quantity.matrices or couples else UNROLLED_VECTORS)
        cost = quantity.cost.of(self.tree)
        if cost <= most:
            return CodeKind.UNROLLED, f"{cost:.0f} operations, at most {most}"
        return shared, f"{cost:.0f} operations, more than {most}"

    def _unrolled(self, quantity: Quantity) -> tuple[Callable[..., Any], ...]:
        """The algorithm of a quantity in straight-line code; for a small robot, several to choose from."""
        if self.tree.coupling is not None:
            return (quantity.mimic if callable(quantity.mimic) else quantity.algorithm,)
        most = SMALL if len(quantity.for_small) > 1 else UNROLLED
        small = quantity.cost is not None and quantity.cost.of(self.walked(quantity)) <= most
        return (quantity.for_small if small else ()) or (quantity.algorithm,)
