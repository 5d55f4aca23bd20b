"""Traces an algorithm into loops: the walks of `algorithms.scan.Scan`, recorded once for each joint variant.

A field (one value per joint) is traced as expressions in the loop that computes it. A later loop loads what that loop
stored, and only what is loaded is stored. Consecutive walks in one direction share a loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ..algorithms.quantities import Quantity, flat
from ..jit.graph import Expr, Graph
from ..math.spatial import BodyInertia, Transform
from ..math.vec3 import Mat3, Sym3, Vec3
from ..model.joints import KINDS
from .program import (
    TABLE,
    Blocks,
    Entries,
    Key,
    Output,
    Pairs,
    Program,
    Ref,
    Responses,
    Space,
    Store,
    Sum,
    Torques,
    Triples,
    Variant,
    Walk,
)
from .pytree import leaves, mapped, split


class Field:
    """One value for each joint, traced for each variant in the loop that computes it."""

    def __init__(self, number: int, loop: Any, values: dict[Variant, Any]) -> None:
        self.number, self.loop, self.values = number, loop, values


class Source:
    """A field that is an input or a constant."""

    def __init__(self, at: Callable[[Variant], Any]) -> None:
        self.at = at


class Vector:
    """A field as a vector over dofs."""

    def __init__(self, field: Field) -> None:
        self.field = field


class RolledScan:
    """Records walks as a Program; algorithms take it in place of a Scan."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self.graph = Graph()
        self.program = Program(self.graph, tuple(variants))
        self.tree = SimpleNamespace(gravity=Vec3(*(self._load(Ref("param", "", k)) for k in range(3))))
        self._fields = 0
        self._matrices = 0
        self._summed: Any = None  # the last loop that a sum needs; nothing that follows may join it

    # Fields

    def coordinates(self, q: str) -> Source:
        return self._input(q, "coordinates", lambda variant: variant.nq)

    def rates(self, v: str | Vector) -> Source | Field:
        if isinstance(v, Vector):
            return v.field
        return self._input(v, "rates", lambda variant: variant.nv)

    def forces(self, fext: str) -> Source:
        return self._input(fext, "forces", lambda variant: 6)

    def numbers(self, name: str, count: int) -> tuple[Expr, ...]:
        """A vector of some numbers."""
        self.program.inputs[name] = "whole"
        return tuple(self._load(Ref(name, "self", k)) for k in range(count))

    def no_rates(self) -> Source:
        return Source(lambda variant: (0.0,) * variant.nv)

    def constant(self, value: Any) -> Source:
        return Source(lambda variant: value)

    def vector(self, field: Field) -> Vector:
        return Vector(field)

    def joint_rows(self, field: Field) -> Output:
        return self._rows(field, "joints", "J", next(iter(field.values.values())))

    def dof_rows(self, field: Field) -> Output:
        return self._rows(field, "dofs", "D", next(iter(field.values.values()))[0])

    dof_columns = dof_rows

    def _rows(self, field: Field, kind: Any, space: Space, row: tuple) -> Output:
        return Output(kind, keys=tuple(Key(space, field.number, (str(k),)) for k in range(len(row))))

    def stack(self, scalars: Sequence[Expr]) -> Output:
        return Output("total", values=tuple(self.graph.lift(x) for x in scalars))

    def total(self, field: Field) -> Any:
        """The sum over all bodies, known to the loops that follow."""
        number = self._number()

        def place(path: tuple) -> Ref:
            return Ref("G", "self", 0, Key("G", number, path))

        for v, value in field.values.items():
            found = [Store(place(path), x, add=True) for path, x in leaves(value)]
            field.loop.stores[v] += [store for store in found if store.value.value != 0]
        self._summed = self.program.loops[-1]
        return self._loads(next(iter(field.values.values())), place)

    def _input(self, name: str, entries: Entries, count: Callable[[Variant], int]) -> Source:
        self.program.inputs[name] = entries
        return Source(lambda variant: tuple(self._load(Ref(name, "self", k)) for k in range(count(variant))))

    # Walks

    def each(self, step: Callable[..., Any], *inputs: Any) -> Field:
        loop = self._last_walk() or self._begin("outward")
        return self._field(loop, lambda v: step(self._node(v), *(self._at(f, v, loop) for f in inputs)))

    def outward(self, step: Callable[..., Any], *inputs: Any) -> Field:
        loop = self._last_walk()
        if loop is None or loop.direction != "outward":
            loop = self._begin("outward")
        field = Field(self._number(), loop, {})
        # first a root, which shows the shape of a parent's value
        for v in sorted(self.program.variants, key=lambda v: not v.is_root):
            parent = None if v.is_root else self._parent(field, v)
            field.values[v] = self._lifted(step(self._node(v), parent, *(self._at(f, v, loop) for f in inputs)))
        self._record(field)
        return field

    def inward(self, step: Callable[..., Any], seed: Any, *inputs: Any) -> Field:
        total = self._number()
        host = seed.loop if isinstance(seed, Field) else self._last_walk() or self._begin("outward")
        loop = self._last_walk()
        if loop is None or loop.direction != "inward" or loop is host:
            loop = self._begin("inward")
        field = Field(self._number(), loop, {})
        for v in sorted(self.program.variants, key=lambda v: v.is_root):
            seeds = self._lifted(self._at(seed, v, host))
            self._store(host, v, total, seeds)
            acc = mapped(seeds, lambda path, _: self._load(self._place(total, path)))
            handed, result = step(self._node(v), acc, *(self._at(f, v, loop) for f in inputs))
            field.values[v] = self._lifted(result)
            if not v.is_root:
                self._hand(loop, v, total, self._lifted(handed))
        self._record(field)
        return field

    def pairs(
        self,
        within: Callable[..., tuple],
        across: Callable[..., tuple],
        dofs: Field,
        diagonal: Callable[..., tuple] | None = None,
        own: Callable[..., tuple] | None = None,
    ) -> tuple[int, ...]:
        row, col = self._dof(dofs, "row"), self._dof(dofs, "col")
        lower = self._lifted(within(col, row))
        same = self._lifted(own(col, row)) if own else lower
        extra = diagonal(col) if diagonal else (0.0,) * len(lower)
        matrices = self._new_matrices(len(lower))
        parts = (lower, self._lifted(across(row, col)), same, map(self.graph.lift, extra))
        self.program.loops.append(Pairs(matrices, *map(list, parts)))
        return tuple(matrices)

    def triples(
        self,
        given: Callable[..., Any],
        within: Callable[..., tuple],
        across: Callable[..., tuple],
        own: Callable[..., tuple],
        dofs: Field,
    ) -> tuple[int, ...]:
        k, j = self._dof(dofs, "slab"), self._dof(dofs, "col")
        below, above = (self._lifted(given(k, j, x)) for x in (True, False))
        found = {path: (x, y) for (path, x), (_, y) in zip(leaves(below), leaves(above), strict=True)}

        def record(role: str) -> Any:
            """That of any one dof: what dofs have whatever the slab, and what is computed for each slab."""

            def leaf(path: tuple, x: Expr) -> Expr:
                op = self.graph.ops[x.index]
                if x.index != found[path][1].index or op.args:
                    return self._load(Ref("R", role, 0, Key("R", 0, path)))
                return x if op.name == "const" else self._load(op.data._replace(role=role))  # type: ignore[union-attr]

            return mapped(below, leaf)

        row, col = record("row"), record("col")
        entries = [[self.graph.lift(x) for x in part] for part in (within(col, row), across(row, col), own(col, row))]
        loads = (self.graph.ops[i] for i in self.graph.reachable(x.index for part in entries for x in part))
        read = {op.data.key for op in loads if op.name == "load" and op.data.space == "R"}  # type: ignore[union-attr]
        keys = [key for key in (Key("R", 0, path) for path in found) if key in read]
        either = [[found[key.path][n] for key in keys] for n in range(2)]
        matrices = self._new_matrices(len(entries[0]))
        self.program.loops.append(Triples(matrices, keys, *either, *entries))
        return tuple(matrices)

    def blocks(self, entry: Callable[..., Any], dofs: Field, columns: Field) -> Output:
        width = len(next(iter(columns.values.values())))
        records = [leaves(column) for value in columns.values.values() for column in value]
        paths = [path for path, _ in records[0]]
        same = [{x.value for x in (found[k][1] for found in records)} for k in range(len(paths))]
        known = {path: next(iter(x)) for path, x in zip(paths, same, strict=True) if len(x) == 1 and None not in x}
        number = columns.number

        def leaf(path: tuple, _: Any) -> Expr:
            if path in known:
                return self.graph.const(float(known[path]))
            return self._load(Ref("J", "block", 0, Key("J", number, ("0", *path))))

        shape = next(iter(columns.values.values()))[0]
        value = self.graph.lift(entry(self._dof(dofs, "row"), mapped(shape, leaf)))
        stored = [path for path in paths if path not in known]
        keys = [[Key("J", number, (str(c), *path)) for path in stored] for c in range(width)]
        (matrix,) = self._new_matrices(1)
        self.program.loops.append(Blocks(matrix, value, keys))
        return Output("blocks", matrix)

    def responses(
        self,
        start: Callable[..., tuple],
        up: Callable[..., tuple],
        out: Callable[..., tuple],
        joints: Field,
        columns: Field,
    ) -> tuple[int, ...]:
        def first(node: Any, own: Any) -> list[tuple]:
            return [(handed, tuple(left)) for handed, left in (start(node, j, own) for j in range(node.kind.nv))]

        starts = self.each(first, joints)
        begin = self._dof(starts, "col")
        col, below, here = (self._dof(columns, role) for role in ("col", "below", "here"))
        left = begin[1][0]
        most = max(v.nv for v in self.program.variants)
        loop = Responses([], dict(leaves(begin[0])), {path: [] for path, _ in leaves(left)})
        for k in range(most):
            for path, _ in leaves(left):
                at = ("1", str(k), *path)
                known = {float(x.value) if x.value is not None else None for x in self._everywhere(starts, at)}
                constant = next(iter(known)) if len(known) == 1 else None
                load = self._load(Ref("D", "col", 0, Key("D", starts.number, at)))
                loop.own[path].append(load if constant is None else self.graph.const(constant))

        shapes: dict[str, Any] = {}
        for v in sorted(self.program.variants, key=lambda v: not v.is_root):
            own, node = self._at(joints, v, loop), self._node(v)
            handed, lefts = up(node, self._received("H", begin[0]), own)
            loop.up[v] = self._carried("H", handed) + self._carried("L", lefts)
            found = [self._received("L", left, k=k) for k in range(v.nv)]
            parent = None if v.is_root else self._received("A", shapes["state"], "parent")
            steps = {
                "along": out(node, parent, own, found, None, None),
                "mixed": out(node, parent, own, found, below, here),
            }
            if not v.is_root:  # a root is below no joint, and on every column's way
                steps["still"] = out(node, parent, own, None, None, None)
                steps["inside"] = out(node, parent, own, None, col, None)
            for name, (state, entries) in steps.items():
                shapes.setdefault("state", state)
                shapes.setdefault("entry", entries[0])
                getattr(loop, name)[v] = self._carried("A", state) + self._carried("E", entries)
        loop.matrices.extend(self._new_matrices(len(shapes["entry"])))
        self.program.loops.append(loop)
        return tuple(loop.matrices)

    def added(self, A: int, B: int, transposed: bool = False) -> int:
        self.program.loops.append(Sum(A, B, transposed))
        return A

    def torques(
        self,
        start: Callable[..., tuple],
        up: Callable[..., Any],
        above: Callable[..., list],
        turn: Callable[..., Any],
        out: Callable[..., tuple],
        joints: Field,
    ) -> tuple[int, ...]:
        def begin(node: Any, own: Any) -> list[tuple]:
            starts = (start(node, k, own) for k in range(node.kind.nv))
            return [(handed, state, tuple(entries)) for handed, state, entries in starts]

        starts = self.each(begin, joints)
        handed, state, _ = self._dof(starts, "row")
        most = max(v.nv for v in self.program.variants)
        own = [self._number_of_dof(starts, ("2", str(k)), "row") for k in range(most)]
        loop = Torques([], dict(leaves(handed)), dict(leaves(state)), own)

        count = 1
        for v in self.program.variants:
            joint, node, given = self._at(joints, v, loop), self._node(v), self._received("H", handed)
            loop.up[v] = self._carried("H", up(node, given, joint))
            entries = above(node, given, joint)
            loop.above[v] = self._carried("E", [(None, *x) for x in entries])
            loop.turn[v] = self._carried("A", turn(node, given, joint))
            if not v.is_root:  # a root is on the way of every torque in its tree
                a, found = out(node, self._received("A", state), joint)
                loop.out[v] = self._carried("A", a) + self._carried("E", found)
            count = 1 + len(entries[0])
        loop.matrices.extend(self._new_matrices(count))
        self.program.loops.append(loop)
        return tuple(loop.matrices)

    # Inside

    def _load(self, ref: Ref) -> Expr:
        return self.graph.load(ref)

    def _loads(self, shape: Any, ref: Callable[[tuple], Ref]) -> Any:
        return mapped(shape, lambda path, _: self._load(ref(path)))

    def _received(self, space: str, shape: Any, role: str = "self", k: int = 0) -> Any:
        """What a step of a matrix loop takes from the step before it, in the shape of a value."""
        return self._loads(shape, lambda path: Ref(space, role, k, Key("J", 0, path)))

    def _carried(self, space: str, value: Any) -> list[Store]:
        """What a step of a matrix loop leaves to the next."""
        placed = [(split(path), x) for path, x in leaves(value)]
        return [Store(Ref(space, "self", k or 0, Key("J", 0, rest)), self.graph.lift(x)) for (rest, k), x in placed]

    def _number(self) -> int:
        self._fields += 1
        return self._fields

    def _new_matrices(self, count: int) -> list[int]:
        self._matrices += count
        return list(range(self._matrices - count, self._matrices))

    def _last_walk(self) -> Walk | None:
        last = self.program.loops[-1] if self.program.loops else None
        return last if isinstance(last, Walk) and last is not self._summed else None

    def _begin(self, direction: Any) -> Walk:
        loop = Walk(direction, {v: [] for v in self.program.variants})
        self.program.loops.append(loop)
        return loop

    def _lifted(self, value: Any) -> Any:
        return mapped(value, lambda _, x: self.graph.lift(x))

    def _field(self, loop: Walk, value: Callable[[Variant], Any]) -> Field:
        field = Field(self._number(), loop, {v: self._lifted(value(v)) for v in self.program.variants})
        self._record(field)
        return field

    def _record(self, field: Field) -> None:
        """Add a store of every scalar of a field; those that nothing loads are dropped later."""
        for v, value in field.values.items():
            self._store(field.loop, v, field.number, value)

    def _store(self, loop: Walk, v: Variant, number: int, value: Any) -> None:
        """Add stores of a value's scalars under a field's number."""
        loop.stores[v] += [Store(self._place(number, path), x) for path, x in leaves(value)]

    def _hand(self, loop: Walk, v: Variant, number: int, value: Any) -> None:
        """Add what a joint hands over to what its parent has accumulated."""
        found = [Store(self._place(number, path, "parent"), x, add=True) for path, x in leaves(value)]
        loop.stores[v] += [store for store in found if store.value.value != 0]

    def _place(self, number: int, path: tuple, role: str = "self") -> Ref:
        """Where a scalar of a field is stored, for the joint that plays the role."""
        rest, k = split(path)
        space: Any = "J" if k is None else "D"
        return Ref(space, role, k or 0, Key(space, number, rest))

    def _at(self, field: Field | Source, v: Variant, loop: Any) -> Any:
        """A field's value at the current joint: as traced in the same loop, else loaded (copies from their source)."""
        if isinstance(field, Source):
            return field.at(v)
        if field.loop is loop:
            return field.values[v]
        walks = isinstance(loop, Walk)  # other loops read only numbers stored for each dof

        def leaf(path: tuple, x: Expr) -> Expr:
            known = x.value is not None or (walks and self.graph.ops[x.index].name == "load")
            return x if known else self._load(self._place(field.number, path))

        return mapped(field.values[v], leaf)

    def _parent(self, field: Field, v: Variant) -> Any:
        """The value of the parent of a joint `v`, all loaded, since its variant is unknown; lists become None."""
        shape = next(iter(field.values.values()))
        number = field.number

        def leaf(path: tuple, _: Any) -> Any:
            return None if split(path)[1] is not None else self._load(self._place(number, path, "parent"))

        return mapped(shape, leaf)

    def _dof(self, field: Field, role: str) -> Any:
        """The record of any one dof: loaded, except constants that are the same for all."""
        shape = next(iter(field.values.values()))[0]

        return mapped(shape, lambda path, _: self._number_of_dof(field, path, role))

    def _number_of_dof(self, field: Field, path: tuple, role: str) -> Expr:
        """The scalar at a path of any one dof's record, in the variants that have it."""
        first, *others = self._everywhere(field, path)
        if first.value is not None and all(x.value == first.value for x in others):
            return first
        return self._load(Ref("D", role, 0, Key("D", field.number, path)))

    def _everywhere(self, field: Field, path: tuple) -> list[Expr]:
        """The scalars at a path of every dof's record, in all variants that have it."""
        return [x for value in field.values.values() for full, x in leaves(value) if split(full)[0] == path]

    def _node(self, v: Variant) -> Any:
        """A joint whose constants are loads from the table."""
        return node_from(
            KINDS[v.kind],
            v.is_root,
            lambda k: self._load(Ref("table", "self", k)),
            lambda k: self._load(Ref("dofs", "self", k)),
        )


