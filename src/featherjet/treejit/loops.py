"""The loops of a rolled program, traced into functions that become machine code.

Run on arrays by `math.loops.ArrayLoops`, they say what a rolled program means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..jit.loops.index import contiguous, size
from ..jit.loops.program import LaneRole, LoopFunction
from ..jit.loops.trace import Tracer
from .program import ContactSolve, GripLoop, Hold, Meet, RowLoop, Walk
from .row_loops import contact_solve, hold, meet
from .walks import MemoryLayout, sweep, walk

NUMBERS = {"table": "table", "dofs": "dofs", "param": "param"}
INTEGERS = ("parent", "variant", "q_start", "v_start")
COUNTS = ("joints", "nv")
CONTACT_NUMBERS = {"grip": "grip_values", "entry": "entry_values"}
CONTACT_INTEGERS = ("grip", "entry", "climbs", "ways", "meets", "meeting")
CONTACT_COUNTS = ("grips", "entries", "rows", "stops")
FUNCTIONS = {Walk: walk, GripLoop: sweep, Hold: hold, Meet: meet, ContactSolve: contact_solve}


def traced(layout: MemoryLayout, number: int, loop: Walk | GripLoop | RowLoop) -> LoopFunction:
    """A loop as a function of the spaces, the arrays that loops work in, and the inputs, for samples in lanes."""
    if number not in layout.traced:
        layout.traced[number] = trace(layout, f"{type(loop).__name__.lower()}{number}", loop)
    return layout.traced[number]


def trace(layout: MemoryLayout, name: str, loop: Walk | GripLoop | RowLoop) -> LoopFunction:
    t, contacts = Tracer(name, True, layout.called), not isinstance(loop, Walk)
    memory: dict[str, Any] = {space: t.argument(space, [1]) for space in layout.spaces}
    memory["work"] = {name: t.argument(name, contiguous(axes)) for name, axes in layout.work.items()}
    memory |= {name: t.argument(name, [1], fixed=True) for name in layout.program.inputs}
    tabled = NUMBERS | CONTACT_NUMBERS if contacts else NUMBERS
    memory |= {name: t.table(slot, [1], LaneRole.NUMBERS) for name, slot in tabled.items()}
    integers = (*INTEGERS, *CONTACT_INTEGERS) if contacts else INTEGERS
    tables = {name: t.table(name, [1], LaneRole.INTEGERS) for name in integers}
    counts = {name: size(name) for name in (*COUNTS, *(CONTACT_COUNTS if contacts else ()))}
    run(t, layout, loop, memory, tables, counts)
    return t.finished()


def run(
    t: Any, layout: MemoryLayout, loop: Walk | GripLoop | RowLoop, memory: Mapping[str, Any],
    tables: Mapping[str, Any], counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """One loop. memory: spaces, inputs and tables of numbers by name, and, by theirs, the arrays that loops `work` in;
    tables: of integers; counts: by name."""
    FUNCTIONS[type(loop)](t, layout, loop, memory, tables, counts)  # type: ignore[operator]
