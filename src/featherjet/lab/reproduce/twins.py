"""Numbers a + b e with e^2 = -1 or 0 and traced parts: complex step and automatic differentiation as compiled code.

e^2 = -1 with a tiny b is complex step; e^2 = 0 is forward-mode differentiation by dual numbers. Algorithms run on
these as on any other scalars, one direction at a time; all directions together are one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algorithms.dynamics import aba, rnea
from ...algorithms.scan import Array, Scan
from ...math.scalars import Scalar, sincos
from ..internals import Symbol
from .algorithms import Algorithm

TINY = 1e-30
SCALARS = (int, float, np.number, Symbol)


def _on_scalars(operation: Callable[[Twin, Twin], Twin]) -> Callable[[Twin, Any], Any]:
    """Turn the other operand into a twin; anything but a scalar may handle the operation itself."""

    def lifted(self: Twin, x: Any) -> Any:
        if isinstance(x, Twin):
            return operation(self, x)
        return operation(self, Twin(x, 0.0, self.square)) if isinstance(x, SCALARS) else NotImplemented

    return lifted


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """a + b e; `square` is e^2."""

    a: Scalar
    b: Scalar
    square: float

    __array_ufunc__ = None  # so that a NumPy scalar on the left leaves the operation to Twin

    def __neg__(self) -> Twin:
        return Twin(-self.a, -self.b, self.square)

    @_on_scalars
    def __add__(self, y: Twin) -> Twin:
        return Twin(self.a + y.a, self.b + y.b, self.square)

    __radd__ = __add__

    @_on_scalars
    def __sub__(self, y: Twin) -> Twin:
        return Twin(self.a - y.a, self.b - y.b, self.square)

    @_on_scalars
    def __rsub__(self, y: Twin) -> Twin:
        return y - self

    @_on_scalars
    def __mul__(self, y: Twin) -> Twin:
        return Twin(self.a * y.a + self.square * (self.b * y.b), self.a * y.b + self.b * y.a, self.square)

    __rmul__ = __mul__

    @_on_scalars
    def __truediv__(self, y: Twin) -> Twin:
        norm = 1.0 / (y.a * y.a - self.square * (y.b * y.b))
        return self * Twin(y.a * norm, -(y.b * norm), self.square)

    @_on_scalars
    def __rtruediv__(self, y: Twin) -> Twin:
        return y / self

    def sincos(self) -> tuple[Twin, Twin]:
        """sin(a + b e) = sin a + b e cos a; for e^2 = -1 because b is so small that cosh b = 1 and sinh b = b."""
        s, c = sincos(self.a)
        return Twin(s, self.b * c, self.square), Twin(c, -(self.b * s), self.square)


def derivative(
    function: Callable[[Scan, Array, Array, Array], Array], third: str, name: str, square: float
) -> Algorithm:
    """The derivative of function(scan, q, v, third) along one direction: dq (nq,) is a rate of q, dv (nv,) of v."""
    size = TINY if square else 1.0

    def run(scan: Scan, q: Array, v: Array, x: Array, dq: Array, dv: Array) -> Sequence[Array]:
        moved_q = twins(q, size * dq, square)
        moved_v = twins(v, size * dv, square)
        found = function(scan, moved_q, moved_v, twins(x, np.zeros(len(x)), square))
        return [np.array([_part(y) / size for y in found], object)]

    return Algorithm(name, ("q", "v", third, "dq", "dv"), run)


def twins(a: Array, b: Array, square: float) -> Array:
    out = np.empty(len(a), object)
    out[:] = [Twin(x, y, square) for x, y in zip(a, b, strict=True)]
    return out


def _part(y: Any) -> Any:
    return y.b if isinstance(y, Twin) else 0.0


def inverse_dynamics(name: str, square: float) -> Algorithm:
    return derivative(rnea.inverse_dynamics, "a", name, square)


def forward_dynamics(name: str, square: float) -> Algorithm:
    return derivative(lambda scan, q, v, tau: aba.forward_dynamics(scan, q, v, tau).a, "tau", name, square)
