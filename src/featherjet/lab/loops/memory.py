"""Where the numbers of fields lie: found by tracing an algorithm until nothing that is stored goes unread.

A key is the number of a field and a path within its value. Numbers of a joint lie in its record. Those of members of
sets lie in a record for each dof, if every set that has the dof as a member has the same numbers for it, or else in one
for each joint and dof; numbers of columns in one for each joint, with room for a chunk of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...jit.graph import Expr, Graph

Key = tuple[int, tuple]
UNKNOWN = 1 << 20  # the length of a record before anything is known of it


class Group(Enum):
    """Dofs as members of a joint's sets: its own, and others of the tree."""

    OWN = "own"
    ABOVE = "above"
    BELOW = "below"
    BESIDE = "beside"


@dataclass
class LoopMemory:
    """What has been found by tracing, and where the trace that is under way puts things.

    read: of each key that some loop reads, the arrays it reads it from; shared: those of members that dofs have once.
    members: of each set, what a member looks like; groups: which dofs the set has.
    lengths: of records, by array. A matrix has a key, too. results: which result it is; negative: stored with the
    opposite sign.
    """

    read: dict[Key, list[str]] | None = None
    shared: set[Key] = field(default_factory=set)
    members: dict[Key, Any] = field(default_factory=dict)
    groups: dict[Key, set[Group]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    results: dict[Key, int] = field(default_factory=dict)
    negative: set[Key] = field(default_factory=set)

    def begin(self) -> None:
        """A trace begins."""
        self.offsets: dict[str, dict[Key, int]] = {}
        self.unread: dict[str, dict[Key, int]] = {}
        self.loads: dict[int, tuple[Key, str]] = {}  # by operation: what it loads, from which array
        self.makers: dict[Key, list[int]] = {}  # the operations that are stored
        self.operands: dict[Key, list[Key]] = {}  # the matrices that a matrix is computed from
        self.kept: set[Key] = set()  # members that some joint keeps, or adds to
        self.changed: set[Key] = set()  # members that some joint changes
        self.handed: set[Key] = set()  # members that begin at a joint's parent

    def made(self, key: Key, x: Any) -> None:
        """A number is stored."""
        if isinstance(x, Expr):
            self.makers.setdefault(key, []).append(x.index)

    def end(self, graph: Graph, results: Sequence[Key]) -> bool:
        """A trace has ended; whether nothing new was found about what the results need."""
        before = self.read, self.shared, self.lengths
        self.results = {key: k for k, key in enumerate(results)}
        found: dict[Key, set[str]] = {key: set() for key in results}
        queue = list(found)
        while queue:
            key = queue.pop()
            loads = [self.loads[i] for i in graph.reachable(self.makers.get(key, ())) if i in self.loads]
            for needed, name in [*loads, *((x, "") for x in self.operands.get(key, ()))]:
                if needed not in found:
                    queue.append(needed)
                found.setdefault(needed, set()).add(name)
        self.read = {key: sorted(names) for key, names in found.items()}
        keys = {key for offsets in (*self.offsets.values(), *self.unread.values()) for key in offsets}
        self.shared = {k for k in keys if k not in self.kept or k not in self.changed | self.handed}
        self.lengths = {name: len(offsets) for name, offsets in self.offsets.items()}
        return (self.read, self.shared, self.lengths) == before

    def is_missed(self, operation: int) -> bool:
        """Whether an operation loads what no result was found to need."""
        key, name = self.loads.get(operation, (None, ""))
        return key in self.unread.get(name, ())

    def readers(self, key: Key, first: str) -> list[str]:
        """The arrays that a number goes to; if nothing is known yet, the first."""
        return [first] if self.read is None else self.read.get(key, [])

    def offset(self, array: str, key: Key) -> int:
        """Where in its record a number lies; one that nothing needs, beyond its end."""
        needed = self.read is None or array in self.read.get(key, ())
        offsets = (self.offsets if needed else self.unread).setdefault(array, {})
        return offsets.setdefault(key, len(offsets)) + (0 if needed else UNKNOWN)

    def length(self, array: str) -> int:
        return self.lengths.get(array, UNKNOWN)

    def learn(self, number: int, path: tuple, member: Any, group: Group) -> None:
        """A set of a field has such a member for dofs of a group."""
        self.members[number, path] = member
        self.groups.setdefault((number, path), set()).add(group)

    def has(self, number: int, path: tuple, group: Group) -> bool:
        return group in self.groups.get((number, path), ())
