"""The Python that featherjet runs on: one with the global interpreter lock.

Compiled code reads the headers of Python's objects (`jit/emit/direct_call.py`), which lie elsewhere without that lock,
and counts on it between two lines.
"""

from __future__ import annotations

import sys

from .errors import FeatherjetError


class UnsupportedPython(FeatherjetError, ImportError):
    """featherjet does not run on this Python."""


def refuse_free_threading(version: str, flags: str) -> None:
    """Raise unless this Python, of this `sys.version` and `sys.abiflags`, has the global interpreter lock."""
    if "t" in flags or "free-threading" in version:
        number = ".".join(version.split(" ", 1)[0].split(".")[:2])
        raise UnsupportedPython(
            f"featherjet does not run on free-threaded Python ({number}t), even with PYTHON_GIL=1; use python{number}"
        )


refuse_free_threading(sys.version, getattr(sys, "abiflags", ""))
