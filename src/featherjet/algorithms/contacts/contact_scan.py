"""The walks over contacts that `grips`, `products` and `feet` are written in, on plain numbers: their definition.

A `ContactScan` is a `Scan` that also visits grips, three rows of a contact each, and lets their rows go up the tree.
Compiled code records the same walks (`treejit.contacts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from ...math.loops import ArrayLoops, LoopArray
from ...model.model import WORLD
from ...model.tree import Tree
from ..dynamics import ltl
from ..dynamics.aba import Pivot
from ..scan import Array, Scan
from . import redundant as redundancy
from .dense import GivenLaws
from .feet import FootRows, Law
from .grips import POINT, PUSH, TWIST, Grip, Side, Touched, ground, numbers
from .scene import Contact, ContactSet
from .solver import ContactSolver, SolverMemory, TreeRows


class PlacedGrip(NamedTuple):
    """A grip, the bodies of its contact, and its entries: each a dof, and how that moves the bodies."""

    grip: Grip
    first: int
    second: int
    entries: list[tuple[int, Side]]


class RowEntries(NamedTuple):
    """Numbers of each entry of each grip: `grip` and `dof` (entries,) say whose."""

    grip: list[int]
    dof: list[int]
    values: list[tuple]


def grips_of(contacts: ContactSet) -> list[tuple[Grip, Contact]]:
    """Each contact's grips: the force at a point; the force and the moment at a surface."""
    found = []
    for c in contacts.each:
        settings = c.X, c.Y, c.kp or 0.0, c.kd or 0.0, contacts.mu or 0.0, float(c.world_axes)
        found += [(Grip(case, *settings), c) for case in ((POINT,) if c.point else (PUSH, TWIST))]
    return found


def reached_dofs(tree: Tree, c: Contact) -> list[tuple[list[int], Side]]:
    """The dofs that move only a contact's first body, only the second, and both, each from the leaves inward."""
    first, second = tree.dof_path(c.body)[::-1], tree.dof_path(c.other)[::-1]
    return [
        ([k for k in first if k not in second], Side(1.0, 1.0, 0.0, False)),
        ([k for k in second if k not in first], Side(-1.0, 0.0, 1.0, True)),
        ([k for k in first if k in second], Side(0.0, 1.0, 1.0, False)),
    ]


