"""Records that add, subtract and scale field by field.

A record derives from `Additive` or `Linear` and is a dataclass. Its operators are generated from its fields when the
class is created, so that they run as fast as operators written by hand, on any kind of scalar.
"""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, TypeVar

R = TypeVar("R")

# Parameters of each operator, and the expression for one field.
_OPERATORS = {
    "__add__": ("self, other", "self.{0} + other.{0}"),
    "__sub__": ("self, other", "self.{0} - other.{0}"),
    "__neg__": ("self", "-self.{0}"),
    "__rmul__": ("self, s", "s * self.{0}"),
}


def _generate(cls: type, operator: str) -> None:
    """Define an operator of a class from its annotated fields, those of its bases first."""
    parameters, expression = _OPERATORS[operator]
    fields = dict.fromkeys(name for base in reversed(cls.__mro__) for name in get_annotations(base))
    namespace: dict[str, Any] = {"cls": cls}
    exec(f"def {operator}({parameters}): return cls({', '.join(map(expression.format, fields))})", namespace)
    setattr(cls, operator, namespace[operator])


class Additive:
    """Base of dataclasses whose sum is the sum of their fields."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _generate(cls, "__add__")

    def __add__(self: R, other: R) -> R:
        raise NotImplementedError


class Linear(Additive):
    """Base of dataclasses that add, subtract and scale by their fields."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy scalars and arrays leave s * record to __rmul__

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for operator in ("__sub__", "__neg__", "__rmul__"):
            _generate(cls, operator)

    def __sub__(self: R, other: R) -> R:
        raise NotImplementedError

    def __neg__(self: R) -> R:
        raise NotImplementedError

    def __rmul__(self: R, s: Any) -> R:
        raise NotImplementedError
