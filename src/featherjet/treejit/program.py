"""A rolled program: loops over bodies, pairs of dofs and columns, whose bodies are straight-line graphs.

A `Ref` addresses memory: a space, the role of the loop's index, and an offset. The program does not depend on the
robot. It reads the number of joints, their variants and their parents from tables at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..algorithms.contacts.redundant import ProximalMemory
from ..algorithms.contacts.solver import SolverMemory
from ..jit.graph import Expr, Graph

# The slots of `data`, eight bytes each: counts, then pointers to tables of integers and of numbers.
COUNTS = ("joints", "nq", "nv", "n_units", "groups", "n_tile_runs")
TABLES = (
    "parent", "variant", "q_start", "v_start", "units", "table", "dofs", "param", "pair_masks", "pair_starts",
    "pair_runs", "start", "bodies", "paths", "ends", "body_ends", "torque_starts", "torque_steps", "torque_paths",
    "tile_runs", "tile_codes", "slab_starts", "slab_runs",
)  # fmt: skip
# Those of contacts follow, in kernels that know contacts.
CONTACT_COUNTS = ("grips", "rows", "entries", "factor", "stops")
CONTACT_TABLES = ("grip", "grip_values", "climbs", "entry", "entry_values", "ways", "meets", "meeting")
SLOTS = (*COUNTS, *TABLES, *CONTACT_COUNTS, *CONTACT_TABLES)

# The constants of each joint in the table, in this order, and how many numbers each has.
TABLE = {"R": 9, "p": 3, "m": 1, "c": 3, "Ic": 6, "pitch": 1, "align": 9, "index": 1, "end": 1}


# The constants of each grip, three rows of a contact, in this order: its two frames, gains, damping, and whether its
# force is in world axes; and those of each entry of a grip's rows: its sign, and whether the dof moves the two bodies.
GRIP = {"X": 12, "Y": 12, "kp": 1, "kd": 1, "mu": 1, "world": 1}
ENTRY = {"sign": 1, "first": 1, "second": 1}

Entries = Literal["coordinates", "rates", "forces", "whole"] | int  # a number: so many for each grip


class Variant(NamedTuple):
    """Joints that share code: their kind, and whether their parent is the world."""

    kind: str
    is_root: bool
    nq: int
    nv: int


Space = Literal["J", "D", "G", "T", "E", "R"]


class Key(NamedTuple):
    """A number stored for each joint ("J"), dof ("D"), grip ("T") or entry of a grip's rows ("E"), or once ("G").

    "R": for each dof, by the loop over one slab of `Triples`.

    field: which field it belongs to; path: where it is within the field's value.
    """

    space: Space
    field: int
    path: tuple


class Ref(NamedTuple):
    """The target of a load or store.

    space "J", "D", "T", "E": the number `key` of the joint, dof, grip or entry that plays `role`; `k` counts dofs.
    space "q", "v", ...: entry k of the joint's part of an input; "table", "dofs": its constants; "param": the robot's.
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
class GripLoop:
    """A loop over all grips, or over the entries of all grips' rows, with one body of code for each case.

    Cases of grips: 0 a point's force, 1 a surface's force, 2 its moment. Entries have these cases for dofs that move
    the first body, and three more for those that move only the second. Roles "first", "second": the grip's bodies;
    "root1", "root2": the roots of their trees; "dof": an entry's degree of freedom.
    """

    over: Literal["grips", "entries"]
    stores: dict[int, list[Store]]
    world: list[Store] = field(default_factory=list)  # the world as a body beyond the last joint, role "world"


@dataclass
class Climb:
    """How grips' rows go up the tree, as three forces ("H", from `first` and `second`) that each dof feels."""

    first: list[Expr]  # T
    second: list[Expr]  # T; empty if all grips are held by the world
    felt: list[Expr]  # role "dof", and H
    handed: list[Expr]
    dinv: Expr  # role "dof"
    Y: list[Key]  # E: what each dof feels, and the same times dinv

    @property
    def values(self) -> list[Expr]:
        """All expressions that it computes."""
        return [*self.first, *self.second, *self.felt, *self.handed, self.dinv]


class RowLoop:
    """A loop over the rows of contacts: `climb`, unless an earlier loop's rows serve, and more."""

    climb: Climb
    again: bool  # an earlier loop's rows have gone up

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        return [] if self.again else self.climb.values

    @property
    def keys(self) -> list[Key]:
        """All numbers that the loop stores."""
        return self.climb.Y

    @property
    def work(self) -> dict[str, tuple]:
        """The axes of the arrays that it works in, or leaves results in."""
        return {}


