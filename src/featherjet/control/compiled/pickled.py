"""Copies and pickles without compiled code: numbers are kept, code is made again when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class DropsCode:
    """An object whose pickles and copies leave out its cached properties, which hold compiled code."""

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {k: x for k, x in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)}
