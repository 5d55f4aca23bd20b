"""Flags that kernels set."""

from __future__ import annotations

from enum import IntFlag


class Flag(IntFlag):
    """What is wrong with at least one sample."""

    LARGE = 1  # an input is not finite, or so large that a result may not be
    NOT_UNIT = 2  # a quaternion or cosine-sine pair is not of norm one
    SMALL_MARGIN = 4  # a watched result is close to zero; the caller must look closer
    NO_MEMORY = 8  # there was no memory to compute in; no result is written
