"""Lanes whose `data` holds the tables of a robot."""

from __future__ import annotations

from ...algorithms.derivatives.regressor import PARAMETERS
from ...jit.emit.lanes import I64, Builder, Graph, Lanes, Module, Value
from ...jit.number import Number
from ..program import CONTACT_COUNTS, COUNTS, SLOTS

NUMBERS = (*COUNTS, *CONTACT_COUNTS)
# axis -> slot of its length
LENGTHS = {"q": "nq", "v": "nv", "dofs": "nv", "joints": "joints"} | {name: name for name in CONTACT_COUNTS}


class TreeLanes(Lanes):
    def __init__(self, module: Module, graph: Graph, lanes: int, kind: Number, whole: bool = True) -> None:
        super().__init__(module, graph, lanes, kind, whole, SLOTS, NUMBERS)

    def dimension(self, b: Builder, data: Value, name: int | str) -> Value:
        """The length of a core dimension: a number, or an axis whose length is in the robot's tables."""
        if name == "parameters":
            return b.mul(self.slot(b, data, "joints"), I64(len(PARAMETERS)))
        return I64(name) if isinstance(name, int) else self.slot(b, data, LENGTHS[name])
