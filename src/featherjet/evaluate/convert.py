"""Converts states of a robot between conventions."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from .. import arrays
from ..display import compact
from ..errors import InputError
from ..model.model import Array
from .evaluator import Evaluator


@compact
class ConvertedState(NamedTuple):
    """The state in other coordinates; None for parts that were not given."""

    q: Array
    v: Array | None
    a: Array | None
    tau: Array | None


def converted(
    source: Evaluator,
    target: Evaluator,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> ConvertedState:
    """A state of `source` in the coordinates of `target`, another evaluator of the same robot."""
    if a is not None and v is None:
        raise InputError("convert: a needs v, since accelerations depend on how fast the axes turn; give both")
    given = {"q": source.checked_q("q", q)} | {
        name: source.checked_v(name, x) for name, x in (("v", v), ("a", a), ("tau", tau)) if x is not None
    }
    arrays.common_batch({name: (x, 1) for name, x in given.items()})
    given = target.from_standard(source.to_standard(given))
    return ConvertedState(given["q"], *(given.get(name) for name in ("v", "a", "tau")))
