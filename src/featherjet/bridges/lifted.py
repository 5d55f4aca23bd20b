"""Arrays of any framework as the generic scalars of algorithms, so that an algorithm runs as plain array operations.

Frameworks then differentiate it themselves, to any order: slower than machine code, but with nothing of ours in the
derivatives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..algorithms.record import Quantity
from ..algorithms.scan import Scan


class Lifted:
    """An array over a batch as a scalar; xp is the namespace of its framework."""

    __slots__ = ("x", "xp")

    def __init__(self, xp: Any, x: Any) -> None:
        self.xp, self.x = xp, x

    def __neg__(self) -> Lifted:
        return Lifted(self.xp, -self.x)

    def _with(self, other: Any, operation: Callable[[Any, Any], Any]) -> Lifted:
        """An operation with a number or another such scalar; Python tries the other's way for anything else."""
        if isinstance(other, Lifted):
            return Lifted(self.xp, operation(self.x, other.x))
        if isinstance(other, (int, float, np.number)):
            return Lifted(self.xp, operation(self.x, float(other)))
        return NotImplemented

    def __add__(self, other: Any) -> Lifted:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> Lifted:
        return self._with(other, operator.sub)

    def __mul__(self, other: Any) -> Lifted:
        return self._with(other, operator.mul)

    def __truediv__(self, other: Any) -> Lifted:
        return self._with(other, operator.truediv)

    def __rsub__(self, other: Any) -> Lifted:
        return self._with(other, lambda x, y: y - x)

    def __rtruediv__(self, other: Any) -> Lifted:
        return self._with(other, lambda x, y: y / x)

    __radd__, __rmul__ = __add__, __mul__

    def sincos(self) -> tuple[Lifted, Lifted]:
        return Lifted(self.xp, self.xp.sin(self.x)), Lifted(self.xp, self.xp.cos(self.x))

    def sqrt(self) -> Lifted:
        return Lifted(self.xp, self.xp.sqrt(self.x))

    def where_less(self, a: Any, b: Any, x: Any, y: Any) -> Lifted:
        given = [self.xp.zeros_like(self.x) + bare(s) for s in (a, b, x, y)]
        return Lifted(self.xp, self.xp.where(given[0] < given[1], given[2], given[3]))


def bare(x: Any) -> Any:
    """The array of a scalar; a number as it is."""
    return x.x if isinstance(x, Lifted) else float(x)


def replayed(xp: Any, walked: Any, record: Quantity, given: Mapping[str, Any], **options: Any) -> list[Any]:
    """A quantity's results by its algorithm on arrays of a framework; inputs (..., *core) with equal batches.

    walked: the Tree, or Places, that the algorithm walks. q must be normalised.
    """
    first = next(iter(given.values()))
    inputs = {}
    for name, x in given.items():
        core = len(record.input(name).axes)
        entries = np.empty(tuple(x.shape[x.ndim - core :]), object)
        for k in np.ndindex(*entries.shape):
            entries[k] = Lifted(xp, x[(..., *k)])
        inputs[name] = entries
    found = record.compute(Scan(walked, (), object), inputs, **options)[: len(record.results)]
    zero = xp.zeros_like(first[(..., *(0,) * len(record.input(next(iter(given))).axes))])
    out = []
    for r in found:
        entries = [zero + bare(x) for x in np.asarray(r, object).flat]
        stacked = xp.stack(entries, -1)
        out.append(stacked.reshape(*zero.shape, *np.shape(r)))
    return out
