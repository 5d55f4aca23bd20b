"""A rolled program: loops over bodies, over pairs of dofs and over columns, whose bodies are straight-line graphs.

Memory is addressed by `Ref`: a space, the role of the index in the loop, and which number there. The program does not
know its robot; how many joints there are, of which variant, and who is whose parent is read from tables when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..jit.data import HEADER
from ..jit.graph import Expr, Graph

# The slots of `data`, eight bytes each: counts, and pointers to tables of 64-bit integers, doubles and bytes.
COUNTS = ("joints", "nq", "nv", "n_units", "groups")
TABLES = (
    "parent", "variant", "q_start", "v_start", "units", "table", "dofs", "param", "pair_masks", "pair_starts",
    "pair_runs", "start", "bodies", "paths",
)  # fmt: skip
SLOTS = (*HEADER, *COUNTS, *TABLES)

# What the table of constants holds for each joint, in this order.
TABLE = {"R": 9, "p": 3, "m": 1, "c": 3, "Ic": 6, "pitch": 1, "align": 9}


Entries = Literal["coordinates", "rates", "forces"]


class Variant(NamedTuple):
    """Joints that share one piece of code: a kind, and whether they hang on the world."""

    kind: str
    is_root: bool
    nq: int
    nv: int


class Key(NamedTuple):
    """A number kept for each joint ("J") or each dof ("D"): which field's, and where in it."""

    space: Literal["J", "D"]
    field: int
    path: tuple


class Ref(NamedTuple):
    """Where a load or store goes.

    space "J", "D": what `Key` says, of the joint or dof that plays `role`, plus `k` dofs.
    space "q", "v", ...: an input, entry k of the joint's; "table", "dofs": constants; "param": of the whole robot.
    """

    space: str
    role: str
    k: int
    key: Key | None = None


@dataclass
class Store:
    """memory[ref] = value, or += value."""

    ref: Ref
    value: Expr
    add: bool = False


@dataclass
class Walk:
    """A loop over all bodies, outward or inward, with one body of code for each variant."""

    direction: Literal["outward", "inward"]
    stores: dict[Variant, list[Store]]


@dataclass
class Pairs:
    """All entries of some matrices: row r, column c, as `within` (c above r or at r) or `across` (c below r)."""

    matrices: list[int]
    within: list[Expr]  # roles "row" and "col"
    across: list[Expr]
    extra: list[Expr]  # on the diagonal, role "col"

    @property
    def values(self) -> list[Expr]:
        """Everything it computes."""
        return [*self.within, *self.across, *self.extra]


@dataclass
class Responses:
    """Columns of matrices: each begins at its joint, goes up to the root, and comes back out over the whole tree.

    `handed` and `own` say what a column begins with: numbers kept for its dof. Spaces: "H" what is handed up,
    "L" what is left at each dof, "A" a body's state, "E" entries of the matrices (k the dof, key.path the matrix).
    """

    matrices: list[int]
    handed: dict[tuple, Expr]  # path in "H" -> what a column starts with, role "col"
    own: dict[tuple, list[Expr]]  # path in "L" -> for each dof of the column's own joint, role "col"
    up: dict[Variant, list[Store]] = field(default_factory=dict)
    still: dict[Variant, list[Store]] = field(default_factory=dict)  # outward, where nothing is left
    along: dict[Variant, list[Store]] = field(default_factory=dict)  # with something left
    inside: dict[Variant, list[Store]] = field(default_factory=dict)  # in the subtree
    mixed: dict[Variant, list[Store]] = field(default_factory=dict)  # roles "below" and "here" for the column's record

    @property
    def values(self) -> list[Expr]:
        """Everything it computes."""
        bodies = [s for group in (self.up, self.still, self.along, self.inside, self.mixed) for s in group.values()]
        own = [x for xs in self.own.values() for x in xs]
        return [*self.handed.values(), *own, *(store.value for stores in bodies for store in stores)]


@dataclass
class Program:
    """Loops in order, and what comes out of them."""

    graph: Graph
    variants: tuple[Variant, ...]
    loops: list[Walk | Pairs | Responses] = field(default_factory=list)
    inputs: dict[str, Entries] = field(default_factory=dict)  # by name: of what each joint has its own entries
    outputs: list[Output] = field(default_factory=list)
    watched: Key | None = None  # flagged where it is not clearly positive

    def wanted(self) -> set[Key]:
        """The numbers that somebody loads on the way to an output: only these are stored."""
        makers: dict[Key, list[Expr]] = {}
        queue: list[Expr] = []
        for loop in self.loops:
            if isinstance(loop, Walk):
                for stores in loop.stores.values():
                    for store in stores:
                        makers.setdefault(_key(store.ref), []).append(store.value)
            else:
                queue += loop.values
        found: set[Key] = set()

        def want(key: Key) -> None:
            if key not in found:
                found.add(key)
                queue.extend(makers.get(key, ()))

        for output in self.outputs:
            for key in output.keys:
                want(key)
        if self.watched:
            want(self.watched)
        seen: set[int] = set()
        while queue:
            stack = [queue.pop().index]
            while stack:
                i = stack.pop()
                if i in seen:
                    continue
                seen.add(i)
                op = self.graph.ops[i]
                stack.extend(op.args)
                if op.name == "load" and op.data.space in ("J", "D"):  # type: ignore[union-attr]
                    want(op.data.key)  # type: ignore[union-attr,arg-type]
        return found

    def kept(self) -> list[Key]:
        """The numbers of dofs that matrix loops read, in a fixed order."""
        loads = set()
        for loop in self.loops:
            if not isinstance(loop, Walk):
                for i in self.graph.reachable(x.index for x in loop.values):
                    op = self.graph.ops[i]
                    if op.name == "load" and op.data.space == "D":  # type: ignore[union-attr]
                        loads.add(op.data.key)  # type: ignore[union-attr]
        return sorted(loads, key=lambda k: (k.field, k.path))


@dataclass
class Output:
    """A result: a matrix over dofs, or numbers kept for each dof or each joint."""

    kind: Literal["matrix", "dofs", "joints"]
    matrix: int = -1
    keys: tuple[Key, ...] = ()


def _key(ref: Ref) -> Key:
    assert ref.key is not None
    return ref.key