@dataclass
class Hold(RowLoop):
    """The forces that hold all grips: G lambda = -(drift + Y^T left), G = Y^T D^-1 Y + mu; then left += D^-1 Y lambda.

    G's factor L^T D L stays in `system`, 1 / D in `dinv`. If `again`, an earlier loop has found them.
    """

    climb: Climb
    rest: Expr  # role "dof": left, before
    drift: list[Expr]  # T
    left: Key  # D: left, after
    forces: list[Key]  # T: lambda
    again: bool = False
    redundant: bool = False  # grips may be redundant, and no later loop needs the factor of G

    @property
    def values(self) -> list[Expr]:
        return [*super().values, self.rest, *self.drift]

    @property
    def keys(self) -> list[Key]:
        return [self.left, *self.forces, *super().keys]

    @property
    def work(self) -> dict[str, tuple]:
        vectors = dict.fromkeys(("dinv", "margins", "solution"), ("rows",))
        more = {"needed": ("rows",)} | ProximalMemory.shapes("rows") if self.redundant else {}
        return {"system": ("rows", "rows")} | vectors | more


@dataclass
class Meet(RowLoop):
    """Y^T D^-1 Y (rows, rows): how the rows of all grips accelerate under forces of one."""

    climb: Climb
    again: bool = False

    @property
    def work(self) -> dict[str, tuple]:
        return {"system": ("rows", "rows")}


@dataclass
class ContactSolve(RowLoop):
    """Percussions that obey the contact laws (`algorithms.contacts.solver`); then left += D^-1 Y P.

    A foot's laws are those of `feet.Law`; they read "H", role "law", in the order of their arguments' numbers. A stop
    is a row for one dof: it goes up the tree like those of feet, and feels itself first.
    """

    climb: Climb
    rest: Expr  # role "dof": left, before
    before: list[Expr]  # T: each foot's velocity without `left`
    left: Key  # D: left, after
    forces: list[Key]  # T: P in world axes
    start: list[Expr]  # T: a guess of P
    percussion: list[Expr]  # H: G (6), its inverse (6), step, gamma (3), P (3); and T
    sticks: list[Expr]  # H: P (3); and T: 1 or 0 (3)
    lands: list[Expr]  # H: gamma before (3), gamma (3), P (3); and T
    world: list[Expr]  # H: P (3); and T
    pass_K: list[Expr]  # role "dof": what a stop's row hands on
    stop: list[Expr]  # H: G, rate, below, above, dry, P.dry, P.limit
    report: list[Key]  # G: residual, flies, sweeps, afloat
    inputs: tuple[str, ...] = ()  # rates, stops, and a guess of their percussions; empty if there are no stops
    again: bool = False

    @property
    def values(self) -> list[Expr]:
        laws = [*self.start, *self.percussion, *self.sticks, *self.lands, *self.world, *self.pass_K, *self.stop]
        return [*super().values, self.rest, *self.before, *laws]

    @property
    def keys(self) -> list[Key]:
        return [self.left, *self.forces, *super().keys, *self.report]

    @property
    def work(self) -> dict[str, tuple]:
        return SolverMemory.shapes("grips", "stops", "rows") | {"kept": ("v",)}


@dataclass
class Pairs:
    """All entries (row r, column c) of some matrices: `within` where c is at or above r, `across` where it is below.

    Where r and c belong to one joint, entries are `own`.
    """

    matrices: list[int]
    within: list[Expr]  # roles "row" and "col"
    across: list[Expr]
    own: list[Expr]
    extra: list[Expr]  # on the diagonal, role "col"

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        return [*self.within, *self.across, *self.own, *self.extra]


@dataclass
class Triples:
    """Tensors: slab k has all entries of some matrices over the dofs on a path with dof k, as in `Pairs`.

    Before each slab, the numbers `keys` of each such dof are computed: by `below` where it is strictly below k's joint,
    else by `above`; roles "slab" and "col".
    """

    matrices: list[int]
    keys: list[Key]  # R
    below: list[Expr]
    above: list[Expr]
    within: list[Expr]  # roles "row" and "col"; R and D
    across: list[Expr]
    own: list[Expr]

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        return [*self.below, *self.above, *self.within, *self.across, *self.own]

    @property
    def extra(self) -> list[Expr]:
        """On the diagonal: nothing."""
        return [x.graph.const(0.0) for x in self.within]


@dataclass
class Blocks:
    """A matrix over dofs and columns of bodies, `width` for each body: `entry` where the dof moves the body, else zero.

    entry: roles "row" (D) and "block" (J), the latter at the body's first column; keys: of each column, in order.
    """

    matrix: int
    entry: Expr
    keys: list[list[Key]]

    @property
    def width(self) -> int:
        return len(self.keys)

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        return [self.entry]


@dataclass
class Responses:
    """Columns of matrices: each starts at its joint, goes up to the root, and comes back out over the whole tree.

    A column starts with `handed` and `own`, numbers stored for its dof. Spaces: "H" values handed up, "L" values left
    at each dof, "A" a body's state, "E" entries of the matrices (k the dof, key.path the matrix).
    """

    matrices: list[int]
    handed: dict[tuple, Expr]  # path in "H" -> start value, role "col"
    own: dict[tuple, list[Expr]]  # path in "L" -> start values, one per dof of the column's joint, role "col"
    up: dict[Variant, list[Store]] = field(default_factory=dict)
    still: dict[Variant, list[Store]] = field(default_factory=dict)  # outward, where the way up left no values
    along: dict[Variant, list[Store]] = field(default_factory=dict)  # outward, where it left values
    inside: dict[Variant, list[Store]] = field(default_factory=dict)  # outward, below the column's joint
    mixed: dict[Variant, list[Store]] = field(default_factory=dict)  # any of these, by lane; roles "below" and "here"

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        bodies = [s for group in (self.up, self.still, self.along, self.inside, self.mixed) for s in group.values()]
        own = [x for xs in self.own.values() for x in xs]
        return [*self.handed.values(), *own, *(store.value for stores in bodies for store in stores)]


