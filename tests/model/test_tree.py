"""Paths from the root to a joint, over joints and over degrees of freedom."""

from __future__ import annotations

import pytest

import featherjet as fj
from featherjet.model.model import WORLD
from featherjet.model.tree import Tree, paths


@pytest.mark.parametrize("seed", range(3))
def test_a_path_leads_from_the_root_to_the_joint(seed: int) -> None:
    tree = Tree(fj.models.random_tree(12, seed=seed))
    for node in tree.nodes:
        path = tree.path(node.index)
        assert path[0].is_root
        assert path[-1] is node
        assert [n.parent for n in path[1:]] == [n.index for n in path[:-1]]
        assert tree.dof_path(node.index) == [k for n in path for k in range(n.v.start, n.v.stop)]
        ancestors = {n.index for n in tree.nodes if n.index <= node.index < tree.ends[n.index]}
        assert {n.index for n in path} == ancestors


def test_the_world_has_no_path() -> None:
    tree = Tree(fj.models.chain(2))
    assert tree.path(WORLD) == []
    assert tree.dof_path(WORLD) == []


def test_paths_over_degrees_of_freedom_agree() -> None:
    tree = Tree(fj.models.random_tree(9, seed=7))
    for node in tree.nodes:
        assert paths(tree.dof_parents)[node.v.stop - 1] == tree.dof_path(node.index)
