"""The walks of rolled programs, run on arrays, give what the reference gives: they are what the machine code means."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES, shape, sizes
from featherjet.jit.number import DOUBLE
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.model.tree import Tree
from featherjet.treejit.program import Program
from featherjet.treejit.results import COUNTS, write
from featherjet.treejit.rolled import trace_rolled
from featherjet.treejit.tables import Tables, variants
from featherjet.treejit.walks import INTEGERS, MemoryLayout, run
from helpers import agree, every_kind, random_state

SAMPLES = 3
NAMES = ["inverse_dynamics", "forward_dynamics", "bias", "kinetic_energy", "forward_kinematics", "center_of_mass"]
NOTHING = dict.fromkeys(COUNTS, 0)  # no contacts
ROBOTS = {"every kind": lambda: every_kind(2), "tree": lambda: fj.Robot(fj.models.auto_tree(13, branching=2, skew=0.3))}


def interpreted(program: Program, tree: Tree, inputs: dict[str, Any], results: list[Any]) -> list[np.ndarray]:
    """The results of a program that has walks alone, for inputs (samples, n); results: their axes."""
    layout, arrays = MemoryLayout(program, ("J", "D")), Tables(tree, 1, DOUBLE).arrays
    counts = {name: arrays[name] for name in ("joints", "nv")}
    lengths = {"J": counts["joints"] * layout.NJ, "D": counts["nv"] * layout.ND + layout.counts["G"]}
    spaces = {name: LoopArray(np.zeros((n, SAMPLES)), 1) for name, n in lengths.items()}
    memory = spaces | {name: LoopArray(arrays[name].ravel()) for name in ("table", "dofs", "param")}
    memory |= {name: LoopArray(x.T, 1) for name, x in inputs.items()}
    for loop in program.loops:
        run(ArrayLoops((SAMPLES,)), layout, loop, memory, {x: arrays[x] for x in INTEGERS}, counts)
    found = []
    for out, axes in zip(program.outputs, results, strict=True):
        entries = np.zeros((prod(shape(axes, sizes(tree))), SAMPLES))
        write(ArrayLoops((SAMPLES,)), layout, out, axes, LoopArray(entries, 1), memory, None, {**NOTHING, **counts})
        found.append(entries.T.reshape(SAMPLES, *shape(axes, sizes(tree))))
    return found


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", NAMES)
def test_walks_on_arrays(name: str, robot: str) -> None:
    reference = fj.Robot(ROBOTS[robot]().model, backend="numpy")
    state, tree = random_state(reference, SAMPLES), Tree(reference.model)
    given = {"q": state.q, "v": state.v, "a": state.a, "tau": state.a}
    inputs = {i.name: given[i.name] for i in QUANTITIES[name].inputs}
    axes = [r.axes for r in QUANTITIES[name].results]
    (found,) = interpreted(trace_rolled(QUANTITIES[name], variants(tree), False), tree, inputs, axes)
    agree(found, getattr(reference, name)(*inputs.values()), 1e-12)
