"""A small tree with joints of several degrees of freedom, for tests that compile."""

from __future__ import annotations

import numpy as np

import featherjet as fj
from featherjet.model.builder import transform


def small_tree() -> fj.Model:
    """A free base that carries an arm on a ball joint, and another beside it."""
    rng = np.random.default_rng(0)
    builder = fj.ModelBuilder("tree")
    arms = (("ball", "spherical", "base"), ("a", "revolute", "ball"), ("b", "revolute", "base"))
    for name, kind, parent in (("base", "free", None), *arms):
        builder.add_joint(name, kind, parent, transform(p=rng.uniform(-0.3, 0.3, 3)))
        builder.add_body(name, 1.0 + rng.random(), rng.uniform(-0.1, 0.1, 3), np.diag(0.1 + 0.05 * rng.random(3)))
    builder.add_frame("tip", "a", transform(p=(0.1, 0.2, 0.3)))
    return builder.build()
