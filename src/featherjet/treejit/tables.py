"""The tables of one robot that a rolled program reads at run time."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..algorithms.quantities import sizes
from ..jit.data import Data
from ..jit.number import Number
from ..model.tree import Tree
from .program import COUNTS, TABLE, TABLES, Variant
from .tiles import samples_at_once, tile_runs, tile_size

# Integers of two bytes for each (row, group) of pairs: within, across, diagonal, existing columns, own joint.
MASKS = 5
NOTHING, WITHIN, ACROSS, MIXED = range(4)  # kinds of runs of groups
RUN = 3  # integers for each run: its kind, its first group and the one after its last
SLAB = 3  # integers for each run of rows of a slab: whether they have entries, the first and the one after the last
# The four lists that each group has (see ColumnSteps), and the integers of each of their entries.
OWN, UP, OUT, UNRELATED = range(4)
STEP = 7
# Kinds of runs outward: on the way to a column's joint, beside that way, below the joint, and mixed by lane.
ALONG, STILL, INSIDE, SOME = range(4)
# The lists that each group of rows has (see TorqueSteps), and the integers of each of their entries and of a path's.
TORQUE_UP, EARLY, TORQUE_OUT, OTHER_TREES = TORQUE_LISTS = range(4)
TORQUE_STEP, TORQUE_PATH = 6, 4


def variants(tree: Tree) -> tuple[Variant, ...]:
    """The joint variants of a tree, sorted."""
    return tuple(sorted({Variant(n.kind.name, n.is_root, n.kind.nq, n.kind.nv) for n in tree.nodes}))


def unit_parts(tree: Tree) -> list[tuple[int, int]]:
    """(start, size) of the parts of q that must have norm one: quaternions and cosine-sine pairs."""
    c = tree.coupling  # with mimicking joints, q is that of the independent ones
    place = c.qi if c else np.arange(tree.nq)
    return [(int(place[n.q.start + p.start]), p.stop - p.start) for n in tree.nodes for p in n.kind.manifold.units]


class Tables(Data):
    """The tables as arrays, and the block of counts and pointers that a kernel reads.

    columns: lanes of the code, one for each column of a matrix; kind: the numbers it computes with.
    """

    def __init__(self, tree: Tree, columns: int, kind: Number) -> None:
        nodes = tree.nodes
        known = variants(tree)
        c, size, units = tree.coupling, sizes(tree), unit_parts(tree)
        variant = [known.index((n.kind.name, n.is_root, n.kind.nq, n.kind.nv)) for n in nodes]
        masks = pair_masks(tree, columns)
        pair_starts, runs = pair_runs(masks)
        slab_starts, slabs = slab_runs(tree)
        tiles, codes = tile_runs(tree, tile_size(samples_at_once(columns, kind)))
        responses = ColumnSteps(tree, columns, variant, STEP)
        torques = TorqueSteps(tree, columns, variant, TORQUE_STEP)
        self.arrays: dict[str, Any] = {
            "joints": len(nodes),
            "nq": size["q"],
            "nv": size["v"],
            "n_units": len(units),
            "groups": -(-tree.nv // columns),
            "n_tile_runs": len(tiles),
            "parent": integers([n.parent for n in nodes]),
            "variant": integers(variant),
            "q_start": integers([n.q.start for n in nodes]),
            "v_start": integers([*(n.v.start for n in nodes), tree.nv]),
            "units": integers(units or [(0, 0)]),
            "table": np.array([constants(n) for n in nodes], kind.dtype),
            "dofs": np.array([a for n in nodes for a in n.armature], kind.dtype),
            "param": np.array([tree.gravity.x, tree.gravity.y, tree.gravity.z], kind.dtype),
            "pair_masks": masks,
            "pair_starts": pair_starts,
            "pair_runs": runs,
            "start": responses.starts,
            "bodies": responses.steps,
            "paths": integers(responses.paths or [(0, 0)]),
            "ends": integers([tree.subtree(n).stop for n in nodes]),
            "body_ends": integers(tree.ends),
            "torque_starts": torques.starts,
            "torque_steps": torques.steps,
            "torque_paths": integers(torques.paths),
            "tile_runs": tiles,
            "tile_codes": codes,
            "slab_starts": slab_starts,
            "slab_runs": slabs,
        }
        self.kinds = [n.kind.name for n in nodes]
        self.mimics = [x.tobytes() for x in (c.qi, c.qs, c.q0, c.vi, c.vs)] if c else []
        super().__init__(kind, [self.arrays[name] for name in (*COUNTS, *TABLES)])

    @property
    def digest(self) -> str:
        """A hash of everything that straight-line code for this robot depends on."""
        names = ("parent", "q_start", "v_start", "table", "dofs", "param")
        parts = [repr(self.kinds).encode(), *(self.arrays[name].tobytes() for name in names), *self.mimics]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def integers(x: Any) -> np.ndarray:
    return np.ascontiguousarray(x, np.int64)


def constants(node) -> list[float]:
    """A joint's row of the table, in the order of TABLE."""
    X, body, A = node.X, node.body, node.align
    row = [
        *(x for c in (X.R.x, X.R.y, X.R.z) for x in (c.x, c.y, c.z)),
        X.p.x, X.p.y, X.p.z, body.m, body.c.x, body.c.y, body.c.z,
        body.Ic.xx, body.Ic.xy, body.Ic.xz, body.Ic.yy, body.Ic.yz, body.Ic.zz, node.pitch,
        *(x for c in (A.x, A.y, A.z) for x in (c.x, c.y, c.z)), node.index, node.end,
    ]  # fmt: skip
    assert len(row) == sum(TABLE.values())
    return row