@dataclass
class Torques:
    """Rows of matrices: each starts at its joint, goes up to the root, and out over the whole tree.

    A row starts with numbers stored for its dof. Spaces: "H" values handed up, "A" a body's state, "E" entries of the
    matrices (k the dof, key.path the matrix). The first matrix is symmetric.
    """

    matrices: list[int]
    handed: dict[tuple, Expr]  # path in "H" -> start value, role "row"
    state: dict[tuple, Expr]  # path in "A" -> start value, role "row"
    own: list[Expr]  # entries of the first matrix, one per dof of the row's joint, role "row"
    up: dict[Variant, list[Store]] = field(default_factory=dict)  # "H"
    above: dict[Variant, list[Store]] = field(default_factory=dict)  # "E", from what the joint hands on
    turn: dict[Variant, list[Store]] = field(default_factory=dict)  # "A", from what was handed to the joint
    out: dict[Variant, list[Store]] = field(default_factory=dict)  # "A" and "E", from the parent's state

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes."""
        bodies = [s for group in (self.up, self.above, self.turn, self.out) for s in group.values()]
        starts = [*self.handed.values(), *self.state.values(), *self.own]
        return [*starts, *(store.value for stores in bodies for store in stores)]


@dataclass
class Sum:
    """Adds one matrix to another, and its transpose too if `transposed`."""

    target: int
    addend: int
    transposed: bool

    @property
    def matrices(self) -> list[int]:
        return [self.target, self.addend]

    @property
    def values(self) -> list[Expr]:
        """All expressions that the loop computes: none."""
        return []


MATRICES = (Pairs, Responses, Torques, Sum, Triples)  # loops that compute matrices of one sample, columns in lanes


@dataclass
class Program:
    """Loops in order, and the results."""

    graph: Graph
    variants: tuple[Variant, ...]
    loops: list[Walk | GripLoop | RowLoop | Pairs | Responses | Torques | Sum | Triples | Blocks] = field(
        default_factory=list
    )
    inputs: dict[str, Entries] = field(default_factory=dict)  # by name: which entries each joint has
    outputs: list[Output] = field(default_factory=list)
    watched: Key | None = None  # flagged unless clearly positive

    def wanted(self) -> set[Key]:
        """The numbers that outputs need, directly or through loads: only these are stored."""
        makers: dict[Key, list[Expr]] = {}
        queue: list[Expr] = []
        for loop in self.loops:
            if isinstance(loop, Walk | GripLoop):
                world = loop.world if isinstance(loop, GripLoop) else []
                for stores in (*loop.stores.values(), world):
                    for store in stores:
                        makers.setdefault(_key(store.ref), []).append(store.value)
            else:
                queue += loop.values
        found: set[Key] = {key for loop in self.loops if isinstance(loop, RowLoop) for key in loop.keys}

        def want(key: Key) -> None:
            if key not in found:
                found.add(key)
                queue.extend(makers.get(key, ()))

        for output in self.outputs:
            for key in output.keys:
                want(key)
            queue += output.values
        for loop in self.loops:
            for key in (key for keys in loop.keys for key in keys) if isinstance(loop, Blocks) else ():
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
                if op.name == "load" and op.data.space in ("J", "D", "G", "T", "E"):  # type: ignore[union-attr]
                    want(op.data.key)  # type: ignore[union-attr,arg-type]
        return found

    def column_keys(self) -> list[Key]:
        """The numbers of each dof that matrix loops read, in a fixed order."""
        loads = set()
        for loop in self.loops:
            if isinstance(loop, (*MATRICES, Blocks)):
                for i in self.graph.reachable(x.index for x in loop.values):
                    op = self.graph.ops[i]
                    if op.name == "load" and op.data.space == "D":  # type: ignore[union-attr]
                        loads.add(op.data.key)  # type: ignore[union-attr]
        return sorted(loads, key=lambda k: (k.field, k.path))


@dataclass
class Output:
    """A result: a matrix or tensor over dofs, or over dofs and blocks of columns; numbers of each dof, joint, grip or
    entry; `values` of sums over all bodies; grips' rows over dofs; the factor of G; or, of a `Meet`, the system."""

    kind: Literal[
        "matrix", "blocks", "total", "dofs", "joints", "grips", "entries", "rows", "factor", "stops", "system"
    ]
    matrix: int = -1
    keys: tuple[Key, ...] = ()
    values: tuple[Expr, ...] = ()


def _key(ref: Ref) -> Key:
    assert ref.key is not None
    return ref.key
