"""Programs whose walks have inner loops: over the members of sets, or over the columns of matrices.

A set belongs to a joint and has members, which are dofs: those above the joint, its own, and those below it. Spaces of
keys and references, beside those of `treejit/program.py`:
"S"         a number of a joint's set: `k` is one of its own dofs, or MEMBER, the dof that the inner loop is at
"WJ", "WD"  a number that each joint or each dof has for every column
"M"         the matrix number `key.field`; of a wide walk's reference, its entry at the joint's dof k and the column
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

from ...jit.graph import Expr
from ..program import Key, Pairs, Program, Ref, Responses, Store, Torques, Variant, Walk

MEMBER = -1


class Group(IntEnum):
    """Dofs that are not a joint's own, as keys of its sets; its own dofs have their number within the joint."""

    ABOVE = -1
    BELOW = -2
    BESIDE = -3  # neither, but in the same tree


class Entry(NamedTuple):
    """An entry of a matrix; row and column are dofs of the joint or, one of them, a group."""

    matrix: int
    row: int
    column: int
    value: Expr

    @property
    def group(self) -> Group | None:
        at = min(self.row, self.column)
        return Group(at) if at < 0 else None


@dataclass
class SetWalk(Walk):
    """A walk that has an inner loop over each group of dofs, and writes entries of matrices."""

    members: dict[Variant, dict[Group, list[Store]]] = field(default_factory=dict)
    entries: dict[Variant, list[Entry]] = field(default_factory=dict)


@dataclass
class WideWalk(Walk):
    """A walk whose every step is a loop over columns."""


@dataclass
class MatrixProduct:
    """The matrix `result` = left right."""

    result: int
    left: int
    right: int
    values: tuple[Expr, ...] = ()  # of dofs, as other loops have


@dataclass
class SparseFactor:
    """The matrix `result`: L and D of matrix = L^T D L, as sparse as the tree."""

    result: int
    matrix: int


@dataclass
class SparseSolve:
    """The matrix `result` = (L^T D L)^-1 right; None is the identity."""

    result: int
    factor: int
    right: int | None


OF_MATRICES = MatrixProduct, SparseFactor, SparseSolve


def operands(loop: MatrixProduct | SparseFactor | SparseSolve) -> list[int]:
    """The matrices that a loop reads."""
    if isinstance(loop, SparseFactor):
        return [loop.matrix]
    given = (loop.left, loop.right) if isinstance(loop, MatrixProduct) else (loop.factor, loop.right)
    return [m for m in given if m is not None]


def matrix_key(number: int) -> Key:
    return Key("M", number, ())


@dataclass
class LoopedProgram(Program):
    """Loops in order; `outputs` are matrices."""

    loops: list[Any] = field(default_factory=list)  # also of this module's kinds
    given: dict[str, int] = field(default_factory=dict)  # matrices that are inputs, by name
    negative: set[int] = field(default_factory=set)  # matrices that are stored with the opposite sign
    shared: set[Key] = field(default_factory=set)  # numbers that a dof has in every set it is a member of

    def wanted(self) -> set[Key]:
        """The numbers and matrices that outputs need, directly or through loads."""
        makers: dict[Key, list[Expr]] = {}
        needs: dict[Key, list[Key]] = {}
        for loop in self.loops:
            for key, values in made(loop):
                makers.setdefault(key, []).extend(values)
            if isinstance(loop, OF_MATRICES):
                needs[matrix_key(loop.result)] = [matrix_key(m) for m in operands(loop)]
        found: set[Key] = set()
        queue = [matrix_key(output.matrix) for output in self.outputs]
        while queue:
            key = queue.pop()
            if key in found:
                continue
            found.add(key)
            queue += needs.get(key, [])
            for i in self.graph.reachable(x.index for x in makers.get(key, ())):
                ref = self.graph.ops[i].data
                if isinstance(ref, Ref) and ref.key is not None and ref.key.space == ref.space:
                    queue.append(ref.key)  # other references are to what a loop of responses has for itself
        return found

    def finished(self) -> LoopedProgram:
        """Without what no output needs, and without copies of set members from joint to joint."""
        self._share()
        wanted = self.wanted()
        loops = [self._kept(loop, wanted) if isinstance(loop, Pairs) else loop for loop in self.loops]
        return replace(self, loops=[loop for loop in loops if any(key in wanted for key, _ in made(loop))])

    def _kept(self, loop: Pairs, wanted: set[Key]) -> Pairs:
        keep = [k for k, m in enumerate(loop.matrices) if matrix_key(m) in wanted]
        matrices = [loop.matrices[k] for k in keep]
        parts = (loop.within, loop.across, loop.own, loop.extra)
        return Pairs(matrices, *([part[k] for k in keep] for part in parts))

    def _share(self) -> None:
        """Find numbers that need no place in every set that a dof is a member of, and drop stores that only copy them.

        Members may keep a number as sets grow from joint to joint. Or a joint hands all its members over to its parent,
        and changes them in place.
        """
        walks = [loop for loop in self.loops if isinstance(loop, SetWalk)]
        own = [s for walk in walks for of in walk.stores.values() for s in of if s.ref.space == "S"]
        grouped = [s for walk in walks for groups in walk.members.values() for of in groups.values() for s in of]
        changed = {s.ref.key for s in grouped if s.add or not self._copies(s)}
        kept_by_joint = {s.ref.key for s in (*own, *grouped) if s.add or s.ref.role == "self"}
        handed_on = {s.ref.key for s in own if s.ref.role == "parent"}
        keys = {s.ref.key for s in own if s.ref.key is not None}
        self.shared |= {k for k in keys if k not in kept_by_joint or (k not in changed and k not in handed_on)}
        for walk in walks:
            for groups in walk.members.values():
                for group, of in groups.items():
                    groups[group] = [s for s in of if s.ref.key not in self.shared or not self._copies(s)]

    def _copies(self, store: Store) -> bool:
        op = store.value.op
        return op.name == "load" and op.data.key == store.ref.key  # type: ignore[union-attr]


def made(loop: object) -> Iterable[tuple[Key, list[Expr]]]:
    """The numbers and matrices that a loop makes, and what it computes for each."""
    if isinstance(loop, Walk):
        stores = [s for of in loop.stores.values() for s in of]
        if isinstance(loop, SetWalk):
            stores += [s for groups in loop.members.values() for of in groups.values() for s in of]
            yield from ((matrix_key(e.matrix), [e.value]) for of in loop.entries.values() for e in of)
        yield from ((s.ref.key, [s.value]) for s in stores if s.ref.key is not None)
    elif isinstance(loop, Pairs):
        for m, *values in zip(loop.matrices, loop.within, loop.across, loop.own, loop.extra, strict=True):
            yield matrix_key(m), values  # type: ignore[arg-type]
    elif isinstance(loop, Responses | Torques):
        yield from ((matrix_key(m), loop.values) for m in loop.matrices)
    elif isinstance(loop, OF_MATRICES):
        yield matrix_key(loop.result), []
