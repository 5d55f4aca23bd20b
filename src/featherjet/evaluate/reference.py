"""The reference: runs algorithms as they are written, on NumPy arrays of samples, real or complex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..algorithms.quantities import Quantity
from ..algorithms.scan import Scan
from ..arrays import common_batch

Array = np.ndarray
CHUNK, CONTACT_CHUNK = 4096, 1024  # samples at a time, so that large batches fit into memory


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


def evaluate_in_chunks(
    tree: Any, quantity: Quantity, inputs: Mapping[str, Array], options: Mapping[str, Any]
) -> tuple[tuple[Array, ...], dict[str, Array], tuple[int, ...]]:
    """The same chunk by chunk: results with batch axes, margins (samples, rows) by kind, and the batch's shape."""
    chunk = CONTACT_CHUNK if "contacts" in options else CHUNK
    if "method" in options:  # methods may store nv numbers per entry
        chunk = max(1, CHUNK // tree.nv)
    cores = {name: len(quantity.input(name).axes) for name in inputs}
    batch = common_batch({name: (x, cores[name]) for name, x in inputs.items()})
    flat = {}
    for name, x in inputs.items():
        core = x.shape[x.ndim - cores[name] :]
        flat[name] = np.broadcast_to(x, (*batch, *core)).reshape(-1, *core)
    pieces, margins = [], []
    for start in range(0, max(int(np.prod(batch)), 1), chunk):
        part = {name: x[start : start + chunk] for name, x in flat.items()}
        found = evaluate(tree, quantity, part, **options)
        count = len(found) - len(quantity.margins)
        pieces.append(found[:count])
        margins.append(found[count:])
    results = tuple(np.concatenate(r).reshape((*batch, *r[0].shape[1:])) for r in zip(*pieces, strict=True))
    kinds = zip(quantity.margins, zip(*margins, strict=True), strict=False)
    return results, {kind: np.concatenate(x) for kind, x in kinds}, batch
