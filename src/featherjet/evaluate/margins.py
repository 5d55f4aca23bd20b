"""Margins: how far a sample is from having no answer, and what is said where that is zero up to rounding."""

from __future__ import annotations

import numpy as np

from ..algorithms.contacts import redundant
from ..errors import SingularMassMatrix
from ..model.model import Array, Model

LEAST_MARGIN = {"mass": 1e-13, "contacts": redundant.LEAST_MARGIN}  # smaller margins are rounding errors


class SmallMargin(Exception):
    """A margin is zero up to rounding: its kind, the samples of the batch, the index of the first, and its row."""

    def __init__(self, kind: str, samples: Array, row: int) -> None:
        self.kind, self.samples, self.row = kind, samples, row
        self.sample = tuple(map(int, np.argwhere(samples)[0]))
        super().__init__(f"{kind}: singular{self.where}: nothing determines row {row}")

    @property
    def where(self) -> str:
        return f" at sample {self.sample}" if self.sample else ""


def refuse_small(model: Model, kind: str, margins: Array, batch: tuple[int, ...]) -> None:
    """Raise if a sample's margin is zero; margins (samples, rows)."""
    bad = ~(margins > LEAST_MARGIN[kind])
    if not bad.any():
        return
    samples = bad.any(-1)
    # a zero margin spoils those of all rows before it, so the last bad row is the cause
    row = int(np.flatnonzero(bad[np.argmax(samples)])[-1])
    small = SmallMargin(kind, samples.reshape(batch), row)
    if kind != "mass":
        raise small
    joint = next(part.joint.name for part in model.parts if part.v.start <= row < part.v.stop)
    raise SingularMassMatrix(
        f"robot {model.name!r}: the mass matrix is singular{small.where}: joint {joint!r} can move "
        "without moving any inertia. Give the links beyond it a mass and inertia, give the joint an armature, "
        "or lock it."
    )
