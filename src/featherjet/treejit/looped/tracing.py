"""Traces any algorithm into loops: the walks of `rolled.py`, with sets of partials, entries, columns and products.

A set (`Partials`) is traced with one member for each group of dofs that it has members of: all dofs above a joint are
treated alike, and all below it. So the step functions that handle dictionaries of any size run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ...jit.graph import Expr, Op
from ..program import Key, Output, Ref, Store, Variant, Walk
from ..pytree import Member, leaves, mapped
from ..rolled import Field, RolledScan, Source
from .program import (
    MEMBER,
    Entry,
    Group,
    LoopedProgram,
    MatrixProduct,
    SetWalk,
    SparseFactor,
    SparseSolve,
    WideWalk,
    matrix_key,
)


class LoopedScan(RolledScan):
    """Records walks as a LoopedProgram; algorithms take it in place of a Scan. Matrices are numbers."""

    program: LoopedProgram

    def __init__(self, variants: Sequence[Variant], scalar: bool = True) -> None:
        super().__init__(variants)
        self.program = LoopedProgram(self.graph, tuple(variants))
        self.scalar = scalar  # otherwise pairs of dofs are computed some columns at a time, as in `rolled.py`
        self._handed: dict[int, Any] = {}  # by field that is accumulated: what some joint hands over

    # Matrices

    def matrix(self, entries: str | int) -> int:
        """A matrix that is an input, by its name; a matrix stays as it is."""
        if isinstance(entries, int):
            return entries
        if entries not in self.program.given:
            (self.program.given[entries],) = self._new_matrices(1)
        return self.program.given[entries]

    def entries(self, field: Field) -> tuple[int, ...]:
        """Matrices from entries by (row, column)."""
        count = len(next(iter(next(iter(field.values.values())).values())))
        matrices = self._new_matrices(count)
        for v, value in field.values.items():
            of = field.loop.entries.setdefault(v, [])
            for (i, k), found in value.items():
                of += [Entry(m, i, k, x) for m, x in zip(matrices, found, strict=True)]
        return tuple(matrices)

    def pairs(
        self,
        within: Callable[..., tuple],
        across: Callable[..., tuple],
        dofs: Field,
        diagonal: Callable[..., tuple] | None = None,
        own: Callable[..., tuple] | None = None,
    ) -> tuple[int, ...]:
        """The rows of a joint's dofs, entry by entry: those above the joint, its own, and those below it."""
        if not self.scalar:
            return super().pairs(within, across, dofs, diagonal, own)
        upper, lower = self._others(dofs), self._others(dofs)
        loop = self._begin("outward")
        found: dict[Variant, Any] = {}
        for v in self.program.variants:
            here = self._at(dofs, v, loop)
            entries = {(k, i): (own or within)(here[i], here[k]) for i in range(v.nv) for k in range(v.nv)}
            for i, dof in enumerate(here):
                if diagonal:
                    entries[i, i] = tuple(x + y for x, y in zip(entries[i, i], diagonal(dof), strict=True))
                if not v.is_root:
                    entries[i, Group.ABOVE] = within(upper, dof)
                entries[i, Group.BELOW] = across(dof, lower)
            found[v] = self._lifted(entries)
        return self.entries(Field(self._number(), loop, found))

    def _others(self, dofs: Field) -> Any:
        """The record of the dof that an inner loop is at, from memory that has only what the loop reads."""
        copy = self.each(lambda node, records: dict(enumerate(records)), dofs)

        def leaf(path: tuple, x: Expr) -> Expr:
            return x if x.value is not None else self._load(Ref("S", "self", MEMBER, Key("S", copy.number, path)))

        return mapped(self._dof(dofs, "col"), leaf)

    def wide(self, columns: int) -> WideScan:
        """A scan whose every step is a loop over the columns of a matrix."""
        return WideScan(self)

    def product(self, left: int, right: int) -> int:
        result = self.new_matrix()
        self.program.loops.append(MatrixProduct(result, left, right))
        return result

    def factor(self, matrix: int) -> int:
        """L and D of a symmetric matrix L^T D L that is as sparse as the tree."""
        result = self.new_matrix()
        self.program.loops.append(SparseFactor(result, matrix))
        return result

    def solve(self, factor: int, right: int | None = None) -> int:
        """The solution for all columns of a matrix, or the inverse."""
        result = self.new_matrix()
        self.program.loops.append(SparseSolve(result, factor, right))
        return result

    def negative(self, matrix: int) -> int:
        """Minus a matrix, which must be a product, a solution or the result of a wide scan, used nowhere else."""
        self.program.negative.add(matrix)
        return matrix

    # Inside

    def number(self) -> int:
        """A number for a new field."""
        return self._number()

    def new_matrix(self) -> int:
        return self._new_matrices(1)[0]

    def _node(self, v: Variant) -> Any:
        node = super()._node(v)
        node.v, node.dofs = slice(0, v.nv), range(v.nv)
        return node

    def _stays(self, op: Op) -> bool:
        """Members that joints hand over may be changed in place."""
        key = op.data.key if isinstance(op.data, Ref) else None
        return super()._stays(op) and not (key is not None and key.space == "S" and key.field in self._handed)

    def _last_walk(self) -> Walk | None:
        last = self.program.loops[-1] if self.program.loops else None
        return last if isinstance(last, SetWalk) else None

    def _begin(self, direction: Any) -> SetWalk:
        variants = self.program.variants
        loop = SetWalk(direction, {v: [] for v in variants}, {v: {} for v in variants})
        self.program.loops.append(loop)
        return loop

    def _place(self, number: int, path: tuple, role: str = "self") -> Ref:
        key, rest = member(path)
        if key is None:
            return super()._place(number, path, role)
        return Ref("S", role, key if key >= 0 else MEMBER, Key("S", number, rest))

    def _store(self, loop: Walk, v: Variant, number: int, value: Any, role: str = "self") -> None:
        assert isinstance(loop, SetWalk)
        for path, x in leaves(value):
            key, _ = member(path)
            if isinstance(key, tuple):
                continue  # entries of matrices go nowhere else
            into = loop.members[v].setdefault(key, []) if isinstance(key, Group) else loop.stores[v]
            into.append(Store(self._place(number, path, role), x))

    def _hand(self, loop: Walk, v: Variant, number: int, value: Any) -> None:
        """What a joint hands over is added; members at or below it are new to its parent."""
        assert isinstance(loop, SetWalk)
        for path, x in leaves(value):
            key, _ = member(path)
            add = key in (None, Group.ABOVE)
            if add and x.value == 0:
                continue
            into = loop.members[v].setdefault(key, []) if isinstance(key, Group) else loop.stores[v]
            into.append(Store(self._place(number, path, "parent"), x, add))

    def _stepped(self, step: Callable[..., Any], total: int, node: Any, acc: Any, *inputs: Any) -> tuple[Any, Any]:
        """Step twice, for what the joint hands over first shows what the members below it look like."""
        handed = self._handed.setdefault(total, step(node, acc, *inputs)[0])

        def below(path: tuple, _: Any) -> Expr:
            return self._load(self._place(total, path))

        def with_below(own: dict, _: dict, member: Callable[[int], Any]) -> dict:
            return {**own, Group.BELOW: member(Group.BELOW)}

        return step(node, with_sets(acc, handed, with_below, below), *inputs)

    def _parent(self, field: Field, v: Variant) -> Any:
        """The value of a joint's parent, all loaded; its sets have the dofs above the joint, or all of the tree."""
        shape = next(iter(field.values.values()))

        def leaf(path: tuple, _: Any) -> Expr:
            return self._load(self._place(field.number, path, "parent"))

        def seen(_: dict, of: dict, member: Callable[[int], Any]) -> dict:
            return {key: member(key) for key in ((*range(v.nv), *Group) if Group.BELOW in of else (Group.ABOVE,))}

        return with_sets(super()._parent(field, v), shape, seen, leaf)


