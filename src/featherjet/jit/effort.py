"""How much work the compiler puts into code, and for which calls."""

from __future__ import annotations

from enum import Enum


class Effort(Enum):
    """What compilers do for a kernel; callers that know how the code will be called ask for less than FULL.

    FULL: the best code, for one sample and for batches of any length. ONE: for one sample now and then. BATCHES: for
    short batches. BOTH: for one sample and for short batches. All but FULL compile fast. Short batches fetch code from
    memory each time, so straight-line code that was compiled fast serves them as well as better code.
    """

    FULL = "full"
    ONE = "one"
    BATCHES = "batches"
    BOTH = "both"

    @property
    def fast_compile(self) -> bool:
        return self is not Effort.FULL
