"""Tables that say which frames contacts hold, where and how, for kernels whose contacts are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..algorithms.contacts.grips import POINT, PUSH, TWIST
from ..algorithms.contacts.scene import Contact, ContactSet
from ..jit.data import Data
from ..math.spatial import Transform
from ..model.model import WORLD
from ..model.tree import Tree
from .contacts import CASES
from .program import CONTACT_COUNTS, CONTACT_TABLES
from .tables import Tables, integers


class Layout:
    """The numbers of one set of contacts, as tables.

    grip: (case, first body, second body, their roots), the world being the body after the last; grip_values: GRIP.
    climbs: where each grip's entries begin that move only the first body, only the second, both; and where they end.
    entry: (dof, grip, case); entry_values: ENTRY. meeting: entries of two grips at the same dof; `meets` says where
    those of grips t and s <= t begin, at t (t + 1) / 2 + s.
    """

    def __init__(self, tree: Tree, contacts: ContactSet, stops: Sequence[int] = ()) -> None:
        world = len(tree.nodes)
        held = [(c, case) for c in contacts.each for case in ((POINT,) if c.point else (PUSH, TWIST))]
        self.closed = any(c.other != WORLD for c in contacts.each)
        bodies, values, climbs, entries, sides = [], [], [], [], []
        for g, (c, case) in enumerate(held):
            other = [c.other, tree.path(c.other)[0].index] if c.other != WORLD else [world, world]
            bodies.append((case, c.body, other[0], tree.path(c.body)[0].index, other[1]))
            values.append([*numbers(c.X), *numbers(c.Y), c.kp or 0.0, c.kd or 0.0, contacts.mu or 0.0, c.world_axes])
            for beyond, (dofs, side) in enumerate(parts(tree, c)):
                climbs.append(len(entries))
                entries += [(dof, g, case + (len(CASES) if beyond == 1 else 0)) for dof in reversed(dofs)]
                sides += [side] * len(dofs)
            climbs.append(len(entries))
        meets, meeting = meetings([range(climbs[4 * g], climbs[4 * g + 3]) for g in range(len(held))], entries)
        rows, paths = 3 * len(held), []
        for dof in stops:  # its own entry first
            way = [k for k in reversed(tree.dof_path(node_of(tree, dof))) if k <= dof]
            paths.append((dof, len(entries), len(entries) + len(way)))
            entries += [(k, 0, 0) for k in way]
            sides += [(0.0, 0.0, 0.0)] * len(way)
        self.counts = {
            "grips": len(held), "rows": rows, "entries": len(entries), "factor": rows * (rows + 1), "stops": len(stops),
        }  # fmt: skip
        self.tables = {
            "grip": integers(bodies),
            "grip_values": np.array(values, float),
            "climbs": integers(climbs),
            "entry": integers(entries),
            "entry_values": np.array(sides, float),
            "meets": meets,
            "meeting": meeting,
            "stop": integers(paths or [(0, 0, 0)]),
        }


class ContactTables(Data):
    """The block that a kernel with contacts reads: the robot's tables, then those of its contacts."""

    def __init__(self, tables: Tables, layout: Layout) -> None:
        kind = tables.kind
        own = {k: x if x.dtype == np.int64 else x.astype(kind.dtype) for k, x in layout.tables.items()}
        counts = (layout.counts[name] for name in CONTACT_COUNTS)
        super().__init__(kind, [*tables.entries, *counts, *(own[name] for name in CONTACT_TABLES)])


def numbers(X: Transform) -> list[Any]:
    return [x for column in (X.R.x, X.R.y, X.R.z, X.p) for x in (column.x, column.y, column.z)]


def node_of(tree: Tree, dof: int) -> int:
    """The joint of a degree of freedom."""
    return next(n.index for n in tree.nodes if dof in n.dofs)


def parts(tree: Tree, c: Contact) -> list[tuple[list[int], tuple[float, float, float]]]:
    """The dofs that move only the first body, only the second, and both; each with the numbers of ENTRY."""
    first, second = tree.dof_path(c.body), tree.dof_path(c.other)
    return [
        ([k for k in first if k not in second], (1.0, 1.0, 0.0)),
        ([k for k in second if k not in first], (-1.0, 0.0, 1.0)),
        ([k for k in first if k in second], (0.0, 1.0, 1.0)),
    ]


def meetings(grips: Sequence[range], entries: Sequence[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """`meets` and `meeting` of ContactTables."""
    where = [{entries[e][0]: e for e in own} for own in grips]
    starts, found = [0], []
    for t in range(len(grips)):
        for s in range(t + 1):
            found += [(e, where[s][dof]) for dof, e in where[t].items() if dof in where[s]]
            starts.append(len(found))
    return integers(starts), integers(found or [(0, 0)])
