"""The solver of contact laws: percussions of feet and of joints with stops, in the loop language (`math.loops`).

A sweep visits one foot after the other, then the stops, and gives each the percussion that its own law asks for while
all others stay (block Gauss-Seidel). Sweeps converge slowly where feet share a body and stick. So every third sweep
begins with all feet that stick solved for at once, what slides or is open being held fixed; it is undone if this
changes more than the sweep before. Samples do not see each other: one that has settled changes no more.

Every contact problem gives its own rows (`TreeRows` below, or `dense.DenseRows`) and laws (`feet.Law`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ...math.dense import factorise, solve
from ...math.scalars import Scalar, where_less
from ...math.vec3 import Sym3, Vec3
from .percussion import FootBlock, Stop, block

TOLERANCE = 1e-12
"""Settled: the largest change in a sweep, relative to the most that a contact alone would need. Velocities are sums
over dofs, each of which rounds by 2^-52; with hundreds of dofs, smaller changes are noise."""
SWEEPS = 3000
"""At most: where a sweep leaves 99 % of the error, so many reach the tolerance (0.99^2750 = 1e-12). Slower ones do not
settle in any time that a step may take."""
TRIAL_EVERY = 3
"""Sweeps from one solution of all sticking feet at once to the next: the two between them find which feet stick."""
ROUNDS = 4  # solutions at once, at most, each without the feet that the one before would have to pull
REFINED = 2  # solutions with one factor: the second removes what REGULAR makes wrong
REGULAR = 1e-10  # of the diagonal; feet that stick may be redundant
WIDE = 2  # times as many rows as dofs are too many to solve for at once

BLOCK, BEFORE, PERCUSSION = 0, 13, 16  # where a foot's numbers begin: those of FootBlock, velocity, percussion
FOOT_NUMBERS = 19
STOP_NUMBERS = 3  # how a stop's joint accelerates by itself, and the percussions of dry friction and of limits


class Rows(Protocol):
    """How percussions change velocities: block k < feet is a foot's three rows, the others are stops, of one row."""

    def felt(self, block: Any, first: Sequence[Scalar]) -> list[Scalar]:
        """`first` and the change of a block's velocities since the beginning."""
        ...

    def push(self, block: Any, change: Sequence[Scalar]) -> None:
        """Add to a block's percussion."""
        ...

    def own(self, block: Any, count: int) -> list[Scalar]:
        """How a block's rows accelerate by its own percussions: the upper triangle, row by row."""
        ...

    def whole(self, G: Any) -> None:
        """Set G (3 feet, 3 feet), its lower triangle: how all feet's rows accelerate by each other's percussions."""
        ...

    def keep(self) -> None:
        """Remember all changes of velocities."""
        ...

    def restore(self, better: Scalar) -> None:
        """Go back to what was kept in samples where `better` is zero."""
        ...


class Laws(Protocol):
    """The laws of one problem, and velocities without percussions: a foot's, as its laws speak of it, and a stop's."""

    def foot(self, k: Any) -> Any: ...
    def before(self, k: Any) -> Vec3: ...
    def rate(self, k: Any) -> Scalar: ...
    def stop(self, k: Any, G: Scalar, rate: Scalar, P: Stop) -> Stop: ...


class SolverMemory(NamedTuple):
    """Arrays that the solver works in; `shapes` has their sizes.

    feet: FootBlock, velocity before, percussion; stops: STOP_NUMBERS, of which percussions begin as guesses. system,
    sticking, and the vectors after them: what feet that stick need, to be solved for at once.
    """

    feet: Any
    stops: Any
    system: Any
    sticking: Any
    dinv: Any
    margins: Any
    change: Any
    mask: Any
    kept_feet: Any
    kept_stops: Any

    @staticmethod
    def shapes(feet: Any, stops: Any, rows: Any) -> dict[str, tuple[Any, ...]]:
        """The axes of each array, of whatever stands for the numbers of feet, of stops, and of the rows of all feet."""
        square = dict.fromkeys(("system", "sticking"), (rows, rows))
        vectors = dict.fromkeys(("dinv", "margins", "change", "mask"), (rows,))
        own = {"feet": (feet, FOOT_NUMBERS), "stops": (stops, STOP_NUMBERS)}
        return own | square | vectors | {"kept_feet": (feet, 3), "kept_stops": (stops, 2)}


