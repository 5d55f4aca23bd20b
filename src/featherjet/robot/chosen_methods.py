"""`fj.methods`: every way to compute a quantity, or what a robot takes where no method is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..algorithms.derivatives import methods as ways
from ..algorithms.quantities import QUANTITIES, Quantity
from ..errors import InputError
from ..evaluate.evaluator import Evaluator, HasEvaluator


class ChosenMethod(NamedTuple):
    """What computes a quantity of a robot: its algorithms, of which the shortest is taken; how they run, and why."""

    quantity: str
    algorithm: str
    code: str
    why: str


class ChosenMethods(tuple[ChosenMethod, ...]):
    """What computes each quantity of a robot, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [ChosenMethod._fields, *self]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join("  ".join(x.ljust(n) for x, n in zip(row, widths, strict=True)).rstrip() for row in rows)


def methods(of: str | HasEvaluator | None = None) -> ways.Methods | ChosenMethods:
    """Every way to compute a derivative; those of one quantity; or, of a robot, what it takes for each quantity."""
    if of is None or isinstance(of, str):
        return ways.methods(of)
    evaluator = getattr(of, "evaluator", None)
    if not isinstance(evaluator, Evaluator):
        raise InputError(f"methods: expected the name of a quantity, or a robot, got {type(of).__name__}")
    return ChosenMethods(chosen(evaluator.standard, record) for record in QUANTITIES.values())


def chosen(evaluator: Evaluator, record: Quantity) -> ChosenMethod:
    """What computes a quantity in standard coordinates."""
    taken = evaluator.kernels.computing(record)
    if taken is not record:
        return ChosenMethod(record.name, *chosen(evaluator, taken)[1:3], f"{taken.name}, one row after the other")
    on_numpy = (record.on_numpy or record.algorithm,)
    if evaluator.tree.coupling is not None and callable(record.mimic):
        on_numpy = (record.mimic,)
    if evaluator.backend == "numpy":
        return ChosenMethod(record.name, named(record, on_numpy), "NumPy", "backend='numpy'")
    if evaluator.kernels.gave_up(record):
        return ChosenMethod(record.name, named(record, on_numpy), "NumPy", f"more than {record.longest} operations")
    choice = evaluator.kernels.choice(record)
    return ChosenMethod(record.name, named(record, choice.algorithms), choice.kind.value, choice.why)


def named(record: Quantity, algorithms: tuple[Callable[..., Any], ...]) -> str:
    """Algorithms by the names of methods, or of the functions that have none."""
    known = {m.function: m.name for m in record.methods.values() if m.name != "auto"}
    return " or ".join(known.get(f) or f"{f.__module__.rpartition('.')[2]}.{f.__name__}" for f in algorithms)
