"""Flags that kernels raise."""

from __future__ import annotations

from enum import IntFlag


class Flag(IntFlag):
    """What a kernel found wrong with some sample."""

    NONFINITE = 1  # an input is not finite
    NOT_UNIT = 2  # a part of an input that must have norm one has not
    SMALL_MARGIN = 4  # a watched result is so small that the caller must look closer