class ContactSolver:
    """Finds the percussions of some feet and stops."""

    def __init__(self, t: Any, laws: Laws, rows: Rows, memory: SolverMemory, feet: Any, stops: Any, dofs: Any) -> None:
        self.t, self.laws, self.rows, self.m = t, laws, rows, memory
        self.feet, self.stops, self.dofs = feet, stops, dofs

    def settle(self) -> tuple[Any, Any]:
        """Sweep until nothing changes; cells of the largest change in the last sweep, and of the sweeps."""
        t = self.t
        goal, on, worst, sweeps, moved = (t.cell(x) for x in (0.0, 1.0, 0.0, 0.0, 0.0))
        self.begin(goal)
        for _ in self.may_solve_at_once():
            self.rows.whole(self.m.system)
        for count in t.until(lambda: (0.5, on[0]), SWEEPS):
            for _ in self.trial(count):
                self.keep()
                self.stick_together(on)
            moved[0] = t.number(0.0)
            self.sweep(on, moved)
            for _ in self.trial(count):
                better = where_less(moved[0], worst[0], 1.0, 0.0)
                self.restore(better)
                moved[0] = where_less(0.5, better, moved[0], worst[0])
            worst[0] = where_less(0.5, on[0], moved[0], worst[0])
            sweeps[0] = sweeps[0] + on[0]
            on[0] = where_less(TOLERANCE * goal[0], worst[0], on[0], 0.0)
        return worst, sweeps

    def trial(self, count: Any) -> Any:
        """A block that runs in every third sweep, if there are not too many feet."""
        for turn in self.t.cases(count % TRIAL_EVERY, TRIAL_EVERY):
            if turn == 1:
                yield from self.may_solve_at_once()

    def may_solve_at_once(self) -> Any:
        return self.t.when(self.feet * 3, self.dofs * WIDE + 1)

    # The beginning

    def begin(self, goal: Any) -> None:
        """Each contact's own numbers, what it alone would need, and the guesses of all percussions."""
        t, feet, stops, rows = self.t, self.m.feet, self.m.stops, self.rows
        for k in t.loop(self.feet):
            law, G = self.laws.foot(k), Sym3(*rows.own(k, 3))
            of, before, P = block(G), self.laws.before(k), law.start
            velocity = rows.felt(k, numbers(before))
            for i, x in enumerate([*sym(G), *sym(of.inverse), of.step, *numbers(before), *numbers(P)]):
                feet[k, i] = x
            need = of.step * largest(velocity)
            goal[0] = larger(goal[0], where_less(velocity[2], 0.0, need, 0.0))
        for k in t.loop(self.stops):
            (G,) = rows.own(self.feet + k, 1)
            stops[k, 0] = G
            goal[0] = larger(goal[0], largest(rows.felt(self.feet + k, [self.laws.rate(k)])) / G)
        for k in t.loop(self.feet):
            rows.push(k, self.percussion(k))
        for k in t.loop(self.stops):
            rows.push(self.feet + k, [stops[k, 1] + stops[k, 2]])

    def percussion(self, k: Any) -> list[Scalar]:
        return [self.m.feet[k, PERCUSSION + i] for i in range(3)]

    def velocity(self, k: Any) -> list[Scalar]:
        """A foot's, as its laws speak of it."""
        return self.rows.felt(k, [self.m.feet[k, BEFORE + i] for i in range(3)])

    # Sweeps

    def sweep(self, on: Any, moved: Any) -> None:
        """Visit all feet and stops once; `moved` grows by what percussions change."""
        t, feet, stops, rows = self.t, self.m.feet, self.m.stops, self.rows
        for k in t.loop(self.feet):
            P, gamma = self.percussion(k), self.velocity(k)
            of = [feet[k, BLOCK + i] for i in range(13)]
            found = self.laws.foot(k).percussion(
                FootBlock(Sym3(*of[:6]), Sym3(*of[6:12]), of[12]), Vec3(*gamma), Vec3(*P)
            )
            new = [where_less(0.5, on[0], x, p) for x, p in zip(numbers(found), P, strict=True)]
            change = [x - p for x, p in zip(new, P, strict=True)]
            for i, x in enumerate(new):
                feet[k, PERCUSSION + i] = x
            moved[0] = larger(moved[0], largest(change))
            rows.push(k, change)
        for k in t.loop(self.stops):
            P = Stop(stops[k, 1], stops[k, 2])
            (rate,) = rows.felt(self.feet + k, [self.laws.rate(k)])
            found = self.laws.stop(k, stops[k, 0], rate, P)
            new = Stop(*(where_less(0.5, on[0], x, p) for x, p in zip(found, P, strict=True)))
            change = new.dry + new.limit - (P.dry + P.limit)
            stops[k, 1], stops[k, 2] = new
            moved[0] = larger(moved[0], size(change))
            rows.push(self.feet + k, [change])

    # All feet that stick at once

    def stick_together(self, on: Any) -> None:
        """Solve for all feet that stick, in samples that are on."""
        t, n = self.t, self.feet * 3
        A, x, mask = self.m.sticking, self.m.change, self.m.mask
        dropped = t.cell(0.0)
        for k in t.loop(self.feet):
            sticks = self.laws.foot(k).sticks(Vec3(*self.percussion(k)))
            for i, y in enumerate(numbers(sticks)):
                mask[k * 3 + i] = on[0] * y
        for _ in t.until(lambda: (0.5, dropped[0]), ROUNDS):
            self.masked(A, mask)
            t.call(factorise, A, self.m.dinv, self.m.margins, n)
            for _ in t.loop(REFINED):
                for k in t.loop(self.feet):
                    for i, y in enumerate(self.velocity(k)):
                        x[k * 3 + i] = -mask[k * 3 + i] * y
                t.call(solve, A, self.m.dinv, x, n)
                for k in t.loop(self.feet):
                    self.change(k, [x[k * 3 + i] for i in range(3)])
            self.drop(mask, dropped)

    def masked(self, A: Any, mask: Any) -> None:
        """A: the system of the rows that stick; the others are those of the identity."""
        t, G = self.t, self.m.system
        for i in t.loop(self.feet * 3):
            for j in t.loop(i):
                A[i, j] = mask[i] * mask[j] * G[i, j]
            A[i, i] = where_less(0.0, mask[i], G[i, i] * (1.0 + REGULAR), 1.0)

    def change(self, k: Any, change: Sequence[Scalar]) -> None:
        """Change a foot's percussion."""
        for i, y in enumerate(change):
            self.m.feet[k, PERCUSSION + i] = self.m.feet[k, PERCUSSION + i] + y
        self.rows.push(k, change)

    def drop(self, mask: Any, dropped: Any) -> None:
        """Feet that would have to pull open: their percussions vanish, and their rows leave the system.

        Samples that drop none are done, and leave the system, too.
        """
        t = self.t
        dropped[0] = t.number(0.0)
        for k in t.loop(self.feet):
            P = self.percussion(k)
            pulls = where_less(P[2], 0.0, 1.0, 0.0)
            self.change(k, [where_less(P[2], 0.0, -1.0 * y, 0.0) for y in P])
            for i in range(3):
                mask[k * 3 + i] = where_less(P[2], 0.0, 0.0, mask[k * 3 + i])
            dropped[0] = dropped[0] + pulls
        for i in t.loop(self.feet * 3):
            mask[i] = where_less(0.5, dropped[0], mask[i], 0.0)

    def keep(self) -> None:
        """Remember all percussions, and what they change."""
        t, feet, stops = self.t, self.m.feet, self.m.stops
        for k in t.loop(self.feet):
            for i in range(3):
                self.m.kept_feet[k, i] = feet[k, PERCUSSION + i]
        for k in t.loop(self.stops):
            for i in range(2):
                self.m.kept_stops[k, i] = stops[k, 1 + i]
        self.rows.keep()

    def restore(self, better: Scalar) -> None:
        """Go back to what was kept in samples where `better` is zero."""
        t, feet, stops = self.t, self.m.feet, self.m.stops
        for k in t.loop(self.feet):
            for i in range(3):
                feet[k, PERCUSSION + i] = where_less(0.5, better, feet[k, PERCUSSION + i], self.m.kept_feet[k, i])
        for k in t.loop(self.stops):
            for i in range(2):
                stops[k, 1 + i] = where_less(0.5, better, stops[k, 1 + i], self.m.kept_stops[k, i])
        self.rows.restore(better)

    # The end

    def flies(self) -> tuple[Scalar, Scalar]:
        """1 where no foot lands in this step and no joint is at a limit, else 0; and 1 where no foot lands, else 0."""
        t, landed = self.t, self.t.cell(0.0)
        for k in t.loop(self.feet):
            before = Vec3(*(self.m.feet[k, BEFORE + i] for i in range(3)))
            lands = self.laws.foot(k).lands(before, Vec3(*self.velocity(k)), Vec3(*self.percussion(k)))
            landed[0] = landed[0] + lands
        afloat = where_less(0.0, landed[0], 0.0, 1.0)
        for k in t.loop(self.stops):
            landed[0] = landed[0] + where_less(0.0, size(self.m.stops[k, 2]), 1.0, 0.0)
        return where_less(0.0, landed[0], 0.0, 1.0), afloat

    def in_world(self, forces: Any) -> None:
        """Set percussions (feet, 3) in world axes."""
        for k in self.t.loop(self.feet):
            for i, x in enumerate(numbers(self.laws.foot(k).world(Vec3(*self.percussion(k))))):
                forces[k, i] = x


