"""Tables of tiles: the squares of a matrix over dofs that `emit/tiles.py` computes, in order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..jit.number import Number
from ..model.tree import Tree

HALF = 32  # bytes of half a register, the widest there is; some processors do as much with it as with a whole one
# What an entry is: of unrelated dofs, at or above the row's dof, below it, of its own joint, on the diagonal.
UNRELATED, WITHIN, ACROSS, OWN, DIAGONAL = range(5)
MIXED = 3  # a run of one tile, whose entries differ; other runs are UNRELATED, WITHIN or ACROSS
TILE_RUN = 5  # integers for each run: its kind, its first row, its first column, where its columns end, its codes


def samples_at_once(lanes: int, kind: Number) -> int:
    """How many samples the loops treat together where there are matrices.

    The walks' numbers of more samples would not fit the second-level cache.
    """
    return min(lanes, HALF // kind.bytes)


def tile_size(samples: int) -> int:
    """The number of rows and columns of a tile. In trees, larger tiles would often have entries of several kinds."""
    return min(samples, 4)


def entry_codes(tree: Tree) -> np.ndarray:
    """What each entry of a matrix over dofs is, as bytes (nv, nv)."""
    codes = np.full((tree.nv, tree.nv), UNRELATED, np.uint8)
    for node in tree.nodes:
        subtree = tree.subtree(node)
        codes[subtree, node.v] = WITHIN
        codes[node.v, node.v.stop : subtree.stop] = ACROSS
        codes[node.v, node.v] = OWN
    np.fill_diagonal(codes, DIAGONAL)
    return codes


def tile_runs(tree: Tree, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs of tiles of one kind, and the codes of all entries of MIXED tiles, one after the other.

    If the last tile would reach beyond the last dof, it begins earlier. Robots with fewer dofs than a tile have none.
    """
    n = tree.nv
    if n < size:
        return np.zeros((0, TILE_RUN), np.int64), np.zeros(1, np.uint8)
    starts = np.array(sorted({*range(0, n - size + 1, size), n - size}))
    dofs = starts[:, None] + np.arange(size)
    tiles = entry_codes(tree)[dofs[:, None, :, None], dofs[None, :, None, :]].reshape(len(starts), len(starts), -1)
    first = tiles[..., 0]
    kinds = np.where((tiles == first[..., None]).all(-1) & (first <= ACROSS), first, MIXED)
    runs: list[tuple[Any, ...]] = []
    mixed: list[np.ndarray] = []
    for r, row in enumerate(kinds):
        breaks = (np.diff(row) != 0) | (row[1:] == MIXED) | (np.diff(starts) != size)
        edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(starts)]
        for a, b in itertools.pairwise(edges):
            runs.append((row[a], starts[r], starts[a], starts[b - 1] + size, len(mixed) * size**2))
            if row[a] == MIXED:
                mixed.append(tiles[r, a])
    return np.array(runs, np.int64).reshape(-1, TILE_RUN), np.concatenate([*mixed, np.zeros(1, np.uint8)])
