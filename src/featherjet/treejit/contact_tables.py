"""Tables that say which frames contacts hold, where and how, for kernels whose contacts are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..algorithms.contacts.contact_scan import grips_of, meetings, reached_dofs, stop_way
from ..algorithms.contacts.scene import ContactSet
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
    those of grips t and s <= t begin, at t (t + 1) / 2 + s. ways: where the entries of each grip, then of each stop,
    begin and end.
    """

    def __init__(self, tree: Tree, contacts: ContactSet, stops: Sequence[int] = ()) -> None:
        world = len(tree.nodes)
        held = grips_of(contacts)
        self.closed = any(c.other != WORLD for c in contacts.each)
        bodies, values, climbs, entries, sides = [], [], [], [], []
        for g, (grip, c) in enumerate(held):
            other = [c.other, tree.path(c.other)[0].index] if c.other != WORLD else [world, world]
            bodies.append((grip.case, c.body, other[0], tree.path(c.body)[0].index, other[1]))
            values.append([*numbers(grip.X), *numbers(grip.Y), grip.kp, grip.kd, grip.mu, grip.world])
            for dofs, side in reached_dofs(tree, c):
                climbs.append(len(entries))
                entries += [(dof, g, grip.case + (len(CASES) if side.beyond else 0)) for dof in dofs]
                sides += [(side.sign, side.first, side.second)] * len(dofs)
            climbs.append(len(entries))
        own = [range(climbs[4 * g], climbs[4 * g + 3]) for g in range(len(held))]
        meets, meeting = map(integers, meetings([[entries[e][0] for e in part] for part in own]))
        rows, ways = 3 * len(held), [(part.start, part.stop) for part in own]
        for way in (stop_way(tree, dof) for dof in stops):
            ways.append((len(entries), len(entries) + len(way)))
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
            "ways": integers(ways),
            "meets": meets,
            "meeting": meeting,
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
