"""What of an object is copied and pickled: its numbers, but not its code, which is made again when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class DropsCode:
    """An object that leaves its cached properties behind."""

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {k: x for k, x in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)}
