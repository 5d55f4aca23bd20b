"""A robot's tables: what a compiled program reads as it runs."""

from __future__ import annotations

import ctypes

import numpy as np

from ..model.tree import Tree
from .emit import SLOTS
from .program import Variant
from .rolled import TABLE

ZERO, WITHIN, ACROSS, DIAGONAL = range(4)


def variants(tree: Tree) -> tuple[Variant, ...]:
    """The joint variants a tree has, sorted."""
    return tuple(sorted({Variant(n.kind.name, n.is_root, n.kind.nq, n.kind.nv) for n in tree.nodes}))


class Tables:
    """Arrays and the block of pointers to them; `flags` is what kernels report into."""

    def __init__(self, tree: Tree, least: np.ndarray) -> None:
        nodes = tree.nodes
        known = variants(tree)
        ends = np.array(tree.ends)
        parents = np.array([n.parent for n in nodes])
        root = np.arange(len(nodes))
        for n in nodes:
            if not n.is_root:
                root[n.index] = root[n.parent]
        run_start, runs = matrix_runs(tree)
        units = [
            (n.q.start + part.start, part.stop - part.start) for n in nodes for part in n.kind.manifold.units
        ]
        self.flags = np.zeros(1, np.int64)
        arrays: dict[str, object] = {
            "joints": len(nodes),
            "nq": tree.nq,
            "nv": tree.nv,
            "parent": parents,
            "variant": np.array([known.index((n.kind.name, n.is_root, n.kind.nq, n.kind.nv)) for n in nodes]),
            "q_start": np.array([n.q.start for n in nodes]),
            "v_start": np.array([n.v.start for n in nodes] + [tree.nv]),
            "joint_end": ends,
            "root": root,
            "joint_of": np.repeat(np.arange(len(nodes)), [n.kind.nv for n in nodes]),
            "table": np.array([constants(n) for n in nodes]),
            "dofs": np.array([a for n in nodes for a in n.armature]),
            "param": np.array([tree.gravity.x, tree.gravity.y, tree.gravity.z]),
            "run_start": run_start,
            "runs": runs,
            "units": np.array(units or [(0, 0)]),
            "n_units": len(units),
            "flags": self.flags,
            "least": least,
        }
        self.arrays = {
            name: a if isinstance(a, int) else np.ascontiguousarray(a, float if a.dtype.kind == "f" else np.int64)  # type: ignore[union-attr]
            for name, a in arrays.items()
        }
        self.arrays["flags"] = self.flags
        self.block = np.array(
            [a if isinstance(a, int) else a.ctypes.data for a in (self.arrays[name] for name in SLOTS)],
            dtype=np.uint64,
        )

    @property
    def address(self) -> int:
        return self.block.ctypes.data


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


def matrix_runs(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """For each row of a matrix over dofs its columns in runs (first, end, code), and where each row's runs begin."""
    n = tree.nv
    code = np.zeros((n, n), np.int8)
    for node in tree.nodes:
        sub = tree.subtree(node)
        code[sub, node.v] = WITHIN
        code[node.v, node.v.stop : sub.stop] = ACROSS
    np.fill_diagonal(code, DIAGONAL)
    starts, runs = [0], []
    for row in code:
        edges = np.flatnonzero(np.diff(row)) + 1
        bounds = [0, *edges.tolist(), n]
        runs += [(a, z, int(row[a])) for a, z in zip(bounds[:-1], bounds[1:], strict=True)]
        starts.append(len(runs))
    return np.array(starts), np.array(runs)
