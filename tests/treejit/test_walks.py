"""The walks of rolled programs, run on arrays, give what the reference gives: they are what the machine code means."""

from __future__ import annotations

import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES, shape, sizes
from featherjet.model.tree import Tree
from featherjet.treejit.rolled import trace_rolled
from featherjet.treejit.tables import variants
from helpers import agree, every_kind, random_state
from plain_loops import PlainLoops

SAMPLES = 3
NAMES = ["inverse_dynamics", "forward_dynamics", "bias", "kinetic_energy", "forward_kinematics", "center_of_mass"]
ROBOTS = {"every kind": lambda: every_kind(2), "tree": lambda: fj.Robot(fj.models.auto_tree(13, branching=2, skew=0.3))}


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", NAMES)
def test_walks_on_arrays(name: str, robot: str) -> None:
    reference = fj.Robot(ROBOTS[robot]().model, backend="numpy")
    record, state, tree = QUANTITIES[name], random_state(reference, SAMPLES), Tree(reference.model)
    given = {"q": state.q, "v": state.v, "a": state.a, "tau": state.a}
    inputs = {i.name: given[i.name] for i in record.inputs}
    axes = [r.axes for r in record.results]
    loops = PlainLoops(trace_rolled(record, variants(tree), False), tree, inputs)
    (found,) = loops.results(axes, [shape(x, sizes(tree)) for x in axes])
    agree(found, getattr(reference, name)(*inputs.values()), 1e-12)
