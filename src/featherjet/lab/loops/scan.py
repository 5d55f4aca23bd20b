"""Algorithms of `algorithms.scan` as loops: walks that follow each other in one direction are one loop over bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ...jit.loops.index import least
from ...math import sparse
from ...math.vec3 import Vec3
from ...treejit.rolled import node_from
from .bodies import MEMBER, OWN, SEEN, LoopBody, LoopField, LoopInput, LoopPlaces
from .code import LoopCode
from .matrices import Matrices, Matrix
from .memory import Group

CHUNK = 64  # columns that go through all walks together: enough to hide latency, few enough for a near cache


class LoopWalk:
    """A loop over bodies: what it does at each, and the fields that other loops have made and it reads."""

    def __init__(self, direction: str) -> None:
        self.direction, self.actions, self.inputs = direction, list[Callable[[LoopBody], None]](), list[Any]()
        self.parents: list[LoopField] = []  # whose value at the parent it reads
        self.totals: list[int] = []  # that it accumulates


class LoopScan:
    """Runs an algorithm with a handle of the loop language; algorithms take it in place of a Scan.

    Walks run when a matrix needs them, so that those in one direction become one loop. lanes: columns in a vector.
    """

    def __init__(self, code: LoopCode, n: Any, kind: Any, gravity: Vec3, lanes: int) -> None:
        self.code, self.memory, self.n, self.kind, self.lanes = code, code.memory, n, kind, lanes
        self.places = LoopPlaces(code)
        self.matrices = Matrices(self)
        m = self.matrices
        self.product, self.factor, self.solve, self.negative = m.product, m.factor, m.solve, m.negative
        self.waiting: list[LoopWalk] = []  # walks that have not run
        self._fields = 0
        self.tree = SimpleNamespace(gravity=gravity)

    @property
    def t(self) -> Any:
        return self.code.t

    @property
    def paths(self) -> sparse.TreePaths:
        return sparse.TreePaths(self.code.tables["path_from"], self.code.tables["path"])

    # Fields

    def coordinates(self, name: str) -> LoopInput:
        return LoopInput(lambda body: (self._loaded(body, name),))

    def rates(self, v: Any) -> Any:
        return v.field if isinstance(v, LoopVector) else self.coordinates(v)

    def no_rates(self) -> LoopInput:
        return LoopInput(lambda body: (0.0,))

    def constant(self, value: Any) -> LoopInput:
        return LoopInput(lambda body: value)

    def vector(self, field: LoopField) -> LoopVector:
        return LoopVector(field)

    def _loaded(self, body: LoopBody, name: str) -> Any:
        if name not in body.loaded:
            body.loaded[name] = self.code.array(name, ("n",))[body.i]
        return body.loaded[name]

    # Walks

    def each(self, step: Callable[..., Any], *inputs: Any) -> LoopField:
        return self._stepped(self._walk(), step, inputs)

    def outward(self, step: Callable[..., Any], *inputs: Any) -> LoopField:
        walk = self._walk("outward")
        found = LoopField(self.number(), walk)
        walk.parents.append(found)
        return self._stepped(walk, step, inputs, found)

    def inward(self, step: Callable[..., Any], seed: Any, *inputs: Any) -> LoopField:
        total = self.number()
        host = seed.walk if isinstance(seed, LoopField) else self._walk()
        shapes: dict[bool, Any] = {}

        def begin(body: LoopBody) -> None:
            value = self.places.value(seed, body)
            if body.member is None:
                shapes[body.root] = value
            self.places.keep(total, value, body)

        host.actions.append(begin)
        walk = self._walk("inward")
        if walk is host:
            walk = self.begin(LoopWalk("inward"))
        walk.inputs += inputs
        walk.totals.append(total)
        found = LoopField(self.number(), walk)

        def act(body: LoopBody) -> None:
            acc = self.places.accumulated(total, shapes[body.root], body)
            handed, value = step(body.node, acc, *(self.places.value(x, body) for x in inputs))
            self._found(found, value, body)
            if not body.root:
                self.places.hand(total, handed, body)

        walk.actions.append(act)
        return found

    def _stepped(
        self, walk: LoopWalk, step: Callable[..., Any], inputs: Sequence[Any], outward: Any = None
    ) -> LoopField:
        found = outward or LoopField(self.number(), walk)
        walk.inputs += inputs

        def act(body: LoopBody) -> None:
            given = [self.places.parent(found, body)] if outward else []
            self._found(found, step(body.node, *given, *(self.places.value(x, body) for x in inputs)), body)

        walk.actions.append(act)
        return found

    def _found(self, field: LoopField, value: Any, body: LoopBody) -> None:
        body.results[field.number] = value
        if body.member is None:
            field.values[body.root] = value
        self.places.keep(field.number, value, body)

    def number(self) -> int:
        self._fields += 1
        return self._fields

    def _walk(self, direction: str = "") -> LoopWalk:
        """The last loop, if it is a walk in this direction, or a new one."""
        if self.waiting and direction in ("", self.waiting[-1].direction):
            return self.waiting[-1]
        return self.begin(LoopWalk(direction or "outward"))

    def begin(self, walk: LoopWalk) -> LoopWalk:
        self.waiting.append(walk)
        return walk

    # Matrices

    def matrix(self, entries: str | Matrix) -> Matrix:
        return self.matrices.named(entries) if isinstance(entries, str) else entries

    def entries(self, field: LoopField) -> tuple[Matrix, ...]:
        """Matrices from what each joint has found, by row and column; never read by walks that follow at once."""
        found: list[Matrix] = []

        def act(body: LoopBody) -> None:
            at = {OWN: body.i, MEMBER: body.member}
            for (r, c), values in body.results[field.number].items():
                if (MEMBER in (r, c)) == (body.member is not None):
                    if not found:
                        found.extend(self.matrices.new() for _ in values)
                    self.matrices.put_all(found, at[r], at[c], values)

        field.walk.actions.append(act)
        self.run()
        return tuple(found)

    def pairs(
        self, within: Callable, across: Callable, dofs: LoopField, diagonal: Any = None, own: Any = None
    ) -> tuple:
        self.run()
        return self.matrices.pairs(within, across, dofs, diagonal, own)

    def torques(self, *steps: Any) -> tuple[Matrix, ...]:
        self.run()
        return self.matrices.torques(*steps)

    def wide(self, matrix: Matrix) -> WideScan:
        """A scan whose every step is a loop over the columns of a matrix."""
        return WideScan(self)

    # Loops

    def run(self) -> None:
        """Run the walks that wait."""
        waiting, self.waiting = self.waiting, []
        for walk in waiting:
            self.code.part(lambda walk=walk: self.walk(walk))

    def walk(self, walk: LoopWalk) -> None:
        if walk.direction == "outward":
            self._visit(walk, self.body(0, True))
        for i in self.t.loop(self.n, start=1, down=walk.direction == "inward"):
            self._visit(walk, self.body(i, False))
        if walk.direction == "inward":
            self._visit(walk, self.body(0, True))

    def body(self, i: Any, root: bool) -> LoopBody:
        code, armature = self.code, self.code.tables["armature"]
        node = node_from(self.kind, root, lambda k: code.constant(i, k), lambda k: armature[i + k])
        node.v, node.dofs = slice(0, 1), range(1)
        return LoopBody(i, root, None if root else code.tables["parent"][i], node)

    def _visit(self, walk: LoopWalk, body: LoopBody) -> None:
        for action in walk.actions:
            action(body)
        for group in (Group.BELOW,) if body.root else (Group.BELOW, Group.ABOVE, Group.BESIDE):
            if self._carries(walk, group):
                for m in self.over(group, body.i):
                    inner = body.inside(group, m)
                    for action in walk.actions:
                        action(inner)

    def _carries(self, walk: LoopWalk, group: Group) -> bool:
        """Whether some set that a walk reads has dofs of a group."""
        numbers = {x.number for x in walk.inputs if isinstance(x, LoopField)} | set(walk.totals)
        parents = {x.number for x in walk.parents}
        groups = self.memory.groups.items()
        return any(
            (number in numbers and group in has) or (number in parents and has & set(SEEN[group]))
            for (number, _), has in groups
        )

    def over(self, group: Group, i: Any) -> Iterator[Any]:
        """A loop over the dofs of a group."""
        t, tables = self.t, self.code.tables
        if group is Group.BELOW:
            yield from t.loop(tables["end"][i], start=i + 1)
        elif group is Group.ABOVE:
            for first, stop in self.runs("above", i):
                yield from t.loop(stop, start=first, down=True)
        else:
            for first, stop in self.runs("before", i):
                yield from t.loop(stop, start=first)
            yield from t.loop(self.n, start=tables["end"][i])

    def runs(self, kind: str, i: Any) -> Iterator[tuple[Any, Any]]:
        """A loop over runs of bodies: the first, and the one after the last."""
        t, (begin, first, stop) = self.t, (self.code.tables[f"{kind}_{x}"] for x in ("from", "first", "stop"))
        for r in t.loop(begin[i + 1], start=begin[i]):
            yield first[r], stop[r]


class LoopVector:
    """A field of one number for each dof."""

    def __init__(self, field: LoopField) -> None:
        self.field = field


class WidePlaces(LoopPlaces):
    """Numbers that joints have for every column of a chunk, besides those of joints."""

    def __init__(self, code: LoopCode) -> None:
        super().__init__(code)
        self.wide: set[int] = set()  # the fields that have them
        self.column: Any = None

    def name_of(self, name: str, key: Any) -> str:
        return "columns" if key[0] in self.wide else name

    def at(self, name: str, key: Any, *index: Any) -> tuple[Any, tuple]:
        if name != "columns":
            return super().at(name, key, *index)
        columns = self.code.array(name, ("n", self.memory.length(name), CHUNK))
        return columns.beyond(*index, 0, self.column), (0, self.memory.offset(name, key), 0)


class WideScan(LoopScan):
    """Walks whose every step is a loop over columns; fields of the scan it comes from are the same for all columns."""

    def __init__(self, scan: LoopScan) -> None:
        super().__init__(scan.code, scan.n, scan.kind, scan.tree.gravity, scan.lanes)
        self.scan, self.matrices, self.places = scan, scan.matrices, WidePlaces(scan.code)

    def number(self) -> int:
        found = self.scan.number()
        self.places.wide.add(found)
        return found

    def rates(self, v: Any) -> Any:
        return v.field if isinstance(v, LoopVector) else LoopInput(lambda body: (self._entry(v, body),))

    def _entry(self, M: Matrix, body: LoopBody) -> Any:
        found = self.matrices.array(M)[body.i, self.first + self.places.column]
        self.memory.loads[found.index] = M.key, ""
        return found

    def vector(self, field: LoopField) -> Matrix:  # type: ignore[override]
        """A field of rates as a matrix."""
        found = self.matrices.new()

        def act(body: LoopBody) -> None:
            (x,) = body.results[field.number]
            self.matrices.put(found, body.i, self.first + self.places.column, x)

        field.walk.actions.append(act)
        self.scan.run()
        waiting, self.waiting = self.waiting, []
        for first in self.t.loop(self.n, step=CHUNK):
            for walk in waiting:
                self.code.part(lambda first, walk=walk: self.chunk(walk, first), first)
        return found

    def chunk(self, walk: LoopWalk, first: Any) -> None:
        """A walk for the columns from `first` on."""
        self.first, self.width = first, least(CHUNK, self.n - first)
        self.walk(walk)

    def _visit(self, walk: LoopWalk, body: LoopBody) -> None:
        for x in walk.inputs:
            if isinstance(x, LoopField) and x.number not in self.places.wide:
                self.places.value(x, body)  # before the loop over columns
        for column in self.t.columns(self.width):
            self.places.column = column
            for action in walk.actions:
                action(body)