class WideScan(RolledScan):
    """Walks that treat all columns of a matrix alike; fields of the scan it comes from are the same for all columns."""

    def __init__(self, scan: LoopedScan) -> None:
        self.scan, self.graph, self.program, self.tree = scan, scan.graph, scan.program, scan.tree
        self._wide: set[int] = set()  # fields that have a value for each column

    def rates(self, v: Any) -> Source:
        """A matrix (nv, columns), whose rows belong to the joints' dofs."""
        return Source(lambda variant: tuple(self._load(Ref("M", "self", k, matrix_key(v))) for k in range(variant.nv)))

    def vector(self, field: Field) -> int:  # type: ignore[override]
        """A field of rates as a matrix (nv, columns)."""
        matrix = self.scan.new_matrix()
        for v, values in field.values.items():
            field.loop.stores[v] += [Store(Ref("M", "self", k, matrix_key(matrix)), x) for k, x in enumerate(values)]
        return matrix

    def _number(self) -> int:
        number = self.scan.number()
        self._wide.add(number)
        return number

    def _last_walk(self) -> Walk | None:
        last = self.program.loops[-1]
        return last if isinstance(last, WideWalk) else None

    def _begin(self, direction: Any) -> WideWalk:
        loop = WideWalk(direction, {v: [] for v in self.program.variants})
        self.program.loops.append(loop)
        return loop

    def _place(self, number: int, path: tuple, role: str = "self") -> Ref:
        place = super()._place(number, path, role)
        if number not in self._wide or place.key is None:
            return place
        return place._replace(space=f"W{place.space}", key=place.key._replace(space=f"W{place.space}"))


def member(path: tuple) -> tuple[Any, tuple]:
    """The key of a path's dictionary, or None; and the path without it."""
    keys = [part.key for part in path if isinstance(part, Member)]
    if not keys:
        return None, path
    return keys[0], tuple(part for part in path if not isinstance(part, Member))


def with_sets(value: Any, like: Any, change: Callable[..., dict], leaf: Callable[[tuple, Any], Any], path: tuple = ()):
    """The value with every set changed: change(set, the same set of `like`, member), where member(key) makes a member.

    A member has leaf(path, scalar) in place of the scalars of any member of that set in `like`.
    """

    def inside(x: Any, y: Any, part: str) -> Any:
        return with_sets(x, y, change, leaf, (*path, part))

    if isinstance(value, dict):
        known = next(iter(like.values()), None)
        return type(value)(change(value, like, lambda key: mapped(known, leaf, (*path, Member(key)))) if like else {})
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)]
        return type(value)(*(inside(getattr(value, k), getattr(like, k), k) for k in names))
    if isinstance(value, tuple):
        return type(value)(inside(x, y, str(k)) for k, (x, y) in enumerate(zip(value, like, strict=True)))
    return value


def trace_looped(
    function: Callable[..., Any], inputs: Sequence[str], variants: Sequence[Variant], scalar: bool = True
) -> LoopedProgram:
    """The program of function(scan, *inputs) -> matrices, for all robots with these joint variants."""
    scan = LoopedScan(variants, scalar)
    scan.program.outputs = [Output("matrix", m) for m in function(scan, *inputs)]
    return scan.program.finished()
