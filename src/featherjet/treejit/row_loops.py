"""The loops of a rolled program over the rows of contacts, as functions of the loop language.

Rows go up the tree and leave what each dof feels. Then forces that hold, or percussions that obey contact laws, are
solved for, by the same functions as on NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..algorithms.contacts.percussion import FootBlock, Stop
from ..algorithms.contacts.redundant import ProximalMemory, any_redundant, proximal
from ..algorithms.contacts.solver import ContactSolver, SolverMemory, TreeRows, numbers, sym
from ..jit.graph import Expr
from ..jit.loops.replay import evaluated
from ..math.dense import factorise, solve
from ..math.scalars import Scalar
from ..math.vec3 import Vec3
from .program import GRIP, Climb, ContactSolve, Hold, Key, Meet, Ref, RowLoop
from .walks import MemoryLayout, Place, place_of, places_at_grip

FORCES = 18  # numbers of three forces
FIRST, SECOND, BOTH, END = range(4)  # in `climbs`: where a grip's entries begin that move these bodies
WIDTH, MU = sum(GRIP.values()), sum(GRIP[name] for name in list(GRIP)[: list(GRIP).index("mu")])


class ContactRows:
    """The rows of a program's contacts. memory, tables and counts: see `loops.run`."""

    def __init__(
        self, t: Any, layout: MemoryLayout, loop: RowLoop, memory: Mapping[str, Any], tables: Mapping[str, Any],
        counts: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.t, self.layout, self.loop = t, layout, loop
        self.memory, self.tables, self.counts = memory, tables, counts
        self.grips, self.dofs, self.rows = (counts[name] for name in ("grips", "nv", "rows"))
        self.dof, self.ways = tables["entry"].matrix(3).T[0], tables["ways"].matrix(2)

    def tree(self, left: Any, kept: Any = None) -> TreeRows:
        """The rows as a solver sees them; left, kept: of each dof."""
        Y, Z = (self.numbers("E", self.loop.climb.Y[k]) for k in (0, 3))
        tables = self.dof, self.ways, self.tables["meets"], self.tables["meeting"].matrix(2)
        return TreeRows(self.t, Y, Z, left, kept, tables, self.grips, self.dofs)

    def numbers(self, space: str, key: Key) -> Any:
        """What each dof, grip or entry has from a key on, as rows."""
        layout = self.layout
        width = {"D": layout.ND, "T": layout.NT, "E": layout.NE}[space]
        return self.memory[space].matrix(width).beyond(0, layout.offset[key])

    def of_dofs(self, key: Key) -> Any:
        """A number of each dof."""
        return self.numbers("D", key).T[0]

    def at_dof(self, dof: Any) -> dict[Any, Place]:
        return {("D", "dof"): (self.memory["D"], dof * self.layout.ND)}

    def at_grip(self, g: Any) -> dict[Any, Place]:
        return places_at_grip(self.layout, self.memory, g)

    def values(self, of: Sequence[Expr], places: Mapping[Any, Place], handed: Sequence[Scalar] = ()) -> list[Scalar]:
        """Recorded expressions; handed: the numbers of "H"."""
        return evaluated(self.t, of, loader(self.layout, places, handed))

    def begin(self, rest: Expr, left: Any) -> None:
        """Set what is left at all dofs; all grips' rows go up, unless they have."""
        for k in self.t.loop(self.dofs):
            (left[k],) = self.values([rest], self.at_dof(k))
        self.go_up()

    def go_up(self) -> None:
        """All grips' rows go up, unless they have."""
        t, climb, climbs = self.t, self.loop.climb, self.tables["climbs"]
        if self.loop.again:
            return
        forces = t.cells(FORCES)
        for g in t.loop(self.grips):
            begin = [climbs[g * 4 + k] for k in range(4)]
            put(forces, self.values(climb.first, self.at_grip(g)))
            self.climb(forces, begin[FIRST], begin[SECOND], goes_on=bool(climb.second))
            if climb.second:
                kept = t.cells(FORCES)
                put(kept, [forces[k] for k in range(FORCES)])
                put(forces, self.values(climb.second, self.at_grip(g)))
                self.climb(forces, begin[SECOND], begin[BOTH], goes_on=True)
                put(forces, [forces[k] + kept[k] for k in range(FORCES)])
                self.climb(forces, begin[BOTH], begin[END])

    def climb(self, forces: Any, start: Any, stop: Any, goes_on: bool = False) -> None:
        memory, entry = self.memory, self.tables["entry"]
        self.t.call(
            climbed, self.layout, self.loop.climb, memory["D"], memory["E"], entry, forces, start, stop, goes_on
        )

    def accelerate(self, G: Any) -> None:
        """Set the lower triangle of G (rows, rows): Y^T D^-1 Y + mu."""
        self.t.call(
            accelerations, self.layout, self.loop.climb, self.memory["E"], self.tables["meets"],
            self.tables["meeting"], self.memory["grip"], G, self.grips,
        )  # fmt: skip

    def need(self, tree: TreeRows, drift: Sequence[Expr], x: Any) -> None:
        """Set x (rows,): the accelerations that forces must cancel."""
        for g in self.t.loop(self.grips):
            for i, y in enumerate(tree.felt(g, self.values(drift, self.at_grip(g)))):
                x[g * 3 + i] = y


def loader(layout: MemoryLayout, places: Mapping[Any, Place], handed: Sequence[Scalar]) -> Callable[[Ref], Scalar]:
    """Loads numbers of places, or those that were handed over ("H")."""

    def load(ref: Ref) -> Scalar:
        if ref.space == "H":
            return handed[ref.k]
        array, at = place_of(layout, places, ref)
        return array[at]

    return load


def put(target: Any, values: Sequence[Scalar]) -> None:
    for k, x in enumerate(values):
        target[k] = x


def climbed(
    t: Any, layout: MemoryLayout, climb: Climb, D: Any, E: Any, entry: Any, forces: Any, start: Any, stop: Any,
    goes_on: bool,
) -> None:  # fmt: skip
    """Three forces pass the dofs of some entries, which keep what they feel; goes_on: they are handed back."""
    Y, handed = E.matrix(layout.NE).beyond(0, layout.offset[climb.Y[0]]), t.cells(FORCES)
    put(handed, [forces[k] for k in range(FORCES)])
    for e in t.loop(stop, start=start):
        place = {("D", "dof"): (D, entry[e * 3] * layout.ND)}
        now = [handed[k] for k in range(FORCES)]
        *found, dinv = evaluated(t, [*climb.felt, *climb.handed, climb.dinv], loader(layout, place, now))
        for k, y in enumerate(found[:3]):
            Y[e, k], Y[e, 3 + k] = y, y * dinv
        put(handed, found[3:])
    if goes_on:
        put(forces, [handed[k] for k in range(FORCES)])


def accelerations(
    t: Any, layout: MemoryLayout, climb: Climb, E: Any, meets: Any, meeting: Any, grip_values: Any, G: Any, grips: Any
) -> None:  # fmt: skip
    """The lower triangle of Y^T D^-1 Y + mu."""
    Y, Z = (E.matrix(layout.NE).beyond(0, layout.offset[climb.Y[k]]) for k in (0, 3))
    TreeRows(t, Y, Z, None, None, (None, None, meets, meeting.matrix(2)), grips, None).whole(G)
    for g in t.loop(grips):
        for k in range(3):
            i = g * 3 + k
            G[i, i] = G[i, i] + grip_values[g * WIDTH + MU]


def hold(
    t: Any, layout: MemoryLayout, loop: Hold, memory: Mapping[str, Any], tables: Mapping[str, Any],
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """The forces that hold all grips, and what they add to `left`; margins of G are watched."""
    rows = ContactRows(t, layout, loop, memory, tables, counts)
    n, left = rows.rows, rows.of_dofs(loop.left)
    tree, work = rows.tree(left), memory["work"]
    G, dinv, margins, x = (work[name] for name in ("system", "dinv", "margins", "solution"))
    rows.begin(loop.rest, left)
    if not loop.again:
        rows.accelerate(G)
        t.call(factorise, G, dinv, margins, n)
    rows.need(tree, loop.drift, x)
    t.call(solve, G, dinv, x, n)
    if loop.redundant and layout.settles:
        for _ in t.when(0.5, any_redundant(t, margins, n)):
            rows.accelerate(G)
            rows.need(tree, loop.drift, work["needed"])
            t.call(proximal, G, margins, work["needed"], x, *(work[name] for name in ProximalMemory._fields), n)
    if not loop.again:
        for i in t.loop(n):
            t.watch(margins[i])
    forces = rows.numbers("T", loop.forces[0])
    for g in t.loop(rows.grips):
        found = [-x[g * 3 + i] for i in range(3)]
        put(forces[g], found)
        tree.push(g, found)


def meet(
    t: Any, layout: MemoryLayout, loop: Meet, memory: Mapping[str, Any], tables: Mapping[str, Any],
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """Both triangles of Y^T D^-1 Y."""
    rows, G = ContactRows(t, layout, loop, memory, tables, counts), memory["work"]["system"]
    rows.go_up()
    rows.tree(None).whole(G)
    for i in t.loop(rows.rows):
        for j in t.loop(i):
            G[j, i] = G[i, j]


class RecordedFoot:
    """The laws of one foot, as they were recorded: see `feet.Law`."""

    def __init__(self, rows: ContactRows, loop: ContactSolve, k: Any) -> None:
        self.rows, self.loop, self.places = rows, loop, rows.at_grip(k)

    def values(self, of: Sequence[Expr], *handed: Scalar) -> list[Scalar]:
        return self.rows.values(of, self.places, handed)

    @property
    def start(self) -> Vec3:
        return Vec3(*self.values(self.loop.start))

    def percussion(self, of: FootBlock, gamma: Vec3, P: Vec3) -> Vec3:
        block = *sym(of.G), *sym(of.inverse), of.step
        return Vec3(*self.values(self.loop.percussion, *block, *numbers(gamma), *numbers(P)))

    def sticks(self, P: Vec3) -> Vec3:
        return Vec3(*self.values(self.loop.sticks, *numbers(P)))

    def lands(self, before: Vec3, gamma: Vec3, P: Vec3) -> Scalar:
        return self.values(self.loop.lands, *numbers(before), *numbers(gamma), *numbers(P))[0]

    def world(self, P: Vec3) -> Vec3:
        return Vec3(*self.values(self.loop.world, *numbers(P)))


class RecordedLaws:
    """The laws of one problem, as they were recorded: see `solver.Laws`."""

    def __init__(self, rows: ContactRows, loop: ContactSolve) -> None:
        self.rows, self.loop = rows, loop
        inputs = rows.layout.program.inputs
        self.places = {name: (rows.memory[name], 0) for name in inputs}
        self.rates: Any = rows.memory[loop.inputs[0]] if loop.inputs else None
        self.ways: Any = rows.memory[loop.inputs[1]] if loop.inputs else None

    def foot(self, k: Any) -> RecordedFoot:
        return RecordedFoot(self.rows, self.loop, k)

    def before(self, k: Any) -> Vec3:
        return Vec3(*self.rows.values(self.loop.before, self.rows.at_grip(k)))

    def rate(self, k: Any) -> Scalar:
        return self.rates[self.rows.dof[self.rows.ways[self.rows.grips + k, 0]]]

    def stop(self, k: Any, G: Scalar, rate: Scalar, P: Stop) -> Stop:
        way = [self.ways[k * 3 + i] for i in range(3)]
        return Stop(*self.rows.values(self.loop.stop, self.places, (G, rate, *way, P.dry, P.limit)))


def contact_solve(
    t: Any, layout: MemoryLayout, loop: ContactSolve, memory: Mapping[str, Any], tables: Mapping[str, Any],
    counts: Mapping[str, Any],
) -> None:  # fmt: skip
    """Percussions that obey the contact laws, and what they add to `left`."""
    rows = ContactRows(t, layout, loop, memory, tables, counts)
    work = memory["work"]
    m = SolverMemory(**{name: work[name] for name in SolverMemory._fields})
    left, stops = rows.of_dofs(loop.left), counts["stops"] if loop.inputs else 0
    rows.begin(loop.rest, left)
    for k in t.loop(stops):
        start_stop(t, rows, loop, k)
        for i in range(2):
            m.stops[k, 1 + i] = memory[loop.inputs[2]][k * 2 + i]
    solver = ContactSolver(t, RecordedLaws(rows, loop), rows.tree(left, work["kept"]), m, rows.grips, stops, rows.dofs)
    residual, sweeps = solver.settle()
    solver.in_world(rows.numbers("T", loop.forces[0]))
    sums = rows.dofs * layout.ND
    flies, afloat = solver.flies()
    for key, x in zip(loop.report, (residual[0], flies, sweeps[0], afloat), strict=True):
        memory["D"][sums + layout.offset[key]] = x


def start_stop(t: Any, rows: ContactRows, loop: ContactSolve, k: Any) -> None:
    """A stop's row is one at its own dof, which hands on K."""
    first, end = (rows.ways[rows.grips + k, i] for i in range(2))
    at, forces, Y = rows.at_dof(rows.dof[first]), t.cells(FORCES), rows.numbers("E", loop.climb.Y[0])
    put(forces, rows.values(loop.pass_K, at))
    (dinv,) = rows.values([loop.climb.dinv], at)
    for i in range(6):
        Y[first, i] = dinv if i == 3 else t.number(1.0 if i == 0 else 0.0)
    rows.climb(forces, first + 1, end)
