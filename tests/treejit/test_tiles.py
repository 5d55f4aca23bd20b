"""Tiles of matrices over dofs: their tables, which machine code trusts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherjet as fj
from backends import branching
from featherjet.algorithms.scan import Scan
from featherjet.model.tree import Tree
from featherjet.treejit.tiles import ACROSS, DIAGONAL, MIXED, OWN, UNRELATED, WITHIN, entry_codes, tile_runs
from helpers import models


def codes_by_scan(tree: Tree) -> np.ndarray:
    """What each entry is, as the reference's loop over pairs tells it."""
    marks = [[np.full((), fill) for _ in node.dofs] for node in tree.nodes for fill in [0.0]]
    (found,) = Scan(tree, ()).pairs(
        lambda i, k: (0 * (i + k) + WITHIN,),
        lambda i, k: (0 * (i + k) + ACROSS,),
        marks,
        lambda i: (DIAGONAL - OWN,),
        own=lambda i, k: (0 * (i + k) + OWN,),
    )
    return found


def written(tree: Tree, size: int) -> tuple[np.ndarray, np.ndarray]:
    """What runs of tiles write at each entry, and how often."""
    codes, times = np.full((2, tree.nv, tree.nv), -1)
    times[:] = 0
    runs, mixed = tile_runs(tree, size)
    for kind, row, first, end, at in runs:
        assert 0 <= row <= tree.nv - size
        assert 0 <= first < end <= tree.nv
        assert (end - first) % size == 0
        for column in range(first, end, size):
            tile = slice(row, row + size), slice(column, column + size)
            codes[tile] = mixed[at : at + size**2].reshape(size, size) if kind == MIXED else kind
            times[tile] += 1
    return codes, times


@settings(max_examples=50)
@given(models(), st.sampled_from([2, 4]))
def test_tiles_write_every_entry_as_what_it_is(model, size):
    tree = Tree(model)
    codes, times = written(tree, size)
    if tree.nv < size:
        assert (times == 0).all()
        return
    np.testing.assert_array_equal(codes, entry_codes(tree))
    assert (times > 0).all()
    if tree.nv % size == 0:
        assert (times == 1).all()


@pytest.mark.parametrize("model", [branching(9), fj.models.quadruped(), fj.models.random_tree(8, seed=6)])
def test_entries_are_what_the_reference_takes_them_for(model):
    tree = Tree(model)
    np.testing.assert_array_equal(entry_codes(tree), codes_by_scan(tree))
    assert {UNRELATED, WITHIN, ACROSS, OWN, DIAGONAL} <= {*np.unique(entry_codes(tree)).tolist()}


def test_a_chain_has_long_runs():
    """Two or three runs in each row of tiles: before the diagonal, on it, and after it."""
    runs, mixed = tile_runs(Tree(fj.models.chain(40)), 4)
    assert len(runs) == 10 * 3 - 2
    assert len(mixed) - 1 == 10 * 16
