"""Results have the same bits for any number of lanes, any batch and any split."""

from __future__ import annotations

import numpy as np
import pytest

import featherjet as fj
from featherjet.jit.engine import targets
from featherjet.lab import bits

FUSING = [name for name in targets() if name != "x86-64-v2"]
SIZES = (1, 3, 8, 21)


def digests() -> dict[str, str]:
    return {name: bits.digest(compute()) for name, compute in bits.groups(("quadruped",), seconds=0.25)}


def test_every_processor_with_fused_multiply_add_has_the_same_bits(monkeypatch):
    found = []
    for level in FUSING:
        monkeypatch.setenv("FEATHERJET_CPU", level)
        found.append(digests())
    assert all(x == found[0] for x in found)


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives", "forward_dynamics"])
@pytest.mark.parametrize("robot", ["quadruped", "humanoid"])
def test_a_batch_has_the_bits_of_its_parts(robot, name):
    """Straight-line code and loops, one by one and in vectors with and without a rest."""
    machine = fj.load(robot, backend="compiled")
    record = bits.QUANTITIES[name]
    given = bits.inputs(machine, record, float, max(SIZES))
    whole = machine.evaluator.run(name, given)
    for size in SIZES:
        part = machine.evaluator.run(name, [x[:size] for x in given])
        assert all(np.array_equal(x, y[:size]) for x, y in zip(part, whole, strict=True))
    one = machine.evaluator.run(name, [x[2] for x in given])
    assert all(np.array_equal(x, y[2]) for x, y in zip(one, whole, strict=True))


def test_a_hash_tells_the_last_bit():
    x = np.linspace(0, 1, 7)
    y = x.copy()
    y[3] = np.nextafter(y[3], 2)
    assert bits.digest([x]) == bits.digest([x.copy()]) != bits.digest([y])
