"""The walks of rolled programs, run on arrays, give what the reference gives: they are what the machine code means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import featherjet as fj
from featherjet.algorithms.quantities import QUANTITIES
from featherjet.jit.number import DOUBLE
from featherjet.math.loops import ArrayLoops, LoopArray
from featherjet.model.tree import Tree
from featherjet.treejit.program import Program
from featherjet.treejit.rolled import trace_rolled
from featherjet.treejit.tables import Tables, variants
from featherjet.treejit.walks import INTEGERS, MemoryLayout, run
from helpers import agree, every_kind, random_state

SAMPLES = 3
ROBOTS = {"every kind": lambda: every_kind(2), "tree": lambda: fj.Robot(fj.models.auto_tree(13, branching=2, skew=0.3))}


def interpreted(program: Program, tree: Tree, inputs: dict[str, Any]) -> list[np.ndarray]:
    """The results of a program that has walks alone, for inputs (samples, n)."""
    layout, arrays = MemoryLayout(program, ("J", "D")), Tables(tree, 1, DOUBLE).arrays
    counts = {name: arrays[name] for name in ("joints", "nv")}
    sizes = {"J": counts["joints"] * layout.NJ, "D": counts["nv"] * layout.ND + layout.counts["G"]}
    spaces = {name: LoopArray(np.zeros((n, SAMPLES)), 1) for name, n in sizes.items()}
    memory = spaces | {name: LoopArray(arrays[name].ravel()) for name in ("table", "dofs", "param")}
    memory |= {name: LoopArray(x.T, 1) for name, x in inputs.items()}
    for loop in program.loops:
        run(ArrayLoops((SAMPLES,)), layout, loop, memory, {x: arrays[x] for x in INTEGERS}, counts)
    found, end = [], counts["nv"] * layout.ND
    sums = spaces["D"].values[end:]
    for out in program.outputs:
        if out.kind == "total":
            found.append(program.graph.interpret([x.index for x in out.values], lambda ref: sums[layout.at(ref)]))
        else:
            (key,) = out.keys
            found.append(spaces["D"].values[layout.offset[key] : end : layout.ND])
    return [np.array(x).T for x in found]


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "bias", "kinetic_energy"])
def test_walks_on_arrays(name: str, robot: str) -> None:
    reference = fj.Robot(ROBOTS[robot]().model, backend="numpy")
    state, tree = random_state(reference, SAMPLES), Tree(reference.model)
    given = {"q": state.q, "v": state.v, "a": state.a, "tau": state.a}
    inputs = {i.name: given[i.name] for i in QUANTITIES[name].inputs}
    (found,) = interpreted(trace_rolled(QUANTITIES[name], variants(tree), False), tree, inputs)
    agree(np.squeeze(found), getattr(reference, name)(*inputs.values()), 1e-12)
