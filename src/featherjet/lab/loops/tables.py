"""A tree of one-dof joints as tables: a path, and what lies beside it, is a few runs of consecutive bodies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import InputError
from ...model.tree import Tree
from ...treejit.tables import constants

Run = tuple[int, int]  # first body, and the one after the last
RUNS = ("above", "before", "after")
LISTS = [f"{kind}_{part}" for kind in RUNS for part in ("from", "first", "stop")]
INTEGERS = ("parent", "end", "children", "path_from", "path", *LISTS)
NUMBERS = ("bodies", "armature")


def tables(tree: Tree) -> dict[str, np.ndarray]:
    """All tables, by the names in INTEGERS and NUMBERS. For each body i there are lists of runs:

    above   its ancestors, nearest first (to be taken downwards)
    before  bodies beside it and all that is above or below it, of smaller number than i
    after   those below it, then those beside it of larger number
    Runs before and after are limbs, in which each body is the only child of the one before it.
    """
    nodes, n = tree.nodes, tree.nv
    kinds = {x.kind for x in nodes}
    if len(kinds) > 1 or nodes[0].kind.nv != 1 or sum(x.is_root for x in nodes) > 1:
        raise InputError("loops are made of trees of one-dof joints of one kind, with one root")
    parents = [x.parent for x in nodes]
    children = np.bincount(parents[1:], minlength=n)
    only = [parents[k] == k - 1 and children[k - 1] == 1 for k in range(n)]
    lists: dict[str, list[list[Run]]] = {kind: [] for kind in RUNS}
    for node in nodes:
        i = node.index
        path = {x.index for x in tree.path(i)}
        lists["above"].append(runs(sorted(path - {i}))[::-1])
        lists["before"].append(runs([k for k in range(i) if k not in path], only))
        lists["after"].append(runs(list(range(i + 1, n)), only))
    paths = [[x.index for x in tree.path(i)][-2::-1] for i in range(n)]
    found: dict[str, Any] = {"parent": parents, "end": tree.ends, "children": children}
    found |= {"path_from": np.cumsum([0, *map(len, paths)]), "path": [k for path in paths for k in path] or [0]}
    for kind, of in lists.items():
        found[f"{kind}_from"] = np.cumsum([0, *map(len, of)])
        for k, part in enumerate(("first", "stop")):
            found[f"{kind}_{part}"] = [run[k] for x in of for run in x] or [0]
    numbers = {
        "bodies": np.array([constants(x) for x in nodes]).ravel(),
        "armature": np.array([x.armature[0] for x in nodes]),
    }
    return {k: np.ascontiguousarray(x, np.int64) for k, x in found.items()} | numbers


def runs(bodies: Sequence[int], joined: Sequence[bool] = ()) -> list[Run]:
    """Increasing numbers as runs of consecutive ones; joined: whether a number may follow the one before."""
    if not bodies:
        return []
    cuts = [k for k, (a, b) in enumerate(pairwise(bodies), 1) if b != a + 1 or (joined and not joined[b])]
    return [(bodies[a], bodies[b - 1] + 1) for a, b in pairwise([0, *cuts, len(bodies)])]
