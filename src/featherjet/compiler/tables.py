"""A robot's tables: what a compiled program reads as it runs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..model.tree import Tree
from .lanes import SLOTS
from .program import Variant
from .rolled import TABLE


def variants(tree: Tree) -> tuple[Variant, ...]:
    """The joint variants a tree has, sorted."""
    return tuple(sorted({Variant(n.kind.name, n.is_root, n.kind.nq, n.kind.nv) for n in tree.nodes}))


def sizes(tree: Tree) -> dict[str, int]:
    """The core dimensions of a robot's arrays: of the independent joints, where some mimic."""
    c = tree.coupling
    nq, nv = (int(c.qi.max()) + 1, c.G.shape[1]) if c else (tree.nq, tree.nv)
    return {"q": nq, "v": nv, "dofs": tree.nv, "joints": len(tree.nodes), "three": 3, "six": 6, "sixteen": 16}


class Tables:
    """Arrays, and the block of counts and pointers to them that a kernel is given."""

    def __init__(self, tree: Tree, columns: int) -> None:
        nodes = tree.nodes
        known = variants(tree)
        c = tree.coupling  # of joints that mimic: then q and v are those of the independent ones
        place = c.qi if c else np.arange(tree.nq)
        units = [(place[n.q.start + p.start], p.stop - p.start) for n in nodes for p in n.kind.manifold.units]
        starts, bodies = column_steps(tree, columns)
        self.arrays: dict[str, Any] = {
            "joints": len(nodes),
            "nq": sizes(tree)["q"],
            "nv": sizes(tree)["v"],
            "n_units": len(units),
            "groups": -(-tree.nv // columns),
            "ndarray": id(np.ndarray),
            "float64": id(np.dtype(np.float64)),
            "parent": integers([n.parent for n in nodes]),
            "variant": integers([known.index((n.kind.name, n.is_root, n.kind.nq, n.kind.nv)) for n in nodes]),
            "q_start": integers([n.q.start for n in nodes]),
            "v_start": integers([*(n.v.start for n in nodes), tree.nv]),
            "units": integers(units or [(0, 0)]),
            "table": np.array([constants(n) for n in nodes]),
            "dofs": np.array([a for n in nodes for a in n.armature], float),
            "param": np.array([tree.gravity.x, tree.gravity.y, tree.gravity.z], float),
            "pair_masks": pair_masks(tree, columns),
            "start": starts,
            "bodies": bodies,
        }
        self.kinds = [n.kind.name for n in nodes]
        self.mimics = [x.tobytes() for x in (c.qi, c.qs, c.q0, c.vi, c.vs)] if c else []
        self.block = np.array(
            [a if isinstance(a, int) else a.ctypes.data for a in (self.arrays[name] for name in SLOTS)],
            dtype=np.uint64,
        )

    @property
    def digest(self) -> str:
        """A hash of everything that code for this robot alone depends on."""
        names = ("parent", "q_start", "v_start", "table", "dofs", "param")
        parts = [repr(self.kinds).encode(), *(self.arrays[name].tobytes() for name in names), *self.mimics]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    @property
    def address(self) -> int:
        return self.block.ctypes.data


def integers(x: Any) -> np.ndarray:
    return np.ascontiguousarray(x, np.int64)


def constants(node) -> list[float]:
    """A joint's row of the table, in the order of TABLE."""
    X, body, A = node.X, node.body, node.align
    row = [
        *(x for c in (X.R.x, X.R.y, X.R.z) for x in (c.x, c.y, c.z)),
        X.p.x, X.p.y, X.p.z, body.m, body.c.x, body.c.y, body.c.z,
        body.Ic.xx, body.Ic.xy, body.Ic.xz, body.Ic.yy, body.Ic.yz, body.Ic.zz, node.pitch,
        *(x for c in (A.x, A.y, A.z) for x in (c.x, c.y, c.z)),
    ]  # fmt: skip
    assert len(row) == sum(TABLE.values())
    return row


def bits(flags: np.ndarray, columns: int) -> np.ndarray:
    """Booleans over dofs (..., nv) as one number for each group of columns (..., groups)."""
    n = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-n // columns) * columns), bool)
    padded[..., :n] = flags
    return padded.reshape(*flags.shape[:-1], -1, columns) @ (1 << np.arange(columns))


def pair_masks(tree: Tree, columns: int) -> np.ndarray:
    """For each row and group of columns: which are within, across, on the diagonal, and there at all."""
    n = tree.nv
    within, across = np.zeros((2, n, n), bool)
    for node in tree.nodes:
        subtree = tree.subtree(node)
        within[subtree, node.v] = True
        across[node.v, node.v.stop : subtree.stop] = True
    parts = (within, across, np.eye(n, dtype=bool), np.ones((n, n), bool))
    return np.ascontiguousarray(np.stack([bits(p, columns) for p in parts], -1).astype(np.uint8))


def column_steps(tree: Tree, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """What `columns.py` does for each group: its four lists of (body, masks), one after the other.

    The lists: joints at whose dofs something may be left (mask: lanes whose own joint it is); ancestors, nearest first
    (mask: lanes below them); bodies outward (masks: inside, at, lanes for which something is left); bodies of other
    trees. Then, for each group, the lanes that are columns at all.
    """
    nodes, n = tree.nodes, tree.nv
    count = len(nodes)
    joint_of = np.repeat(np.arange(count), [node.kind.nv for node in nodes])
    ends = np.array(tree.ends)
    index = np.arange(count)
    above = (index[:, None] < joint_of) & (joint_of < ends[:, None])  # body i is an ancestor of column c's joint
    own = index[:, None] == joint_of
    inside = (joint_of < index[:, None]) & (index[:, None] < ends[joint_of])
    root = np.arange(count)
    for node in nodes:
        if not node.is_root:
            root[node.index] = root[node.parent]
    same = root[:, None] == root[joint_of]
    starts, steps = [], []
    for c in range(0, n, columns):
        part = slice(c, min(c + columns, n))
        masks = [bits(x[:, part], columns)[:, 0] for x in (own, above, inside, same)]
        mine, up, below, kin = masks
        full = (1 << columns) - 1
        mixed = (below != 0) & (below != full)
        lists = [
            [(i, mine[i], 0, 0) for i in index if mine[i] or up[i] or mixed[i]],
            [(i, up[i], 0, 0) for i in index[::-1] if up[i]],
            [(i, below[i], mine[i], mine[i] | up[i]) for i in index if kin[i]],
            [(i, 0, 0, 0) for i in index if not kin[i]],
        ]
        for one in lists:
            starts.append(len(steps))
            steps += one
    starts.append(len(steps))
    there = [(1 << min(columns, n - c)) - 1 for c in range(0, n, columns)]
    return integers(starts + there), integers(steps)
