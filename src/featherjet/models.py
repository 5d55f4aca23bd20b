"""Robots by code: `fj.Robot(fj.models.chain(7))`."""

from .model.builtin import arm, auto_tree, chain, humanoid, quadruped, random_tree, tree

__all__ = ["arm", "auto_tree", "chain", "humanoid", "quadruped", "random_tree", "tree"]