class TreeRows:
    """Rows that go up a tree: entry e, at dof[e], feels Y[e] of what is `left` there, and adds to it D^-1 Y = Z[e].

    ways (blocks, 2): each block's first entry, and the one after its last; meets and meeting: entries of two feet at
    the same dof, where those of feet k and j <= k begin at k (k + 1) / 2 + j.
    """

    def __init__(
        self, t: Any, Y: Any, Z: Any, left: Any, kept: Any, tables: Sequence[Any], feet: Any, dofs: Any
    ) -> None:
        self.t, self.Y, self.Z, self.left, self.kept, self.feet, self.dofs = t, Y, Z, left, kept, feet, dofs
        self.dof, self.ways, self.meets, self.meeting = tables

    def entries(self, block: Any) -> Any:
        return self.t.loop(self.ways[block, 1], start=self.ways[block, 0])

    def felt(self, block: Any, first: Sequence[Scalar]) -> list[Scalar]:
        sums = [self.t.cell(x) for x in first]
        for e in self.entries(block):
            left = self.left[self.dof[e]]
            for i, s in enumerate(sums):
                s[0] = s[0] + self.Y[e, i] * left
        return [s[0] for s in sums]

    def push(self, block: Any, change: Sequence[Scalar]) -> None:
        for e in self.entries(block):
            left = self.left[self.dof[e]]
            for i, x in enumerate(change):
                left = left + self.Z[e, i] * x
            self.left[self.dof[e]] = left

    def own(self, block: Any, count: int) -> list[Scalar]:
        pairs = [(i, j) for i in range(count) for j in range(i, count)]
        sums = [self.t.cell(0.0) for _ in pairs]
        for e in self.entries(block):
            for s, (i, j) in zip(sums, pairs, strict=True):
                s[0] = s[0] + self.Y[e, i] * self.Z[e, j]
        return [s[0] for s in sums]

    def whole(self, G: Any) -> None:
        t = self.t
        for k in t.loop(self.feet):
            for j in t.loop(k + 1):
                pair, sums = k * (k + 1) // 2 + j, [t.cell(0.0) for _ in range(9)]
                for m in t.loop(self.meets[pair + 1], start=self.meets[pair]):
                    mine, theirs = self.meeting[m, 0], self.meeting[m, 1]
                    for i, s in enumerate(sums):
                        s[0] = s[0] + self.Y[mine, i // 3] * self.Z[theirs, i % 3]
                for i, s in enumerate(sums):
                    G[k * 3 + i // 3, j * 3 + i % 3] = s[0]

    def keep(self) -> None:
        for k in self.t.loop(self.dofs):
            self.kept[k] = self.left[k]

    def restore(self, better: Scalar) -> None:
        for k in self.t.loop(self.dofs):
            self.left[k] = where_less(0.5, better, self.left[k], self.kept[k])


def numbers(v: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    return v.x, v.y, v.z


def sym(A: Sym3) -> tuple[Scalar, ...]:
    return A.xx, A.xy, A.xz, A.yy, A.yz, A.zz


def size(x: Scalar) -> Scalar:
    return where_less(x, 0.0, -1.0 * x, x)


def larger(x: Scalar, y: Scalar) -> Scalar:
    """The larger of two numbers; y if either is none."""
    return where_less(y, x, x, y)


def largest(values: Sequence[Scalar]) -> Scalar:
    """The largest size of some numbers."""
    found = size(values[0])
    for x in values[1:]:
        found = larger(found, size(x))
    return found
