"""The loops of a rolled program over bodies and contacts, as functions of the loop language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..jit.loops.program import LoopFunction
from ..jit.loops.replay import applied, replayed
from .program import ENTRY, GRIP, TABLE, GripLoop, Key, Program, Ref, RowLoop, Store, Walk

BODIES = ("first", "second", "root1", "root2")  # what a grip's row of integers names, after its case
Place = tuple[Any, Any]  # an array, and where in it the numbers of a joint, a dof, a contact... begin


class MemoryLayout:
    """Where a program's numbers lie: so many for each joint in J, dof in D, grip in T, entry of a grip's row in E.

    After the dofs, D holds the sums over all bodies. work: the axes of arrays that loops over rows work in. settles:
    whether these solve for redundant contacts; code in single precision leaves them to that in double.
    """

    def __init__(self, program: Program, spaces: Sequence[str], settles: bool = True) -> None:
        self.program, self.spaces, self.settles = program, tuple(spaces), settles
        self.work: dict[str, tuple] = {}
        for loop in program.loops:
            self.work |= loop.work if isinstance(loop, RowLoop) else {}
        columns = program.column_keys()  # first in D, as `arrange` reads them together
        rest = sorted(program.wanted() - set(columns), key=lambda k: (k.space, k.field, k.path))
        self.offset: dict[Key, int] = {}
        self.counts = dict.fromkeys((*self.spaces, "G"), 0)
        for key in [*columns, *(k for k in rest if k.space in self.counts)]:
            self.offset[key] = self.counts[key.space]
            self.counts[key.space] += 1
        self.NJ, self.ND, self.NT, self.NE = (max(self.counts.get(space, 0), 1) for space in "JDTE")
        self.traced: dict[int, LoopFunction] = {}  # loops by number; see `loops.traced`
        self.called: dict[Any, Any] = {}  # the functions that they call

    def at(self, ref: Ref) -> int:
        """How far a reference is from where its joint, dof, ... begins."""
        return ref.k if ref.key is None else ref.k * self.ND + self.offset[ref.key]


def walk(t: Any, layout: MemoryLayout, loop: Walk, memory: Any, tables: Any, counts: Any) -> None:
    """Each body stores what its joint's variant says, from the root outward or from the leaves inward."""
    variants = layout.program.variants
    for i in t.loop(counts["joints"], down=loop.direction == "inward"):
        for k in t.cases(tables["variant"][i], len(variants)):
            places = places_of_joint(layout, memory, tables, counts, i)
            execute(t, layout, loop.stores[variants[k]], places)


def sweep(t: Any, layout: MemoryLayout, loop: GripLoop, memory: Any, tables: Any, counts: Any) -> None:
    """Each grip, or each entry of their rows, stores what its case says; before them, the world as a body."""
    J, param = memory["J"], memory["param"]
    execute(t, layout, loop.world, {("J", "world"): (J, counts["joints"] * layout.NJ), "param": (param, 0)})
    grip, entry = tables["grip"], tables["entry"]
    if loop.over == "grips":
        for i in t.loop(counts["grips"]):
            for k in t.cases(grip[i * (1 + len(BODIES))], list(loop.stores)):
                execute(t, layout, loop.stores[k], places_of_grip(layout, memory, tables, i))
        return
    for i in t.loop(counts["entries"]):
        for k in t.cases(entry[3 * i + 2], list(loop.stores)):
            places = places_of_grip(layout, memory, tables, entry[3 * i + 1])
            places["D", "dof"] = memory["D"], entry[3 * i] * layout.ND
            places["E", "self"] = memory["E"], i * layout.NE
            places["entry"] = memory["entry"], i * len(ENTRY)
            execute(t, layout, loop.stores[k], places)


def places_of_joint(layout: MemoryLayout, memory: Any, tables: Any, counts: Any, i: Any) -> dict[Any, Place]:
    """Where the numbers of joint i begin, by space and role, or by the name of an input or a table."""
    first = tables["v_start"][i]
    starts: dict[Any, Any] = {"coordinates": tables["q_start"][i], "rates": first, "forces": i * 6, "whole": 0}
    return {
        ("J", "self"): (memory["J"], i * layout.NJ),
        ("J", "parent"): (memory["J"], tables["parent"][i] * layout.NJ),
        ("D", "self"): (memory["D"], first * layout.ND),
        ("G", "self"): (memory["D"], counts["nv"] * layout.ND),
        "table": (memory["table"], i * sum(TABLE.values())),
        "dofs": (memory["dofs"], first),
        "param": (memory["param"], 0),
        **{x: (memory[x], starts.get(entries, 0)) for x, entries in layout.program.inputs.items()},
    }


def places_of_grip(layout: MemoryLayout, memory: Any, tables: Any, g: Any) -> dict[Any, Place]:
    """Where the numbers of grip g and of its bodies begin."""
    row, bodies = g * (1 + len(BODIES)), enumerate(BODIES)
    at = {("J", role): (memory["J"], tables["grip"][row + 1 + k] * layout.NJ) for k, role in bodies}
    return places_at_grip(layout, memory, g) | at


def places_at_grip(layout: MemoryLayout, memory: Any, g: Any) -> dict[Any, Place]:
    """Where grip g's own numbers begin; of inputs with so many numbers for each grip, those."""
    inputs = layout.program.inputs.items()
    return {
        ("T", "self"): (memory["T"], g * layout.NT),
        "grip": (memory["grip"], g * sum(GRIP.values())),
        "param": (memory["param"], 0),
        **{x: (memory[x], g * n if isinstance(n, int) else 0) for x, n in inputs},
    }


def place_of(layout: MemoryLayout, places: Mapping[Any, Place], ref: Ref) -> Place:
    """The array that has a number, and where in it."""
    array, first = places[ref.space if ref.key is None else (ref.space, ref.role)]
    return array, first + layout.at(ref)


def execute(t: Any, layout: MemoryLayout, stores: Sequence[Store], places: Mapping[Any, Place]) -> None:
    """Compute what is stored and needed, in the order in which it was traced, and store it as soon as it is known."""

    def load(ref: Ref) -> Any:
        array, at = place_of(layout, places, ref)
        return array[at]

    sinks: dict[int, list[Store]] = {}
    for store in stores:
        if store.ref.key in layout.offset:
            sinks.setdefault(store.value.index, []).append(store)
    for i, x in replayed(t, layout.program.graph, sinks, load):
        for store in sinks.get(i, ()):
            array, at = place_of(layout, places, store.ref)
            array[at] = applied(t, "add", [array[at], x]) if store.add else x
