"""Lanes that know the tables of a robot."""

from __future__ import annotations

import llvmlite.ir as ir

from ...jit.data import HEADER
from ...jit.emit.lanes import I64, PTR, Lanes, Value
from ..program import COUNTS, SLOTS

LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv", "joints": "joints"}  # axis -> the slot that has its length


class TreeLanes(Lanes):
    slots = {name: (k, I64 if name in (*HEADER, *COUNTS) else PTR) for k, name in enumerate(SLOTS)}  # noqa: RUF012


def tree_dimension(w: Lanes, b: ir.IRBuilder, data: Value, name: int | str) -> Value:
    """A core dimension: a number, or an axis whose length the robot's tables know."""
    return I64(name) if isinstance(name, int) else w.slot(b, data, LENGTHS[name])
