"""What code is for: the best code takes longest to make."""

from __future__ import annotations

from enum import Enum


class Use(Enum):
    """ANY: one sample or many. ONE: one sample at a time, now and then. SHORT: short batches.

    Code for ONE and SHORT is quick to make. For short batches, which fetch code from memory each time, straight-line
    code that was made quickly is as fast as better code.
    """

    ANY = "any"
    ONE = "one"
    SHORT = "short"

    @property
    def hasty(self) -> bool:
        return self is not Use.ANY