class ContactScan(Scan):
    """Walks over bodies and over the grips of some contacts; a field of grips is a list with one value for each."""

    def __init__(
        self, tree: Tree, contacts: ContactSet, lanes: tuple[int, ...] = (), dtype: Any = float,
        stops: Sequence[int] = (),
    ) -> None:  # fmt: skip
        super().__init__(tree, lanes, dtype)
        self.closed = any(c.other != WORLD for c in contacts.each)
        self.placed = [
            PlacedGrip(grip, c.body, c.other, [(k, side) for dofs, side in reached_dofs(tree, c) for k in dofs])
            for grip, c in grips_of(contacts)
        ]
        self.stops = [stop_way(tree, dof) for dof in stops]
        self.contact_margins = self.zeros(0)  # of the last `hold`: the share of G's pivots, zero where nothing holds

    # Inputs

    def per_grip(self, numbers: Array, count: int) -> list[tuple]:
        """Numbers (grips, count, lanes...), or in one axis (grips count, lanes...), as a field of grips."""
        return [tuple(x) for x in numbers.reshape(len(self.placed), count, *self.lanes)]

    # Walks

    def touches(self, step: Callable[..., Any], bodies: Sequence, places: Sequence, *inputs: Sequence) -> list:
        """Every grip with its two bodies: step(grip, first, its root's place, second, its root's place, *inputs).

        The second body is None if the world holds all contacts.
        """
        world = ground(self.tree.gravity) if self.closed else (None, None)
        found = []
        for g, p in enumerate(self.placed):
            at = [bodies[p.first], places[self.root(p.first)]]
            at += world if p.second == WORLD else (bodies[p.second], places[self.root(p.second)])
            found.append(step(p.grip, *at, *(x[g] for x in inputs)))
        return found

    def root(self, joint: int) -> int:
        return self.tree.path(joint)[0].index

    def grips(self, step: Callable[..., Any], *inputs: Sequence) -> list:
        """Every grip by itself."""
        return [step(p.grip, *(x[g] for x in inputs)) for g, p in enumerate(self.placed)]

    def sides(self, step: Callable[..., tuple], dofs: Sequence[Sequence], *inputs: Sequence) -> RowEntries:
        """Every grip with every dof that moves its bodies: step(grip, side, the dof's record, *inputs)."""
        records = [x for joint in dofs for x in joint]
        found = RowEntries([], [], [])
        for g, p in enumerate(self.placed):
            for dof, side in p.entries:
                found.grip.append(g)
                found.dof.append(dof)
                found.values.append(step(p.grip, side, records[dof], *(x[g] for x in inputs)))
        return found

    def gather(self, step: Callable[..., tuple], *inputs: Sequence) -> list:
        """The sum, for each joint, of the forces that grips hand to their two bodies: step(grip, *inputs)."""
        total: list[Any] = [None] * len(self.tree.nodes)
        for handed, p in zip(self.grips(step, *inputs), self.placed, strict=True):
            for body, f in zip((p.first, p.second), handed, strict=True):
                if f is not None and body != WORLD:
                    total[body] = f if total[body] is None else total[body] + f
        nothing = zeroed(next(f for f in total if f is not None))
        return [nothing if f is None else f for f in total]

    def hold(
        self, dofs: Sequence[Sequence[Pivot]], left: Sequence[Sequence], grips: Sequence[Touched], drift: Sequence,
        redundant: bool = False,
    ) -> tuple[list, list, Array]:  # fmt: skip
        """Forces for which `drift` and the accelerations due to `left` vanish, what they add to `left`, and G's factor.

        dofs: the pivots of all joints; redundant: solve also for redundant grips. The factor (rows (rows + 1),) of
        G = L^T D L has L and D in the lower triangle of a matrix, then 1 / D.
        """
        Y, Z = self.climbed(dofs, grips)
        G = self.accelerations(Y, Z)
        for i, p in ((i, p) for g, p in enumerate(self.placed) for i in range(3 * g, 3 * g + 3)):
            G[i, i] = G[i, i] + p.grip.mu
        factor = ltl.factorise(G, ltl.dense_parents(len(G)))
        margins = factor.D / np.stack([G[i, i] for i in range(len(G))])
        rest, own = self.vector(drift), self.vector(left)
        for k in range(self.nv):
            rest = rest + Y[k] * own[k]
        x, self.contact_margins = redundancy.settled(G, factor, rest, margins) if redundant else (
            ltl.solve(factor, rest), margins
        )  # fmt: skip
        for k in range(self.nv):
            own[k] = own[k] - (Z[k] * x).sum(0)
        L = factor.L.copy()
        for i in range(len(L)):
            L[i, i] = factor.D[i]
        packed = np.concatenate([L.reshape(-1, *self.lanes), 1.0 / factor.D])
        return self.rates(own), self.per_grip(-x, 3), packed

    def strike(
        self, law: Callable[..., Law], dofs: Sequence[Sequence[Pivot]], left: Sequence[Sequence],
        grips: Sequence[FootRows], feet: Sequence[Sequence], inputs: Sequence[Array] = (),
    ) -> tuple[list, list, Array, list]:  # fmt: skip
        """Percussions that obey the laws that law(*feet) makes for each foot, and what they add to `left`.

        dofs: the pivots of all joints; inputs: rates, stops, and a guess of their percussions, or none if there are no
        stops. Also gives the stops' percussions and a report: see `feet.strike`.
        """
        each = [law(*numbers) for numbers in zip(*feet, strict=True)]
        rates, ways, guess = inputs or (self.zeros(self.nv), self.zeros(0, 3), self.zeros(0, 2))
        stops, n = [way[0] for way in self.stops] if inputs else [], len(self.placed)
        velocity = [numbers(x.velocity(t.gamma)) for x, t in zip(each, grips, strict=True)]
        laws = GivenLaws(each, np.concatenate([self.vector(velocity), rates[stops]]), ways, each[0].h)
        (Y, Z, *tables), own = self.tree_rows(dofs, grips, bool(inputs)), self.vector(left)
        shapes = SolverMemory.shapes(n, len(stops), 3 * n)
        arrays = {name: LoopArray(self.zeros(*size), len(size)) for name, size in shapes.items()}
        t, memory = ArrayLoops(self.lanes, dtype=self.dtype), SolverMemory(**arrays)
        memory.stops.values[:, 1:] = guess
        rows = TreeRows(t, Y, Z, LoopArray(own, 1), LoopArray(np.zeros_like(own), 1), tables, n, self.nv)
        solver = ContactSolver(t, laws, rows, memory, n, len(stops), self.nv)
        residual, sweeps = solver.settle()
        world = LoopArray(self.zeros(n, 3), 2)
        solver.in_world(world)
        flies, afloat = solver.flies()
        report = [residual[0], flies, sweeps[0], afloat]
        return self.rates(own), list(map(tuple, world.values)), memory.stops.values[:, 1:], report

    def tree_rows(self, dofs: Sequence[Sequence[Pivot]], grips: Sequence[FootRows], stops: bool) -> list[LoopArray]:
        """Y and D^-1 Y of the entries of feet and stops, and the tables of `solver.TreeRows`."""
        pivots = [x for joint in dofs for x in joint]
        ways, at, Y = [], [], []
        for p, t in zip(self.placed, grips, strict=True):
            found = [self.climb(p.entries, pivots, row, None) for row in t.rows]
            ways.append((len(at), len(at) + len(p.entries)))
            at += [dof for dof, _ in p.entries]
            Y += zip(*([y for _, y in row] for row in found), strict=True)
        feet = [at[start:end] for start, end in ways]
        for way in self.stops if stops else ():
            entries = [(dof, Side(1.0, 1.0, 0.0, False)) for dof in way[1:]]
            found = [1.0, *(y for _, y in self.climb(entries, pivots, pivots[way[0]].K, None))]
            ways.append((len(at), len(at) + len(way)))
            at += way
            Y += [(y, 0.0, 0.0) for y in found]
        meets, meeting = meetings(feet)
        rows = self.matrix_of(Y)
        scaled = np.stack([y * pivots[dof].dinv for y, dof in zip(rows, at, strict=True)])
        tables = (np.array(at), np.array(ways), np.array(meets), np.array(meeting))
        return [LoopArray(rows, 2), LoopArray(scaled, 2), *map(LoopArray, tables)]

    def system(self, dofs: Sequence[Sequence[Pivot]], grips: Sequence[Touched]) -> Array:
        """Y^T D^-1 Y (rows, rows): how the rows of all grips accelerate under forces of one."""
        return self.accelerations(*self.climbed(dofs, grips))

    def climbed(self, dofs: Sequence[Sequence[Pivot]], grips: Sequence) -> tuple[Array, Array]:
        """Y = L^-T J^T and D^-1 Y (nv, rows): each row goes up the tree as a force and leaves what each dof feels."""
        pivots = [x for joint in dofs for x in joint]
        Y = self.zeros(self.nv, 3 * len(self.placed))
        for g, p in enumerate(self.placed):
            for i in range(3):
                second = None if p.second == WORLD else grips[g].others[i]
                row = self.climb(p.entries, pivots, grips[g].rows[i], second)
                for dof, y in row:
                    Y[dof, 3 * g + i] = y
        return Y, np.stack([y * pivot.dinv for y, pivot in zip(Y, pivots, strict=True)])

    def climb(
        self, entries: Sequence[tuple[int, Side]], pivots: Sequence[Pivot], first: Any, second: Any
    ) -> list[tuple[int, Any]]:
        """What dofs feel of a force on a grip's first body, and on the second in the frame of its own root."""
        found = []
        for dof, side in entries:
            handed = second if side.beyond else first
            if side.sign == 0.0 and second is not None:  # from here on, the dofs that move both
                first, second = first + second, None
                handed = first
            felt = pivots[dof].S.dot(handed)
            passed = handed + felt * pivots[dof].K
            first, second = (first, passed) if side.beyond else (passed, second)
            found.append((dof, felt))
        return found

    def accelerations(self, Y: Array, Z: Array) -> Array:
        """Y^T Z (rows, rows), from dof to dof."""
        G = self.zeros(Y.shape[1], Y.shape[1])
        for y, z in zip(Y, Z, strict=True):
            G += y[:, None] * z[None]
        return G

    # Results

    def column(self, field: Sequence[Sequence], k: int) -> Array:
        """Number k of each grip, as a vector (grips,)."""
        return self.stack([x[k] for x in field])

    def rows(self, field: Sequence[Sequence]) -> Array:
        """Three numbers of each grip, as a vector (rows,)."""
        return self.vector(field)

    def entries(self, field: RowEntries) -> Array:  # type: ignore[override]
        """The numbers of each entry, (entries, count)."""
        return self.matrix_of(field.values)

    def dense(self, field: RowEntries) -> Array:
        """Three numbers of each entry, as a matrix (rows, nv)."""
        J = self.zeros(3 * len(self.placed), self.nv)
        for g, dof, values in zip(*field, strict=True):
            for i, x in enumerate(values):
                J[3 * g + i, dof] = x
        return J


def stop_way(tree: Tree, dof: int) -> list[int]:
    """A dof, and those above it to the root."""
    joint = next(n.index for n in tree.nodes if dof in n.dofs)
    return [k for k in reversed(tree.dof_path(joint)) if k <= dof]


def meetings(grips: Sequence[Sequence[int]]) -> tuple[list[int], list[tuple[int, int]]]:
    """Entries of two grips at the same dof, and where those of grips t and s <= t begin: at t (t + 1) / 2 + s.

    grips: the dofs of each grip's entries, which follow each other.
    """
    first = np.cumsum([0, *map(len, grips)]).tolist()
    where = [{dof: first[g] + k for k, dof in enumerate(dofs)} for g, dofs in enumerate(grips)]
    starts, found = [0], []
    for t in range(len(grips)):
        for s in range(t + 1):
            found += [(e, where[s][dof]) for dof, e in where[t].items() if dof in where[s]]
            starts.append(len(found))
    return starts, found or [(0, 0)]


def zeroed(value: Any) -> Any:
    """The same record with zero in place of every number."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(zeroed(getattr(value, f.name)) for f in fields(value)))
    return 0.0