def bits(flags: np.ndarray, columns: int) -> np.ndarray:
    """Booleans over dofs (..., nv) as bit masks, one for each group of columns (..., groups)."""
    n = flags.shape[-1]
    padded = np.zeros((*flags.shape[:-1], -(-n // columns) * columns), bool)
    padded[..., :n] = flags
    return padded.reshape(*flags.shape[:-1], -1, columns) @ (1 << np.arange(columns))


def pair_masks(tree: Tree, columns: int) -> np.ndarray:
    """For each row and group of columns, masks of those within, across, on the diagonal, existing, of its own joint."""
    n = tree.nv
    within, across, own = np.zeros((3, n, n), bool)
    for node in tree.nodes:
        subtree = tree.subtree(node)
        within[subtree, node.v] = True
        across[node.v, node.v.stop : subtree.stop] = True
        own[node.v, node.v] = True
    parts = (within, across, np.eye(n, dtype=bool), np.ones((n, n), bool), own)
    return np.ascontiguousarray(np.stack([bits(p, columns) for p in parts], -1).astype(np.uint16))


def pair_runs(masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each two rows, runs of groups of one kind: where they start in the list, and the list of (kind, from, to)."""
    n, groups, _ = masks.shape
    starts, runs = [], []
    for r in range(0, n, 2):
        starts.append(len(runs))
        within, across, _, _, own = masks[r : r + 2].max(0).T
        kinds = np.where(within, WITHIN, np.where(across, ACROSS, NOTHING))
        kinds[(within > 0) & (across > 0) | (own > 0)] = MIXED
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1), groups]
        runs += [(kinds[a], a, b) for a, b in itertools.pairwise(edges)]
    starts.append(len(runs))
    return integers(starts), integers(runs)


def slab_runs(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """For each dof, runs of rows two at a time: where they start, and the list of (on a path with it?, from, to)."""
    n, starts, runs = tree.nv, [0], []
    for node in tree.nodes:
        kin = np.zeros(n + n % 2, bool)
        kin[tree.subtree(node)] = kin[tree.dof_path(node.index)] = True
        some = kin[::2] | kin[1::2]
        edges = [0, *(np.flatnonzero(np.diff(some)) + 1), len(some)]
        found = [(some[a], 2 * a, min(2 * b, n)) for a, b in itertools.pairwise(edges)]
        for _ in node.dofs:
            runs += found
            starts.append(len(runs))
    return integers(starts), integers(runs)


class GroupSteps:
    """The steps that loops take for each group of columns or rows, which go up to the root and out over all bodies.

    Each group has lists of entries, which begin at `starts`; after all starts, `starts` has a mask for each group: the
    lanes that exist. width: the integers of an entry. `paths` has what lists of runs on the way up refer to.
    """

    def __init__(self, tree: Tree, columns: int, variant: list[Any], width: int) -> None:
        self.tree, self.variant, self.full = tree, variant, (1 << columns) - 1
        nodes, n = tree.nodes, tree.nv
        self.index, self.ends, self.root = np.arange(len(nodes)), np.array(tree.ends), np.arange(len(nodes))
        for node in nodes:
            if not node.is_root:
                self.root[node.index] = self.root[node.parent]
        self.parent = [node.parent for node in nodes]
        self.children = np.bincount([i for i in self.parent if i >= 0], minlength=len(nodes))
        self.paths: list[tuple[int, ...]] = []
        joint_of = np.repeat(self.index, [node.kind.nv for node in nodes])
        masks = [(1 << min(columns, n - c)) - 1 for c in range(0, n, columns)]
        starts: list[int] = []
        steps: list[tuple[Any, ...]] = []
        for c, existing in zip(range(0, n, columns), masks, strict=True):
            for entries in self.lists(joint_of[c : c + columns], columns, existing):
                starts.append(len(steps))
                steps += [(*entry, *(0,) * (width - len(entry))) for entry in entries]
        starts.append(len(steps))
        self.starts, self.steps = integers(starts + masks), integers(steps)

    def lists(self, joints: np.ndarray, columns: int, existing: int) -> Sequence[Sequence[tuple[Any, ...]]]:
        """The lists of a group, which begins at these joints' dofs; existing: a mask of those of its lanes."""
        raise NotImplementedError

    def path_runs(self, path: Sequence[tuple[Any, ...]], full: Callable[..., bool]) -> list[tuple[int, ...]]:
        """Entries of a way up, whose first number is the body, as runs of `paths`: (first, end, full?, variant)."""
        runs: list[tuple[int, ...]] = []
        for entry in path:
            kind, at = (int(full(*entry)), self.variant[entry[0]]), len(self.paths)
            self.paths.append(entry)
            first = runs.pop()[0] if runs and runs[-1][2:] == kind else at
            runs.append((first, at + 1, *kind))
        return runs

    def add_limb(self, runs: list[tuple[int, ...]], i: int, alike: tuple[Any, ...], alone: bool) -> None:
        """Add body i to the limb that ends before it, if `alike` says the same of both, or else begin one.

        A limb is (first body, end, *alike, whether the last has children). alone: a limb of one body.
        """
        continues = runs and runs[-1][1] == i and self.parent[i] == i - 1 and self.children[i - 1] == 1
        first = runs.pop()[0] if continues and not alone and runs[-1][2:-1] == alike else i
        runs.append((first, i + 1, *alike, int(self.children[i] > 0)))


class ColumnSteps(GroupSteps):
    """The steps of `emit/responses.py` for each group of columns, in four lists:

    OWN: (joint, lanes whose own joint it is, variant), joints at whose dofs the way up may leave values;
    UP: (first, end, all lanes?, variant), runs of `paths`, whose entries are (ancestor, lanes below it), nearest first;
    OUT: (first body, end, kind, variant, lanes at or below, lanes at, whether the last has children), limbs;
    UNRELATED: (body,) of trees that have none of the columns.
    """

    def lists(self, joints: np.ndarray, columns: int, existing: int) -> Sequence[Sequence[tuple[Any, ...]]]:
        index, ends = self.index[:, None], self.ends
        above = (index < joints) & (joints < ends[:, None])  # body i is an ancestor of the column's joint
        inside = (joints < index) & (index < ends[joints])
        own, up, below = (bits(x, columns)[:, 0] for x in (index == joints, above, inside))
        kin = np.isin(self.root, self.root[joints])
        return (
            [(i, own[i], self.variant[i]) for i in self.index if own[i] or up[i]],
            self.path_runs([(i, up[i]) for i in self.index[::-1] if up[i]], lambda i, mask: mask == self.full),
            self._out([(i, own[i], up[i], below[i]) for i in self.index if kin[i]]),
            [(i,) for i in self.index if not kin[i]],
        )

    def _out(self, bodies: Sequence[tuple[Any, ...]]) -> list[tuple[int, ...]]:
        runs: list[tuple[int, ...]] = []
        for i, own, up, below in bodies:
            if not own and not below:
                kind, masks = (ALONG if up or self.tree.nodes[i].is_root else STILL), (0, 0)
            elif not own and not up:
                kind, masks = INSIDE, (below, 0)
            else:
                kind, masks = SOME, (own | below, own)
            self.add_limb(runs, i, (kind, self.variant[i], *masks), alone=own)
        return runs


class TorqueSteps(GroupSteps):
    """The steps of `emit/torques.py` for each group of rows, torques at dofs, one in each lane, in four lists:

    UP: (first, end, all lanes?, variant), runs of `paths`, whose entries are (body, lanes whose own joint it is, lanes
        beyond it, whether the way branches there), outermost first;
    EARLY: like OUT, but of the bodies before all joints of the group;
    OUT: (first body, end, lanes whose own joint it is, lanes at or beyond it, variant, whether the last has children),
        limbs that no lane's path crosses, each body the parent of the next; or one body of some lanes' paths. These
        are here even if they are also in EARLY, so that OUT can do without that;
    OTHER_TREES: (body,) of trees that have none of the rows.
    """

    def lists(self, joints: np.ndarray, columns: int, existing: int) -> Sequence[Sequence[tuple[Any, ...]]]:
        index, root = self.index[:, None], self.root
        inside = (index < joints) & (joints < self.ends[:, None])
        own, beyond = (bits(x, columns)[:, 0] for x in (index == joints, inside))
        kin = [i for i in self.index if root[i] in root[joints]]
        path = [i for i in self.index[::-1] if own[i] or beyond[i]]
        return (
            self.path_runs(
                [(i, own[i], beyond[i], int(beyond[i] and self.children[i] > 1)) for i in path],
                lambda i, own, beyond, branches: beyond == existing,
            ),
            self._out([i for i in kin if i < joints[0]], own, beyond, existing),
            self._out([i for i in kin if i >= joints[0] or beyond[i]], own, beyond, existing),
            [(i,) for i in self.index if root[i] not in root[joints]],
        )

    def _out(self, bodies: Sequence[Any], own: Any, beyond: Any, existing: int) -> list[tuple[int, ...]]:
        """Limbs; of bodies beyond which all lanes lie, entries and state are known from the way up."""
        runs: list[tuple[int, ...]] = []
        for i in (i for i in bodies if beyond[i] != existing):
            at_or_beyond = own[i] | beyond[i]
            self.add_limb(runs, i, (own[i], at_or_beyond, self.variant[i]), alone=at_or_beyond)
        return runs
