"""Functions of generic scalars: floats, complex numbers, NumPy arrays, or a compiler's tracers.

A tracer provides each function as a method of the same name. On complex numbers all are analytic, and comparisons look
at real parts, so that complex steps pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Scalar = Any  # float | complex | numpy.ndarray | tracer


def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """Sine and cosine of an angle [rad]."""
    own = getattr(x, "sincos", None)
    return own() if own else (np.sin(x), np.cos(x))


def sqrt(x: Scalar) -> Scalar:
    """The square root."""
    own = getattr(x, "sqrt", None)
    return own() if own else np.sqrt(x)


def where_less(a: Scalar, b: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """x where a < b, else y. Both are computed, so both must be finite."""
    for scalar in (a, b, x, y):
        own = getattr(scalar, "where_less", None)
        if own:
            return own(a, b, x, y)
    where: Any = np.where
    return where(np.real(a) < np.real(b), x, y)[()]  # a number, not an array, of numbers
