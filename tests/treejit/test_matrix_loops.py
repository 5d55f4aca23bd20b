"""The schedules of matrices and tensors give what plain loops give, for one sample and for many."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES, shape, sizes
from featherjet.model.tree import Tree
from featherjet.treejit.program import Blocks, Pairs, Responses, Sum, Torques, Triples
from featherjet.treejit.rolled import trace_rolled
from featherjet.treejit.tables import variants
from helpers import agree, every_kind, random_state
from plain_loops import PlainLoops

SAMPLES = 9  # more than the lanes there are
NAMES = {
    "mass_matrix": {Pairs},
    "inverse_dynamics_derivatives": {Pairs},
    "inverse_mass_matrix": {Torques},
    "forward_dynamics_derivatives": {Torques},
    "forward_dynamics_second_order": {Pairs, Responses, Sum},
    "inverse_dynamics_second_derivatives": {Triples},
    "torque_regressor": {Blocks},
}
ROBOTS = {
    "every kind": lambda: every_kind(2).model,
    "limbs": lambda: fj.models.auto_tree(11, branching=2, skew=0.3),
    "several trees": lambda: fj.models.random_tree(9, seed=4),
}


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", NAMES)
def test_schedules_are_plain_loops(name: str, robot: str) -> None:
    compiled = fj.Robot(ROBOTS[robot](), backend="compiled", unroll=False)
    record, tree = QUANTITIES[name], Tree(compiled.model)
    program = trace_rolled(record, variants(tree), False)
    assert NAMES[name] <= set(map(type, program.loops))
    state = random_state(compiled, SAMPLES)
    given = {"q": state.q, "v": state.v, "a": state.a, "tau": state.a, "w": state.v}
    inputs = {i.name: given[i.name] for i in record.inputs}
    axes = [r.axes for r in record.results]
    plain = PlainLoops(program, tree, inputs).results(axes, [shape(x, sizes(tree)) for x in axes])
    for count in (1, SAMPLES):
        some = [x[:count] for x in inputs.values()]
        found = compiled.evaluator.run(name, [x[0] for x in some] if count == 1 else some)
        for k, (x, y) in enumerate(zip(found, plain, strict=True)):
            agree(np.reshape(x, y[:count].shape), y[:count], 1e-10, f"result {k} of {count}")
