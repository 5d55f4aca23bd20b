"""Responses to torques, row by row: up to the root, then outward limb by limb; see `Scan.torques`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...jit.loops.index import least
from ...treejit.pytree import leaves, mapped
from .bodies import LANES, LoopField
from .memory import Group


class TorqueRows:
    """The rows of some matrices, of which the first is symmetric."""

    def __init__(
        self,
        matrices: Any,
        start: Callable,
        up: Callable,
        above: Callable,
        turn: Callable,
        out: Callable,
        dofs: LoopField,
    ) -> None:
        self.matrices, self.scan, self.code = matrices, matrices.scan, matrices.code
        self.start, self.up, self.above, self.turn, self.out, self.dofs = start, up, above, turn, out, dofs
        root = self.dof(0, "row")
        self.found = [matrices.new() for _ in range(1 + len(above(None, start(None, 0, root)[0], root)[0]))]

    def dof(self, i: Any, role: str) -> list[Any]:
        return [self.scan.places.record(self.dofs, i, role)]

    def one_by_one(self) -> None:
        s, put_all = self.scan, self.matrices.put_all
        others = self.found[1:]
        for k in s.t.loop(s.n):
            own = self.dof(k, "row")
            handed, state, entries = self.start(None, 0, own)
            states, way = Carried(self, state), Carried(self, handed)
            states.keep(k, state)
            way.set(handed)
            put_all(self.found, k, k, [entries[0], *self.above(None, handed, own)[0]])
            for i in s.over(Group.ABOVE, k):
                dof, given = self.dof(i, "up"), way.value()
                for _ in s.t.when(1, self.code.tables["children"][i]):
                    states.keep(i, self.turn(None, given, dof))
                handed = self.up(None, given, dof)
                way.set(handed)
                put_all(others, k, i, self.above(None, handed, dof)[0])
            for kind in ("before", "after") if others else ("after",):
                for begin, stop in s.runs(kind, k):
                    self.limb(k, begin, stop, states, kind == "after")

    def limb(self, k: Any, begin: Any, stop: Any, states: Carried, symmetric: bool) -> None:
        """Outward over bodies of which each is the only child of the one before; symmetric: numbered beyond k."""
        s, put_all, (first, *others) = self.scan, self.matrices.put_all, self.found
        states.set(states.kept(self.code.tables["parent"][begin]))
        for i in s.t.loop(stop, start=begin):
            state, (entries,) = self.out(None, states.value(), self.dof(i, "out"))
            states.set(state)
            put_all(others, k, i, entries[1:])
            for r, c in ((k, i), (i, k)) if symmetric else ():
                self.matrices.put(first, r, c, entries[0])
        for _ in s.t.when(0, self.code.tables["children"][stop - 1]):
            states.keep(stop - 1, states.value())

    # Of a chain, some rows at a time. All steps are linear: rows that have not begun carry zeros, and `eye` says which
    # one begins at a body.

    def in_lanes(self) -> None:
        s, W = self.scan, self.scan.lanes
        eye = self.code.array("eye", (W, W))
        for j in range(W):
            for c in s.t.columns(W):
                eye[j, c] = s.t.number(0.0)
            eye[j, j] = s.t.number(1.0)
        for g in s.t.loop(s.n, step=W):
            k = least(g, s.n - W)
            for c in s.t.columns(W):
                self.group(k, c, eye)
            self.write(k)

    def entries(self, number: int) -> Any:
        """Where the entries of a group of rows of a matrix are collected, column by column."""
        return self.code.array(f"entries{number}", ("n", self.scan.lanes))

    def group(self, k: Any, c: Any, eye: Any) -> None:
        """The rows from k on, of which c are in lanes."""
        s, W, others = self.scan, self.scan.lanes, range(1, len(self.found))
        handed, state, own = self.start(None, 0, self.dof(k + c, LANES))
        states, way = Carried(self, state), Carried(self, handed)

        def collect(i: Any, numbers: Sequence[int], values: Sequence[Any]) -> None:
            for number, x in zip(numbers, values, strict=True):
                self.matrices.memory.made(self.found[number].key, x)
                self.entries(number)[i, c] = x

        def pass_on(i: Any, begins: Any, first: bool = False) -> None:
            dof = self.dof(i, "up")
            now = None if first else self.up(None, way.value(), dof)
            now = now if begins is None else plus(now, handed, begins)
            way.set(now)
            collect(i, others, self.above(None, now, dof)[0])

        def go_out(i: Any, begins: Any, first: bool = False) -> None:
            now, entries = None, [0.0] * len(self.found)
            if not first:
                now, (entries,) = self.out(None, states.value(), self.dof(i, "out"))
            if begins is not None:
                now = plus(now, state, begins)
                before = [begins * own[0], *(self.entries(m)[i, c] for m in others)]
                entries = [x + y for x, y in zip(before, entries, strict=True)]
            else:
                self.matrices.put(self.found[0], i, k + c, entries[0])
            states.set(now)
            collect(i, range(len(self.found)), entries)

        for j in reversed(range(W)):
            pass_on(k + j, eye[j, c], first=j == W - 1)
        for i in s.t.loop(k, down=True):
            pass_on(i, None)
        for j in range(W):
            go_out(k + j, eye[j, c], first=j == 0)
        for i in s.t.loop(s.n, start=k + W):
            go_out(i, None)

    def write(self, k: Any) -> None:
        """The rows of a group; of the symmetric matrix those entries that are not there by symmetry."""
        s, W, array = self.scan, self.scan.lanes, self.matrices.array
        for number, M in enumerate(self.found[1:], 1):
            s.t.transpose(array(M).beyond(k, 0), self.entries(number), (W, s.n))
        M, entries = array(self.found[0]), self.entries(0)
        s.t.transpose(M.beyond(k, k + W), entries.beyond(k + W, 0), (W, s.n - k - W))
        for i in range(W):
            for j in range(i, W):
                M[k + i, k + j] = M[k + j, k + i] = entries[k + j, i]


class Carried:
    """Numbers that a loop carries along in variables, and may keep for each body."""

    def __init__(self, rows: TorqueRows, shape: Any) -> None:
        self.rows, self.shape = rows, shape
        self.paths = [path for path, _ in leaves(shape)]
        self.cells = [rows.scan.t.cell(0.0) for _ in self.paths]

    def value(self) -> Any:
        return mapped(self.shape, lambda path, _: self.cells[self.paths.index(path)][0])

    def set(self, value: Any) -> None:
        for cell, x in zip(self.cells, self._made(value), strict=True):
            cell[0] = x

    def kept(self, i: Any) -> Any:
        return mapped(self.shape, lambda path, _: self._array()[i, self.paths.index(path)])

    def keep(self, i: Any, value: Any) -> None:
        for k, x in enumerate(self._made(value)):
            self._array()[i, k] = x

    def _array(self) -> Any:
        return self.rows.code.array("states", ("n", len(self.paths)))

    def _made(self, value: Any) -> list[Any]:
        """The scalars of a value, which all matrices need."""
        found = [x for _, x in leaves(value)]
        for M in self.rows.found:
            for x in found:
                self.rows.matrices.memory.made(M.key, x)
        return found


def plus(value: Any, more: Any, share: Any) -> Any:
    """value + share more, scalar by scalar; None counts as zero."""
    known = dict(leaves(value))
    return mapped(more, lambda path, x: known[path] + share * x if known else share * x)
