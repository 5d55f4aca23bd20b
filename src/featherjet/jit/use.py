"""What code is for: the best code takes longest to make."""

from __future__ import annotations

from enum import Enum


class Use(Enum):
    """ANY: one sample or many. ONE: one sample, now and then. SHORT: short batches. FEW: one sample, or short batches.

    All but that for ANY is quick to make. For short batches, which fetch code from memory each time, straight-line code
    that was made quickly is as fast as better code.
    """

    ANY = "any"
    ONE = "one"
    SHORT = "short"
    FEW = "few"

    @property
    def hasty(self) -> bool:
        return self is not Use.ANY
