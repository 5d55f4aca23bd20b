"""What a kernel of the loop language is made of: a function, and the arrays it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..emit.border import Axes


class Fill(Enum):
    """What fills the lanes of a kernel."""

    SAMPLES = "samples"
    COLUMNS = "columns"


@dataclass(frozen=True)
class LoopSpec:
    """A function of the loop language and its arrays: the lengths of their axes, as numbers or names of `sizes`.

    constants: what the function takes besides, by name; it prints the same in every process.
    tables: integers that the function reads, by name; factors: likewise numbers; work: memory for one sample.
    scattered: vectors whose entries may be apart; no loop over columns runs along them.
    many: whether samples in lanes are never few, which then have no code of their own.
    """

    name: str
    function: Callable[..., None]
    inputs: Axes
    results: Axes
    fill: Fill
    work: Axes = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    scattered: tuple[str, ...] = ()
    many: bool = False

    @property
    def apart(self) -> list[str]:
        """Operands whose rows may be apart: matrices of samples that go one by one, and scattered vectors."""
        if self.fill is Fill.SAMPLES:
            return []
        return [name for name, axes in (*self.inputs.items(), *self.results.items()) if self.is_apart(name, axes)]

    def is_apart(self, name: str, axes: Sequence[int | str]) -> bool:
        return len(axes) > 1 or name in self.scattered