def node_from(kind: Any, is_root: bool, constant: Callable[[int], Any], armature: Callable[[int], Any]) -> Any:
    """A joint whose constants are those of its row in the table, and whose dofs have some armature."""
    ends = list(itertools.accumulate(TABLE.values()))
    rows = {name: range(end - n, end) for (name, n), end in zip(TABLE.items(), ends, strict=True)}

    def table(name: str) -> list[Any]:
        return [constant(k) for k in rows[name]]

    def matrix(name: str) -> Mat3:
        x = table(name)
        return Mat3(Vec3(*x[0:3]), Vec3(*x[3:6]), Vec3(*x[6:9]))

    return SimpleNamespace(
        kind=kind,
        is_root=is_root,
        X=Transform(matrix("R"), Vec3(*table("p"))),
        body=BodyInertia(table("m")[0], Vec3(*table("c")), Sym3(*table("Ic"))),
        pitch=table("pitch")[0],
        align=matrix("align"),
        armature=tuple(armature(k) for k in range(kind.nv)),
        index=table("index")[0],
        end=table("end")[0],
    )


def trace_rolled(
    quantity: Quantity, variants: Sequence[Variant], fext: bool, options: Mapping[str, Any] | None = None
) -> Program:
    """The program of a quantity with these options, for all robots with these joint variants."""
    scan = RolledScan(variants)
    names: list[Any] = [i.name for i in quantity.inputs]
    forces = {"fext": scan.forces("fext")} if fext else {}
    results = flat(quantity.algorithm(scan, *names, **forces, **(options or {})))
    program = scan.program
    if quantity.margins:
        program.watched = dof_key(results.pop())
    program.outputs = [output_of(r) for r in results]
    # operands are in the quantity's order, not in that of the algorithm's reads
    program.inputs = {x: program.inputs[x] for x in (*names, "fext") if x in program.inputs}
    return program


def output_of(result: int | Vector | Output | Expr) -> Output:
    if isinstance(result, Output):
        return result
    if isinstance(result, Expr):
        return Output("total", values=(result,))
    return Output("matrix", result) if isinstance(result, int) else Output("dofs", keys=(dof_key(result),))


def dof_key(vector: Vector) -> Key:
    """The number that a vector over dofs is made of."""
    field: Field = vector.field
    value = next(iter(field.values.values()))
    assert isinstance(value, list)
    return Key("D", field.number, split((0,))[0])
