"""Numbers with a bound of what rounding may make of them, in any order of sums and with any fused products.

|computed - value| <= error, where `value` is computed in double precision. Every operation adds EPS of the largest
number that may occur in it: sums are bounded by the sum of their terms' sizes, since compilers reorder them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SLACK = 8.0  # roundings of one operation: functions are within some of their true values


def lifted(kind: type[Bounded], x: Any) -> Bounded:
    return x if isinstance(x, Bounded) else kind(x)


class Bounded:
    """Values, the sizes of the terms they are made of, and their errors: arrays over samples."""

    __slots__ = ("error", "size", "value")
    __array_ufunc__ = None
    eps, least, most = 2.0**-53, 1e-290, 1e290  # beyond these sizes, numbers may overflow or lose digits

    def __init__(self, value: Any, size: Any = None, error: Any = 0.0) -> None:
        self.value = np.asarray(value, float)
        self.size = np.abs(self.value) if size is None else size
        self.error = np.where(self.size < self.most, error + SLACK * self.eps * self.size + self.least, np.inf)

    def __neg__(self) -> Bounded:
        return type(self)(-self.value, self.size, self.error)

    def __add__(self, y: Any) -> Bounded:
        y = lifted(type(self), y)
        return type(self)(self.value + y.value, self.size + y.size, self.error + y.error)

    def __sub__(self, y: Any) -> Bounded:
        return self + -lifted(type(self), y)

    def __mul__(self, y: Any) -> Bounded:
        y = lifted(type(self), y)
        error = np.abs(self.value) * y.error + np.abs(y.value) * self.error + self.error * y.error
        return type(self)(self.value * y.value, self.size * y.size, error)

    def __truediv__(self, y: Any) -> Bounded:
        y = lifted(type(self), y)
        least = np.maximum(np.abs(y.value) - y.error, 0.0)
        value = self.value / y.value
        return type(self)(value, self.size / least, (self.error + np.abs(value) * y.error) / least)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, x: Any) -> Bounded:
        return lifted(type(self), x) - self

    def __rtruediv__(self, x: Any) -> Bounded:
        return lifted(type(self), x) / self

    def sincos(self) -> tuple[Bounded, Bounded]:
        one = np.ones_like(self.value)
        return type(self)(np.sin(self.value), one, self.error), type(self)(np.cos(self.value), one, self.error)

    def sqrt(self) -> Bounded:
        root = np.sqrt(self.value)
        return type(self)(root, np.sqrt(self.size), self.error / np.sqrt(np.maximum(self.value - self.error, 0.0)))

    def where_less(self, *operands: Any) -> Bounded:
        a, b, x, y = (lifted(type(self), k) for k in operands)
        apart, less = np.abs(a.value - b.value), a.value < b.value
        either = np.where(apart <= a.error + b.error, np.abs(x.value - y.value), 0.0)
        error = np.maximum(x.error, y.error) + either
        return type(self)(np.where(less, x.value, y.value), np.maximum(x.size, y.size), error)


class SingleBounded(Bounded):
    """What code in single precision may make of numbers."""

    eps, least, most = 2.0**-24, 1e-36, 1e36
