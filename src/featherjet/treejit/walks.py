"""The loops of a rolled program over bodies and contacts, as functions of the loop language.

They are traced into machine code; run on arrays by `math.loops.ArrayLoops`, they say what a rolled program means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..jit.loops.index import size
from ..jit.loops.program import LaneRole, LoopFunction
from ..jit.loops.replay import applied, replayed
from ..jit.loops.trace import Tracer
from .program import ENTRY, GRIP, TABLE, GripLoop, Key, Program, Ref, Store, Walk

BODIES = ("first", "second", "root1", "root2")  # what a grip's row of integers names, after its case
NUMBERS = {"table": "table", "dofs": "dofs", "param": "param", "grip": "grip_values", "entry": "entry_values"}
INTEGERS = ("parent", "variant", "q_start", "v_start")
CONTACT_INTEGERS = ("grip", "entry")
Place = tuple[Any, Any]  # an array, and where in it the numbers of a joint, a dof, a contact... begin


class MemoryLayout:
    """Where a program's numbers lie: so many for each joint in J, dof in D, grip in T, entry of a grip's row in E.

    After the dofs, D holds the sums over all bodies.
    """

    def __init__(self, program: Program, spaces: Sequence[str]) -> None:
        self.program, self.spaces = program, tuple(spaces)
        columns = program.column_keys()  # first in D, as `arrange` reads them together
        rest = sorted(program.wanted() - set(columns), key=lambda k: (k.space, k.field, k.path))
        self.offset: dict[Key, int] = {}
        self.counts = dict.fromkeys((*self.spaces, "G"), 0)
        for key in [*columns, *(k for k in rest if k.space in self.counts)]:
            self.offset[key] = self.counts[key.space]
            self.counts[key.space] += 1
        self.NJ, self.ND, self.NT, self.NE = (max(self.counts.get(space, 0), 1) for space in "JDTE")
        self._traced: dict[int, LoopFunction] = {}

    def at(self, ref: Ref) -> int:
        """How far a reference is from where its joint, dof, ... begins."""
        return ref.k if ref.key is None else ref.k * self.ND + self.offset[ref.key]

    def traced(self, number: int, loop: Walk | GripLoop) -> LoopFunction:
        """A loop as a program, for samples in lanes; its arguments are the spaces and the inputs."""
        if number not in self._traced:
            self._traced[number] = self._trace(number, loop)
        return self._traced[number]

    def _trace(self, number: int, loop: Walk | GripLoop) -> LoopFunction:
        t = Tracer(f"loop{number}", True)
        memory: dict[str, Any] = {space: t.argument(space, [1]) for space in self.spaces}
        memory |= {name: t.argument(name, [1], fixed=True) for name in self.program.inputs}
        contacts = isinstance(loop, GripLoop)
        memory |= {name: t.table(slot, [1], LaneRole.NUMBERS) for name, slot in NUMBERS.items()
                   if contacts or name not in CONTACT_INTEGERS}  # fmt: skip
        names = CONTACT_INTEGERS if contacts else INTEGERS
        tables = {name: t.table(name, [1], LaneRole.INTEGERS) for name in names}
        counts = {name: size(name) for name in ("joints", "nv", *(("grips", "entries") if contacts else ()))}
        run(t, self, loop, memory, tables, counts)
        return t.finished()


def run(
    t: Any, layout: MemoryLayout, loop: Walk | GripLoop, memory: Mapping[str, Any], tables: Mapping[str, Any],
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """One loop. memory: spaces, inputs and tables of numbers, by name; tables: of integers; counts: by their names."""
    if isinstance(loop, Walk):
        walk(t, layout, loop, memory, tables, counts)
    else:
        sweep(t, layout, loop, memory, tables, counts)


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
    """Where the numbers of grip g and of its bodies begin; of inputs with so many numbers for each grip, those."""
    row = g * (1 + len(BODIES))
    inputs = layout.program.inputs.items()
    return {
        ("T", "self"): (memory["T"], g * layout.NT),
        "grip": (memory["grip"], g * sum(GRIP.values())),
        "param": (memory["param"], 0),
        **{("J", role): (memory["J"], tables["grip"][row + 1 + k] * layout.NJ) for k, role in enumerate(BODIES)},
        **{x: (memory[x], g * n if isinstance(n, int) else 0) for x, n in inputs},
    }


def execute(t: Any, layout: MemoryLayout, stores: Sequence[Store], places: Mapping[Any, Place]) -> None:
    """Compute what is stored and needed, in the order in which it was traced, and store it as soon as it is known."""

    def place(ref: Ref) -> Place:
        array, first = places[ref.space if ref.key is None else (ref.space, ref.role)]
        return array, first + layout.at(ref)

    def load(ref: Ref) -> Any:
        array, at = place(ref)
        return array[at]

    sinks: dict[int, list[Store]] = {}
    for store in stores:
        if store.ref.key in layout.offset:
            sinks.setdefault(store.value.index, []).append(store)
    for i, x in replayed(t, layout.program.graph, sinks, load):
        for store in sinks.get(i, ()):
            array, at = place(store.ref)
            array[at] = applied(t, "add", [array[at], x]) if store.add else x
