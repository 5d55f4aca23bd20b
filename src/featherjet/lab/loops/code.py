"""Where a function of the loop language is being written: its handle, its arrays and its tables, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...treejit.program import TABLE
from .memory import LoopMemory

WIDTH = sum(TABLE.values())


class LoopCode:
    """The function that is being written; parts of it become functions of their own, which compile to better code.

    make(name, axes): an array that is not there yet, while it is being found out which there are; later there is none.
    """

    def __init__(
        self, t: Any, memory: LoopMemory, arrays: dict[str, Any], tables: dict[str, Any],
        make: Callable[[str, tuple], Any] | None,
    ) -> None:  # fmt: skip
        self.t, self.memory, self.arrays, self.tables, self.make = t, memory, arrays, tables, make

    def array(self, name: str, axes: tuple = ("n", "n")) -> Any:
        if name not in self.arrays and self.make:
            self.arrays[name] = self.make(name, axes)
        return self.arrays[name]

    def constant(self, i: Any, k: int) -> Any:
        """Number k of a body's row in the table of bodies."""
        return self.tables["bodies"][i * WIDTH + k]

    def part(self, body: Callable[..., None], *integers: Any) -> None:
        """body(*integers) as a function of its own."""
        if self.make:
            body(*integers)
            return
        names, outer = [list(x) for x in (self.arrays, self.tables)], (self.t, self.arrays, self.tables)

        def inside(t: Any, *given: Any) -> None:
            found = iter(given)
            self.t, self.memory.loads = t, {}
            self.arrays, self.tables = ({name: next(found) for name in x} for x in names)
            body(*found)

        outer[0].call(inside, *outer[1].values(), *outer[2].values(), *integers)
        self.t, self.arrays, self.tables = outer
