"""The reference: runs algorithms as they are written, on NumPy arrays of samples, real or complex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..algorithms.quantities import Quantity
from ..algorithms.scan import Scan

Array = np.ndarray


def evaluate(tree: Any, quantity: Quantity, inputs: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
    """A quantity's results, then its margins, at checked inputs in standard coordinates; batch axes lead.

    tree: the Tree, or the Places of a configuration space, that its algorithm walks.
    """
    axes = {name: len(quantity.input(name).axes) for name in inputs}
    lanes = np.broadcast_shapes(*(x.shape[: x.ndim - axes[name]] for name, x in inputs.items()))
    given = {name: trailing(x, axes[name], lanes) for name, x in inputs.items()}
    scan = Scan(tree, lanes, np.result_type(*inputs.values()))
    with np.errstate(divide="ignore", invalid="ignore"):  # the caller reports singular mass matrices
        results = quantity.compute(scan, given, **options)
    return tuple(leading(r, len(lanes)) for r in results)


def trailing(x: Array, core: int, lanes: tuple[int, ...]) -> Array:
    """An array (..., *core) broadcast to all lanes, with its core axes moved to the front."""
    wide = np.broadcast_to(x, (*lanes, *x.shape[x.ndim - core :]))
    return np.moveaxis(wide, range(len(lanes)), range(-len(lanes), 0))


def leading(x: Array, lanes: int) -> Array:
    """Move the trailing lane axes to the front."""
    return np.moveaxis(x, range(x.ndim - lanes, x.ndim), range(lanes)) if lanes else np.asarray(x)
