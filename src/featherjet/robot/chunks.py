"""Large batches chunk by chunk: `Robot.chunks`. Each chunk fits a core's cache, and is computed before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from .. import arrays
from ..algorithms.quantities import FRAME
from ..contact import Contacts
from ..errors import FeatherjetError, InputError
from ..evaluate.evaluator import Evaluator
from ..evaluate.frames import FrameName
from ..jit.batches import GRAIN
from ..jit.workers import MOST, ahead
from .bind import Chosen, chosen

CACHE = 4 << 20  # bytes of inputs and results in a chunk; smaller ones cost more in Python than they save in memory
Each = Callable[[slice, Any], Any]


def chunks(
    evaluator: Evaluator,
    quantity: str,
    inputs: Sequence[Any],
    fext: Any,
    contacts: Contacts | None,
    frame: FrameName | None,
    viewpoint: str,
    method: str,
    each: Each | None,
    size: int | None,
) -> Iterator[tuple[slice, Any]]:
    """See `Robot.chunks`."""
    choice = chosen("compute in chunks", evaluator, quantity, contacts, frame, viewpoint, method)
    record = choice.record
    names = [i.name for i in record.inputs if i is not FRAME]
    if len(inputs) != len(names):
        raise InputError(f"chunks of {quantity}: takes {', '.join(names)}; got {len(inputs)} arrays")
    if fext is not None and not record.forces:
        raise InputError(f"fext: {quantity} takes no external forces")
    lengths = evaluator.inputs.sizes(choice.options.get("contacts"))
    names += [] if fext is None else ["fext"]
    shapes = record.input_shapes(names, lengths)
    given: dict[str, Any] = dict(zip(names, (*inputs, fext), strict=False))
    given = {k: x if hasattr(x, "ndim") else np.asarray(x) for k, x in given.items()}
    batch = arrays.common_batch({k: (x, len(shapes[k])) for k, x in given.items()})
    if not batch:
        raise InputError(f"chunks of {quantity}: one state has no chunks; call robot.{quantity} instead")
    if size is None:
        numbers = sum(map(prod, [*shapes.values(), *record.result_shapes(lengths)])) * prod(batch[1:])
        size = max(CACHE // (8 * numbers) // GRAIN, 1) * GRAIN
    rows = arrays.whole_number("size", size, 1)
    whole = {k: x.ndim - len(shapes[k]) < len(batch) or x.shape[0] == 1 for k, x in given.items()}
    parts = (slice(k, min(k + rows, batch[0])) for k in range(0, batch[0], rows))
    return ahead((partial(_compute, choice, given, whole, part, each) for part in parts), min(evaluator.threads, MOST))


def _compute(
    choice: Chosen, given: dict[str, Any], whole: dict[str, bool], part: slice, each: Each | None
) -> tuple[slice, Any]:
    """A part of the batch, and its results, or what `each` makes of them."""
    values = {k: np.asarray(x if whole[k] else x[part]) for k, x in given.items()}
    fext = values.pop("fext", None)
    if FRAME.name in choice.fixed:
        single = all(x.dtype == np.float32 for x in values.values())
        values[FRAME.name] = choice.fixed[FRAME.name].astype(np.float32 if single else np.float64)
    try:
        results = choice.record.packed(choice.run(choice.record.name, tuple(values.values()), fext, None))
    except FeatherjetError as error:
        error.args = (f"chunk {part.start}:{part.stop}: {error}", *error.args[1:])
        raise
    return part, results if each is None else each(part, results)
