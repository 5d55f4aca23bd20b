"""Lanes whose `data` holds the tables of a robot."""

from __future__ import annotations

import llvmlite.ir as ir

from ...algorithms.derivatives.regressor import PARAMETERS
from ...jit.emit.lanes import I64, PTR, Lanes, Value
from ..program import CONTACT_COUNTS, COUNTS, SLOTS

NUMBERS = (*COUNTS, *CONTACT_COUNTS)
# axis -> slot of its length
LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv", "joints": "joints"} | {name: name for name in CONTACT_COUNTS}


class TreeLanes(Lanes):
    slots = {name: (k, I64 if name in NUMBERS else PTR) for k, name in enumerate(SLOTS)}  # noqa: RUF012


def tree_dimension(w: Lanes, b: ir.IRBuilder, data: Value, name: int | str) -> Value:
    """The length of a core dimension: a number, or an axis whose length is in the robot's tables."""
    if name == "parameters":
        return b.mul(w.slot(b, data, "joints"), I64(len(PARAMETERS)))
    return I64(name) if isinstance(name, int) else w.slot(b, data, LENGTHS[name])
